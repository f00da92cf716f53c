"""The decisions of a scenario, in the form of the recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random

import attrs
from kschedfw_devices.dynamic_resources import DynamicResources

from kschedfw.api import Node, Pod, object_from_manifest, pod_from_manifest
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import parse_configuration
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis, FitError
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.outcome import NodeScores
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts
from kschedfw.framework.preemption import Candidate, PreemptionPlan
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Code, Status
from kschedfw.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from kschedfw.plugins.dynamic_resources import WithoutDynamicResources
from kschedfw.plugins.volume_binding.binder import VolumeReservation
from kschedfw.plugins.volume_binding.plugin import RESERVATION
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from tests.conformance import devices
from tests.conformance.scenario import LISTS, Json, Scenario, ScenarioError

_DEFAULT: Json = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def decide(scenario: Scenario, registry: Registry) -> list[Json]:
    """Return the decision on each pending pod, in order.

    Raises:
        KschedfwError: the configuration is refused, an object is invalid, or a plugin fails.
    """
    return PodRun(scenario, registry).decisions()


def profile_of(scenario: Scenario, registry: Registry) -> Profile:
    """Return the profile of a scenario's KubeSchedulerConfiguration.

    Preemption always tries all nodes (minCandidateNodesPercentage 100), as it did when scenarios were recorded.
    """
    if scenario.config is None:
        return _default_profile(registry)
    return _read_profile(scenario.config, f"{scenario.name}: config", registry)


# Cached, since most scenarios have this profile, and reading it takes a third of a decision's time.
@lru_cache(maxsize=1)
def _default_profile(registry: Registry) -> Profile:
    return _read_profile(_DEFAULT, "the default configuration", registry)


def _read_profile(written: Json, where: str, registry: Registry) -> Profile:
    configuration = parse_configuration(written, where, registry)
    if len(configuration.profiles) != 1:
        raise ScenarioError(f"{where}: only one profile is supported")
    profile = configuration.profiles[0]
    given = profile.args.get(DefaultPreemption.name)
    if not isinstance(given, DefaultPreemptionArgs):
        # A profile without preemption stays as it is.
        return profile
    all_nodes = attrs.evolve(given, min_candidate_nodes_percentage=100)
    return attrs.evolve(profile, args={**profile.args, DefaultPreemption.name: all_nodes})


class PodRun:
    """The state of one scenario: cluster, cache, and a framework over all nodes on one thread."""

    def __init__(
        self,
        scenario: Scenario,
        registry: Registry,
        evaluation: Evaluation = Evaluation.MEMO,
        metrics: MetricsRecorder = NO_METRICS,
    ) -> None:
        self._scenario = scenario
        cluster = InMemoryCluster()
        self.cache = Cache()
        self.nodes: list[Node] = []
        for field, kind in LISTS.items():
            for manifest in scenario.objects.get(field) or ():
                obj = object_from_manifest(manifest, kind)
                cluster.add(obj)
                if isinstance(obj, Node):
                    self.nodes.append(obj)
                    self.cache.add_node(obj)
                elif isinstance(obj, Pod):
                    self.cache.add_pod(obj)
        self.state = CycleState()
        """The state of the last decision."""
        self.snapshot = Snapshot()
        self.framework = Framework(
            registry,
            profile_of(scenario, registry),
            Parts(cluster, snapshot=self.snapshot, parallelizer=Parallelizer(1), metrics=metrics),
            evaluation=evaluation,
        )
        self.scheduler = GenericScheduler(
            self.cache,
            self.snapshot,
            random=Random(0),
            percentage_of_nodes_to_score=100,
        )

    def decisions(self, before_each: Callable[[Pod], None] | None = None) -> list[Json]:
        """Return the decision on each pending pod, in order. `before_each` is called before the pod's decision.

        A sequential scenario continues from the recorded choice, or from its own if none is recorded.
        """
        scenario, decisions = self._scenario, []
        for index, pod in enumerate(map(pod_from_manifest, scenario.pending)):
            if before_each is not None:
                before_each(pod)
            decision = self._decide(pod)
            if scenario.sequential:
                recorded = scenario.expected[index] if scenario.expected else decision
                self._assume(pod, recorded["chosen"], decision, bind=scenario.bind)
            decisions.append(decision)
        return decisions

    def _decide(self, pod: Pod) -> Json:
        self.cache.update_snapshot(self.snapshot)
        state = self.state = CycleState()
        # On a state of its own: the search below runs pre_filter again, and doesn't hand out its answer.
        pre_filter, rejected, left_over = self._pre_filter(pod)
        try:
            feasible, diagnosis = self.scheduler.find_nodes_that_fit_pod(self.framework, state, pod)
        except SchedulingError:
            return {"pod": pod.key, "preFilter": pre_filter} | self._aborted(state, pod, left_over)
        decision: Json = {
            "pod": pod.key,
            "preFilter": pre_filter,
            "filter": {} if rejected else self._filter(feasible, diagnosis, left_over),
            "filterPlugins": {} if rejected else self._filter_plugins(state, pod),
            "feasible": sorted(info.name for info in feasible),
            **devices.on_feasible(state, feasible),
        }
        if not feasible:
            error = str(FitError(pod, len(self.snapshot), diagnosis))
            return decision | _NOTHING_SCORED | {"fitError": error} | self._post_filter(state, pod, diagnosis)
        scores = self.scheduler.score_nodes(self.framework, state, pod, feasible)
        totals = _by_node(scores, self._totals(state, pod, feasible))
        best = sorted(name for name, total in totals.items() if total == max(totals.values()))
        return decision | {
            "preScoreSkip": sorted(state.skip_score_plugins),
            "scores": _scores(scores),
            "totals": totals,
            "best": best,
            # By name, as in the recordings: kube-scheduler draws one of them.
            "chosen": best[0],
            "singleNode": len(feasible) == 1,
            "fitError": None,
            "fitErrorWithPostFilter": None,
            "postFilter": None,
            **devices.on_chosen(state, self.snapshot.get(best[0])),
        }

    def _aborted(self, state: CycleState, pod: Pod, left_over: frozenset[str] | None) -> Json:
        """Return the decision of an attempt that a filter's error ends, with the verdicts on all nodes."""
        filtered: dict[str, Json] = {}
        feasible: list[NodeInfo] = []
        texts: set[str] = set()
        for info in self.snapshot.node_infos:
            if left_over is not None and info.name not in left_over:
                continue
            status = self.framework.run_filter_plugins(state, pod, info)
            if status.is_success:
                feasible.append(info)
            else:
                filtered[info.name] = {"plugin": status.plugin} | verdict_json(status)
                if not status.is_rejected:
                    texts.add(status.message)
        return {
            "filter": filtered,
            "filterPlugins": self._filter_plugins(state, pod),
            "feasible": sorted(info.name for info in feasible),
            **devices.on_feasible(state, feasible),
            **_NOTHING_SCORED,
            "abort": sorted(texts),
            "fitError": None,
            "fitErrorWithPostFilter": None,
            "postFilter": None,
        }

    def _assume(self, pod: Pod, node_name: object, decision: Json, *, bind: bool) -> None:
        if isinstance(node_name, str):
            bound = pod.bound_to(node_name)
            self.cache.assume_pod(bound)
            status = self.framework.run_reserve_plugins_reserve(self.state, bound, node_name)
            reserved = self.state.read(RESERVATION) if RESERVATION in self.state else VolumeReservation()
            decision["reserve"] = {
                "code": str(status.code),
                "reasons": sorted(status.reasons),
                "assumedPVs": {volume.name: claim.key for volume, claim in reserved.bindings},
                "selectedNodes": {claim.key: node_name for claim in reserved.claims},
            }
            if bind:
                devices.write_claims(self.framework, self.state, bound)

    def _pre_filter(self, pod: Pod) -> tuple[Json, bool, frozenset[str] | None]:
        state = CycleState()
        result, status, narrowing = self.framework.run_pre_filter_plugins(state, pod)
        left_over = None if result is None else result.node_names
        names = {info.name for info in self.snapshot.node_infos}
        recorded: Json = {
            "code": str(status.code),
            "plugin": status.plugin,
            "reasons": sorted(status.reasons),
            "plugins": sorted(narrowing),
            "nodes": None if left_over is None else sorted(left_over),
            "excluded": [] if left_over is None else sorted(names - left_over),
            "skip": sorted(state.skip_filter_plugins),
        }
        return recorded, not status.is_success, left_over

    def _filter(
        self, feasible: Sequence[NodeInfo], diagnosis: Diagnosis, left_over: frozenset[str] | None
    ) -> dict[str, Json]:
        passed = {info.name for info in feasible}
        verdicts = {}
        for info in self.snapshot.node_infos:
            if info.name not in passed:
                status = diagnosis.node_to_status.get(info.name)
                verdicts[info.name] = {"plugin": status.plugin} | verdict_json(status)
                if left_over is not None and info.name not in left_over:
                    verdicts[info.name]["excluded"] = True
        return verdicts

    def _totals(self, state: CycleState, pod: Pod, feasible: Sequence[NodeInfo]) -> IntArray:
        """Return the totals as a scheduler computes them, not summed up from the plugins' scores."""
        totals, status = self.framework.total_scores(state, pod, feasible)
        if totals is None:
            raise SchedulingError(status)
        return totals.values

    def _post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Json:
        # Only the plan: evictions would change the cluster for later pods of the scenario.
        statuses: dict[str, Status] = {}
        claims: Json = {}
        # The plugin of kschedfw-devices, or its stand-in.
        plugin = self.framework.plugins.get(DynamicResources.name)
        if isinstance(plugin, DynamicResources | WithoutDynamicResources):
            statuses[plugin.name] = plugin.post_filter_status(state, pod, diagnosis.node_to_status)
            planned = devices.freeing(self.framework, state, diagnosis.node_to_status)
            claims = {} if planned is None else devices.freed_claims(planned)
        plan = None
        preemption = self.framework.plugins.get(DefaultPreemption.name)
        if isinstance(preemption, DefaultPreemption) and all(each.is_rejected for each in statuses.values()):
            plan = preemption.plan(state, pod, diagnosis.node_to_status)
            statuses[DefaultPreemption.name] = plan.status
        if not statuses:
            return {}
        last = list(statuses.values())[-1]
        message = (
            last.message
            if not last.is_rejected
            else ", ".join(status.message for status in statuses.values())
        )
        diagnosis.post_filter_message = message
        return {
            "postFilter": {
                **_preemption(plan or PreemptionPlan(last)),
                "code": str(last.code),
                "message": message,
                "plugins": {
                    name: {"code": str(status.code), "message": status.message}
                    for name, status in statuses.items()
                },
                **claims,
            },
            "fitErrorWithPostFilter": str(FitError(pod, len(self.snapshot), diagnosis)),
        }

    def _filter_plugins(self, state: CycleState, pod: Pod) -> Json:
        refusals: dict[str, Json] = {}
        for info in self.snapshot.node_infos:
            for plugin, status in self.framework.run_each_filter_plugin(state, pod, info).items():
                if not status.is_success:
                    refusals.setdefault(plugin, {})[info.name] = _own_verdict(status)
        return dict(refusals)


