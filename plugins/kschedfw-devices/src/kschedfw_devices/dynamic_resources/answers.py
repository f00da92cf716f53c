"""The cache of allocation searches, shared by pods with equal claims, until devices are allocated or freed.

Of the found devices the latest ones are kept, for the pod itself: it gets them on one node alone, where they may have
to be searched for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import IntArray
from kschedfw_devices.cel import Budget, OutOfStepsError
from kschedfw_devices.dynamic_resources.allocator import AllocationError, DeviceSearch, InvalidPoolsError
from kschedfw_devices.dynamic_resources.inventory import Inventory, ReachablePools
from kschedfw_devices.dynamic_resources.requests import Found, WantedClaim
from kschedfw_devices.dynamic_resources.usage import Usage, UsageBook

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
PROBLEMS: Final = ("", CANNOT_ALLOCATE, str(InvalidPoolsError()))
"""The reasons for finding no devices, by the code of an answer; code 0 stands for devices found."""

_TIMED_OUT: Final = len(PROBLEMS)

_STEPS_PER_DEVICE: Final = 20
"""Steps for looking at a device once, capacities included, beside `filterTimeout`: without this, no pod of
scheduler_perf's claim-partitions got devices from 300 nodes on, whose 36,000 devices every node reaches.
"""
_UNKNOWN: Final = -1
_MOST_KEPT: Final = 128
"""The number of different requests whose answers are kept, each in at most 5 bytes per node."""

Solution: TypeAlias = Sequence[Sequence[Found]]
"""The devices for each claim."""


class AllocationTimeoutError(AllocationError):
    """The error of a search for devices that took longer than `filterTimeout`, in steps: the attempt ends."""

    def __init__(self, node_name: str) -> None:
        super().__init__(f"node {node_name}: timed out trying to allocate devices")


@attrs.frozen
class Answer:
    """The result of a search: `code` tells by `PROBLEMS` whether devices were found, `score` is their score.

    An answer that isn't `final` may differ when it is asked for again.
    """

    code: int
    score: int = 0
    final: bool = True

    @property
    def is_late(self) -> bool:
        """True if the search took too long, so that nothing is known."""
        return self.code == _TIMED_OUT

    @property
    def problem(self) -> str:
        return PROBLEMS[self.code]


@attrs.define(eq=False)
class AllocationAnswers:
    """All cached answers for one state of all slices."""

    _inventory: Inventory
    _book: UsageBook
    _kept: dict[object, KeptAnswers] = attrs.field(factory=dict, init=False)

    def about(self, wanted: Sequence[WantedClaim], usage: Usage, timeout: float) -> Question:
        """Return the question which nodes have devices for these claims, given the present usage.

        `timeout` is `filterTimeout`.
        """
        # WantedRequests compare by identity: a `RequestBook` has the same ones for claims with equal
        # requests.
        asked = timeout, tuple((each.requests, each.claim.spec.devices.constraints) for each in wanted)
        kept = self._kept.pop(asked, None)
        # Answers for a later usage may be wrong for an earlier one.
        if kept is None or kept.version > usage.version:
            kept = KeptAnswers()
        kept.follow(self._inventory, self._book, usage.version)
        self._kept[asked] = kept  # moved to the end: the latest one used
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return Question(wanted, usage, timeout, self._inventory, kept)


class KeptAnswers:
    """The cached answers to one question, by the number of the reach."""

    def __init__(self) -> None:
        self.version = 0
        self.codes: npt.NDArray[np.int8] = np.empty(0, dtype=np.int8)
        self.scores: npt.NDArray[np.int32] = np.empty(0, dtype=np.int32)

    def follow(self, inventory: Inventory, book: UsageBook, version: int) -> None:
        """Drop the answers that depend on pools whose usage has changed since."""
        pools = book.changed_since(self.version)
        if pools is None:
            self.codes.fill(_UNKNOWN)
        else:
            numbers = [number for pool in dict.fromkeys(pools) for number in inventory.reaching(pool)]
            self.codes[[number for number in numbers if number < len(self.codes)]] = _UNKNOWN
        self.version = version

    def make_room(self, size: int) -> None:
        more = size - len(self.codes)
        if more > 0:
            self.codes = np.concatenate((self.codes, np.full(more, _UNKNOWN, dtype=np.int8)))
            self.scores = np.concatenate((self.scores, np.zeros(more, dtype=np.int32)))


@attrs.define(eq=False)
class Question:
    """The allocation problem of a pod: its claims, and the usage of devices."""

    wanted: Sequence[WantedClaim]
    _usage: Usage
    _timeout: float
    _inventory: Inventory
    _kept: KeptAnswers
    _solved: tuple[ReachablePools, Answer, Solution] | None = attrs.field(default=None, init=False)
    """The latest reach with devices for the claims. Where all nodes share one, it is that of the chosen node."""

    def answer(self, reach: ReachablePools) -> Answer:
        """Return whether the devices in reach suffice.

        Raises:
            AllocationError: the attempt has to end.
        """
        kept = self._kept
        # the answers follow a later usage, since another pod has asked in between
        if kept.version != self._usage.version:
            return self.solve(reach)[0]
        kept.make_room(self._inventory.size)
        code = int(kept.codes[reach.number])
        if code != _UNKNOWN:
            return Answer(code, int(kept.scores[reach.number]))
        answer, _ = self.solve(reach)
        if answer.final:
            kept.codes[reach.number], kept.scores[reach.number] = answer.code, answer.score
        return answer

    def codes(self, numbers: IntArray) -> tuple[npt.NDArray[np.int8], AllocationError | None]:
        """Return the codes for these reaches, by number, up to the first for which the attempt has to end.

        The error says why. If there are too few codes without an error, the search for the next took too long.
        """
        if self._kept.version == self._usage.version:
            self._kept.make_room(self._inventory.size)
            codes: npt.NDArray[np.int8] = self._kept.codes[numbers]
        else:
            codes = np.full(len(numbers), _UNKNOWN, dtype=np.int8)
        found: dict[int, int] = {}
        for position in ((codes == _UNKNOWN) | (codes == _TIMED_OUT)).nonzero()[0].tolist():
            number = int(numbers[position])
            if number not in found:
                try:
                    answer = self.answer(self._inventory.reach(number))
                except AllocationError as error:
                    return codes[:position], error
                if answer.is_late:
                    return codes[:position], None
                found[number] = answer.code
            codes[position] = found[number]
        return codes, None

    def scores(self, numbers: IntArray) -> IntArray:
        """Return the scores of reaches that have devices."""
        if self._kept.version == self._usage.version:
            self.codes(numbers)
            return self._kept.scores[numbers].astype(np.int64)
        reaches = map(self._inventory.reach, numbers.tolist())
        return np.array([self.answer(reach).score for reach in reaches], dtype=np.int64)

    def solve(self, reach: ReachablePools) -> tuple[Answer, Solution]:
        """Return the devices for the claims: those of the latest search if it was in this reach and found some."""
        if self._solved is not None and self._solved[0] is reach:
            return self._solved[1:]
        budget = budget_of(reach, self._timeout)
        search = DeviceSearch(self.wanted, reach, self._usage, budget)
        try:
            found = search.run()
        except InvalidPoolsError as reason:
            return Answer(PROBLEMS.index(str(reason))), ()
        except OutOfStepsError:
            # It would take as long again, unless selectors were evaluated, which isn't done twice.
            return Answer(_TIMED_OUT, final=not budget.gets_further), ()
        if found is None:
            return Answer(PROBLEMS.index(CANNOT_ALLOCATE)), ()
        score = sum(option.score for each in found for option in {one.option for one in each})
        self._solved = reach, Answer(0, score), found
        return self._solved[1:]


def budget_of(reach: ReachablePools, timeout: float) -> Budget:
    """Return the steps of a search on a node: those of `filterTimeout` in seconds, and some for each device."""
    budget = Budget.of_seconds(timeout)
    budget.left += _STEPS_PER_DEVICE * reach.device_count
    return budget
