"""Candidate nodes for preemption, and the choice among them (kube-scheduler `pickOneNodeForPreemption`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.extender import Victims
from kschedfw.framework.nodes.arrays import IntArray

_PRIORITY_OFFSET = 1 << 31
"""The offset that makes every priority positive, so that a sum grows with each victim, even one of negative
priority."""


@frozen
class Candidate:
    """A node, and the pods that must leave it so that the preemptor fits."""

    node_name: str
    victims: Victims


@define(eq=False)
class Candidates(Sequence[Candidate]):
    """k candidates as arrays; a `Candidate` object is made when an item is read.

    `rows` (int64) and `victims` (object) have shape (k,). `names` has the names of all nodes by row. `harm` (float64,
    shape (criteria, k)) has the values of the criteria of `LEAST_HARM`.
    """

    _names: Sequence[str]
    _rows: IntArray
    _victims: npt.NDArray[np.object_]
    _harm: npt.NDArray[np.float64]

    def least_harmful(self) -> Candidates:
        """Return the candidates that are best by `LEAST_HARM`, in their order."""
        best = np.arange(len(self))
        # Float64 is exact here: it takes 2²¹ victims for a sum of priorities to reach 2⁵³.
        for scores in self._harm:
            if len(best) <= 1:
                break
            scores = scores[best]
            best = best[scores == scores.max()]
        return Candidates(self._names, self._rows[best], self._victims[best], self._harm[:, best])

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...
    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        return Candidate(self._names[int(self._rows[index])], self._victims[index])

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # candidates are compared, never looked up


ScoreFunction = Callable[[Candidate], float]
"""A criterion for choosing among candidates: the highest value wins."""


def start_time(pod: Pod) -> float:
    """Return the pod's start time, in seconds since the epoch; infinity for a pod that hasn't started."""
    started = pod.status.start_time
    return math.inf if started is None else started.timestamp()


def fewest_pdb_violations(candidate: Candidate) -> float:
    return -candidate.victims.num_pdb_violations


def lowest_highest_priority(candidate: Candidate) -> float:
    """Return the negative priority of the most important victim."""
    return -candidate.victims.pods[0].priority  # victims are sorted, the most important first


def smallest_priority_sum(candidate: Candidate) -> float:
    return -sum(pod.priority + _PRIORITY_OFFSET for pod in candidate.victims.pods)


def fewest_victims(candidate: Candidate) -> float:
    return -len(candidate.victims.pods)


def latest_start(candidate: Candidate) -> float:
    """Return the earliest start among the victims of highest priority: the shortest run is best."""
    pods = candidate.victims.pods
    highest = max(pod.priority for pod in pods)
    return min(start_time(pod) for pod in pods if pod.priority == highest)


LEAST_HARM: tuple[ScoreFunction, ...] = (
    fewest_pdb_violations,
    lowest_highest_priority,
    smallest_priority_sum,
    fewest_victims,
    latest_start,
)
"""The criteria of DefaultPreemption, the decisive one first."""


def best_candidates(
    candidates: Sequence[Candidate], score_functions: Sequence[ScoreFunction] = LEAST_HARM
) -> Sequence[Candidate]:
    """Return the candidates that are best by the first criterion; ties are broken by the second, and so on.

    The result is tied by all criteria and in its original order; by convention the first candidate is taken.
    """
    if score_functions is LEAST_HARM and isinstance(candidates, Candidates):
        return candidates.least_harmful()
    best = tuple(candidates)
    for score in score_functions:
        if len(best) <= 1:
            break
        scores = [score(candidate) for candidate in best]
        highest = max(scores)
        best = tuple(each for each, its_score in zip(best, scores, strict=True) if its_score == highest)
    return best
