"""The culprits behind a refusal: who holds a port, keeps a pod off, fills a node or lacks in a domain."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from kschedfw import Node, Pod
from kschedfw.api import Finding, counted
from kschedfw.cluster import Cluster, belongs_to_its_node, workload_of
from kschedfw.explain import Cause, Evidence, Explanation, NodeExplanation
from kschedfw_advisor.amounts import exact_text
from kschedfw_advisor.cluster_changes import CORDONED

_MOST_NAMED: Final = 3
"""The most workloads, nodes or domains that are named."""

_ANTI_AFFINITY: Final = frozenset(("pod-anti-affinity", "pod-anti-affinity-of-others"))


def culprits(
    explanation: Explanation,
    causes: Iterable[Cause],
    cluster: Cluster,
    pods_on: Callable[[str], Sequence[Pod]],
) -> Iterator[Finding]:
    """Yield who or what is behind the decisive causes for which a pod has no place.

    `pods_on` returns the pods on the node of a name.
    """
    decisive = [cause for cause in causes if cause.decisive]
    codes = {cause.code for cause in decisive}
    rows = list(explanation.rows()) if codes & _WITH_CULPRITS else []
    if "host-port" in codes:
        yield from _port_holders(rows, cluster)
    if codes & _ANTI_AFFINITY:
        yield from _kept_off_by(rows, cluster)
    if "topology-spread" in codes:
        yield from _emptiest_domains(rows, cluster)
    if "insufficient-resource" in codes:
        yield from _holders(decisive, pods_on)


_WITH_CULPRITS: Final = _ANTI_AFFINITY | {"host-port", "topology-spread"}


def _evidence(rows: Iterable[NodeExplanation], codes: Iterable[str]) -> Iterator[tuple[str, Evidence]]:
    """Yield the evidence of these codes, each with its node."""
    wanted = frozenset(codes)
    for row in rows:
        for pieces in row.evidence.values():
            for each in pieces:
                if each.code in wanted:
                    yield row.node, each


def _owner_text(key: object, cluster: Cluster) -> str:
    """Return the workload of the pod of this key; of a pod without one, the pod."""
    pod = cluster.get(Pod, key) if isinstance(key, str) else None
    workload = None if pod is None else workload_of(pod, cluster)
    return f"pod {key}" if workload is None else str(workload)


def _port_holders(rows: Sequence[NodeExplanation], cluster: Cluster) -> Iterator[Finding]:
    held: defaultdict[tuple[object, object], Counter[str]] = defaultdict(Counter)
    for _, each in _evidence(rows, ("host-port",)):
        held[each.values["port"], each.values["protocol"]][_owner_text(each.values["pod"], cluster)] += 1
    for (port, protocol), holders in held.items():
        yield Finding.of(
            "port-held",
            "hostPort {port}/{protocol} is held by {holders}",
            port=str(port),
            protocol=str(protocol),
            holders=_on_nodes(holders),
        )


def _kept_off_by(rows: Sequence[NodeExplanation], cluster: Cluster) -> Iterator[Finding]:
    pairs = {
        (node, _owner_text(each.values["pod"], cluster)): None
        for node, each in _evidence(rows, _ANTI_AFFINITY)
    }
    holders = Counter(owner for _, owner in pairs)
    yield Finding.of("kept-off-by", "kept off by {holders}", holders=_on_nodes(holders))


def _on_nodes(holders: Counter[str]) -> tuple[str, ...]:
    """Return the holders, each with its number of nodes; if there are many, only those of the most nodes."""
    named = [f"{name} on {counted(nodes, 'node')}" for name, nodes in holders.most_common(_MOST_NAMED)]
    rest = len(holders) - len(named)
    return (*named, *([f"{rest:,} more"] if rest > 0 else ()))


def _emptiest_domains(rows: Sequence[NodeExplanation], cluster: Cluster) -> Iterator[Finding]:
    """Yield, for each key that the pod is spread over, the domains that may take it, and why their nodes don't."""
    full_of: defaultdict[str, set[object]] = defaultdict(set)
    for _, each in _evidence(rows, ("topology-spread",)):
        full_of[str(each.values["topologyKey"])].add(each.values["domain"])
    for key, full in full_of.items():
        domains: defaultdict[str, list[NodeExplanation]] = defaultdict(list)
        for row in rows:
            node = cluster.get(Node, row.node)
            domain = None if node is None else node.labels.get(key)
            # Nodes that the pod's own affinity leaves out are no domain for it, unless a policy says so.
            if domain is not None and domain not in full and not _left_out(row):
                domains[domain].append(row)
        for domain, there in sorted(domains.items())[:_MOST_NAMED]:
            names = tuple(row.node for row in there[:_MOST_NAMED])
            rest = f" and {len(there) - len(names):,} more" if len(there) > len(names) else ""
            yield Finding.of(
                "emptiest-domain",
                "{domain} would take it, but has only {nodes}{more}: {reasons}",
                topologyKey=key,
                domain=domain,
                nodes=names,
                more=rest,
                reasons=_why_not(there),
            )


