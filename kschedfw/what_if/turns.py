"""How many replicas of pods fit: of each kind by itself, and of several kinds together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kschedfw.api.pod import Pod
from kschedfw.what_if.engine import Progress
from kschedfw.what_if.results import Placed, Refused, Replicas
from kschedfw.what_if.transaction import Transaction

_AT_A_TIME: Final = 200
"""So many replicas are placed between two calls of `Progress`."""


def fit(trial: Transaction, pod: Pod, at_most: int, progress: Progress | None = None) -> Replicas:
    """Place as many replicas of the pod as fit, up to `at_most`; the trial is as before afterwards.

    `progress` is called with how many are placed, and with `at_most`.
    """
    placed: list[Placed] = []
    refusal: Refused | None = None
    with trial.transaction() as nested:
        while refusal is None and len(placed) < at_most:
            more = nested.schedule_as_many(pod, at_most=min(_AT_A_TIME, at_most - len(placed)))
            placed += more.placed
            refusal = more.refusal
            if progress is not None:
                progress(len(placed), at_most)
    return Replicas(tuple(placed), refusal)


def fit_in_turns(
    trial: Transaction, pods: Sequence[Pod], at_most: int, progress: Progress | None = None
) -> tuple[Replicas, ...]:
    """Place a replica of each pod in turn, until none of them fits; the trial is as before afterwards.

    A pod that is refused drops out, and the turns go on without it. Each is placed up to `at_most` times.
    """
    placed: list[list[Placed]] = [[] for _ in pods]
    refusals: list[Refused | None] = [None for _ in pods]
    with trial.transaction() as nested:
        for turn in range(at_most):
            going = [number for number, refusal in enumerate(refusals) if refusal is None]
            if not going:
                break
            for number in going:
                one = nested.schedule_as_many(pods[number], at_most=1)
                placed[number] += one.placed
                refusals[number] = one.refusal
            if progress is not None:
                progress(turn, at_most)
    return tuple(Replicas(tuple(each), refusal) for each, refusal in zip(placed, refusals, strict=True))
