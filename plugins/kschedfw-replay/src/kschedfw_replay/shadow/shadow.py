"""Decides beside a cluster's scheduler: follows its events, and compares each of its decisions with one's own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from random import Random
from typing import Final

import attrs

from kschedfw import Clock, GenericScheduler, Pod, SchedulerConfiguration, scheduler_from_configuration
from kschedfw.cluster import Cluster, EventType, WatchEvent
from kschedfw.explain import ExplainingScheduler
from kschedfw_replay.shadow.claims import Claims
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison, Recorded, compared, failed
from kschedfw_replay.shadow.mirror import Mirror

SETTLING_SECONDS: Final = 0.5
"""How long an event waits before it counts, so that decisions can be put into their order.

kube-scheduler decides one pod after the other, and binds them in the background, many at a time: bindings arrive in
another order, most of them within some ten milliseconds.
"""
_MOST_MOVED: Final = 12
"""How many changes earlier, and later, are tried for a decision that doesn't agree."""
_FAR_BEHIND: Final = 10.0
"""Seconds. So far behind, causes aren't looked for: it takes more time than to decide."""


@attrs.frozen(eq=False)
class _Arrival:
    """An event, and when it came, on the monotonic clock."""

    event: WatchEvent
    at: float


@attrs.frozen
class _Change:
    """A change that has been made, and how to take it back."""

    made: WatchEvent
    inverse: WatchEvent
    at: float


