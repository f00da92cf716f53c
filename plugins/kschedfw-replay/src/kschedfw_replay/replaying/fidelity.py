"""Fidelity: each recorded decision beside that of a configuration, on the recorded state."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from enum import StrEnum
from random import Random
from typing import Final

import attrs
from kschedfw_lab.compare import Ground, against

from kschedfw import GenericScheduler, InMemoryCluster, Pod, Registry, Scheduler, VirtualClock
from kschedfw.api import Named
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.explain import ExplainingScheduler, Explanation
from kschedfw.scheduler import Setup, make_extenders, num_feasible_nodes_to_find
from kschedfw_replay.replaying.history import Happening
from kschedfw_replay.shadow.decision import Recorded
from kschedfw_replay.shadow.shadow import SETTLING_SECONDS
from kschedfw_replay.shadow.timeline import Timeline

EXAMPLES: Final = 5
"""How many decisions of each kind of difference are kept."""


class Agreement(StrEnum):
    """How a recorded decision compares with the configuration's, which looks at all nodes."""

    SAME = "same"
    """The same node, or none."""
    TIED = "tied"
    """The recorded node has as many points as the one that was drawn here."""
    UNSEEN = "not all looked at"
    """The recorded node has fewer points, but more nodes fit than the scheduler looks for in a cluster of this size."""
    DIFFERS = "differs"
    """The recorded node fits and has fewer points."""
    REFUSED_HERE = "refused here"
    """The pod was bound to a node that refuses it here."""
    REFUSED_THERE = "refused there"
    """The pod was refused, and fits here."""


@attrs.frozen
class Compared:
    """One recorded decision, and why the configuration decides otherwise."""

    pod: str
    at: float
    agreement: Agreement
    recorded: str | None
    """The node; None if the pod was refused."""
    here: str | None
    why: str = ""


@attrs.frozen
class FidelityReport:
    """How often a configuration decides as the recorded scheduler did."""

    counts: Mapping[Agreement, int]
    examples: tuple[Compared, ...]
    """The first ones of each difference."""

    @property
    def decisions(self) -> int:
        return sum(self.counts.values())

    @property
    def agreeing(self) -> float:
        """The share of decisions that are the same or tied; 1 without decisions."""
        agreeing = self.counts.get(Agreement.SAME, 0) + self.counts.get(Agreement.TIED, 0)
        return agreeing / self.decisions if self.decisions else 1.0


