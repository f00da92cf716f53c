"""A property of queueing hints: a scheduler that waited places the pods that a new one places after an event.

A refused pod isn't tried again before an event after which, as the hints of its plugins say, it might fit. If a
hint ignores an event that changes the answer of its plugin's filter, the pod waits for the retry after five
minutes. `Trial` looks for such events: a live scheduler refuses a pod, one object changes, and the live
scheduler must place every pod that a new scheduler over the same cluster places at the same time.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import attrs

from kschedfw.api import CustomKind, CustomResource, Named, Pod
from kschedfw.api.objects import to_manifest
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.clock import VirtualClock
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.event_handlers import events_between
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.setup import objects_of

_BACKOFF: Final = 20.0
"""Seconds after which no pod backs off any more; less than any timeout of permit that plugins use by default."""
_START: Final = 1_700_000_000.0
_CHANGES: Final = 6
"""Changes of a cluster in which a pod fits."""
_LUCK: Final = 0.2
"""The probability that a refused pod sees some other change, too, which seldom helps it."""

Thing = Sequence[Named]
"""The states of one object, all of the same kind and name, which updates may turn into each other."""


@attrs.frozen
class Scene:
    """The things that may be in a cluster, each in one of its states or absent, and the pods that come to it.

    `lasting` things are never absent, and `objects` never change. `controllers` are started on each
    cluster, such as `VolumeController`.
    """

    things: Sequence[Thing]
    pods: Sequence[Pod]
    objects: Sequence[Named] = ()
    controllers: Sequence[Callable[[InMemoryCluster], object]] = ()
    lasting: Sequence[Thing] = ()


@attrs.frozen
class Gap:
    """Events that a plugin's hints ignore although they may help a pod that the plugin refused, with the reason."""

    plugin: str
    resource: EventResource | CustomKind
    actions: ActionType
    reason: str

    def covers(self, rejectors: set[str], events: Sequence[ClusterEvent]) -> bool:
        """Tell whether one of these plugins refused the pod, and ignores one of these events."""
        covering = ClusterEvent(self.resource, self.actions)
        return self.plugin in rejectors and any(map(covering.matches, events))


@attrs.define
class Tally:
    """Counts of a trial: refused pods that saw a change, those that fitted then, and gaps met.

    `by_plugin` counts the pods that fitted then for each plugin that had refused them: hints of a plugin that isn't
    there weren't tried.
    """

    cases: int = 0
    placeable: int = 0
    in_gaps: int = 0
    by_plugin: Counter[str] = attrs.field(factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.cases + other.cases,
            self.placeable + other.placeable,
            self.in_gaps + other.in_gaps,
            self.by_plugin + other.by_plugin,
        )

    def __str__(self) -> str:
        share = self.placeable / self.cases if self.cases else 0.0
        return (
            f"{self.cases:,} refused pods saw a change; {self.placeable:,} ({share:.0%}) fitted then, "
            f"{self.in_gaps:,} of these by events that known gaps pass over"
        )


class NotWokenError(AssertionError):
    """The error of a pod that a waiting scheduler left alone and a new one places."""


@attrs.frozen
class _ObjectChange:
    """A state of one object and the next one; None if the object is absent."""

    old: Named | None
    new: Named | None

    @property
    def subject(self) -> Named:
        found = self.old if self.new is None else self.new
        assert found is not None
        return found

    @property
    def undone(self) -> _ObjectChange:
        return _ObjectChange(self.new, self.old)

    def __str__(self) -> str:
        verb = "appears" if self.old is None else "goes" if self.new is None else "changes"
        return f"{type(self.subject).__name__} {self.subject.key} {verb}"


