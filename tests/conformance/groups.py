"""The decisions of a scenario with groups of pods, in the form of the recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

import attrs

from kschedfw.api import KINDS, Pod, object_from_manifest
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import default_profile
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis
from kschedfw.framework.gate_table import (
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    WORKLOAD_AWARE_PREEMPTION,
)
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import FilterOutcome, Totals
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.preemption.evaluator import PREEMPTION_PLAN, PreemptionPlan
from kschedfw.framework.profile import ExtensionPoint, Profile
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.plugins.default_preemption import DefaultPreemptionArgs
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.batching import Hint
from kschedfw.scheduler.generic_scheduler import ScheduleResult
from kschedfw.scheduler.groups import GroupDecision, GroupResult, MemberResult, VictimUnit
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.scheduling_cycle import Algorithm
from kschedfw.scheduler.select import FirstByNameSelector
from kschedfw.testing.clock import FakeClock
from tests.conformance.decide import verdict_json, victims_json
from tests.conformance.group_cluster import AnsweringCluster
from tests.conformance.scenario import GroupScenario, Json

GATES: Final = (
    GENERIC_WORKLOAD,
    GANG_SCHEDULING,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    WORKLOAD_AWARE_PREEMPTION,
)
_WITHOUT_GROUP_PREEMPTION: Final = "nowap"
"""The category that was recorded without WorkloadAwarePreemption."""

_STEP: Final = 0.01
"""Seconds that every event, cycle and answer takes."""
_PAUSE: Final = 15.0
"""Seconds after which every backoff is over."""
_MOST_CYCLES: Final = 40

_PRE_ENQUEUE: Final = ("DefaultPreemption", "DynamicResources", "GangScheduling", "SchedulingGates")
"""In kube-scheduler these come in random order; for the recordings, by name."""


def decide_groups(scenario: GroupScenario, registry: Registry) -> list[Json]:
    """Return the rounds of a scenario: the cycles of each, and the queue at its end.

    Raises:
        KschedfwError: an object is invalid, or a plugin fails.
    """
    return GroupRun(scenario, registry).rounds()


class GroupRun:
    """One scenario: a scheduler on a cluster that answers after each cycle."""

    def __init__(
        self,
        scenario: GroupScenario,
        registry: Registry,
        evaluation: Evaluation = Evaluation.MEMO,
        metrics: MetricsRecorder | None = None,
    ) -> None:
        self._events = scenario.events
        self._view = InMemoryCluster()
        for name, kind in KINDS.items():
            manifests = scenario.objects.get(kind.plural) or ()
            for obj in sorted((object_from_manifest(each, name) for each in manifests), key=lambda o: o.key):
                self._view.add(obj)
        self._clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
        self._cluster = AnsweringCluster(self._view, lambda: self._clock.advance(_STEP))
        gates = GATES[:-1] if scenario.category == _WITHOUT_GROUP_PREEMPTION else GATES
        feature_gates = FeatureGates.of(*gates)
        self.scheduler = Scheduler(
            self._cluster,
            [_profile(feature_gates)],
            registry=registry,
            clock=self._clock,
            random=_FirstOfAll(0),
            parallelizer=Parallelizer(1),
            percentage_of_nodes_to_score=100,
            selector=FirstByNameSelector(),
            evaluation=evaluation,
            metrics=NO_METRICS if metrics is None else metrics,
            feature_gates=feature_gates,
        )
        self.algorithm = self.scheduler.algorithm
        self._decisions = _Decisions(self.algorithm)
        self.scheduler.algorithm = self._decisions
        assert self.scheduler.group_cycle is not None
        self.scheduler.group_cycle.observer = self._decisions

    def rounds(self, before_cycle: Callable[[Pod], None] | None = None) -> list[Json]:
        """Return the rounds of the scenario. `before_cycle` is called with each popped pod."""
        rounds = []
        for event in self._events:
            if "schedule" in event:
                rounds.append(self._round(before_cycle))
            else:
                self._happen(event)
        return rounds

    def _happen(self, event: Json) -> None:
        match event:
            case {"pod": dict(manifest)}:
                self._view.add(object_from_manifest(manifest, "Pod"))
            case {"podgroup": dict(manifest)}:
                self._view.add(object_from_manifest(manifest, "PodGroup"))
            case {"ungate": str(key)} if (pod := self._view.get(Pod, key)) is not None:
                self._view.update(attrs.evolve(pod, spec=attrs.evolve(pod.spec, scheduling_gates=())))
            case {"delete": str(key)} if (pod := self._view.get(Pod, key)) is not None:
                self._view.delete(pod)
        self._clock.advance(_STEP)

    def _round(self, before_cycle: Callable[[Pod], None] | None) -> Json:
        cycles: list[Json] = []
        queue, has_acted = self.scheduler.queue, True
        while len(cycles) < _MOST_CYCLES:
            if queue.counts()[Place.ACTIVE]:
                cycles.append(self._cycle(before_cycle))
                has_acted |= bool(cycles[-1]["binds"] or cycles[-1]["evicted"])
            elif has_acted and queue.counts()[Place.BACKOFF]:
                # Pods in backoff are tried again only after something was bound or evicted; otherwise a round
                # wouldn't end before the limit of cycles.
                has_acted = False
                self._clock.advance(_PAUSE)
                queue.flush_backoff_completed()
            else:
                break
        return {"cycles": cycles, "complete": len(cycles) < _MOST_CYCLES, "queue": self._queue()}

    def _cycle(self, before_cycle: Callable[[Pod], None] | None) -> Json:
        queue = self.scheduler.queue
        popped = queue.next_pod()
        assert popped is not None
        self._decisions.begin(popped)
        if before_cycle is not None:
            before_cycle(popped)
        if self._decisions.is_group:
            self.scheduler.schedule_one()
        else:
            attempt = self.scheduler.begin_attempt()
            if attempt is not None:
                self.scheduler.make_attempt(attempt)
                if PREEMPTION_PLAN in attempt.state:
                    self._decisions.plan = attempt.state.read(PREEMPTION_PLAN)
        self._clock.advance(_STEP)
        told = self._cluster.answer()
        return {
            "popped": popped.key,
            "kind": "PodGroup" if self._decisions.is_group else "Pod",
            **self._decisions.json(),
            **told,
            "queue": self._queue(),
        }

    def _queue(self) -> Json:
        queue = self.scheduler.queue
        names = {place: sorted(pod.key for pod in queue.pods_in(place)) for place in Place}
        gated = {
            pod.key: info.gating_plugin
            for pod in queue.pods_in(Place.GATED)
            if (info := queue.get(pod.uid)) is not None
        }
        return {
            "active": names[Place.ACTIVE],
            "backoff": names[Place.BACKOFF],
            "unschedulable": names[Place.UNSCHEDULABLE],
            "gated": gated,
        }


def _profile(gates: FeatureGates) -> Profile:
    """The default profile, with all nodes as candidates for preemption."""
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=100)
    profile = default_profile({"DefaultPreemption": args}, gates)
    return attrs.evolve(profile, points={ExtensionPoint.PRE_ENQUEUE: _PRE_ENQUEUE})


class _FirstOfAll(Random):
    """Draws the first of several, so that preemption begins with the first node."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:  # as in Random
        return 0


