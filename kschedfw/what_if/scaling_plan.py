"""The check of an autoscaler's plan: would kube-scheduler place the pods as the plan expects?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import group_key
from kschedfw.api.records import frozen
from kschedfw.explain import Explanation, UnknownNodeError
from kschedfw.what_if.checks import WhatIfError, expect, expect_all, found_text
from kschedfw.what_if.objects import some_names
from kschedfw.what_if.results import PodResult, Refused, Schedule, Waiting

if TYPE_CHECKING:
    # Imported here: the module offers this check, and so imports this one.
    from kschedfw.what_if.transaction import Transaction


class DeviationKind(StrEnum):
    """The ways in which kube-scheduler's decision differs from a plan."""

    STAYS_PENDING = "stays-pending"
    """The pod would stay pending: no node fits, the planned ones included."""
    PREEMPTS = "preempts"
    """The pod would evict others to get its place."""
    WAITS = "waits"
    """The pod would wait for permission to run, for the rest of its gang."""
    NODE_REFUSES = "node-refuses"
    """The pod would run on another node, since the planned one isn't feasible."""
    OTHER_NODE = "other-node"
    """The pod would run on another node, which scores higher than the planned one, or as high."""
    EVICTION_BLOCKED = "eviction-blocked"
    """The pod would stay on its node: a PodDisruptionBudget doesn't allow its eviction."""
    NODE_UNUSED = "node-unused"
    """The added node would get no pod of the plan."""


@frozen
class ScalingPlan:
    """Nodes that an autoscaler adds and removes, and the pods that it does that for.

    Attributes:
        add: the new nodes, each with the name, labels, taints and amounts that it will have.
        remove: names of nodes that are drained. Their pods are expected to run elsewhere.
        pods: where pods are expected to run, by the pod's key: a node's name, or "" for any node. A pod of the cluster
            that runs on another node is moved, so it is evicted first; a pending one is scheduled. Pods of removed
            nodes that aren't named may go to any node.
    """

    add: tuple[Node, ...] = ()
    remove: tuple[str, ...] = ()
    pods: Mapping[str, str] = EMPTY


@frozen
class Deviation:
    """One decision of kube-scheduler that the plan doesn't expect, and the reason in a sentence.

    `pod` is a pod's key, empty if it is about a node; `planned` is the plan's node, and `node` that of kube-scheduler,
    each empty if there is none.
    """

    kind: DeviationKind
    pod: str
    planned: str
    node: str
    message: str


@frozen
class PlanCheck:
    """Kube-scheduler's decisions on the pods of a plan. True if kube-scheduler agrees.

    `schedule` has the outcome for each pod that the plan moves or places; `deviations` those that differ from the
    plan, in the order of the decisions, and then the added nodes that stay empty.
    """

    schedule: Schedule
    deviations: tuple[Deviation, ...]

    def __bool__(self) -> bool:
        return not self.deviations

    @property
    def works(self) -> bool:
        """Tell whether all pods would run without preemption, if not all of them where they were expected."""
        expected = (DeviationKind.OTHER_NODE, DeviationKind.NODE_REFUSES, DeviationKind.NODE_UNUSED)
        return all(each.kind in expected for each in self.deviations)


def check_plan(trial: Transaction, plan: ScalingPlan) -> PlanCheck:
    """Return where kube-scheduler would decide otherwise than the plan; nothing changes.

    The order is that of autoscalers: new nodes are there before pods are evicted, and drained nodes are cordoned until
    the pods have new places. Evictions count against PodDisruptionBudgets. The pods are then scheduled in the queue's
    order, with preemption.

    Raises:
        WhatIfError: a node or a pod of the plan isn't there, an added node is there already, or a part of the plan has
            another type.
    """
    _check_types(plan)
    with trial.transaction() as attempt:
        pods = {pod.key: pod for pod in attempt.objects() if isinstance(pod, Pod)}
        _check_names(attempt, plan, pods)
        attempt.add(*plan.add)
        moved = [
            pod
            for key, node in plan.pods.items()
            if (pod := pods[key]).node_name and pod.node_name != node and pod.node_name not in plan.remove
        ]
        # Cordoned first, so that no evicted pod comes back to one of the nodes.
        drained, evicted = attempt.drain(*plan.remove), attempt.evict(*moved)
        blocked = [
            Deviation(DeviationKind.EVICTION_BLOCKED, pod.key, plan.pods.get(pod.key, ""), pod.node_name, why)
            for pod, why in (*drained.blocked, *evicted.blocked)
        ]
        pending = [pods[key] for key in plan.pods if not pods[key].node_name]
        wanted = [*drained.evicted, *evicted.evicted, *pending]
        with attempt.transaction() as scheduling:
            schedule = scheduling.schedule(wanted, preempt=True)
        outcomes: tuple[PodResult, ...] = (*schedule.placed, *schedule.waiting, *schedule.refused)
        found = [
            each
            for outcome in outcomes
            if (each := _deviation(attempt, wanted, outcome, plan.pods.get(outcome.pod.key, "")))
        ]
    used = {each.node_name for each in outcomes if not isinstance(each, Refused)}
    return PlanCheck(schedule, (*blocked, *found, *_unused(plan, used)))