class Trial:
    """A live scheduler over a scene that changes at random; the same `random` gives the same trial."""

    def __init__(
        self,
        scene: Scene,
        random: Random,
        profile: Profile | None = None,
        registry: Registry | None = None,
        gaps: Sequence[Gap] = (),
        *,
        start_time: float = _START,
    ) -> None:
        self.tally = Tally()
        self._scene, self._random, self._gaps = scene, random, gaps
        self._profiles = None if profile is None else (profile,)
        self._registry = registry
        self._clock = VirtualClock(start_time)
        there = [random.choice(states) for states in scene.things if random.random() < 0.8]
        there += [random.choice(states) for states in scene.lasting]
        self._cluster = self._cluster_of([*scene.objects, *there])
        self._scheduler = self._scheduler_of(self._cluster)
        self._count = 0
        self._is_late = False
        """True if a known gap has passed over an event since the waiting pod's latest attempt. The plugins that refused
        it then may not be those that would refuse it now, so that later events may not wake it either.
        """

    def close(self) -> None:
        self._scheduler.close()

    def run(self, pods: int) -> Tally:
        """Let this number of pods come and go.

        Raises:
            NotWokenError: a pod wasn't tried again after a change, though it fits.
        """
        for _ in range(pods):
            pod = self._random.choice(self._scene.pods)
            if self._fits(pod):
                self._shut_out(pod)
            elif self._random.random() < _LUCK:
                self._wait_for_luck(pod)
            for _ in range(self._random.randint(1, 3)):
                self._apply(self._any_change())
        return self.tally

    def _fits(self, pod: Pod) -> bool:
        come = self._come(pod)
        placed = self._is_placed(come)
        self._go(come)
        return placed

    def _shut_out(self, pod: Pod) -> None:
        """Change a cluster in which the pod fits. When a change shuts the pod out, undo it in sight of the pod.

        So most waiting pods fit after the change that they see.
        """
        for _ in range(_CHANGES):
            before = self._another_state_of(pod) if self._random.random() < 0.2 else None
            change = None if before is not None else self._apply(self._any_change())
            come = self._come(pod if before is None else before)
            if self._is_placed(come):
                self._go(come)
                continue
            if self._random.random() < _LUCK:
                other = self._any_change()
                self._observe(come, other)
                self._see_undone(come, other)
            if change is not None:
                self._see_undone(come, change)
            elif not self._is_placed(come):
                present = self._present(come)
                self._observe(come, _ObjectChange(present, _updated(present, pod)))
            self._go(come)

    def _see_undone(self, pod: Pod, change: _ObjectChange) -> None:
        """Undo the change, seen by the pod if it still waits."""
        if self._is_placed(pod):
            self._apply(change.undone)
        else:
            self._observe(pod, change.undone)

    def _wait_for_luck(self, pod: Pod) -> None:
        """Let a pod that doesn't fit see any change."""
        come = self._come(pod)
        if not self._is_placed(come):
            self._observe(come, self._any_change())
        self._go(come)

    def _observe(self, pod: Pod, change: _ObjectChange) -> None:
        """Let the waiting pod see the change, and compare with a new scheduler."""
        rejectors, attempts = self._refusal_of(pod)
        events = events_between(change.old, change.new)
        self._apply(change)
        as_it_is = objects_of(self._cluster)
        self._settle(self._scheduler)
        self.tally.cases += 1
        if self._is_placed(pod):
            self._count_placeable(rejectors)
            return
        if self._refusal_of(pod)[1] > attempts:
            self._is_late = False
        elif any(gap.covers(rejectors, events) for gap in self._gaps):
            self._is_late = True
        if not self._new_scheduler_places(pod, as_it_is):
            return
        self._count_placeable(rejectors)
        if self._is_placed(pod):
            return
        if self._is_late:
            self.tally.in_gaps += 1
            return
        told = ", ".join(event.label for event in events) or "no event"
        raise NotWokenError(
            f"a pod that {', '.join(sorted(rejectors)) or 'nobody'} refused isn't tried again when {change} ({told}), "
            f"but a new scheduler places it\n  pod: {_shown(pod)}\n  before: {_shown(change.old)}\n  after: "
            f"{_shown(change.new)}"
        )

    def _count_placeable(self, rejectors: set[str]) -> None:
        self.tally.placeable += 1
        self.tally.by_plugin.update(rejectors)

    def _refusal_of(self, pod: Pod) -> tuple[set[str], int]:
        """Return the plugins that refused the waiting pod in its latest attempt, and the number of its attempts."""
        waiting = self._scheduler.queue.get(pod.uid)
        if waiting is None:
            return set(), 0
        return {*waiting.rejector_plugins, waiting.gating_plugin} - {""}, waiting.attempts

    def _new_scheduler_places(self, pod: Pod, objects: Sequence[Named]) -> bool:
        """Tell whether a new scheduler places the pod, while the waiting one goes on beside it.

        Both are asked at the same times: a refusal may end by itself, at its `retry_at`, so that a scheduler that
        decides later than the other may place a pod that the other had to refuse.
        """
        cluster = self._cluster_of(objects)
        scheduler = self._scheduler_of(cluster)
        self._settle(scheduler, self._scheduler)
        scheduler.close()
        found = cluster.get(Pod, pod.key)
        return found is not None and bool(found.node_name)

    # Changes

    def _any_change(self) -> _ObjectChange:
        """Return a change of a thing to another of its states, or to absence and back."""
        states = self._random.choice([*self._scene.things, *self._scene.lasting])
        present = self._cluster.get(type(states[0]), states[0].key)
        others: list[Named | None] = [
            state for state in states if present is None or _updated(present, state) != present
        ]
        may_go = present is not None and states not in self._scene.lasting
        if may_go and (not others or self._random.random() < 0.5):
            others = [None]
        # A lasting thing with a single state stays as it is.
        new = self._random.choice(others or [present])
        if present is not None and new is not None:
            new = _updated(present, new)
        return _ObjectChange(present, new)

    def _another_state_of(self, pod: Pod) -> Pod | None:
        """Return the pod as it may have been before an update: with other labels, fewer tolerations, or a gate."""
        other = self._random.choice(self._scene.pods)
        match self._random.randint(0, 2):
            case 0:
                before = pod.with_metadata(attrs.evolve(pod.metadata, labels=other.labels))
            case 1:
                before = attrs.evolve(pod, spec=attrs.evolve(pod.spec, tolerations=()))
            case _:
                gates = other.spec.scheduling_gates
                before = attrs.evolve(pod, spec=attrs.evolve(pod.spec, scheduling_gates=gates))
        return None if before == pod else before

    def _apply(self, change: _ObjectChange) -> _ObjectChange:
        present = self._cluster.get(type(change.subject), change.subject.key)
        if change.new is None:
            if present is not None:
                self._cluster.delete(present)
        elif present is None:
            # A deleted object doesn't come back: this is another object with its name.
            self._cluster.add(_without_identity(change.new))
        else:
            self._cluster.update(_without_identity(change.new))
        return change

    # Pods

    def _come(self, pod: Pod) -> Pod:
        """Create a pod of this form with a name of its own, and let the scheduler try it."""
        self._count += 1
        self._is_late = False
        metadata = attrs.evolve(pod.metadata, name=f"waiting-{self._count}", uid="", resource_version="")
        come = self._cluster.add(pod.with_metadata(metadata))
        self._settle(self._scheduler)
        return come

    def _go(self, pod: Pod) -> None:
        present = self._cluster.get(Pod, pod.key)
        if present is not None:
            self._cluster.delete(present)

    def _present(self, pod: Pod) -> Pod:
        found = self._cluster.get(Pod, pod.key)
        assert found is not None
        return found

    def _is_placed(self, pod: Pod) -> bool:
        return bool(self._present(pod).node_name)

    # Schedulers

    def _cluster_of(self, objects: Sequence[Named]) -> InMemoryCluster:
        cluster = InMemoryCluster(objects)
        for controller in self._scene.controllers:
            controller(cluster)
        return cluster

    def _scheduler_of(self, cluster: InMemoryCluster) -> Scheduler:
        return Scheduler(
            cluster,
            self._profiles,
            registry=self._registry,
            clock=self._clock,
            random=Random(0),
            # Otherwise the retry after five minutes would hide a hint that ignores an event.
            unschedulable_timeout=math.inf,
        )

    def _settle(self, *schedulers: Scheduler) -> None:
        """Schedule until no pod backs off, with these schedulers side by side."""
        for wait in (0.0, _BACKOFF, _BACKOFF):
            self._clock.advance_to(self._clock.now() + wait)
            for scheduler in schedulers:
                scheduler.run_until_idle()


def _updated(present: Named, new: Named) -> Named:
    """Return the new state as an update stores it, without fields that only the cluster and the scheduler write."""
    metadata = attrs.evolve(
        new.metadata,
        uid=present.uid,
        namespace=present.namespace,
        resource_version=present.metadata.resource_version,
    )
    if isinstance(present, Pod) and isinstance(new, Pod) and not new.node_name:
        metadata = attrs.evolve(metadata, name=present.name)
        new = new.with_status(present.status)
    return new.with_metadata(metadata)


def _without_identity(obj: Named) -> Named:
    return obj.with_metadata(attrs.evolve(obj.metadata, uid="", resource_version=""))


def _shown(obj: Named | None) -> str:
    """Return the manifest in a line, without defaults."""
    if obj is None:
        return "absent"
    return json.dumps(to_manifest(obj.as_custom_object() if isinstance(obj, CustomResource) else obj))
