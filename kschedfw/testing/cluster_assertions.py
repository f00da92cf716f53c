"""Assertions about a whole cluster, after scheduling: its spread, its room, its placed and its evicted pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kschedfw.api import DEFAULT_NAMESPACE, Node, Pod, Selector
from kschedfw.api.selector_text import parse_selector
from kschedfw.cluster import Cluster
from kschedfw.framework.nodes.node_info import NodeInfo

_MOST_NAMED = 10
"""The most pods or nodes that a failure names; in a cluster of thousands the rest would hide its first line."""


def assert_spread(
    cluster: Cluster,
    topology_key: str,
    *,
    pods: str = "",
    namespace: str | None = None,
    max_skew: int = 1,
) -> None:
    """Assert that pods are spread evenly over the values of a node label, such as `topology.kubernetes.io/zone`.

    The skew is the number of pods in the fullest domain minus that in the emptiest. Domains are the values of the
    label among all nodes; nodes without it don't count, and neither do pods that have ended.

    Args:
        cluster: the cluster after scheduling.
        topology_key: the key of the nodes' label.
        pods: the pods to count, as a label selector of kubectl (`app=web`); empty for all pods.
        namespace: the namespace of these pods; None for all namespaces.
        max_skew: the largest skew that is allowed.

    Raises:
        AssertionError: the skew is larger, no node has the label, or no such pod is on a node with it.
        SelectorSyntaxError: `pods` isn't a label selector.
    """
    # So that pytest shows the line of the test, here and below, not of these functions.
    __tracebackhide__ = True
    domains = {
        node.name: node.labels[topology_key] for node in cluster.list(Node) if topology_key in node.labels
    }
    if not domains:
        known = ", ".join(sorted({label for node in cluster.list(Node) for label in node.labels})) or "none"
        raise AssertionError(f"no node has the label {topology_key}; nodes have {known}")
    counts = Counter(dict.fromkeys(domains.values(), 0))
    for pod in _running(cluster, pods, namespace):
        if pod.node_name in domains:
            counts[domains[pod.node_name]] += 1
    if not counts.total():
        raise AssertionError(f"no pod{_selected(pods, namespace)} is on a node with the label {topology_key}")
    skew = max(counts.values()) - min(counts.values())
    if skew > max_skew:
        told = ", ".join(f"{domain}: {count}" for domain, count in sorted(counts.items()))
        raise AssertionError(
            f"pods{_selected(pods, namespace)} should be spread by {topology_key} with a skew of at most "
            f"{max_skew}, not {skew} ({told})"
        )


def assert_no_overcommit(cluster: Cluster) -> None:
    """Assert that the pods of every node request no more than it has, of any resource, and aren't too many.

    Raises:
        AssertionError: some nodes are overcommitted; names the nodes and the resources. Or no pod is on a node.
    """
    __tracebackhide__ = True
    by_node: dict[str, list[Pod]] = {}
    for pod in _running(cluster):
        by_node.setdefault(pod.node_name, []).append(pod)
    if not any(node.name in by_node for node in cluster.list(Node)):
        raise AssertionError("no pod is on a node, so that none could have too many")
    found = [problem for node in cluster.list(Node) for problem in _excess(node, by_node.get(node.name, ()))]
    if found:
        raise AssertionError(f"nodes have more on them than they can take: {_first(found)}")


def assert_placed(
    cluster: Cluster, share: float = 1.0, *, pods: str = "", namespace: str | None = None
) -> None:
    """Assert that at least this share of pods has a node. For `pods` and `namespace` see `assert_spread`.

    Raises:
        AssertionError: fewer pods have a node, or there is no such pod; names pods without a node.
        SelectorSyntaxError: `pods` isn't a label selector.
    """
    __tracebackhide__ = True
    found = list(_running(cluster, pods, namespace))
    if not found:
        raise AssertionError(f"there is no pod{_selected(pods, namespace)}")
    pending = [pod.key for pod in found if not pod.node_name]
    placed = len(found) - len(pending)
    if placed < share * len(found):
        raise AssertionError(
            f"{share:.0%} of the pods{_selected(pods, namespace)} should have a node, not {placed} of "
            f"{len(found)}; without one: {_first(pending)}"
        )


def assert_evicted(cluster: Cluster, pods: Iterable[str], *, before: Iterable[Pod]) -> None:
    """Assert that exactly these pods are gone or are being deleted.

    Args:
        cluster: the cluster after scheduling.
        pods: their keys, `namespace/name`; of a pod in `default`, the name is enough.
        before: the pods in the cluster before scheduling, `cluster.list(Pod)`.

    Raises:
        AssertionError: other pods are gone, or some of these aren't.
    """
    __tracebackhide__ = True
    left = {pod.uid for pod in cluster.list(Pod) if not pod.is_terminating}
    evicted = sorted(pod.key for pod in before if not pod.is_terminating and pod.uid not in left)
    expected = sorted(map(key_of, pods))
    if evicted != expected:
        raise AssertionError(
            f"evicted should be {', '.join(expected) or 'none'}, not {', '.join(evicted) or 'none'}"
        )


def key_of(name: str) -> str:
    """Return the key of a pod that may be named without its namespace, which is `default` then."""
    return name if "/" in name else f"{DEFAULT_NAMESPACE}/{name}"


def _running(cluster: Cluster, selector: str = "", namespace: str | None = None) -> Iterator[Pod]:
    wanted = parse_selector(selector) if selector else Selector()
    return (pod for pod in cluster.list(Pod, namespace) if not pod.is_terminal and wanted.matches(pod.labels))


def _excess(node: Node, pods: Iterable[Pod]) -> Iterator[str]:
    info = NodeInfo.of(node, pods)
    requested = [*info.requested.items(), ("pods", len(info.pods))]
    for resource, amount in requested:
        if amount > (available := info.allocatable.get(resource)):
            unit = "m" if resource == "cpu" else ""
            yield f"{node.name} has {amount}{unit} {resource} of {available}{unit}"


def _selected(pods: str, namespace: str | None) -> str:
    labels = f" with {pods}" if pods else ""
    return labels if namespace is None else f"{labels} in {namespace}"


def _first(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
