"""How many replicas of pods fit: of each kind by itself, and of several kinds together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedfw.api.pod import Pod
from kschedfw.what_if.engine import Progress
from kschedfw.what_if.results import Placed, Refused, Replicas, Waiting
from kschedfw.what_if.transaction import Transaction

_AT_A_TIME: Final = 200
"""So many replicas are placed between two calls of `Progress`."""


def fit(trial: Transaction, pod: Pod, at_most: int, progress: Progress | None = None) -> Replicas:
    """Place as many replicas of the pod as fit, up to `at_most`; the trial is as before afterwards.

    `progress` is called with how many have a place, and with `at_most`.
    """
    fitting: list[Placed | Waiting] = []
    refusal: Refused | None = None
    with trial.transaction() as nested:
        while refusal is None and len(fitting) < at_most:
            more = nested.schedule_as_many(pod, at_most=min(_AT_A_TIME, at_most - len(fitting)))
            fitting += (*more.placed, *more.waiting)
            refusal = more.refusal
            if progress is not None:
                progress(len(fitting), at_most)
        return _as_it_stands(nested, fitting, refusal)


def fit_in_turns(
    trial: Transaction, pods: Sequence[Pod], at_most: int, progress: Progress | None = None
) -> tuple[Replicas, ...]:
    """Place a replica of each pod in turn, until none of them fits; the trial is as before afterwards.

    A pod that is refused drops out, and the turns go on without it. Each is placed up to `at_most` times.
    """
    fitting: list[list[Placed | Waiting]] = [[] for _ in pods]
    refusals: list[Refused | None] = [None for _ in pods]
    with trial.transaction() as nested:
        for turn in range(at_most):
            going = [number for number, refusal in enumerate(refusals) if refusal is None]
            if not going:
                break
            for number in going:
                one = nested.schedule_as_many(pods[number], at_most=1)
                fitting[number] += (*one.placed, *one.waiting)
                refusals[number] = one.refusal
            if progress is not None:
                progress(turn, at_most)
        return tuple(map(partial(_as_it_stands, nested), fitting, refusals))


def _as_it_stands(
    trial: Transaction, fitting: Sequence[Placed | Waiting], refusal: Refused | None
) -> Replicas:
    """The replicas that fit, divided by whether they wait now: what some of them waited for may have come."""
    now = {each.pod.key: each for each in trial.waiting}
    placed = [Placed(each.pod, each.node_name) for each in fitting if each.pod.key not in now]
    return Replicas(
        tuple(placed), refusal, tuple(now[each.pod.key] for each in fitting if each.pod.key in now)
    )
