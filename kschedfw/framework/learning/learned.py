"""Batch forms of a pure filter or score, which ask it once for each distinct combination of the values that it reads.

Why the answers are those of the hook: a deterministic hook that finds the same values at all places that an earlier
call read takes the same way through its code. So it reads nothing else, and answers the same. The places are the union
of what all calls so far have read; more places than one call reads only tell more pods and nodes apart.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.api.records import define
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.learning.node_values import NodeValues
from kschedfw.framework.learning.places import ReadPlace, readers, told_apart
from kschedfw.framework.learning.state_view import StateView
from kschedfw.framework.learning.views import Notes, object_view
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.table import NodeTable
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
class Revision:
    """A number that rises whenever more is known of what the pure hooks of a profile read, or learning ends or resumes.

    Answers that were kept by what was known before may be about pods that are now told apart.
    """

    number: int = 0


@define(eq=False)
class _Answers:
    """The answers for pods with the same values, by the code of a node's values."""

    by_code: IntArray
    known: int = 0
    """The number of codes with an answer."""


class LearnedHook(ABC):
    """A batch form of a pure hook that is learned. Called on the thread of the scheduling cycle alone.

    A hook whose answers don't repeat, such as one that reads the name of the pod, costs more to learn than to ask.
    Learning then pauses, each time twice as long. While it does the batch form leaves pods to the hook, as it does for
    a pod about which the hook fails.
    """

    hook_name: ClassVar[str]

    def __init__(self, hook: Hook, plugin: str = "", revision: Revision | None = None) -> None:
        self._hook = hook
        self.plugin = plugin
        self._revision = Revision() if revision is None else revision
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
        self._places: tuple[list[ReadPlace], ...] = ([], [], [])
        self._key: Callable[[Pod, CycleState], Hashable] = lambda _pod, _state: ()
        self._nodes: NodeValues | None = None
        self._epoch = 0
        self._views: dict[int, Any] = {}
        self._kept: BoundedDict[Hashable, _Answers] = BoundedDict(_LEAST_KINDS)

    @property
    def is_learning(self) -> bool:
        """Tell whether the batch form answers now."""
        return not self.problem and not self._pause

    @property
    def obstacle(self) -> str:
        """The reason why the hook was asked about each node, for some pods at least; empty if it wasn't."""
        if self.problem:
            return f"what {self.hook_name} reads can't be learned: {self.problem}"
        return (
            f"the answers of {self.hook_name} seldom repeat, so that learning paused" if self.pauses else ""
        )

    def __call__(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> Any:
        """Return what the batch form answers; None where the hook must be asked about each node."""
        if self.problem:
            return None
        if self._pause:
            self._pause -= 1
            self._revision.number += not self._pause
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
        return number == self._number_at(answer, position) or self.found_impure(pod, info)

    def found_impure(self, pod: Pod, info: NodeInfo, hook_name: str = "") -> bool:
        """End learning, since the hook itself, or the one of this name, answered otherwise now. Return False."""
        self.problem = "it isn't pure, as it answered differently for equal values"
        _log.warning(
            "plugin %s: what %s reads is learned no more: %s, for %s on %s",
            *(self.plugin, hook_name or self.hook_name, self.problem, pod.key, info.name),
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
            column = nodes.column
            if len(kept.by_code) < column.size:
                more = np.full(column.size + 16 - len(kept.by_code), _UNKNOWN, dtype=np.int64)
                kept.by_code = np.concatenate((kept.by_code, more))
            codes = column.codes if rows is table.all_rows else column.codes.take(rows)
            # Codes of values that no node has any more may have no answer.
            missing: Sequence[int] = ()
            if not kept.known and codes is column.codes:
                missing = nodes.present
            elif kept.known < column.size:
                missing = self._missing(kept, codes)
            if not missing:
                return self._as_batch(kept.by_code.take(codes))
            if self._ask(state, pod, self._views_of(missing, rows, codes), missing, kept):
                return self._as_batch(kept.by_code.take(codes))

    def _missing(self, kept: _Answers, codes: Codes) -> Sequence[int]:
        """Return those of the codes that have no answer, each once."""
        is_there = np.bincount(codes, minlength=len(kept.by_code)) > 0
        missing: list[int] = (is_there & (kept.by_code == _UNKNOWN)).nonzero()[0].tolist()
        return missing

    def _ask(
        self, state: CycleState, pod: Pod, views: Sequence[Any], codes: Sequence[int], kept: _Answers
    ) -> bool:
        """Ask the hook about these values of nodes, and keep its answers. Return False if there are new places."""
        the_pod, the_state = object_view(pod, (), self.of_pod), StateView(state, self.of_state)
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
        numbers = [] if failed else self._numbers_of(answers)
        known = [number for number in numbers if number is not None]
        if len(known) < len(views):
            # A failure, or a status that isn't kept. The framework hears of it from the hook, which it asks next.
            self._asked += len(self._nodes.column.codes) if self._nodes else 0
            raise _NotLearnedError
        if codes[-1] == len(codes) - 1:
            kept.by_code[: len(codes)] = known  # of all codes in their order; a list of codes takes longer
        else:
            kept.by_code[codes] = known
        kept.known += len(known)
        return True

    def _views_of(self, codes: Sequence[int], rows: IntArray, codes_of_rows: Codes) -> Sequence[Any]:
        """Return a view for each code of a node's values; some of the rows are nodes with these codes.

        A view that was made for another node with these values does as well, and its slots are filled.
        """
        known = self._views
        try:
            return [known[code] for code in codes]
        except KeyError:
            pass  # some are made below
        assert self._nodes is not None
        infos = self._nodes.table.node_infos
        first = dict(zip(reversed(codes_of_rows.tolist()), reversed(rows.tolist()), strict=True))
        made = {
            code: object_view(infos[first[code]], (), self.of_node) for code in codes if code not in known
        }
        if len(known) + len(made) > _MOST_VIEWS:
            return [known.get(code) or made[code] for code in codes]
        known.update(made)
        return [known[code] for code in codes]

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
        self._revision.number += 1
        if places[1] != before[1]:
            self._nodes = NodeValues(places[1], self._nodes.table) if self._nodes else None
            self._views.clear()
        self._kept.clear()
        for each, its in zip(notes, places, strict=True):
            each.wholes = frozenset(place for place in its if place and place[-1][0] in ("attribute", "key"))
        of_pod, of_state = readers(places[0]), readers(places[2])
        self._key = lambda pod, state: (of_pod(pod), of_state(_Contents(state))) if places[2] else of_pod(pod)
        return True

    def _begin(self, table: NodeTable) -> None:
        """Begin with another table, of which nothing is known."""
        self._nodes = NodeValues(self._places[1], table)
        self._views.clear()
        size = 8 * (2 * len(table) + 64) + 512
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

    def _of(self, key: Hashable) -> _Answers:
        kept = self._kept.get(key)
        if kept is None:
            assert self._nodes is not None
            kept = self._kept[key] = _Answers(np.full(self._nodes.column.size + 16, _UNKNOWN, dtype=np.int64))
        return kept

    def credit(self, rows: int) -> None:
        """Note that so many nodes needn't be asked about, since their answers for such pods are kept elsewhere."""
        self._debt = max(0.0, self._debt - rows / 2)

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
        self._revision.number += 1
        self._nodes = None
        self._views.clear()
        self._kept.clear()

    def _numbers_of(self, answers: Sequence[object]) -> Sequence[int | None]:
        """Return the number of each answer; None for one that isn't kept."""
        return [self._number(answer) for answer in answers]

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

    def _numbers_of(self, answers: Sequence[object]) -> Sequence[int | None]:
        # Most pods pass on all nodes: no call for each answer.
        return super()._numbers_of(answers) if set(map(type, answers)) != {type(None)} else [0] * len(answers)

    def __init__(self, hook: Hook, plugin: str = "", revision: Revision | None = None) -> None:
        super().__init__(hook, plugin, revision)
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

    def _numbers_of(self, answers: Sequence[Any]) -> Sequence[int | None]:
        # The usual answers take no call each.
        if set(map(type, answers)) == {int} and max(answers) < -_UNKNOWN and min(answers) > _UNKNOWN:
            return answers
        return super()._numbers_of(answers)

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
    """Values that were written in a state, by the names of the keys, as places of the state have them."""

    __slots__ = ("_state",)

    def __init__(self, state: CycleState) -> None:
        self._state = state

    def __getitem__(self, name: str) -> object:
        return self._state._data[name]

    def get(self, name: str, default: object) -> object:
        return self._state._data.get(name, default)