class Shadow:
    """Decides with a configuration what the scheduler of `source` decides, at the same moments and on the same states.

    Events come in by `observe`, from any thread; comparisons come out of `decisions`, on one thread. The state is a
    private copy, and what the configuration's scheduler and plugins write goes nowhere. All nodes are looked at for
    every pod, whatever `percentageOfNodesToScore` says: from where the cluster's scheduler began isn't known.

    Args:
        source: read for custom objects, and for kinds of which no event has come.
        clock: the clock of plugins, and of arrivals.
        seed: of draws among nodes that are equally good.
        settling: seconds for which an event waits for others.

    Raises:
        PluginError, ProfileError, MissingExtraError: the configuration can't be run.
    """

    def __init__(
        self,
        source: Cluster,
        configuration: SchedulerConfiguration,
        *,
        clock: Clock,
        seed: int = 0,
        settling: float = SETTLING_SECONDS,
    ) -> None:
        self._clock, self._settling = clock, settling
        self._mirror = Mirror(source)
        self._scheduler = scheduler_from_configuration(
            _looking_at_all(configuration), self._mirror, clock=clock, random=Random(seed), idle=True
        )
        assert isinstance(self._scheduler.algorithm, GenericScheduler)
        self._explainer = ExplainingScheduler(self._scheduler.algorithm)
        self._claims = Claims(self._mirror)
        self._lock = threading.Lock()
        self._inbox: deque[_Arrival] = deque()
        """Written by whoever observes, with the lock."""
        self._window: deque[_Arrival] = deque()
        """Events that haven't been applied, in the order in which they came."""
        self._applied: deque[_Change] = deque()
        """The latest changes, as long as they may be taken back."""
        self._turns: dict[str, int] = {}
        """By uid, the places of pending pods in the queue of the cluster's scheduler, where they are known."""
        self._next_turn = 0
        self.passed_over = 0
        """Decisions on pods for which the configuration has no profile."""

    def observe(self, event: WatchEvent) -> None:
        """Take a change of the cluster, in the order of the changes. Thread-safe."""
        with self._lock:
            self._inbox.append(_Arrival(event, self._clock.monotonic()))

    @property
    def backlog(self) -> float:
        """For how many seconds the oldest event has waited that counts as settled; 0 if there is none."""
        first = next(iter(self._window), None)
        return 0.0 if first is None else max(0.0, self._clock.monotonic() - first.at - self._settling)

    def decisions(self, *, everything: bool = False) -> Iterator[Comparison]:
        """Compare the decisions in the events that have settled by now; with `everything`, in all that have come."""
        with self._lock:
            self._window.extend(self._inbox)
            self._inbox.clear()
        settled = self._clock.monotonic() - self._settling
        while self._window and (everything or self._window[0].at <= settled):
            yield from self._take(self._window[0])

    def close(self) -> None:
        """Close the plugins and extenders."""
        self._scheduler.close()

    # --- events ---

    def _take(self, arrival: _Arrival) -> Iterator[Comparison]:
        """Apply the event, after the comparison if it is a decision, and after decisions that were made before it."""
        recorded = self._recorded(arrival.event)
        if recorded is not None:
            arrival, recorded = self._decided_first(arrival, recorded)
            if recorded.pod.spec.scheduler_name in self._scheduler.frameworks:
                yield self._compared(recorded, arrival)
            else:
                self.passed_over += 1
        self._window.remove(arrival)
        self._apply(arrival)

    def _apply(self, arrival: _Arrival) -> None:
        event = arrival.event
        self._claims.note(event)
        self._note_turn(event)
        if (inverse := self._mirror.apply(event)) is not None:
            self._applied.append(_Change(event, inverse, arrival.at))
        while self._applied and (
            len(self._applied) > 4 * _MOST_MOVED or self._applied[0].at < arrival.at - self._settling
        ):
            self._applied.popleft()

    def _recorded(self, event: WatchEvent) -> Recorded | None:
        if not isinstance(event.object, Pod):
            return None
        return Recorded.of(self._mirror.get(Pod, event.object.key), event)

    # --- the order of decisions ---

    def _note_turn(self, event: WatchEvent) -> None:
        """Note the pod's place in the scheduler's queue: it is behind all others when it comes, or its gates go.

        A pod that was refused comes back at a time that nothing tells.
        """
        pod = event.object
        if not isinstance(pod, Pod):
            return
        waits = not (event.type is EventType.DELETED or pod.node_name or pod.spec.scheduling_gates)
        if not waits or any(each.type == "PodScheduled" for each in pod.status.conditions):
            self._turns.pop(pod.uid, None)
        elif event.type is EventType.ADDED or pod.uid not in self._turns:
            self._next_turn += 1
            self._turns[pod.uid] = self._next_turn

    def _decided_first(self, arrival: _Arrival, recorded: Recorded) -> tuple[_Arrival, Recorded]:
        """The decision that was made first, of this one and those after it: bindings overtake one another.

        Of two pods, the one that came first was certainly decided first if its priority isn't lower.
        """
        turn = self._turns.get(recorded.pod.uid)
        seen = {recorded.pod.uid}
        for later in islice(self._window, 1, None):
            if turn is None or later.at > self._window[0].at + self._settling:
                break
            pod = later.event.object
            if not isinstance(pod, Pod) or pod.uid in seen:
                continue
            seen.add(pod.uid)
            other, found = self._turns.get(pod.uid), self._recorded(later.event)
            if found is None or other is None or other > turn or pod.priority < recorded.pod.priority:
                continue
            arrival, recorded, turn = later, found, other
        return arrival, recorded

    # --- deciding ---

    def _compared(self, recorded: Recorded, arrival: _Arrival) -> Comparison:
        begun = self._clock.monotonic()
        comparison = self._decide(recorded)
        decided = self._clock.monotonic()
        at = self._clock.now() - (decided - arrival.at)
        comparison = attrs.evolve(comparison, at=at, seconds=decided - begun)
        if comparison.agreement.agrees or comparison.agreement is Agreement.FAILED:
            return comparison
        return attrs.evolve(comparison, cause=self._cause(recorded, arrival))

    def _decide(self, recorded: Recorded) -> Comparison:
        framework = self._scheduler.frameworks[recorded.pod.spec.scheduler_name]
        with self._changed(tuple(self._claims.taken_back(recorded.pod))):
            try:
                explanation = self._explainer.explain(framework, recorded.pod)
            except Exception as error:  # a post_filter plugin may raise anything while it looks for victims
                return failed(recorded, f"{type(error).__name__}: {error}", tuple(framework.plugins))
        return compared(recorded, explanation, tuple(framework.plugins))

    def _cause(self, recorded: Recorded, arrival: _Arrival) -> Cause:
        """Why the decision doesn't agree: decide it anew with the changes after it, then without those before."""
        if self._window[-1].at - arrival.at > _FAR_BEHIND:
            return Cause.UNKNOWN
        later = (each.event for each in self._window if each is not arrival)
        earlier = (each.inverse for each in reversed(self._applied))
        return self._moved(recorded, later) or self._moved(recorded, earlier) or Cause.UNKNOWN

    def _moved(self, recorded: Recorded, events: Iterable[WatchEvent]) -> Cause | None:
        """The kind of change after which the decision agrees, of these, which are made in turn and taken back."""
        made: list[WatchEvent] = []
        try:
            for event in islice(filter(self._matters, events), _MOST_MOVED):
                if event.object.uid == recorded.pod.uid or (inverse := self._mirror.apply(event)) is None:
                    continue
                made.append(inverse)
                if self._decide(recorded).agreement.agrees:
                    return Cause.RACE if isinstance(event.object, Pod) else Cause.NEWER_STATE
        finally:
            for inverse in reversed(made):
                self._mirror.apply(inverse)
        return None

    def _matters(self, event: WatchEvent) -> bool:
        """Whether the event may change a decision on another pod; most changes of pods are those of their phase."""
        if not isinstance(event.object, Pod):
            return True
        known = self._mirror.get(Pod, event.object.key)
        after = None if event.type is EventType.DELETED else event.object
        return _taken(known) != _taken(after)

    @contextmanager
    def _changed(self, events: Iterable[WatchEvent]) -> Iterator[None]:
        """Make these changes for the time of the block."""
        made: list[WatchEvent] = []
        try:
            for event in events:
                if (inverse := self._mirror.apply(event)) is not None:
                    made.append(inverse)
            yield
        finally:
            for inverse in reversed(made):
                self._mirror.apply(inverse)


def _taken(pod: Pod | None) -> tuple[str, str, bool] | None:
    """The room that a pod takes: its node, its nomination, and whether it is about to go; None if it takes none."""
    if pod is None or not (pod.node_name or pod.status.nominated_node_name):
        return None
    return pod.node_name, pod.status.nominated_node_name, pod.is_terminating


def _looking_at_all(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration with a search of all nodes for each pod."""
    profiles = tuple(
        attrs.evolve(profile, percentage_of_nodes_to_score=None) for profile in configuration.profiles
    )
    return attrs.evolve(configuration, profiles=profiles, percentage_of_nodes_to_score=100)
