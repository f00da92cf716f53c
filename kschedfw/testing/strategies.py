"""Hypothesis strategies for API objects.

Objects are made from manifests, so they are valid, have their defaults, and can be shown as YAML. Names, labels and
amounts come from small sets, so that selectors match and amounts compete.

    @given(pods(), nodes())
    def test_something(pod: Pod, node: Node) -> None: ...

This module needs hypothesis: `pip install 'kschedfw[testing]'`.

`pod_manifests` and `node_manifests` generate the manifests, to which more fields can be added; `clusters` generates
nodes, bound pods and pending pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from kschedfw.api.manifests import node_from_manifest, pod_from_manifest
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.quantity import Quantity
from kschedfw.scheduler.errors import MissingExtraError

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtraError(
        "generated clusters need hypothesis; install it with: pip install 'kschedfw[testing]'"
    ) from error

Manifest = dict[str, Any]

NAMESPACES = ("default", "team-a", "team-b")
ZONES = ("zone-1", "zone-2", "zone-3")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
GPU = "example.com/gpu"

LABELS = {
    "app": ("web", "db", "cache"),
    "tier": ("front", "back"),
    "kubernetes.io/arch": ("amd64", "arm64"),
    "generation": ("1", "7", "12"),
}


# --- Quantities --------------------------------------------------------------------------------------------------


def quantity_texts(largest: int = 10_000) -> st.SearchStrategy[str]:
    """Texts of non-negative quantities, in all notations."""
    whole = st.integers(0, largest)
    suffixes = st.sampled_from(["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3"])
    fractions = st.builds("{}.{}".format, whole, st.integers(0, 999))
    return st.builds("{}{}".format, whole | fractions, suffixes)


def quantities(largest: int = 10_000) -> st.SearchStrategy[Quantity]:
    return quantity_texts(largest).map(Quantity.parse)


def _cpu() -> st.SearchStrategy[str]:
    return st.sampled_from(["0", "1m", "100m", "250m", "0.5", "1", "1500m", "4"])


def _memory() -> st.SearchStrategy[str]:
    return st.sampled_from(["0", "1", "64Mi", "128Mi", "1Gi", "1.5Gi", "500M", "4Gi"])


@st.composite
def resources(draw: st.DrawFn) -> Manifest:
    """A container's `resources`: requests within limits, either of which may be missing."""
    given: Manifest = {"requests": {}, "limits": {}}
    for name, amounts in (("cpu", _cpu()), ("memory", _memory()), ("ephemeral-storage", _memory())):
        chosen = sorted(draw(st.lists(amounts, max_size=2)), key=Quantity.parse)
        if chosen:
            where = draw(st.sampled_from(["requests", "limits"])) if len(chosen) == 1 else "requests"
            given[where][name] = chosen[0]
        if len(chosen) == 2:
            given["limits"][name] = chosen[1]
    if draw(st.integers(0, 4)) == 0:
        given["limits"][GPU] = str(draw(st.integers(0, 4)))  # not overcommitted: the request equals the limit
    return given


# --- Labels and selectors ----------------------------------------------------------------------------------------


def labels(most: int = len(LABELS)) -> st.SearchStrategy[dict[str, str]]:
    pairs = st.sampled_from(sorted(LABELS)).flatmap(
        lambda key: st.tuples(st.just(key), st.sampled_from(LABELS[key]))
    )
    return st.lists(pairs, max_size=most).map(dict)


def requirements(*, of_nodes: bool = False, least: int = -1) -> st.SearchStrategy[Manifest]:
    """Match expressions; those of nodes may compare numbers too, from `least` on.

    A number below 0 isn't a valid label value, so such an expression can't be compiled.
    """

    def with_values(key: str) -> st.SearchStrategy[Manifest]:
        values = st.lists(st.sampled_from(LABELS[key]), min_size=1, max_size=2, unique=True)
        sets = st.builds(
            lambda operator, chosen: {"key": key, "operator": operator, "values": chosen},
            st.sampled_from(["In", "NotIn"]),
            values,
        )
        existence = st.builds(
            lambda operator: {"key": key, "operator": operator},
            st.sampled_from(["Exists", "DoesNotExist"]),
        )
        comparisons = st.builds(
            lambda operator, number: {"key": key, "operator": operator, "values": [str(number)]},
            st.sampled_from(["Gt", "Lt"]),
            st.integers(least, 20),
        )
        return sets | existence | comparisons if of_nodes else sets | existence

    return st.sampled_from(sorted(LABELS)).flatmap(with_values)


def label_selectors() -> st.SearchStrategy[Manifest]:
    expressions = st.lists(requirements(), max_size=2)
    return st.fixed_dictionaries({}, optional={"matchLabels": labels(2), "matchExpressions": expressions})


