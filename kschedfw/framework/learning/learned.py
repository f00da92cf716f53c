"""Batch forms of a pure filter or score, which ask it once for each distinct combination of the values that it reads.

Why the answers are those of the hook: a deterministic hook that finds the same values at all places that an earlier
call read takes the same way through its code. So it reads nothing else, and answers the same. The places are the union
of what all calls so far have read; more places than one call reads only tell more pods and nodes apart.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

import attrs
import numpy as np

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.learning.node_values import NodeValues
from kschedfw.framework.learning.places import Place, readers, told_apart
from kschedfw.framework.learning.views import Notes, StateView, object_view
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AnyPlugin, is_pure
from kschedfw.framework.results import Verdicts
from kschedfw.framework.status import Status

_log = logging.getLogger(__name__)

Hook: TypeAlias = Callable[..., Any]

_MOST_PLACES: Final = 64
"""The number of places beyond which a hook isn't learned: all of them are compared for each pod and changed node."""
_MOST_NOTED: Final = 1024
_MOST_STATUSES: Final = 16_384
_MOST_VIEWS: Final = 1024
_BYTES: Final = 16 * 1024 * 1024
"""The size of the kept answers of a hook."""
_LEAST_KINDS: Final = 16

_ASKED_AGAIN: Final = 64
"""One in so many answers of a batch form is compared with the hook's own about a node."""

_UNKNOWN: Final = -(1 << 63)
"""In place of an answer: the hook wasn't asked. A score of this amount is never kept."""

_READING_COST: Final = 4
"""Values of so many nodes are read in the time of one call of a hook."""
_MOST_DEBT: Final = 2
"""The debt in calls per node beyond which learning pauses."""
_FIRST_PAUSE: Final = 512
_LONGEST_PAUSE: Final = 65_536


@define(eq=False)
class _Kept:
    """The answers for pods with the same values, by the code of a node's values."""

    answers: IntArray
    known: int = 0
    """The number of codes with an answer."""
    version: tuple[int, int, int] | None = None
    """The version of the table in which all nodes were last asked about; `found` and `for_all` are of then."""
    found: IntArray = attrs.field(factory=lambda: np.zeros(0, dtype=np.int64))
    """The answers about all nodes, by row."""
    for_all: Any = None
    """The same as the batch form gives it."""


