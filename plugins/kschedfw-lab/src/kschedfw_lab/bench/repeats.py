"""Measures how often a plugin without promises repeats its answer about a node for the next pod.

If it nearly always does, and its answers depend on the hooks' arguments alone, `pure = True` saves most of its calls.
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
    """A plugin's latest answers by hook and node, how many came again, and how many of these were equal."""

    latest: dict[tuple[str, str], object] = attrs.field(factory=dict)
    again: int = 0
    same: int = 0

    @property
    def share(self) -> float | None:
        """The share of equal answers among questions that were asked again; None if none was asked again."""
        return self.same / self.again if self.again else None

    def take(self, hook: str, node: str, answer: object) -> None:
        if isinstance(answer, Status):
            answer = answer.code, answer.reasons
        if (hook, node) in self.latest:
            self.again += 1
            self.same += self.latest[hook, node] == answer
        self.latest[hook, node] = answer


class Listener:
    """Records the answers of the plugins with these names."""

    def __init__(self, names: Collection[str]) -> None:
        self.answers = {name: Answers() for name in names}

    def listened_to(self, plugin: type[AnyPlugin]) -> type[AnyPlugin]:
        """Return the plugin with its answers recorded, or unchanged if its name isn't among `names`."""
        if plugin.name not in self.answers:
            return plugin
        hooks = {
            hook: _noting(plugin, hook, self.answers[plugin.name])
            for hook in _HOOKS
            if getattr(plugin, hook, None) is not None
        }
        return type(plugin.__name__, (plugin,), {"__module__": plugin.__module__, **hooks})


def _noting(plugin: type[AnyPlugin], hook: str, answers: Answers) -> Callable[..., object]:
    """Return the plugin's hook with recorded answers.

    It takes all possible arguments and passes on the plugin's own.
    """
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
    # Copy attributes of the hook, such as the mark that it is one.
    vars(note).update(vars(getattr(plugin, hook)))
    return note
