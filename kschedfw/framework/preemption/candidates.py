"""Nodes where preemption would help, and where it hurts least (kube-scheduler `pickOneNodeForPreemption`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.extender import Victims

_PRIORITY_OFFSET = 1 << 31
"""Makes every priority positive, so that a sum grows with each victim, also with those of negative priority."""


@attrs.frozen
class Candidate:
    """A node, and who must leave it for the pod to fit there."""

    node_name: str
    victims: Victims


ScoreFunction = Callable[[Candidate], float]
"""One criterion for choosing among candidates: the highest value wins."""


def start_time(pod: Pod) -> float:
    """When the pod started, in seconds since the epoch; a pod that hasn't yet counts as later than all that have."""
    started = pod.status.start_time
    return math.inf if started is None else started.timestamp()


def fewest_pdb_violations(candidate: Candidate) -> float:
    return -candidate.victims.num_pdb_violations


def lowest_highest_priority(candidate: Candidate) -> float:
    """Prefers the node whose most important victim has the lowest priority."""
    return -candidate.victims.pods[0].priority


def smallest_priority_sum(candidate: Candidate) -> float:
    return -sum(pod.priority + _PRIORITY_OFFSET for pod in candidate.victims.pods)


def fewest_victims(candidate: Candidate) -> float:
    return -len(candidate.victims.pods)


def latest_start(candidate: Candidate) -> float:
    """Prefers the node where the longest running among the victims of highest priority has run the shortest."""
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
) -> tuple[Candidate, ...]:
    """The candidates that are best by the first function, of those the best by the second, and so on.

    What is left is equally good by all of them and in its original order; by convention the first is taken.
    """
    best = tuple(candidates)
    for score in score_functions:
        if len(best) <= 1:
            break
        scores = [score(candidate) for candidate in best]
        highest = max(scores)
        best = tuple(each for each, its_score in zip(best, scores, strict=True) if its_score == highest)
    return best