class _Decisions:
    """Collects what is decided in a cycle."""

    follows_placed = True

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self._members: dict[tuple[str, str], _PodDecision] = {}
        self._group: GroupDecision | None = None
        self._own: _PodDecision | None = None
        self.plan: PreemptionPlan | None = None
        self.is_group = False

    def begin(self, popped: Pod) -> None:
        self._members.clear()
        self._group = self._own = self.plan = None
        self.is_group = popped.spec.scheduling_group is not None

    # As an algorithm, and as a GroupObserver

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        self._own = _PodDecision(pod)
        return self._algorithm.schedule(framework, state, pod, observer=self._own)  # type: ignore[call-arg]

    def member(self, placement: GroupPlacement, attempt: Attempt) -> _PodDecision:
        pod = attempt.pod
        return self._members.setdefault((placement.name, pod.uid), _PodDecision(pod))

    def decided(self, decision: GroupDecision) -> None:
        self._group = decision

    # In the form of the recordings

    def json(self) -> Json:
        if self._group is not None:
            return self._group_json(self._group)
        told: Json = {}
        if self._own is not None:
            told["decision"] = self._own.json()
        if self.plan is not None and (chosen := self.plan.chosen) is not None:
            told["podPreemption"] = {"node": chosen.node_name, **victims_json(chosen)}
        return told

    def _group_json(self, decision: GroupDecision) -> Json:
        group = decision.group
        told: Json = {"group": group.key, "order": [pod.key for pod in group.pods]}
        if decision.result is not None:
            told["algorithm"] = self._algorithm_json(decision.result)
        if decision.preemption is not None:
            told["preemption"] = _preemption(decision)
        return told

    def _algorithm_json(self, result: GroupResult) -> Json:
        told: Json = {
            "placements": [
                {
                    "name": each.placement.name,
                    "nodes": "all"
                    if len(each.placement.nodes) == len(each.placement.nodes.table)
                    else sorted(each.placement.nodes.names),
                    "status": _status(each.status),
                    "waitingOnPreemption": each.is_waiting,
                    "pods": [self._member_json(each.placement, member) for member in each.members],
                }
                for each in result.placements
            ],
            "scores": [
                {"placement": each.name, "plugins": dict(each.by_plugin), "total": each.total}
                for each in result.scores
            ],
            "status": _status(result.status),
            "waitingOnPreemption": result.is_waiting,
        }
        if result.is_chosen and result.taken is not None:
            told["chosen"] = result.taken.placement.name
        return told

    def _member_json(self, placement: GroupPlacement, member: MemberResult) -> Json:
        told = self.member(placement, member.attempt).json()
        told["chosen"] = member.node_name
        told["status"] = _status(member.status)
        if member.permit is not None:
            told["permit"] = _status(member.permit)
        if member.preempts:
            told["requiresPreemption"] = True
            if PREEMPTION_PLAN in member.attempt.state:
                chosen = member.attempt.state.read(PREEMPTION_PLAN).chosen
                assert chosen is not None
                told["preempts"] = {"node": chosen.node_name, **victims_json(chosen)}
        return told