def _check_types(plan: ScalingPlan) -> None:
    expect(ScalingPlan, plan, "plan")
    expect_all(Node, plan.add, "plan.add")
    # A single name is iterable, too: its letters would be looked for as nodes.
    expect_all(str, plan.remove, "plan.remove")
    if not isinstance(plan.pods, Mapping):
        found = found_text(plan.pods)
        raise WhatIfError(f"plan.pods: expected names of nodes by the keys of pods, found {found}")


def _check_names(trial: Transaction, plan: ScalingPlan, pods: Mapping[str, Pod]) -> None:
    nodes = {obj.name for obj in trial.objects() if isinstance(obj, Node)}
    added = Counter(node.name for node in plan.add)
    known = nodes.union(added)
    unknown_pods = [key for key in plan.pods if key not in pods]
    key_form = "" if all("/" in key for key in unknown_pods) else "; a pod's key is NAMESPACE/NAME"
    if taken := [name for name, times in added.items() if name in nodes or times > 1]:
        raise WhatIfError(f"plan: nodes to add that are there already, or added twice: {some_names(taken)}")
    for what, missing, hint in (
        ("nodes to remove", [name for name in plan.remove if name not in nodes], ""),
        ("pods", unknown_pods, key_form),
        ("nodes for pods", [name for name in plan.pods.values() if name and name not in known], ""),
    ):
        if missing:
            raise WhatIfError(f"plan: {what} that aren't there: {some_names(missing)}{hint}")


def _deviation(trial: Transaction, wanted: list[Pod], outcome: PodResult, planned: str) -> Deviation | None:
    """Return the difference between an outcome and the planned node, the empty text for any; None if there is none."""
    pod, node = outcome.pod, outcome.node_name
    if isinstance(outcome, Refused):
        return Deviation(DeviationKind.STAYS_PENDING, pod.key, planned, "", outcome.message)
    if outcome.victims:
        names = some_names([each.key for each in outcome.victims])
        return Deviation(DeviationKind.PREEMPTS, pod.key, planned, node, f"it preempts {names}")
    if isinstance(outcome, Waiting):
        return Deviation(DeviationKind.WAITS, pod.key, planned, node, outcome.in_vain().message)
    if planned in ("", node):
        return None
    if group_key(pod):
        text = "the members of its group are placed together"
        return Deviation(DeviationKind.OTHER_NODE, pod.key, planned, node, text)
    kind, text = _why_elsewhere(trial.explain(pod, wanted, preempt=True), planned, node)
    return Deviation(kind, pod.key, planned, node, text)


def _why_elsewhere(explanation: Explanation, planned: str, node: str) -> tuple[DeviationKind, str]:
    try:
        there = explanation.of(planned)
    except UnknownNodeError:
        return DeviationKind.NODE_REFUSES, f"{planned} isn't among the nodes that the pod may go to"
    if there.refusal is not None:
        plugin = f"{there.refusal.plugin}: " if there.refusal.plugin else ""
        return DeviationKind.NODE_REFUSES, f"{planned} is refused by {plugin}{there.refusal.message}"
    if there.total is None:
        return DeviationKind.OTHER_NODE, f"enough other nodes were found before {planned} was looked at"
    chosen = explanation.of(node).total
    if chosen == there.total:
        return (
            DeviationKind.OTHER_NODE,
            f"{node} and {planned} score {chosen:,}; which of them is drawn by lot",
        )
    return DeviationKind.OTHER_NODE, f"{node} scores {chosen:,}, {planned} only {there.total:,}"


def _unused(plan: ScalingPlan, used: set[str]) -> Iterator[Deviation]:
    for node in plan.add:
        if node.name not in used:
            text = "the pods of the plan get places without it"
            yield Deviation(DeviationKind.NODE_UNUSED, "", node.name, "", text)
