"""The properties that are seen only from inside of a scheduling cycle.

`observe` has a world's hooks check them. They leave what they find in the journal's `violations`, as a plugin can't
raise: the framework would take it for the plugin's own failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.outcome import NodeScores
from kschedfw.framework.preemption import PreemptionPlan
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Code, Status
from kschedfw.plugins.default_preemption import DefaultPreemption
from tests.scheduler.invariants.plugins import fingerprint
from tests.scheduler.invariants.views import full_snapshot, holds

if TYPE_CHECKING:
    from tests.scheduler.invariants.world import World


def observe(world: World) -> None:
    """Have the world's hooks check what only they see."""
    journal = world.journal

    def snapshot_is_current(snapshot: Snapshot) -> None:
        if fingerprint(snapshot) != fingerprint(full_snapshot(world)):
            journal.violations.append("incremental_snapshot_is_a_full_one: not as the cycle began")

    def fits(snapshot: Snapshot, pod: Pod, node_name: str) -> None:
        """The chosen node had room for the pod, as far as the cycle could know."""
        info = snapshot.get(node_name).clone()
        info.add_pod(PodInfo.of(pod))
        if not holds(info, pod):
            journal.violations.append(f"allocatable_is_never_exceeded: {pod.key} on {node_name}")

    def preemption(
        plugin: DefaultPreemption, state: CycleState, pod: Pod, statuses: NodeToStatus, plan: PreemptionPlan
    ) -> tuple[str, frozenset[str]]:
        try:
            victims_are_lower_and_minimal(plugin, state, pod, plan)
            no_second_preemption(world, plugin, pod, statuses, plan)
        except AssertionError as error:
            journal.violations.append(str(error))
        if plan.chosen is None:
            return "", frozenset()
        # One that is being deleted already doesn't go because of this pod.
        staying = {other.uid for other in world.pods(lambda other: not other.is_terminating)}
        return plan.chosen.node_name, frozenset(victim.uid for victim in plan.chosen.victims.pods) & staying

    journal.on_pre_filter, journal.on_reserve, journal.on_preemption = snapshot_is_current, fits, preemption
    for framework in world.frameworks:
        _watch_scores(framework, journal.violations)


def victims_are_lower_and_minimal(
    plugin: DefaultPreemption, state: CycleState, pod: Pod, plan: PreemptionPlan
) -> None:
    """Every victim has a lower priority; without the victims the pod fits, and with any one of them it doesn't.

    The last part isn't promised where a pod that stays can make another one welcome: with affinity or spreading.
    """
    if plan.chosen is None:
        return
    framework, victims = plugin.handle.framework, plan.chosen.victims.pods
    higher = [victim.key for victim in victims if victim.priority >= pod.priority]
    assert not higher, f"victims_are_lower_and_minimal: {pod.key} preempts {higher}"

    def verdict(spared: Pod | None) -> Status:
        node, trial = plugin.handle.snapshot.get(plan.chosen.node_name).clone(), state.clone()  # type: ignore[union-attr]
        leaving = {victim.uid for victim in victims if victim is not spared}
        for info in [info for info in node.pods if info.pod.uid in leaving]:
            node.remove_pod(info.pod)
            framework.run_pre_filter_remove_pod(trial, pod, info, node)
        return framework.run_filter_plugins_with_nominated_pods(trial, pod, node)

    assert verdict(None).is_success, f"victims_are_lower_and_minimal: {pod.key} wouldn't fit after all"
    if not PodInfo.of(pod).has_affinity and not pod.spec.topology_spread_constraints:
        for victim in victims:
            assert not verdict(victim).is_success, (
                f"victims_are_lower_and_minimal: {pod.key} needn't preempt {victim.key}"
            )


def no_second_preemption(
    world: World, plugin: DefaultPreemption, pod: Pod, statuses: NodeToStatus, plan: PreemptionPlan
) -> None:
    """While victims of a pod still terminate on the node that it is nominated to, it has nobody else evicted."""
    earlier = world.journal.victims
    if plan.chosen is None:
        return
    node_name, uids = earlier.get(pod.uid, ("", frozenset[str]()))
    snapshot = plugin.handle.snapshot
    if (
        node_name
        and pod.status.nominated_node_name == node_name
        and node_name in snapshot
        and statuses.get(node_name).code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    ):
        going = [
            info.pod.key
            for info in snapshot.get(node_name).pods
            if info.pod.uid in uids and info.pod.is_terminating
        ]
        assert not going, f"no_second_preemption: {pod.key}, while {going} terminate"


def _watch_scores(framework: Framework, violations: list[str]) -> None:
    """Scores that come out of the framework are finite and within 0–100, whatever plugins say."""
    original = framework.run_score_plugins

    def watched(state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> tuple[NodeScores | None, Status]:
        scores, status = original(state, pod, nodes)
        for name, each in ({} if scores is None else scores.by_plugin).items():
            values = each.normalized
            if not np.isfinite(values).all() or values.min() < 0 or values.max() > 100:
                violations.append(f"scores_are_within_bounds: {name} gave {values.tolist()}")
        return scores, status

    setattr(framework, "run_score_plugins", watched)  # noqa: B010  # no plugin sees the other plugins' scores