class _PodDecision:
    """Follows the decision on a pod."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._feasible: list[str] = []
        self._totals: dict[str, int] = {}
        self._diagnosis = Diagnosis()
        self._candidates: list[str] | None = None

    def node_candidates(self, nodes: NodeSelection, start: int, narrowing: frozenset[str]) -> None:
        self._candidates = list(nodes.table.names)

    def node_hinted(self, hint: Hint) -> None:
        pass

    def nodes_filtered(self, nodes: NodeSelection, wanted: int, outcome: FilterOutcome) -> None:
        pass

    def nodes_found(self, feasible: NodeSelection, diagnosis: Diagnosis) -> None:
        self._feasible = sorted(feasible.names)
        self._diagnosis = diagnosis

    def nodes_scored(self, nodes: Sequence[NodeInfo], totals: Totals) -> None:
        names = [info.name for info in nodes]
        self._totals = dict(zip(names, map(int, totals.values), strict=True))

    def json(self) -> Json:
        diagnosis = self._diagnosis
        highest = max(self._totals.values(), default=0)
        # Without candidates the search ended at the nominated node, which passed.
        nominated_first = self._candidates is None and bool(self._feasible)
        filtered = {} if nominated_first else dict(diagnosis.node_to_status)
        return {
            "pod": self._pod.key,
            "feasible": self._feasible,
            "preFilter": diagnosis.pre_filter_message or "",
            "filter": {
                name: {"plugin": status.plugin, **verdict_json(status)} for name, status in filtered.items()
            },
            "nominatedFirst": nominated_first,
            "unschedulablePlugins": sorted(diagnosis.unschedulable_plugins),
            "totals": self._totals,
            "best": sorted(name for name, total in self._totals.items() if total == highest),
        }


def _status(status: Status) -> Json:
    return {"code": str(status.code), "message": status.message}


def _preemption(decision: GroupDecision) -> Json:
    preemption, pods = decision.preemption, decision.group.pods
    assert preemption is not None
    told: Json = {"status": _status(preemption.status)}
    if preemption.potential:
        told["potentialVictims"] = [
            {
                "pods": _names(unit),
                "priority": unit.priority,
                "podGroup": unit.is_grouped,
                "startTime": _time(unit.started),
            }
            for unit in preemption.potential
        ]
    if preemption.all_removed is not None:
        told["allRemoved"] = {
            **_status(preemption.all_removed.status),
            "assigned": _assigned(preemption.all_removed, pods),
        }
    told["violating"] = [_names(unit) for unit in preemption.violating]
    told["reprieve"] = [
        {
            "pods": _names(each.unit),
            "fits": each.fits,
            "assigned": _assigned(each.result, pods),
        }
        for each in preemption.reprieves
    ]
    told["victims"] = [_names(unit) for unit in preemption.victims]
    told["numPDBViolations"] = preemption.num_pdb_violations
    return told


def _names(unit: VictimUnit) -> list[str]:
    return sorted(pod.key for pod in unit.pods)


def _assigned(result: GroupResult, pods: Iterable[Pod]) -> Mapping[str, str]:
    node_names = {} if result.taken is None else result.taken.node_names
    return {pod.key: node_names[pod.uid] for pod in pods if pod.uid in node_names}


def _time(seconds: float) -> str:
    return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
