"""How often a plugin without promises gives the answer about a node that it gave for the pod before.

Where that is nearly always so, two lines make its answers be kept: `reads` and `sign`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

import attrs

from kschedfw import AnyPlugin, NodeInfo, Status

_HOOKS = ("filter", "score")


@attrs.define
class Answers:
    """What a plugin answered: its latest answers by hook and node, how many came again, and how many were the same."""

    latest: dict[tuple[str, str], object] = attrs.field(factory=dict)
    again: int = 0
    same: int = 0

    @property
    def share(self) -> float | None:
        """Of the answers that came again, those that were the same; None if none came again."""
        return self.same / self.again if self.again else None

    def take(self, hook: str, node: str, answer: object) -> None:
        if isinstance(answer, Status):
            answer = answer.code, answer.reasons
        if (hook, node) in self.latest:
            self.again += 1
            self.same += self.latest[hook, node] == answer
        self.latest[hook, node] = answer


class Listener:
    """Listens to the answers of the plugins with these names."""

    def __init__(self, names: Collection[str]) -> None:
        self.answers = {name: Answers() for name in names}

    def listened_to(self, plugin: type[AnyPlugin]) -> type[AnyPlugin]:
        """The plugin, which is listened to if it is one of those; else as it is."""
        if plugin.name not in self.answers:
            return plugin
        hooks = {
            hook: _noting(plugin, hook, self.answers[plugin.name])
            for hook in _HOOKS
            if getattr(plugin, hook, None) is not None
        }
        return type(plugin.__name__, (plugin,), {"__module__": plugin.__module__, **hooks})


def _noting(plugin: type[AnyPlugin], hook: str, answers: Answers) -> Callable[..., object]:
    """The plugin's hook, with all the arguments that there are, as it has to be asked for a node."""
    taken: list[str] | None = None

    def note(self: Any, state: object, pod: object, node_info: NodeInfo) -> object:
        nonlocal taken
        asked = getattr(super(type(self), self), hook)
        if taken is None:
            taken = list(inspect.signature(asked).parameters)
        given = {"state": state, "pod": pod, "node_info": node_info}
        answer: object = asked(*(given[name] for name in taken))
        answers.take(hook, node_info.node.name, answer)
        return answer

    note.__name__ = hook
    vars(note).update(vars(getattr(plugin, hook)))  # such as the mark that it is a hook
    return note