def verdict_json(status: Status) -> Json:
    return {"code": str(status.code), "reasons": sorted(status.reasons)}


def _own_verdict(status: Status) -> Json:
    """Return the plugin's own message, without the prefix of errors."""
    prefix = f'running "{status.plugin}" filter plugin: '
    own = tuple(reason.removeprefix(prefix) for reason in status.reasons)
    return verdict_json(attrs.evolve(status, reasons=own))


_NOTHING_SCORED: Json = {
    "preScoreSkip": [],
    "scores": {},
    "totals": {},
    "best": [],
    "chosen": None,
    "singleNode": False,
}


def _preemption(plan: PreemptionPlan) -> Json:
    chosen = plan.chosen
    return {
        "code": str(plan.status.code),
        "message": plan.status.message,
        "nominatedNode": None if chosen is None else chosen.node_name,
        **({"victims": [], "numPDBViolations": 0} if chosen is None else victims_json(chosen)),
        "tied": sorted(candidate.node_name for candidate in plan.tied),
        "candidates": {candidate.node_name: victims_json(candidate) for candidate in plan.candidates},
        "rejected": {
            name: {"plugin": status.plugin} | verdict_json(status)
            for name, status in plan.rejected
            if plan.status.code is not Code.ERROR
        },
    }


def victims_json(candidate: Candidate) -> Json:
    victims = candidate.victims
    return {"victims": [pod.key for pod in victims.pods], "numPDBViolations": victims.num_pdb_violations}


def _scores(scores: NodeScores) -> Json:
    return {
        name: {
            "weight": plugin.weight,
            "raw": _by_node(scores, plugin.raw),
            "normalized": _by_node(scores, plugin.normalized),
        }
        for name, plugin in scores.by_plugin.items()
    }


def _by_node(scores: NodeScores, values: IntArray) -> dict[str, int]:
    return dict(zip(scores.node_names, map(int, values), strict=True))
