"""Reads of the pure hooks of one plugin together, by which the engine keeps its answers.

The hooks up to score of a plugin whose `pure` is True depend on the pod, on one node at a time, and on what the
plugin's own pre_filter and pre_score wrote. These two see the pod alone, so what they wrote follows from what they read
of it, and from the parts of it that they wrote as they are. Hence two pods with the same values at all these places,
and at those that the other hooks read, get the same answers: the values
are the pod's signature (`Plugin.sign`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES, HookError
from kschedfw.framework.learning.learned import Hook, LearnedFilter, LearnedHook, LearnedScore, Revision
from kschedfw.framework.learning.places import ReadPlace, reads_of_node, told_apart
from kschedfw.framework.learning.views import Notes, note_whole, object_view
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.plugin import PURE_HOOKS, AnyPlugin, is_pure

_KINDS: Final[Mapping[str, type[LearnedHook]]] = {"filter": LearnedFilter, "score": LearnedScore}
_OTHERS: Final = ("pre_filter", "pre_score", "normalize_score")
"""The hooks that must be pure, too, for answers to be kept by signature."""
_FOLLOWING: Final = ("pre_filter_add_pod", "pre_filter_remove_pod")
"""Hooks that change what pre_filter wrote."""


@define(eq=False)
class LearnedPlugin:
    """The learned batch forms of a plugin, by name, and the signatures of pods for all of them.

    `is_whole` tells that all hooks up to score are pure and that none of them has a batch form of its own.
    """

    forms: Mapping[str, LearnedHook]
    is_whole: bool
    _revision: Revision
    _of_pod: Notes = attrs.field(factory=Notes)
    _problem: str = ""

    @classmethod
    def of(cls, plugin: AnyPlugin, hooks: Mapping[str, Hook], revision: Revision) -> LearnedPlugin:
        """Return the forms of a plugin's pure hooks that have no batch form; `hooks` has all hooks by name."""
        forms = {
            f"{name}_batch": kind(hooks[name], plugin.name, revision)
            for name, kind in _KINDS.items()
            if name in hooks and f"{name}_batch" not in hooks and is_pure(plugin, name)
        }
        _check_names(plugin)
        asked = [name for name in _KINDS if name in hooks]
        is_whole = (
            bool(forms)
            and len(forms) == len(asked)
            and all(is_pure(plugin, name) for name in _OTHERS if name in hooks)
            and not any(name in hooks for name in _FOLLOWING)
        )
        return cls(forms, is_whole, revision)

    @property
    def signs(self) -> bool:
        """True if pods have signatures now."""
        return self.is_whole and not self._problem and all(each.is_learning for each in self.forms.values())

    @property
    def reads(self) -> Reads:
        """The scope of what was read of nodes so far."""
        places = [place for each in self.forms.values() for place in each.of_node.places]
        return reads_of_node(places)

    def places_of_pods(self) -> Sequence[ReadPlace]:
        """Return the places whose values sign a pod, by what is known now."""
        places = dict(self._of_pod.places)
        for each in self.forms.values():
            places.update(each.of_pod.places)
        return told_apart(places)

    def note(self, hook: Hook, state: CycleState, pod: Pod) -> None:
        """Call a pre_filter or pre_score, and note what it reads of the pod.

        A hook that reads the nodes can't be followed: then the plugin's answers aren't kept.
        """
        nodes, before = UnreadNodes(), len(self._of_pod.places)
        # Of a failure the framework hears from the hook, which it calls next.
        with suppress(*HOOK_FAILURES):
            # What this call writes has views in it, and is thrown away.
            own = state.clone()
            hook(own, object_view(pod, (), self._of_pod), nodes)
            # The hooks after it may read everything of what it wrote, of which it need have read nothing itself.
            for written in own._data.values():
                note_whole(written)
        problem = self._of_pod.problem or ("it reads all nodes before the filter" if nodes.were_read else "")
        if problem and not self._problem:
            self._problem = problem
            self._revision.number += 1
        self._revision.number += len(self._of_pod.places) != before


def _check_names(plugin: AnyPlugin) -> None:
    """Raise HookError unless `pure` is a truth value or names hooks that can be pure."""
    pure: object = plugin.pure
    if isinstance(pure, bool):
        return
    names = pure if isinstance(pure, (tuple, list, set, frozenset)) else ()
    if not names or not set(names) <= set(PURE_HOOKS):
        raise HookError(
            plugin.name, f"its `pure` is {pure!r}; it is True, False, or some of ({', '.join(PURE_HOOKS)})"
        )


class UnreadNodes(Sequence[Any]):
    """Stand-in for all nodes, which notes whether anything is read of them."""

    were_read = False

    def __getitem__(self, index: Any) -> Any:
        self.were_read = True
        raise IndexError(index)

    def __len__(self) -> int:
        self.were_read = True
        return 0