class LearnedHook(ABC):
    """A batch form of a pure hook that is learned. Called on the thread of the scheduling cycle alone.

    A hook whose answers don't repeat, such as one that reads the name of the pod, costs more to learn than to ask.
    Learning then pauses, each time twice as long. While it does the batch form leaves pods to the hook, as it does for
    a pod about which the hook fails.
    """

    hook_name: ClassVar[str]

    def __init__(self, hook: Hook, plugin: str = "") -> None:
        self._hook = hook
        self.plugin = plugin
        self._answers = 0
        self.of_pod, self.of_node, self.of_state = Notes(), Notes(), Notes()
        self.problem = ""
        """Why the hook can't be learned; empty if it can."""
        self.pauses = 0
        """The number of times that learning has paused, since answers didn't repeat."""
        self._pause = 0
        self._next_pause = _FIRST_PAUSE
        self._debt = 0.0
        """The calls that learning took beyond half of those that it saved."""
        self._asked = 0.0
        """The number of calls of the hook for the pod at hand."""
        self._noted = 0
        self._places: tuple[list[Place], ...] = ([], [], [])
        self._key: Callable[[Pod, CycleState], Hashable] = lambda _pod, _state: ()
        self._nodes: NodeValues | None = None
        self._epoch = 0
        self._views: dict[int, Any] = {}
        self._kept: BoundedDict[Hashable, _Kept] = BoundedDict(_LEAST_KINDS)

    @property
    def is_learning(self) -> bool:
        """Tell whether the batch form answers now."""
        return not self.problem and not self._pause

    def __call__(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> Any:
        """Return what the batch form answers; None where the hook must be asked about each node."""
        if self.problem:
            return None
        if self._pause:
            self._pause -= 1
            return None
        try:
            answer = self._answer(state, pod, nodes, rows)
        except _NotLearnedError:
            return None
        finally:
            self._account(len(nodes), len(rows))
        self._answers += 1
        if (
            self._answers % _ASKED_AGAIN == 0
            and len(rows)
            and not self._agrees(state, pod, nodes, rows, answer)
        ):
            return None
        return answer

    def _agrees(self, state: CycleState, pod: Pod, table: NodeTable, rows: IntArray, answer: Any) -> bool:
        """Ask the hook itself about one of the nodes. If it answers otherwise, learning ends: it isn't pure."""
        position = self._answers // _ASKED_AGAIN % len(rows)
        info = table.node_infos[int(rows[position])]
        try:
            number = self._number(self._hook(state, pod, info))
        except HOOK_FAILURES:
            number = None
        if number == self._number_at(answer, position):
            return True
        self.problem = "it isn't pure, as it answered differently for equal values"
        _log.warning(
            "plugin %s: what %s reads is learned no more: %s, for %s on %s",
            *(self.plugin, self.hook_name, self.problem, pod.key, info.name),
        )
        self._forget()
        return False

    def _answer(self, state: CycleState, pod: Pod, table: NodeTable, rows: IntArray) -> Any:
        if self._nodes is None or self._nodes.table is not table:
            self._begin(table)
        # Each turn finds a place that wasn't known, so the limit of places ends this.
        while True:
            nodes = self._follow()
            kept = self._of(self._key(pod, state))
            is_all = rows is table.all_rows
            if is_all and kept.version == nodes.version:
                return kept.for_all
            column = nodes.column
            if len(kept.answers) < column.size:
                more = np.full(column.size + 16 - len(kept.answers), _UNKNOWN, dtype=np.int64)
                kept.answers = np.concatenate((kept.answers, more))
            found: IntArray
            # Codes of values that no node has any more may have no answer.
            is_complete = kept.known == column.size
            if is_all and is_complete and kept.version is not None and kept.version == nodes.before:
                # As a rule one node has changed, that where the pod before was placed.
                found = kept.found.copy()
                for row in nodes.changed:
                    found[row] = kept.answers[column.codes[row]]
                break
            codes = column.codes if is_all else column.codes[rows]
            found = kept.answers.take(codes)
            if is_complete or self._ask_unknown(state, pod, rows, codes, found, kept):
                break
        answer = self._as_batch(found)
        if is_all:
            kept.version, kept.found, kept.for_all = nodes.version, found, answer
        return answer

    def _ask_unknown(
        self,
        state: CycleState,
        pod: Pod,
        rows: IntArray,
        codes: Any,
        found: IntArray,
        kept: _Kept,
    ) -> bool:
        """Ask the hook about values that no such pod has met, and add its answers. Return False for new places."""
        unknown = (found == _UNKNOWN).nonzero()[0]
        if not len(unknown):
            return True
        missing, first = np.unique(codes[unknown], return_index=True)
        the_pod, the_state = object_view(pod, (), self.of_pod), StateView(state, self.of_state)
        views = self._views_of(missing.tolist(), rows[unknown[first]].tolist())
        hook, failed = self._hook, False
        self._asked += len(views)
        try:
            answers = [hook(the_state, the_pod, view) for view in views]
        except HOOK_FAILURES:
            failed = True
        noted = len(self.of_pod.places) + len(self.of_node.places) + len(self.of_state.places)
        if noted != self._noted:
            self._noted = noted
            if self._has_more_places():
                return False
        numbers = [] if failed else [self._number(answer) for answer in answers]
        known = [number for number in numbers if number is not None]
        if len(known) < len(views):
            # A failure, or a status that isn't kept. The framework hears of it from the hook, which it asks next.
            self._asked += len(rows)
            raise _NotLearnedError
        kept.answers[missing] = known
        kept.known += len(known)
        found[unknown] = kept.answers.take(codes[unknown])
        return True

    def _views_of(self, codes: Sequence[int], rows: Sequence[int]) -> Sequence[Any]:
        """Return a view for each code of a node's values; `rows` are nodes with these codes.

        A view that was made for another node with these values does as well, and its slots are filled.
        """
        assert self._nodes is not None
        infos, known = self._nodes.table.node_infos, self._views
        views = []
        for code, row in zip(codes, rows, strict=True):
            view = known.get(code)
            if view is None:
                view = object_view(infos[row], (), self.of_node)
                if len(known) < _MOST_VIEWS:
                    known[code] = view
            views.append(view)
        return views

    def _has_more_places(self) -> bool:
        """Take over what was noted. Return whether pods or nodes are told apart by more than before."""
        notes = self.of_pod, self.of_node, self.of_state
        self.problem = next((each.problem for each in notes if each.problem), "")
        places = tuple(told_apart(each.places) for each in notes)
        if sum(map(len, places)) > _MOST_PLACES or self._noted > _MOST_NOTED:
            self.problem = f"it reads more than {_MOST_PLACES} different things"
        if self.problem:
            self._forget()
            raise _NotLearnedError
        before, self._places = self._places, places
        if places == before:
            return False
        if places[1] != before[1]:
            self._nodes = NodeValues(places[1], self._nodes.table) if self._nodes else None
            self._views.clear()
        self._kept.clear()
        of_pod, of_state = readers(places[0]), readers(places[2])
        self._key = lambda pod, state: (of_pod(pod), of_state(_Contents(state))) if places[2] else of_pod(pod)
        return True

    def _begin(self, table: NodeTable) -> None:
        """Begin with another table, of which nothing is known."""
        self._nodes = NodeValues(self._places[1], table)
        self._views.clear()
        size = 16 * (2 * len(table) + 64) + 512
        self._kept = BoundedDict(max(_LEAST_KINDS, _BYTES // size))

    def _follow(self) -> NodeValues:
        nodes = self._nodes
        assert nodes is not None
        nodes.follow()
        if nodes.column.epoch != self._epoch:
            # The values have other codes now.
            self._epoch = nodes.column.epoch
            self._views.clear()
            self._kept.clear()
        return nodes

    def _of(self, key: Hashable) -> _Kept:
        kept = self._kept.get(key)
        if kept is None:
            assert self._nodes is not None
            kept = self._kept[key] = _Kept(np.full(self._nodes.column.size + 16, _UNKNOWN, dtype=np.int64))
        return kept

    def _account(self, nodes: int, answered: int) -> None:
        """Weigh the calls that it took against the nodes that were answered about. Pause if learning doesn't pay."""
        cost, self._asked = self._asked, 0
        if self._nodes is not None:
            cost += self._nodes.rows_read / _READING_COST
            self._nodes.rows_read = 0
        self._debt = max(0.0, self._debt + cost - answered / 2)
        if self._debt > _MOST_DEBT * nodes:
            self.pauses += 1
            self._debt = 0.0
            self._pause, self._next_pause = self._next_pause, min(2 * self._next_pause, _LONGEST_PAUSE)
            self._forget()

    def _forget(self) -> None:
        """Forget the kept answers, but not which places are read."""
        self._nodes = None
        self._views.clear()
        self._kept.clear()

    @abstractmethod
    def _number(self, answer: object) -> int | None:
        """Return the number that stands for the hook's answer; None for an answer that isn't kept."""

    @abstractmethod
    def _number_at(self, answer: Any, position: int) -> int:
        """Return the number that a batch form's answer has for one of the rows."""

    @abstractmethod
    def _as_batch(self, found: IntArray) -> Any:
        """Return the batch form's answer with these numbers."""


class LearnedFilter(LearnedHook):
    """The learned `filter_batch` of a pure plugin."""

    hook_name = "filter"

    def __init__(self, hook: Hook, plugin: str = "") -> None:
        super().__init__(hook, plugin)
        self._numbers: dict[Status, int] = {Status.success(): 0}
        self._statuses: tuple[Status, ...] = (Status.success(),)

    def _number(self, answer: object) -> int | None:
        if answer is None:
            return 0
        if type(answer) is not Status:
            return None
        number = self._numbers.get(answer)
        if number is None:
            if not (answer.is_success or answer.is_rejected) or answer.retry_at is not None:
                return None
            if len(self._numbers) >= _MOST_STATUSES:
                self.problem = f"it gives more than {_MOST_STATUSES:,} different reasons"
                self._forget()
                return None
            number = 0 if answer.is_success else len(self._numbers)
            if number:
                self._numbers[answer] = number
                self._statuses = tuple(self._numbers)
        return number

    def _number_at(self, answer: Any, position: int) -> int:
        return int(answer.codes[position])

    def _as_batch(self, found: IntArray) -> Verdicts:
        return Verdicts(found, self._statuses) if found.any() else Verdicts.passing(len(found))


class LearnedScore(LearnedHook):
    """The learned `score_batch` of a pure plugin."""

    hook_name = "score"

    def _number(self, answer: object) -> int | None:
        if isinstance(answer, np.integer):
            answer = int(answer)
        return answer if type(answer) is int and -_UNKNOWN > answer > _UNKNOWN else None

    def _number_at(self, answer: Any, position: int) -> int:
        return int(answer[position])

    def _as_batch(self, found: IntArray) -> IntArray:
        found.setflags(write=False)
        return found


class _NotLearnedError(Exception):
    """The exception for a pod about which the hook must be asked at each node."""


class _Contents:
    """What was written in a state, by the names of the keys, as places of the state have them."""

    __slots__ = ("_state",)

    def __init__(self, state: CycleState) -> None:
        self._state = state

    def __getitem__(self, name: str) -> object:
        return self._state._data[name]


def learned_forms(plugin: AnyPlugin, hooks: Mapping[str, Hook]) -> Mapping[str, LearnedHook]:
    """Return batch forms, by their names, of a plugin's pure hooks that have none; `hooks` has all hooks by name."""
    kinds: Mapping[str, type[LearnedHook]] = {"filter": LearnedFilter, "score": LearnedScore}
    return {
        f"{name}_batch": kind(hooks[name], plugin.name)
        for name, kind in kinds.items()
        if name in hooks and f"{name}_batch" not in hooks and is_pure(plugin, name)
    }
