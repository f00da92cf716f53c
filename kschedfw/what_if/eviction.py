"""Drains nodes as `kubectl drain` does, honouring PodDisruptionBudgets as the eviction API does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node, Taint, TaintEffect
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import as_selector
from kschedfw.api.workloads import PodDisruptionBudget
from kschedfw.cluster import RevertibleCluster

_UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", TaintEffect.NO_SCHEDULE)


def cordoned(node: Node) -> Node:
    """The node unschedulable, with the taint that Kubernetes' node controller adds then."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != _UNSCHEDULABLE.key)
    return attrs.evolve(
        node, spec=attrs.evolve(node.spec, unschedulable=True, taints=(*taints, _UNSCHEDULABLE))
    )


def uncordoned(node: Node) -> Node:
    """The node schedulable, without that taint."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != _UNSCHEDULABLE.key)
    return attrs.evolve(node, spec=attrs.evolve(node.spec, unschedulable=False, taints=taints))


def charge_budget(cluster: RevertibleCluster, pod: Pod) -> str:
    """Count the pod's eviction against its disruption budget; returns why it isn't allowed, or nothing.

    Semantics: kube-apiserver v1.36, the pods' `eviction` subresource. Pods count as healthy.
    """
    covering = _covering(cluster.list(PodDisruptionBudget, pod.namespace), pod)
    if not covering:
        return ""
    if len(covering) > 1:
        names = ", ".join(budget.name for budget in covering)
        return f"more than one PodDisruptionBudget covers it, which an eviction doesn't support: {names}"
    budget = covering[0]
    allowed = budget.status.disruptions_allowed
    if allowed <= 0:
        return f"its eviction would violate PodDisruptionBudget {budget.name}"
    cluster.update(attrs.evolve(budget, status=attrs.evolve(budget.status, disruptions_allowed=allowed - 1)))
    return ""


def _covering(budgets: Sequence[PodDisruptionBudget], pod: Pod) -> Sequence[PodDisruptionBudget]:
    return [budget for budget in budgets if as_selector(budget.spec.selector).matches(pod.labels)]


def template_node(template: Node, name: str) -> Node:
    """A new node like the template, of that name."""
    metadata = attrs.evolve(
        template.metadata,
        name=name,
        uid="",
        resource_version="",
        creation_timestamp=None,
        deletion_timestamp=None,
        labels=FrozenDict({**template.labels, "kubernetes.io/hostname": name}),
    )
    return attrs.evolve(template, metadata=metadata)


def template_pod(template: Pod, name: str) -> Pod:
    """A new pending pod like the template, of that name."""
    metadata = attrs.evolve(
        template.metadata,
        name=name,
        uid="",
        resource_version="",
        creation_timestamp=None,
        deletion_timestamp=None,
    )
    return attrs.evolve(
        template,
        metadata=metadata,
        spec=attrs.evolve(template.spec, node_name=""),
        status=type(template.status)(),
    )