def node_selector_terms(
    node_names: Sequence[str] = ("node-0", "node-1"), least: int = -1
) -> st.SearchStrategy[Manifest]:
    """Terms of node affinity; `least` as in `requirements`."""
    by_name = st.builds(
        lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
        st.sampled_from(["In", "NotIn"]),
        st.sampled_from(list(node_names)),
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "matchExpressions": st.lists(requirements(of_nodes=True, least=least), max_size=2),
            "matchFields": st.lists(by_name, max_size=1),
        },
    )


# --- Pods --------------------------------------------------------------------------------------------------------


@st.composite
def _pod_affinity_terms(draw: st.DrawFn) -> Manifest:
    term: Manifest = {
        "topologyKey": draw(st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"])),
        "labelSelector": draw(label_selectors()),
    }
    if draw(st.booleans()):
        term["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), max_size=2, unique=True))
    if draw(st.booleans()):
        term["matchLabelKeys"] = ["app"]
    if draw(st.booleans()):
        term["namespaceSelector"] = {}
    return term


@st.composite
def _affinities(draw: st.DrawFn) -> Manifest:
    affinity: Manifest = {}
    weights = st.integers(1, 100)
    if draw(st.booleans()):
        # A preferred term that can't be compiled is an error; a required one only matches nothing.
        preferred = st.builds(
            lambda weight, term: {"weight": weight, "preference": term}, weights, node_selector_terms(least=0)
        )
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": draw(st.lists(preferred, max_size=2))
        }
        terms = draw(st.lists(node_selector_terms(), max_size=2))
        if terms:
            required = {"nodeSelectorTerms": terms}
            affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = required
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(st.integers(0, 2)) == 0:
            weighted = st.builds(
                lambda weight, term: {"weight": weight, "podAffinityTerm": term},
                weights,
                _pod_affinity_terms(),
            )
            affinity[kind] = {
                "requiredDuringSchedulingIgnoredDuringExecution": draw(
                    st.lists(_pod_affinity_terms(), max_size=1)
                ),
                "preferredDuringSchedulingIgnoredDuringExecution": draw(st.lists(weighted, max_size=1)),
            }
    return affinity


def tolerations() -> st.SearchStrategy[Manifest]:
    effects = st.sampled_from(["", *EFFECTS])
    everything = st.builds(lambda effect: {"operator": "Exists", "effect": effect}, effects)
    by_key = st.builds(
        lambda key, effect: {"key": key, "operator": "Exists", "effect": effect},
        st.sampled_from(["dedicated", "spot"]),
        effects,
    )
    by_value = st.builds(
        lambda key, value, effect: {"key": key, "value": value, "effect": effect},
        st.sampled_from(["dedicated", "spot"]),
        st.sampled_from(["", "gpu", "web"]),
        effects,
    )
    return everything | by_key | by_value


@st.composite
def _spread_constraints(draw: st.DrawFn) -> list[Manifest]:
    keys = draw(
        st.lists(st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]), unique=True)
    )
    constraints = []
    for key in keys:
        action = draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]))
        constraint = {
            "maxSkew": draw(st.integers(1, 3)),
            "topologyKey": key,
            "whenUnsatisfiable": action,
            "labelSelector": draw(label_selectors()),
        }
        if action == "DoNotSchedule" and draw(st.booleans()):
            constraint["minDomains"] = draw(st.integers(1, 4))
        constraints.append(constraint)
    return constraints


def _ports() -> st.SearchStrategy[list[Manifest]]:
    port = st.fixed_dictionaries(
        {"containerPort": st.sampled_from([80, 443, 8080])},
        optional={
            "hostPort": st.sampled_from([80, 8080]),
            "hostIP": st.sampled_from(["", "0.0.0.0", "127.0.0.1"]),
            "protocol": st.sampled_from(["TCP", "UDP", "SCTP"]),
        },
    )
    return st.lists(port, max_size=2)


@st.composite
def _containers(draw: st.DrawFn, prefix: str, least: int, most: int) -> list[Manifest]:
    return [
        {
            "name": f"{prefix}-{index}",
            "image": draw(st.sampled_from(["web:1", "db:2"])),
            "resources": draw(resources()),
            "ports": draw(_ports()),
        }
        for index in range(draw(st.integers(least, most)))
    ]


def _restart_rules() -> st.SearchStrategy[Manifest]:
    """Restart rules of containers; a pod with a rule that restarts all containers needs a declared feature of its
    node.
    """
    return st.builds(
        lambda action: {
            "restartPolicy": "Never",
            "restartPolicyRules": [{"action": action, "exitCodes": {"operator": "In", "values": [42]}}],
        },
        st.sampled_from(["Restart", "RestartAllContainers"]),
    )


