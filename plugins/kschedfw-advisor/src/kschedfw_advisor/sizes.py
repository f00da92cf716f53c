"""Sizes of nodes: the most that a pod could get of a resource on an empty node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from kschedfw import Node, Pod
from kschedfw.api import CPU, PODS, Finding, TaintEffect
from kschedfw.explain import Explanation
from kschedfw_advisor.amounts import plain_text, rounded
from kschedfw_advisor.node_groups import CONDITIONS

_FIT: Final = "NodeResourcesFit"


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
    """Return the nodes that the pod is allowed on, in their order."""
    return [node for node in nodes if allows(pod, node)]


def allows(pod: Pod, node: Node) -> bool:
    """Return whether the pod's selector, required node affinity and tolerations allow the node.

    Cordons and taints of conditions don't count, since they pass.
    """
    return has_labels_for(pod, node) and all(
        taint.effect is TaintEffect.PREFER_NO_SCHEDULE
        or taint.key.startswith(CONDITIONS)
        or any(each.tolerates(taint) for each in pod.spec.tolerations)
        for taint in node.spec.taints
    )


def has_labels_for(pod: Pod, node: Node) -> bool:
    """Return whether the node meets the pod's selector and its required node affinity."""
    labels = node.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    rules = pod.spec.affinity.node_affinity
    return rules is None or rules.required is None or rules.required.matches(labels, node.name)


def too_large_for_all(pod: Pod, nodes: Sequence[Node]) -> Iterator[Finding]:
    """Yield a finding for each resource of which the pod requests more than any node has, even when empty.

    It names the largest node, and the largest that the pod may use if that one is smaller.
    """
    for name, amount in _too_large(pod, nodes):
        most = largest(nodes, name)
        usable = largest(allowed_nodes(pod, nodes), name)
        # Programs get integers in the resource's unit, and people plain amounts.
        what = plain_text(name, amount)
        if most is None:
            text = f"no node offers {{resource}}, of which the pod requests {what}"
            yield Finding.of("resource-not-offered", text, resource=name, requested=amount)
        else:
            smaller = usable if usable is not None and usable.amount < most.amount else None
            yield _largest_finding("request-too-large", name, amount, most, usable=smaller)


def too_large_for_allowed(pod: Pod, nodes: Sequence[Node]) -> Iterator[Finding]:
    """Yield a finding for each resource of which other nodes have enough, and none that the pod may use, when empty.

    The pod may use the nodes that its selector, required node affinity and tolerations allow.
    """
    for name, amount in pod.requests.demand.items():
        # The usual case is found at the first nodes.
        if (
            name == PODS
            or not amount
            or any(offered(node, name) >= amount and allows(pod, node) for node in nodes)
        ):
            continue
        most = largest(allowed_nodes(pod, nodes), name)
        if most is not None and any(offered(node, name) >= amount for node in nodes):
            yield _largest_finding(
                "request-too-large-for-allowed", name, amount, most, of=" that the pod may use"
            )


def _too_large(pod: Pod, nodes: Sequence[Node]) -> Iterator[tuple[str, int]]:
    """Yield the resources, each with the requested amount, of which no node has so much."""
    for name, amount in pod.requests.demand.items():
        if name != PODS and amount and not any(offered(node, name) >= amount for node in nodes):
            yield name, amount


def _largest_finding(
    code: str, resource: str, amount: int, most: Largest, *, of: str = "", usable: Largest | None = None
) -> Finding:
    text = (
        f"no node{of} has {plain_text(resource, amount)} of {{resource}} even when empty; "
        f"the largest has {plain_text(resource, most.amount)} ({{node}})"
    )
    more: dict[str, int | str] = {}
    if usable is not None:
        text += f", and of those that the pod may use {plain_text(resource, usable.amount)} ({{usable}})"
        more = {"largestUsable": usable.amount, "usable": usable.node}
    return Finding.of(
        code, text, resource=resource, requested=amount, largest=most.amount, node=most.node, **more
    )


def serving_all(explanation: Explanation, resource: str, pods: int, targets: Collection[str]) -> int:
    """Return the greatest request of the resource with which all pods fit, as far as the explanation tells.

    It has the free amounts of the nodes that refuse the pod for nothing else. Each of the `targets` takes one of the
    pods; without targets, every node takes as many as fit. 0 if there is no such request.
    """
    rows, free = _free(explanation, resource)
    if targets:
        at_targets = [
            amount for row, amount in zip(rows, free, strict=True) if explanation.nodes[row] in targets
        ]
        return max(0, rounded(resource, min(at_targets, default=0), up=False))
    amounts = np.array([amount for amount in free if amount > 0], dtype=np.int64)
    low, high = 0, int(amounts.max(initial=0))
    # Smaller requests never fit fewer times.
    while low < high:
        middle = (low + high + 1) // 2
        if int((amounts // middle).sum()) >= pods:
            low = middle
        else:
            high = middle - 1
    return rounded(resource, low, up=False)


def _free(explanation: Explanation, resource: str) -> tuple[Sequence[int], Sequence[int]]:
    """Return the rows of the nodes that lack only this resource, and what is free of it there."""
    beyond = explanation.beyond
    if beyond is None:
        return (), ()
    others = np.zeros(len(explanation.nodes), dtype=np.bool_)
    for plugin, refusals in beyond.refusals.items():
        if plugin != _FIT:
            others |= refusals.codes != 0
    rows, free = [], []
    for row, evidence in beyond.evidence.get(_FIT, {}).items():
        values = evidence[0].values
        amount = values.get("free") if values.get("resource") == resource else None
        if len(evidence) == 1 and not others[row] and isinstance(amount, int):
            rows.append(row)
            free.append(amount)
    return rows, free
