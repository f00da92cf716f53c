"""The arrivals of pods, and the durations of their stays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from random import Random

from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import shown
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen

DURATION = "kschedfw/duration-seconds"
"""The annotation with the time that a pod stays once it is bound, in seconds."""

LIFETIME = "kschedfw/lifetime-seconds"
"""The annotation with the time from a pod's arrival to its end, whether or not it is bound then, in seconds."""

OPENB_CREATION = "openb.trace/creation-time"
OPENB_SCHEDULED = "openb.trace/scheduled-time"
OPENB_DELETION = "openb.trace/deletion-time"
OPENB_EPOCH = datetime(2023, 1, 1, tzinfo=UTC)
"""The moment that stands for second 0 of the OpenB trace, whose times are relative."""

SHORTEST, LONGEST = 1e-9, 1e10
"""The range of rates (per second) and times (seconds), three centuries.

In times beyond, seconds, and then whole steps of the clock, get lost: adding them to a float doesn't change it.
"""


class ArrivalsError(KschedfwError, ValueError):
    """The error of a pod's time that is no number, or of a rate or duration that isn't positive and finite."""


@frozen
class Stay:
    """The stay of a pod: `arrival` in seconds after the first pod's; `duration` in seconds from its binding; `lifetime`
    in seconds from its arrival.

    A pod leaves when the first of the two is over, one that waits only by its lifetime. With neither it stays for good.
    """

    arrival: float = 0.0
    duration: float | None = None
    lifetime: float | None = None


@frozen
class Arrivals:
    """The times of a replay: those that pods have, and drawn times for other pods.

    A pod's own arrival is the annotation `openb.trace/creation-time` (in seconds), or else its creationTimestamp.
    Its own duration is the annotation `kschedfw/duration-seconds`, or else the time from being scheduled (or, if
    that never happened, created) to being deleted in the OpenB trace. Its own lifetime is the annotation
    `kschedfw/lifetime-seconds`: so long after its arrival the pod is deleted, even if it still waits.

    A pod that is bound from the start leaves as many seconds later as that annotation says, or else never.

    Drawn times depend only on the pods, their order and the seed, so they are the same under every policy.

    Args:
        rate: pods without an arrival of their own arrive in order, as a Poisson process with this rate per second.
            With None they are there from the start.
        mean_duration: durations of pods without a duration or lifetime of their own are exponentially distributed
            with this mean, in seconds. With None these pods stay for good.
        own_times: False draws times for all pods: arrivals if there is a `rate`, durations if there is a
            `mean_duration`. Otherwise pods keep the times that they have.

    Raises:
        ArrivalsError: a number isn't positive and finite, or `own_times` is False without a rate or a mean duration.
        TypeError: an argument has the wrong type.
    """

    rate: float | None = None
    mean_duration: float | None = None
    own_times: bool = True

    def __attrs_post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("mean_duration", self.mean_duration)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name}: expected a number or None, found {value!r}")
            what = {"rate": "arrival rate", "mean_duration": "mean duration"}[name]
            if not 0 < value < math.inf:
                raise ArrivalsError(f"the {what} must be positive, not {shown(value)}")
            if not SHORTEST <= value <= LONGEST:
                raise ArrivalsError(
                    f"the {what} must be from {SHORTEST:g} to {LONGEST:g}, not {shown(value)}"
                )
        if not isinstance(self.own_times, bool):
            raise TypeError(f"own_times: expected True or False, found {self.own_times!r}")
        if not self.own_times and self.rate is None and self.mean_duration is None:
            raise ArrivalsError("to ignore pods' own times, give an arrival rate, a mean duration, or both")

    def plan(self, pods: Sequence[Pod], seed: int) -> Mapping[str, Stay]:
        """Return the stay of each pod, by its uid; the same for the same pods and seed.

        Raises ArrivalsError where an annotation isn't a number of seconds.
        """
        # Two generators, so that drawing the one doesn't change the other.
        comings, stays = Random(f"arrivals {seed}"), Random(f"durations {seed}")
        own = {pod.uid: time for pod in pods if (time := self._arrival(pod)) is not None}
        first = min(own.values(), default=0.0)
        plan: dict[str, Stay] = {}
        clock = 0.0
        for pod in pods:
            if pod.uid in own:
                arrival = own[pod.uid] - first
            else:
                clock += 0.0 if self.rate is None else comings.expovariate(self.rate)
                arrival = clock
            duration, lifetime = self._duration(pod), self._lifetime(pod)
            if duration is None and lifetime is None and self.mean_duration is not None:
                duration = stays.expovariate(1 / self.mean_duration)
            plan[pod.uid] = Stay(arrival, duration, lifetime)
        return plan

    def remaining(self, pod: Pod) -> float | None:
        """Return the seconds that a pod bound from the start stays, by its annotation `kschedfw/duration-seconds`.

        None: it stays to the end. Raises ArrivalsError if the annotation isn't a number of seconds.
        """
        return _seconds(pod, DURATION) if self.own_times else None

    def notes(self, pods: Sequence[Pod]) -> Sequence[str]:
        """Return notes for a report: options that have no effect because all these pods have times of their own.

        Raises ArrivalsError where an annotation isn't a number of seconds.
        """
        idle = []
        if self.rate is not None and all(self._arrival(pod) is not None for pod in pods):
            idle.append("--arrival-rate")
        if self.mean_duration is not None and all(
            self._duration(pod) is not None or self._lifetime(pod) is not None for pod in pods
        ):
            idle.append("--mean-duration")
        if not pods or not idle:
            return []
        change = "change" if len(idle) > 1 else "changes"
        why = f"all {len(pods):,} pods have times of their own; {' and '.join(idle)} {change} none"
        return [f"{why} (--ignore-own-times draws them nevertheless)"]

    def _arrival(self, pod: Pod) -> float | None:
        """Return the pod's own arrival if it is to be used; else None."""
        return own_arrival(pod) if self.own_times or self.rate is None else None

    def _duration(self, pod: Pod) -> float | None:
        return _own_duration(pod) if self.own_times or self.mean_duration is None else None

    def _lifetime(self, pod: Pod) -> float | None:
        return _seconds(pod, LIFETIME) if self.own_times or self.mean_duration is None else None


def own_arrival(pod: Pod) -> float | None:
    """Return the pod's arrival in seconds since the epoch; None if it has none.

    Raises ArrivalsError where an annotation isn't a number of seconds.
    """
    if (seconds := _seconds(pod, OPENB_CREATION)) is not None:
        return OPENB_EPOCH.timestamp() + seconds
    created = pod.metadata.creation_timestamp
    return None if created is None else created.timestamp()


def _own_duration(pod: Pod) -> float | None:
    if (duration := _seconds(pod, DURATION)) is not None:
        return duration
    start = _seconds(pod, OPENB_SCHEDULED)
    if start is None:
        start = _seconds(pod, OPENB_CREATION)
    end = _seconds(pod, OPENB_DELETION)
    return None if start is None or end is None else max(0.0, end - start)


def _seconds(pod: Pod, annotation: str) -> float | None:
    text = pod.annotations.get(annotation)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    # True for NaN, too, which is neither less nor greater.
    if not 0 <= seconds <= LONGEST:
        raise ArrivalsError(
            f"Pod {pod.key}: annotation {annotation}: expected seconds up to {LONGEST:g}, found {shown(text)}"
        )
    return seconds
