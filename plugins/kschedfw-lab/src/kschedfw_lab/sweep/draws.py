"""Pods of a trace drawn anew by a seed, so that the spread over seeds is that of the trace."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import StrEnum
from random import Random
from typing import Final

import attrs

from kschedfw import Pod
from kschedfw.api import FrozenDict, Named
from kschedfw.simulator import Arrivals
from kschedfw_lab.sweep.errors import SweepError

_ARRIVAL: Final = "openb.trace/creation-time"
_DURATION: Final = "kschedfw/duration-seconds"
_LIFETIME: Final = "kschedfw/lifetime-seconds"
_TIMES: Final = frozenset(
    {_ARRIVAL, _DURATION, _LIFETIME, "openb.trace/scheduled-time", "openb.trace/deletion-time"}
)
"""The annotations with pods' times."""
_DAY: Final = 86_400.0


class Draw(StrEnum):
    """How pending pods are drawn by a run's seed.

    `shuffle` gives each pod another place; a place in their order keeps its arrival. `resample` gives each place any of
    the pods, with replacement: the bootstrap (Efron, 1979). `days` draws whole days of arrivals, with replacement, so
    that what happens together within a day stays together: the block bootstrap (Künsch, 1989).
    """

    SHUFFLE = "shuffle"
    RESAMPLE = "resample"
    DAYS = "days"


def drawn(objects: Sequence[Named], draw: Draw, seed: int) -> Sequence[Named]:
    """The objects, with the pending pods drawn anew; the same for the same seed.

    A pod keeps all that it is but its name, if another has that already, and its arrival, which is that of its place,
    or the same time of another day. It keeps its duration. A lifetime moves with it, but ends no later than the last
    one of the trace, which is the end of a recording, or than the last day: so no pod is there for longer than in the
    trace, and none runs on alone when the others have left.

    Raises:
        ArrivalsError: a pod's times aren't numbers.
        SweepError: days are to be drawn, and there is one only.
    """
    pending = [obj for obj in objects if isinstance(obj, Pod) and is_pending(obj)]
    random = Random(f"{draw} {seed}")
    free = {(pod.namespace, pod.name) for pod in pending}
    taken = {(obj.namespace, obj.name) for obj in objects if isinstance(obj, Pod)} - free
    if draw is Draw.DAYS:
        others = [obj for obj in objects if not (isinstance(obj, Pod) and is_pending(obj))]
        return [*others, *_of_days(pending, random, taken)]
    if draw is Draw.SHUFFLE:
        chosen = random.sample(pending, len(pending))
    else:
        chosen = random.choices(pending, k=len(pending)) if pending else []
    stays = Arrivals().plan(pending, 0)
    end = max((stay.arrival + (stay.lifetime or 0.0) for stay in stays.values()), default=0.0)
    places = iter(zip(pending, chosen, strict=True))
    found: list[Named] = []
    for obj in objects:
        if isinstance(obj, Pod) and is_pending(obj):
            place, pod = next(places)
            times = {key: value for key, value in place.annotations.items() if key == _ARRIVAL}
            times |= _ends(stays[pod.uid].duration, stays[pod.uid].lifetime, end - stays[place.uid].arrival)
            moved = _named(pod, _free_name(pod, taken), times)
            metadata = attrs.evolve(moved.metadata, creation_timestamp=place.metadata.creation_timestamp)
            found.append(attrs.evolve(moved, metadata=metadata))
        else:
            found.append(obj)
    return found


def is_pending(pod: Pod) -> bool:
    return not pod.node_name and not pod.is_terminal


def _of_days(pending: Sequence[Pod], random: Random, taken: set[tuple[str, str]]) -> list[Pod]:
    """The pods of as many days as there are, each drawn; days begin with the first arrival."""
    if not pending:
        return []
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
    found = []
    for day in range(count):
        chosen = random.randrange(count)
        for pod in by_day.get(chosen, ()):
            stay = stays[pod.uid]
            arrival = stay.arrival + (day - chosen) * _DAY
            times = {_ARRIVAL: repr(arrival), **_ends(stay.duration, stay.lifetime, end - arrival)}
            found.append(_named(pod, _free_name(pod, taken), times))
    return found


def _ends(duration: float | None, lifetime: float | None, left: float) -> dict[str, str]:
    """The annotations of a stay, of whose lifetime no more than this is left."""
    times = {_DURATION: duration, _LIFETIME: None if lifetime is None else min(lifetime, left)}
    return {key: str(seconds) for key, seconds in times.items() if seconds is not None}


def _free_name(pod: Pod, taken: set[tuple[str, str]]) -> str:
    names = itertools.chain([pod.name], (f"{pod.name}.{number}" for number in itertools.count(2)))
    name = next(name for name in names if (pod.namespace, name) not in taken)
    taken.add((pod.namespace, name))
    return name


def _named(pod: Pod, name: str, times: dict[str, str]) -> Pod:
    """The pod with this name and these times."""
    others = {key: value for key, value in pod.annotations.items() if key not in _TIMES}
    metadata = attrs.evolve(
        pod.metadata,
        name=name,
        uid=pod.uid if name == pod.name else f"{pod.uid}.{name}",
        annotations=FrozenDict({**others, **times}),
    )
    return attrs.evolve(pod, metadata=metadata)