@st.composite
def pod_manifests(draw: st.DrawFn, name: str | None = None, node_name: str = "") -> Manifest:
    """Pods that the API server would accept; bound to `node_name`, or pending without one."""
    name = name if name is not None else f"pod-{draw(st.integers(0, 99))}"
    init_containers = draw(_containers("init", 0, 2))
    for container in init_containers:
        if draw(st.booleans()):
            container["restartPolicy"] = "Always"
    containers = draw(_containers("main", 1, 2))
    if draw(st.integers(0, 3)) == 0:
        containers[0] |= draw(_restart_rules())
    spec: Manifest = {
        "containers": containers,
        "initContainers": init_containers,
        "affinity": draw(_affinities()),
        "tolerations": draw(st.lists(tolerations(), max_size=2)),
        "topologySpreadConstraints": draw(_spread_constraints()),
        "nodeSelector": draw(labels(1)),
        "priority": draw(st.none() | st.integers(-10, 10)),
        "nodeName": node_name,
    }
    if draw(st.integers(0, 3)) == 0:
        spec["overhead"] = {"cpu": "10m", "memory": "16Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": draw(st.sampled_from(NAMESPACES)),
            "labels": draw(labels()),
            "creationTimestamp": f"2024-01-01T00:00:{draw(st.integers(0, 59)):02}Z",
        },
        "spec": spec,
        "status": {"phase": "Running" if node_name else "Pending"},
    }


def pods(name: str | None = None, node_name: str = "") -> st.SearchStrategy[Pod]:
    return pod_manifests(name, node_name).map(pod_from_manifest)


# --- Nodes and clusters ------------------------------------------------------------------------------------------


@st.composite
def node_manifests(draw: st.DrawFn, name: str | None = None) -> Manifest:
    """Nodes that the API server would accept."""
    name = name if name is not None else f"node-{draw(st.integers(0, 9))}"
    given = {**draw(labels()), "kubernetes.io/hostname": name}
    if draw(st.booleans()):
        given["topology.kubernetes.io/zone"] = draw(st.sampled_from(ZONES))
    keys = draw(st.lists(st.sampled_from(["dedicated", "spot"]), max_size=2, unique=True))
    taints = [
        {
            "key": key,
            "value": draw(st.sampled_from(["", "gpu", "web"])),
            "effect": draw(st.sampled_from(EFFECTS)),
        }
        for key in keys
    ]
    capacity = {
        "cpu": draw(st.sampled_from(["500m", "2", "8", "64"])),
        "memory": draw(st.sampled_from(["1Gi", "4Gi", "64Gi"])),
        "pods": draw(st.sampled_from(["0", "3", "110"])),
    }
    if draw(st.booleans()):
        capacity[GPU] = str(draw(st.integers(0, 8)))
    images = st.sampled_from(
        [{"names": ["web:1"], "sizeBytes": 50_000_000}, {"names": ["db:2"], "sizeBytes": 900_000_000}]
    )
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": given},
        "spec": {"taints": taints, "unschedulable": draw(st.integers(0, 9)) == 0},
        "status": {
            "capacity": capacity,
            "images": draw(st.lists(images, max_size=1)),
            "declaredFeatures": draw(
                st.sampled_from([[], ["RestartAllContainersOnContainerExits"], ["Other"]])
            ),
        },
    }


def nodes(name: str | None = None) -> st.SearchStrategy[Node]:
    return node_manifests(name).map(node_from_manifest)


@attrs.frozen
class Cluster:
    """Nodes, bound pods and pending pods."""

    nodes: tuple[Node, ...]
    bound: tuple[Pod, ...]
    pending: tuple[Pod, ...]


@st.composite
def clusters(draw: st.DrawFn, most_nodes: int = 4, most_bound: int = 4, most_pending: int = 2) -> Cluster:
    """Clusters with at least one node; names are unique, and bound pods are on nodes that exist.

    Bound pods needn't fit their nodes, as in real clusters after a change.
    """
    names = [f"node-{index}" for index in range(draw(st.integers(1, most_nodes)))]
    hosts = draw(st.lists(st.sampled_from(names), max_size=most_bound))
    return Cluster(
        nodes=tuple(draw(nodes(name)) for name in names),
        bound=tuple(draw(pods(f"bound-{index}", host)) for index, host in enumerate(hosts)),
        pending=tuple(draw(pods(f"pending-{index}")) for index in range(draw(st.integers(0, most_pending)))),
    )