def _left_out(row: NodeExplanation) -> bool:
    refusals = (row.refusal, *row.also_refused_by.values())
    return any(status is not None and status.plugin == "NodeAffinity" for status in refusals)


def _why_not(rows: Iterable[NodeExplanation]) -> tuple[str, ...]:
    """Return the reasons why none of these nodes takes the pod."""
    found: dict[str, None] = {}
    for row in rows:
        statuses = (row.refusal, *row.also_refused_by.values())
        for status in (each for each in statuses if each is not None):
            if status.plugin == "NodeUnschedulable":
                found["cordoned"] = None
                continue
            evidence = row.evidence.get(status.plugin, ())
            # A cordoned node has this taint, too.
            told = [str(each) for each in evidence if each.values.get("key") != CORDONED]
            found.update(dict.fromkeys(told if evidence else status.reasons))
    return tuple(found)[:_MOST_NAMED]


def _holders(causes: Iterable[Cause], pods_on: Callable[[str], Sequence[Pod]]) -> Iterator[Finding]:
    """Yield who takes what the pod lacks on the closest nodes, where deleting a single pod may be no remedy.

    That is the pod with the largest share of an overcommitted node, first one that no scheduler put there, and the
    static pods without which the node would have enough.
    """
    for cause in causes:
        free, short, resource = (cause.evidence.values.get(name) for name in ("free", "short", "resource"))
        if not (isinstance(free, int) and isinstance(short, int) and isinstance(resource, str)):
            continue
        there = [pod for pod in pods_on(cause.node) if not pod.is_terminal]
        static = [pod for pod in there if _is_static(pod) and pod.requests.amounts.get(resource)]
        taken = sum(pod.requests.amounts.get(resource) for pod in static)
        if free < 0:
            own = static or [pod for pod in there if belongs_to_its_node(pod)] or there
            largest = max(own, key=lambda pod: (pod.requests.amounts.get(resource), pod.key), default=None)
            if largest is not None:
                yield _overcommitted(cause.node, resource, largest)
        elif taken >= short:
            yield Finding.of(
                "static-pods",
                "{amount} of node {node}'s {resource} are requested by {pods}: "
                + ("a static pod" if len(static) == 1 else "static pods")
                + ", which no scheduler moves",
                node=cause.node,
                resource=resource,
                pods=tuple(pod.key for pod in static),
                amount=exact_text(resource, taken),
            )


def _is_static(pod: Pod) -> bool:
    """Return whether the kubelet of a node runs the pod from a file of its own."""
    owner = pod.metadata.controller
    return belongs_to_its_node(pod) and (owner is None or owner.kind != "DaemonSet")


def _overcommitted(node: str, resource: str, largest: Pod) -> Finding:
    amount = exact_text(resource, largest.requests.amounts.get(resource))
    which = "static pod" if _is_static(largest) else "pod"
    return Finding.of(
        "overcommitted",
        "more {resource} is requested on node {node} than it has; the largest share is {which} {pod}'s: {amount}",
        node=node,
        resource=resource,
        which=which,
        pod=largest.key,
        amount=amount,
    )
