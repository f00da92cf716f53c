"""Sizes of nodes: the most that a pod could get of a resource on an empty node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from kschedfw import Node, Pod
from kschedfw.api import CPU, PODS, TaintEffect
from kschedfw_advisor.amounts import plain_text
from kschedfw_advisor.node_groups import CONDITIONS


@attrs.frozen
class Largest:
    """The node that offers the most of a resource, and the amount in the resource's unit."""

    node: str
    amount: int


def offered(node: Node, resource: str) -> int:
    """Return the amount of the resource that an empty node has for pods, in the resource's unit."""
    amount = node.status.allocatable.get(resource)
    if amount is None:
        return 0
    return amount.milli_value() if resource == CPU else amount.value()


def largest(nodes: Iterable[Node], resource: str) -> Largest | None:
    """Return the first of the nodes that offer the most of the resource; None if none offers any."""
    found = max(nodes, key=lambda node: offered(node, resource), default=None)
    amount = 0 if found is None else offered(found, resource)
    return Largest(found.name, amount) if found is not None and amount else None


def allowed_nodes(pod: Pod, nodes: Iterable[Node]) -> Sequence[Node]:
    """Return the nodes that the pod's selector, required node affinity and tolerations allow, in their order.

    Cordons and taints of conditions don't count, since they pass.
    """
    return [node for node in nodes if _is_allowed(pod, node)]


def _is_allowed(pod: Pod, node: Node) -> bool:
    labels = node.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    rules = pod.spec.affinity.node_affinity
    if rules is not None and rules.required is not None and not rules.required.matches(labels, node.name):
        return False
    return all(
        taint.effect is TaintEffect.PREFER_NO_SCHEDULE
        or taint.key.startswith(CONDITIONS)
        or any(each.tolerates(taint) for each in pod.spec.tolerations)
        for taint in node.spec.taints
    )


def too_large_for_all(pod: Pod, nodes: Sequence[Node]) -> Iterator[str]:
    """Return a line for each resource of which the pod requests more than any node has, even when empty."""
    for name, amount in pod.requests.demand.items():
        if name == PODS or not amount or any(offered(node, name) >= amount for node in nodes):
            continue
        most = largest(nodes, name)
        what = plain_text(name, amount)
        if most is None:
            yield f"no node offers {name}, of which the pod requests {what}"
        else:
            there = f"the largest has {plain_text(name, most.amount)} ({most.node})"
            yield f"no node has {what} of {name} even when empty; {there}"
