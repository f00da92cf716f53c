"""Draws pods of a trace anew for each seed, so that the spread over seeds shows the spread of the trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from random import Random
from typing import Final, TypeAlias

import attrs

from kschedfw import Pod
from kschedfw.api import FrozenDict, Named
from kschedfw.simulator import Arrivals
from kschedfw_lab.sweep.errors import SweepError
from kschedfw_lab.sweep.own_claims import FreeNames, OwnClaims

_ARRIVAL: Final = "openb.trace/creation-time"
_DURATION: Final = "kschedfw/duration-seconds"
_LIFETIME: Final = "kschedfw/lifetime-seconds"
_TIMES: Final = frozenset(
    {_ARRIVAL, _DURATION, _LIFETIME, "openb.trace/scheduled-time", "openb.trace/deletion-time"}
)
"""The annotations with pods' times."""
_DAY: Final = 86_400.0


class Draw(StrEnum):
    """The ways in which a run's seed draws its pending pods.

    `shuffle` gives each pod another place in the order; a place keeps its arrival time. `resample` fills each place
    with any of the pods, with replacement: the bootstrap (Efron, 1979). `days` draws whole days of arrivals, with
    replacement, so that dependencies within a day are kept: the block bootstrap (Künsch, 1989).
    """

    SHUFFLE = "shuffle"
    RESAMPLE = "resample"
    DAYS = "days"


def drawn(objects: Sequence[Named], draw: Draw, seed: int) -> Sequence[Named]:
    """Return the objects with the pending pods drawn anew. Equal seeds give equal pods.

    A pod keeps all that it is but its name, if another has that already, and its arrival, which is that of its place,
    or the same time of another day. It brings its own claims (`OwnClaims`) with the volumes that they are bound to, so
    those of pods that aren't drawn aren't there, and those of a pod that is drawn twice are there twice.

    A pod keeps its duration. A lifetime moves with it, but ends no later than the last one of the trace, which is the
    end of a recording, or than the last day: so no pod is there for longer than in the trace, and none runs on alone
    when the others have left.

    Raises:
        ArrivalsError: a pod's times aren't numbers.
        SweepError: days are to be drawn, and the trace has only one.
    """
    pending = [obj for obj in objects if isinstance(obj, Pod) and is_pending(obj)]
    # A text as the seed, so that the draws differ from those of the simulation, which has the same number.
    random = Random(f"{draw} {seed}")
    claims = OwnClaims(objects, pending)
    # By identity: equal objects need not be the same, and comparing them takes long.
    gone = {id(each) for each in (*pending, *claims)}
    others = [each for each in objects if id(each) not in gone]
    find = _of_days if draw is Draw.DAYS else _of_places
    names, found = FreeNames(others), list(others)
    for pod, times, created in find(pending, draw, random):
        moved, brought = claims.brought(_moved(pod, names.of(pod), times, created), names)
        found += (*brought, moved)
    return found


def is_pending(pod: Pod) -> bool:
    return not pod.node_name and not pod.is_terminal


_Drawn: TypeAlias = tuple[Pod, Mapping[str, str], datetime | None]
"""A drawn pod, the annotations with its times, and its creation timestamp."""


def _of_places(pending: Sequence[Pod], draw: Draw, random: Random) -> Iterator[_Drawn]:
    """Yield a pod for each place in the order of the pods; it arrives as the one whose place it was."""
    if not pending:
        return
    is_shuffled, count = draw is Draw.SHUFFLE, len(pending)
    chosen = random.sample(pending, count) if is_shuffled else random.choices(pending, k=count)
    stays = Arrivals().plan(pending, 0)
    end = max(stay.arrival + (stay.lifetime or 0.0) for stay in stays.values())
    for place, pod in zip(pending, chosen, strict=True):
        times = {key: value for key, value in place.annotations.items() if key == _ARRIVAL}
        times |= _ends(stays[pod.uid].duration, stays[pod.uid].lifetime, end - stays[place.uid].arrival)
        yield pod, times, place.metadata.creation_timestamp


def _of_days(pending: Sequence[Pod], _draw: Draw, random: Random) -> Iterator[_Drawn]:
    """Yield the pods of as many days as there are, each drawn; days begin with the first arrival."""
    if not pending:
        return
    stays = Arrivals().plan(pending, 0)
    by_day: dict[int, list[Pod]] = {}
    for pod in sorted(pending, key=lambda pod: stays[pod.uid].arrival):
        by_day.setdefault(int(stays[pod.uid].arrival // _DAY), []).append(pod)
    count = max(by_day) + 1
    if count < 2:
        raise SweepError(
            "the pods arrive within one day, so there are no days to draw; draw pods with resample"
        )
    end = max(count * _DAY, *(stay.arrival + (stay.lifetime or 0.0) for stay in stays.values()))
    for day in range(count):
        chosen = random.randrange(count)
        for pod in by_day.get(chosen, ()):
            stay = stays[pod.uid]
            arrival = stay.arrival + (day - chosen) * _DAY
            times = {_ARRIVAL: repr(arrival), **_ends(stay.duration, stay.lifetime, end - arrival)}
            yield pod, times, pod.metadata.creation_timestamp


def _ends(duration: float | None, lifetime: float | None, left: float) -> dict[str, str]:
    """Return the annotations of a stay. `left` is the longest lifetime."""
    times = {_DURATION: duration, _LIFETIME: None if lifetime is None else min(lifetime, left)}
    return {key: str(seconds) for key, seconds in times.items() if seconds is not None}


def _moved(pod: Pod, name: str, times: Mapping[str, str], created: datetime | None) -> Pod:
    """The pod with this name and these times."""
    others = {key: value for key, value in pod.annotations.items() if key not in _TIMES}
    metadata = attrs.evolve(
        pod.metadata,
        name=name,
        uid=pod.uid if name == pod.name else f"{pod.uid}.{name}",
        annotations=FrozenDict({**others, **times}),
        creation_timestamp=created,
    )
    return attrs.evolve(pod, metadata=metadata)
