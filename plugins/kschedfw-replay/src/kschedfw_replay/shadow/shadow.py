"""The shadow: follows a cluster's events, and compares each decision of its scheduler with its own."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from random import Random
from typing import Final

import attrs

from kschedfw import Clock, Framework, GenericScheduler, Node, Pod, Registry, Scheduler
from kschedfw.cluster import Cluster, EventType, WatchEvent
from kschedfw.explain import ExplainingScheduler
from kschedfw.scheduler import Setup, make_extenders, num_feasible_nodes_to_find
from kschedfw_replay.shadow.claims import Claims
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison, Recorded, compared, failed
from kschedfw_replay.shadow.mirror import Mirror
from kschedfw_replay.shadow.timeline import FIRST_LATENCY, Arrival, Timeline

SETTLING_SECONDS: Final = 0.5
"""Seconds that an event waits: until then a decision that was made before it may still be reported."""
_MOST_MOVED: Final = 32
"""The number of earlier and of later changes that are tried for a decision that doesn't agree."""
_FAR_BEHIND: Final = 10.0
"""The delay in seconds from which on no causes are sought, since that takes longer than deciding."""


@attrs.frozen
class _Change:
    """A change that has been made, and how to take it back."""

    made: Arrival
    inverse: WatchEvent


class Shadow:
    """Decides with a configuration what the scheduler of `source` decides, at the same moments and on the same states.

    Events come in by `observe`, from any thread; comparisons come out of `decisions`, on one thread. The state is a
    private copy, and what the configuration's scheduler and plugins write goes nowhere. All nodes are looked at for
    every pod, whatever `percentageOfNodesToScore` says: from where the cluster's scheduler began isn't known.

    Args:
        source: read for custom objects, and for kinds of which no event has come.
        clock: the clock of plugins, and of arrivals.
        registry: where the plugins are found; by default those that are installed.
        seed: of draws among nodes that are equally good.
        settling: seconds for which an event waits for others.
        latency: seconds from a decision to its event, as long as none has been measured. With 0, events of one
            instant, as simulations have them, stay in the order in which they came.

    Raises:
        PluginError, ProfileError, MissingExtraError: the configuration can't be run.
    """

    def __init__(
        self,
        source: Cluster,
        setup: Setup,
        *,
        clock: Clock,
        registry: Registry | None = None,
        seed: int = 0,
        settling: float = SETTLING_SECONDS,
        latency: float = FIRST_LATENCY,
    ) -> None:
        self._clock, self._settling = clock, settling
        self._mirror = Mirror(source)
        self._only = setup.profiles[0].scheduler_name if setup.takes_every_pod else None
        self._percentage = {
            each.scheduler_name: setup.configuration.percentage_of_nodes_to_score
            if each.percentage_of_nodes_to_score is None
            else each.percentage_of_nodes_to_score
            for each in setup.profiles
        }
        self._scheduler = Scheduler(
            self._mirror,
            [attrs.evolve(each, percentage_of_nodes_to_score=100) for each in setup.profiles],
            registry=registry,
            clock=clock,
            random=Random(seed),
            extenders=make_extenders(setup.configuration.extenders, clock=clock),
            feature_gates=setup.configuration.gates,
            idle=True,
        )
        assert isinstance(self._scheduler.algorithm, GenericScheduler)
        self._explainer = ExplainingScheduler(self._scheduler.algorithm)
        self._claims = Claims(self._mirror)
        self._lock = threading.Lock()
        self._inbox: list[tuple[WatchEvent, float]] = []
        """Events with their times, which are on the monotonic clock; written by whoever observes, with the lock."""
        self._timeline = Timeline(settling, lambda key: self._mirror.get(Pod, key), latency)
        # More than are tried, since `_matters` leaves many out.
        self._applied: deque[_Change] = deque(maxlen=4 * _MOST_MOVED)
        """The latest changes, which are taken back when a cause is sought."""
        self.passed_over = 0
        """Decisions on pods for which the configuration has no profile."""

    def observe(self, event: WatchEvent) -> None:
        """Take a change of the cluster, in the order of the changes. Thread-safe."""
        with self._lock:
            self._inbox.append((event, self._clock.monotonic()))

    @property
    def backlog(self) -> float:
        """Return the seconds that the oldest settled event has waited; 0 if there is none."""
        at = self._timeline.next_at
        return 0.0 if at is None else max(0.0, self._clock.monotonic() - at - self._settling)

    def decisions(self, *, everything: bool = False) -> Iterator[Comparison]:
        """Yield the comparisons of the decisions in settled events; with `everything`, in all events so far."""
        with self._lock:
            came, self._inbox = self._inbox, []
        for event, at in came:
            self._timeline.put(event, at)
        settled = math.inf if everything else self._clock.monotonic() - self._settling
        while (arrival := self._timeline.take(settled)) is not None:
            recorded = arrival.recorded
            if recorded is not None and (framework := self._framework_of(recorded.pod)) is not None:
                yield self._compared(framework, recorded, arrival)
            elif recorded is not None:
                self.passed_over += 1
            self._apply(arrival)

    def close(self) -> None:
        """Close the plugins and extenders."""
        self._scheduler.close()

    def _apply(self, arrival: Arrival) -> None:
        self._claims.note(arrival.event)
        if (inverse := self._mirror.apply(arrival.event)) is not None:
            self._applied.append(_Change(arrival, inverse))

    # --- deciding ---

    def _framework_of(self, pod: Pod) -> Framework | None:
        return self._scheduler.frameworks.get(self._only or pod.spec.scheduler_name)

    def _compared(self, framework: Framework, recorded: Recorded, arrival: Arrival) -> Comparison:
        begun = self._clock.monotonic()
        comparison = self._decide(framework, recorded)
        decided = self._clock.monotonic()
        # Arrivals are on the monotonic clock, and comparisons tell the time of day.
        at = self._clock.now() - (decided - arrival.at)
        comparison = attrs.evolve(comparison, at=at, seconds=decided - begun)
        if comparison.agreement.agrees or comparison.agreement is Agreement.FAILED:
            return comparison
        if self._is_partial_search(framework, comparison):
            return attrs.evolve(comparison, cause=Cause.PARTIAL_SEARCH)
        return attrs.evolve(comparison, cause=self._cause(framework, recorded, arrival))

    def _decide(self, framework: Framework, recorded: Recorded) -> Comparison:
        with self._changed(tuple(self._claims.taken_back(recorded.pod))):
            try:
                explanation = self._explainer.explain(framework, recorded.pod)
            except Exception as error:
                # A post_filter plugin may raise anything while it looks for victims.
                return failed(recorded, f"{type(error).__name__}: {error}", tuple(framework.plugins))
        return compared(recorded, explanation, tuple(framework.plugins))

    def _is_partial_search(self, framework: Framework, comparison: Comparison) -> bool:
        """Return whether the better node may be one at which the cluster's scheduler didn't look."""
        if comparison.agreement is not Agreement.BETTER:
            return False
        percentage = self._percentage[framework.profile.scheduler_name]
        nodes = len(self._mirror.list(Node))
        return comparison.feasible > num_feasible_nodes_to_find(percentage, nodes)

    def _cause(self, framework: Framework, recorded: Recorded, arrival: Arrival) -> Cause:
        """Return the cause: decide again with the changes after the decision, then without those before it."""
        if self._timeline.span > _FAR_BEHIND:
            return Cause.UNKNOWN
        later = (each.event for each in self._timeline.ahead())
        for events in later, self._taken_back(arrival):
            if (cause := self._moved(framework, recorded, events)) is not None:
                return cause
        return Cause.UNKNOWN

    def _taken_back(self, arrival: Arrival) -> Iterator[WatchEvent]:
        """Yield what takes back the changes that the decision may not have known, the latest first.

        A pod that was tried for the first time was decided at some moment since it came: an API server under load may
        bind it seconds later. Pods that were certainly tried before it keep their nodes.
        """
        waited, since = arrival.waited, arrival.at - self._settling
        if waited is not None:
            since = min(since, waited.since)
        kept: set[str] = set()
        for change in reversed(self._applied):
            made = change.made
            if waited is not None and made.waited is not None and made.waited.precedes(waited):
                kept.add(made.event.object.uid)
            # Earlier changes of a pod that keeps its node are those of its creation.
            if made.at >= since and made.event.object.uid not in kept:
                yield change.inverse

    def _moved(self, framework: Framework, recorded: Recorded, events: Iterable[WatchEvent]) -> Cause | None:
        """Make the changes in turn, and take them back. Return the kind of change after which the decision agrees."""
        made: list[WatchEvent] = []
        try:
            for event in islice(filter(self._matters, events), _MOST_MOVED):
                # Changes of the pod itself tell of its own decision.
                if event.object.uid == recorded.pod.uid or (inverse := self._mirror.apply(event)) is None:
                    continue
                made.append(inverse)
                if self._decide(framework, recorded).agreement.agrees:
                    return Cause.RACE if isinstance(event.object, Pod) else Cause.NEWER_STATE
        finally:
            for inverse in reversed(made):
                self._mirror.apply(inverse)
        return None

    def _matters(self, event: WatchEvent) -> bool:
        """Tell whether the event may change a decision on another pod. Most changes of pods are of their phase only."""
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
    """Return what determines the room of a pod: its node, nomination and deletion; None if it takes none."""
    if pod is None or not (pod.node_name or pod.status.nominated_node_name):
        return None
    return pod.node_name, pod.status.nominated_node_name, pod.is_terminating
