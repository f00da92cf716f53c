"""Nodes, from manifests, and clusters: nodes, bound pods and pending pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
from hypothesis import strategies as st

from kschedfw.api import Node, Pod, node_from_manifest, pod_from_manifest, to_manifest
from kschedfw.testing.strategies.parts import EFFECTS, GPU, ONE_IN_TEN, ZONES, Manifest, labels
from kschedfw.testing.strategies.pods import pod_manifests

if TYPE_CHECKING:
    from hypothesis.vendor.pretty import RepresentationPrinter

_LABELS = labels()
_ZONE = st.sampled_from(ZONES)
_TAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["dedicated", "spot"]),
            "value": st.sampled_from(["", "gpu", "web"]),
            "effect": st.sampled_from(EFFECTS),
        }
    ),
    max_size=2,
    unique_by=lambda taint: taint["key"],
)
_CAPACITY = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["500m", "2", "8", "64"]),
        "memory": st.sampled_from(["1Gi", "4Gi", "64Gi"]),
        "pods": st.sampled_from(["110", "3", "0"]),
    },
    optional={GPU: st.integers(0, 8).map(str)},
)
_IMAGES = st.lists(
    st.sampled_from([("web:1", 50_000_000), ("db:2", 900_000_000)]).map(
        lambda image: {"names": [image[0]], "sizeBytes": image[1]}
    ),
    max_size=1,
)
_DECLARED_FEATURES = st.sampled_from([(), ("RestartAllContainersOnContainerExits",), ("Other",)]).map(list)


@st.composite
def node_manifests(draw: st.DrawFn, name: str | None = None) -> Manifest:
    """Draw a node that the API server would accept."""
    name = name if name is not None else f"node-{draw(st.integers(0, 9))}"
    given = {**draw(_LABELS), "kubernetes.io/hostname": name}
    if draw(st.booleans()):
        given["topology.kubernetes.io/zone"] = draw(_ZONE)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": given},
        "spec": {"taints": draw(_TAINTS), "unschedulable": draw(ONE_IN_TEN)},
        "status": {
            "capacity": draw(_CAPACITY),
            "images": draw(_IMAGES),
            "declaredFeatures": draw(_DECLARED_FEATURES),
        },
    }


def nodes(name: str | None = None) -> st.SearchStrategy[Node]:
    return node_manifests(name).map(node_from_manifest)


@attrs.frozen
class DrawnCluster:
    """Nodes, bound pods and pending pods."""

    nodes: tuple[Node, ...]
    bound: tuple[Pod, ...]
    pending: tuple[Pod, ...]

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:  # noqa: ARG002  # hypothesis' name
        """Print the manifests, each on a line of its own, instead of every attribute of every object."""
        with printer.group(4, "Cluster.of(", ")"):
            for obj in (*self.nodes, *self.bound, *self.pending):
                printer.breakable()
                printer.text(f"{to_manifest(obj)!r},")

    @classmethod
    def of(cls, *manifests: Manifest) -> DrawnCluster:
        """Return the cluster of these manifests, as a failing test prints it."""
        found = [
            node_from_manifest(each) if each["kind"] == "Node" else pod_from_manifest(each)
            for each in manifests
        ]
        pods = [each for each in found if isinstance(each, Pod)]
        return cls(
            tuple(each for each in found if isinstance(each, Node)),
            tuple(pod for pod in pods if pod.node_name),
            tuple(pod for pod in pods if not pod.node_name),
        )


def _or_plain(
    rich: st.SearchStrategy[Manifest], plain: Callable[[], Manifest]
) -> st.SearchStrategy[Manifest]:
    """Return a strategy of the plain manifest once in six draws; shrinking replaces a rich one by it in one step."""
    return st.integers(0, 5).flatmap(lambda drawn: rich if drawn else st.builds(plain))


_PLAIN_CAPACITY = {"cpu": "500m", "memory": "1Gi", "pods": "110"}
_NODE = _or_plain(node_manifests("node"), lambda: _manifest("Node", {}, {"capacity": dict(_PLAIN_CAPACITY)}))
_POD = _or_plain(
    pod_manifests("pod"),
    lambda: _manifest("Pod", {"containers": [{"name": "main-0", "image": "web:1"}]}, {}, namespace="default"),
)


def _manifest(kind: str, spec: Manifest, status: Manifest, **metadata: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"labels": {}, "creationTimestamp": "2024-01-01T00:00:00Z", **metadata},
        "spec": spec,
        "status": status,
    }


@st.composite
def clusters(
    draw: st.DrawFn, most_nodes: int = 4, most_bound: int = 4, most_pending: int = 2
) -> DrawnCluster:
    """Draw a cluster with at least one node; names are unique, and bound pods are on nodes that exist.

    Bound pods needn't fit their nodes, as in real clusters after a change.
    """
    # Lists, whose items hypothesis leaves out one by one; names and hosts are given afterwards, since an item that
    # depended on another one couldn't be left out alone.
    hosts = draw(st.lists(_NODE, min_size=1, max_size=most_nodes))
    bound = draw(st.lists(st.tuples(st.integers(0, most_nodes - 1), _POD), max_size=most_bound))
    pending = draw(st.lists(_POD, max_size=most_pending))
    return DrawnCluster(
        nodes=tuple(_named_node(manifest, f"node-{index}") for index, manifest in enumerate(hosts)),
        bound=tuple(
            _named_pod(manifest, f"bound-{index}", f"node-{host % len(hosts)}")
            for index, (host, manifest) in enumerate(bound)
        ),
        pending=tuple(_named_pod(manifest, f"pending-{index}") for index, manifest in enumerate(pending)),
    )


def _named_node(manifest: Manifest, name: str) -> Node:
    manifest["metadata"]["name"] = manifest["metadata"]["labels"]["kubernetes.io/hostname"] = name
    return node_from_manifest(manifest)


def _named_pod(manifest: Manifest, name: str, node_name: str = "") -> Pod:
    manifest["metadata"]["name"] = name
    manifest["spec"]["nodeName"] = node_name
    manifest["status"]["phase"] = "Running" if node_name else "Pending"
    return pod_from_manifest(manifest)
