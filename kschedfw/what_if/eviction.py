"""Drains of nodes as by `kubectl drain`, honouring PodDisruptionBudgets as the eviction API does."""

from __future__ import annotations

from typing import Final

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node, Taint, TaintEffect
from kschedfw.api.pod import Pod, PodPhase
from kschedfw.api.selectors import as_selector
from kschedfw.api.workloads import PodDisruptionBudget, UnhealthyPodEvictionPolicy
from kschedfw.cluster import RevertibleCluster

_UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", TaintEffect.NO_SCHEDULE)


def cordoned(node: Node) -> Node:
    """Return the node unschedulable, with the taint that Kubernetes' node controller adds then."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != _UNSCHEDULABLE.key)
    return attrs.evolve(
        node, spec=attrs.evolve(node.spec, unschedulable=True, taints=(*taints, _UNSCHEDULABLE))
    )


def uncordoned(node: Node) -> Node:
    """Return the node schedulable, without the taint of cordoned nodes."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != _UNSCHEDULABLE.key)
    return attrs.evolve(node, spec=attrs.evolve(node.spec, unschedulable=False, taints=taints))


def charge_budget(cluster: RevertibleCluster, pod: Pod) -> str:
    """Count the pod's eviction against its disruption budget. Return why it isn't allowed; empty if it is.

    Semantics: kube-apiserver v1.36, the pods' `eviction` subresource. A pod without the condition Ready counts
    as healthy.
    """
    # The API server asks no budget about pods that have ended or are Pending (canIgnorePDB). A pod of a manifest
    # without a status is Pending, too, so its condition has to say that it doesn't run.
    has_not_run = pod.is_unready and pod.status.phase is PodPhase.PENDING
    budgets = cluster.list(PodDisruptionBudget, pod.namespace)
    covering = [budget for budget in budgets if as_selector(budget.spec.selector).matches(pod.labels)]
    if not covering or pod.is_terminal or has_not_run:
        return ""
    if len(covering) > 1:
        names = ", ".join(budget.name for budget in covering)
        return f"more than one PodDisruptionBudget covers it, which an eviction doesn't support: {names}"
    budget = covering[0]
    if pod.is_unready and _spares_unhealthy(budget):
        return ""
    allowed = budget.status.disruptions_allowed
    if allowed <= 0:
        return f"its eviction would violate PodDisruptionBudget {budget.name}"
    cluster.update(attrs.evolve(budget, status=attrs.evolve(budget.status, disruptions_allowed=allowed - 1)))
    return ""


def _spares_unhealthy(budget: PodDisruptionBudget) -> bool:
    """Tell whether the eviction of an unhealthy pod isn't counted, as it takes nothing from a running application."""
    if budget.spec.unhealthy_pod_eviction_policy is UnhealthyPodEvictionPolicy.ALWAYS_ALLOW:
        return True
    # IfHealthyBudget, the API's default.
    return budget.status.current_healthy >= budget.status.desired_healthy > 0


def template_node(template: Node, name: str) -> Node:
    """Return a new node like the template, of that name."""
    labels = FrozenDict({**template.labels, "kubernetes.io/hostname": name})
    return attrs.evolve(template, metadata=attrs.evolve(_unstored(template.metadata, name), labels=labels))


def template_pod(template: Pod, name: str) -> Pod:
    """Return a new pending pod like the template, of that name."""
    return attrs.evolve(
        template,
        metadata=_unstored(template.metadata, name),
        spec=attrs.evolve(template.spec, node_name=""),
        status=type(template.status)(),
    )


def _unstored(metadata: ObjectMeta, name: str) -> ObjectMeta:
    """Return the metadata without what the API server has set, with that name."""
    return attrs.evolve(
        metadata, name=name, uid="", resource_version="", creation_timestamp=None, deletion_timestamp=None
    )