class Fidelity:
    """Follows a history as it was, and asks a configuration for each decision before its outcome is taken over.

    Decisions are made when the recorded scheduler made them, as far as can be told (see `Timeline`). Those on pods of
    other schedulers aren't compared. Close it in the end.
    """

    def __init__(self, setup: Setup, registry: Registry | None = None) -> None:
        self._percentage = setup.percentage_of_nodes_to_score
        self._own_percentage = {
            each.scheduler_name: each.percentage_of_nodes_to_score for each in setup.profiles
        }
        self._only = setup.profiles[0].scheduler_name if setup.takes_every_pod else None
        self._cluster = InMemoryCluster(events_limit=1)
        self._clock = VirtualClock()
        # A search that ends early begins somewhere in the order of the nodes, which a recording doesn't tell.
        everywhere = [attrs.evolve(each, percentage_of_nodes_to_score=100) for each in setup.profiles]
        self._scheduler = Scheduler(
            self._cluster,
            everywhere,
            registry=registry,
            clock=self._clock,
            random=Random(0),
            extenders=make_extenders(setup.extenders, clock=self._clock),
            feature_gates=setup.feature_gates,
            idle=True,
        )
        generic = self._scheduler.algorithm
        assert isinstance(generic, GenericScheduler)
        self._explainer = ExplainingScheduler(generic)
        self._pods: dict[str, Pod] = {}
        self._timeline = Timeline(SETTLING_SECONDS, self._pods.get, latency=0.0)
        self._counts: Counter[Agreement] = Counter()
        self._examples: defaultdict[Agreement, list[Compared]] = defaultdict(list)

    def take(self, happening: Happening) -> None:
        """Follow what has happened, and compare the decisions that it tells of; the latest ones with the next calls."""
        self._timeline.put(_event(happening), happening.at)
        self._follow(happening.at - SETTLING_SECONDS)

    def report(self) -> FidelityReport:
        """The report of all that was taken."""
        self._follow(math.inf)
        examples = tuple(each for kind in Agreement for each in self._examples[kind])
        return FidelityReport({kind: self._counts[kind] for kind in Agreement}, examples)

    def close(self) -> None:
        self._scheduler.close()

    def _follow(self, settled: float) -> None:
        while (arrival := self._timeline.take(settled)) is not None:
            next_at = self._timeline.next_at
            now = arrival.at if next_at is None else min(arrival.at, next_at)
            self._clock.advance_to(max(now, self._clock.now()))
            if arrival.recorded is not None:
                self._compare(arrival.at, arrival.recorded)
            self._apply(arrival.event)

    def _apply(self, event: WatchEvent) -> None:
        new = None if event.type is EventType.DELETED else event.object
        if isinstance(new, Pod):
            self._pods[new.key] = new
        elif isinstance(event.object, Pod):
            self._pods.pop(event.object.key, None)
        follow(self._cluster, event.object if new is None else event.old, new)

    def _compare(self, at: float, decision: Recorded) -> None:
        pod = decision.pod
        framework = self._scheduler.frameworks.get(self._only or pod.spec.scheduler_name)
        if framework is None:
            return
        explanation = self._explainer.explain(framework, pod)
        # A refusal is written when room has been made for the pod: its victims may be gone already, and it fits there.
        recorded = decision.node or (explanation.node and decision.nominated) or None
        agreement, why = self._agreement(explanation, recorded)
        self._counts[agreement] += 1
        if agreement is not Agreement.SAME and len(self._examples[agreement]) < EXAMPLES:
            compared = Compared(pod.key, at, agreement, recorded, explanation.node, why)
            self._examples[agreement].append(compared)

    def _agreement(self, explanation: Explanation, recorded: str | None) -> tuple[Agreement, str]:
        if explanation.node == recorded:
            return Agreement.SAME, ""
        if recorded is None:
            return Agreement.REFUSED_THERE, ""
        difference = against(explanation, recorded)
        if difference is None:
            return Agreement.REFUSED_HERE, explanation.message
        why = str(difference)
        match difference.ground:
            case Ground.TIED:
                return Agreement.TIED, why
            case Ground.REFUSED:
                return Agreement.REFUSED_HERE, why
            case Ground.UNSEEN:
                return Agreement.DIFFERS, why
            case Ground.OUTSCORED:
                percentage = self._own_percentage[explanation.profile]
                wanted = num_feasible_nodes_to_find(
                    self._percentage if percentage is None else percentage, len(explanation.nodes)
                )
                is_partial = len(explanation.feasible) > wanted
                return (Agreement.UNSEEN if is_partial else Agreement.DIFFERS), why


def follow(cluster: InMemoryCluster, old: Named | None, new: Named | None) -> None:
    """Make a change in the cluster that has happened to an object; the cluster may know the object already or not."""
    if new is None:
        assert old is not None
        if cluster.get(type(old), old.key) is not None:
            cluster.delete(old.with_metadata(attrs.evolve(old.metadata, uid="", resource_version="")))
    elif cluster.get(type(new), new.key) is None:
        cluster.add(new)
    else:
        cluster.update(new.with_metadata(attrs.evolve(new.metadata, resource_version="")))


def _event(happening: Happening) -> WatchEvent:
    if happening.new is None:
        return WatchEvent(EventType.DELETED, happening.object)
    type_ = EventType.ADDED if happening.old is None else EventType.MODIFIED
    return WatchEvent(type_, happening.new, happening.old)
