"""Hypothesis strategies for API objects.

Objects are made from manifests, so they are valid, have their defaults, and can be shown as YAML. Names, labels and
amounts come from small sets, so that selectors match and amounts compete.

    @given(pods(), nodes())
    def test_something(pod: Pod, node: Node) -> None: ...

This module needs hypothesis: `pip install 'kschedfw[testing]'`.

`pod_manifests` and `node_manifests` generate the manifests, to which more fields can be added; `clusters` generates
nodes, bound pods and pending pods. A failing test prints manifests.

Strategies that are drawn from often are constants: hypothesis checks every new strategy, which takes longer than
drawing from it. The smallest draw must be the plainest object: hypothesis shrinks by making numbers small and lists
short, and all draws for one part must be consecutive, so that the part can be removed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from kschedfw.api.manifests import node_from_manifest, pod_from_manifest, to_manifest
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

if TYPE_CHECKING:
    from hypothesis.vendor.pretty import RepresentationPrinter

Manifest = dict[str, Any]


def _one_in(number: int) -> st.SearchStrategy[bool]:
    """Return a strategy of True once in this number of draws, and False in the smallest one."""
    return st.integers(0, number - 1).map(lambda drawn: drawn == number - 1)


_ONE_IN_THREE, _ONE_IN_FOUR, _ONE_IN_FIVE, _ONE_IN_TEN = map(_one_in, (3, 4, 5, 10))

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
    """Return a strategy of texts of non-negative quantities, in all notations."""
    whole = st.integers(0, largest)
    suffixes = st.sampled_from(["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3"])
    fractions = st.builds("{}.{}".format, whole, st.integers(0, 999))
    return st.builds("{}{}".format, whole | fractions, suffixes)


def quantities(largest: int = 10_000) -> st.SearchStrategy[Quantity]:
    return quantity_texts(largest).map(Quantity.parse)


_CPU = st.lists(st.sampled_from(["0", "1m", "100m", "250m", "0.5", "1", "1500m", "4"]), max_size=2)
_MEMORY = st.lists(st.sampled_from(["0", "1", "64Mi", "128Mi", "1Gi", "1.5Gi", "500M", "4Gi"]), max_size=2)
_REQUESTS_OR_LIMITS = st.sampled_from(["requests", "limits"])


@st.composite
def resources(draw: st.DrawFn) -> Manifest:
    """Draw a container's `resources`: requests within limits, either of which may be missing."""
    given: Manifest = {"requests": {}, "limits": {}}
    for name, amounts in (("cpu", _CPU), ("memory", _MEMORY), ("ephemeral-storage", _MEMORY)):
        chosen = sorted(draw(amounts), key=Quantity.parse)
        if chosen:
            where = draw(_REQUESTS_OR_LIMITS) if len(chosen) == 1 else "requests"
            given[where][name] = chosen[0]
        if len(chosen) == 2:
            given["limits"][name] = chosen[1]
    if draw(_ONE_IN_FIVE):
        # extended resources can't be overcommitted: the request equals the limit
        given["limits"][GPU] = str(draw(st.integers(0, 4)))
    return given


# --- Labels and selectors ----------------------------------------------------------------------------------------


_KEYS = st.sampled_from(sorted(LABELS))
_PAIRS_OF = {key: st.tuples(st.just(key), st.sampled_from(values)) for key, values in LABELS.items()}
_PAIRS = _KEYS.flatmap(_PAIRS_OF.__getitem__)


def labels(most: int = len(LABELS)) -> st.SearchStrategy[dict[str, str]]:
    return st.lists(_PAIRS, max_size=most).map(dict)


def requirements(*, of_nodes: bool = False, least: int = -1) -> st.SearchStrategy[Manifest]:
    """Return a strategy of match expressions; those of nodes may compare numbers too, from `least` on.

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

    by_key = {key: with_values(key) for key in LABELS}
    return _KEYS.flatmap(by_key.__getitem__)


def label_selectors() -> st.SearchStrategy[Manifest]:
    expressions = st.lists(requirements(), max_size=2)
    return st.fixed_dictionaries({}, optional={"matchLabels": labels(2), "matchExpressions": expressions})


def node_selector_terms(
    node_names: Sequence[str] = ("node-0", "node-1"), least: int = -1
) -> st.SearchStrategy[Manifest]:
    """Return a strategy of node affinity terms; `least` as in `requirements`."""
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


_LABELS = labels()
_ONE_LABEL = labels(1)
_LABEL_SELECTORS = label_selectors()
_NAMESPACE = st.sampled_from(NAMESPACES)
_NAMESPACES = st.lists(_NAMESPACE, max_size=2, unique=True)
_TOPOLOGY_KEY = st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"])


@st.composite
def _pod_affinity_terms(draw: st.DrawFn) -> Manifest:
    term: Manifest = {"topologyKey": draw(_TOPOLOGY_KEY), "labelSelector": draw(_LABEL_SELECTORS)}
    if draw(st.booleans()):
        term["namespaces"] = draw(_NAMESPACES)
    if draw(st.booleans()):
        term["matchLabelKeys"] = ["app"]
    if draw(st.booleans()):
        term["namespaceSelector"] = {}
    return term


_WEIGHT = st.integers(1, 100)
_REQUIRED_NODES = st.lists(node_selector_terms(), max_size=2)
# A preferred term that can't be compiled is an error; a required one only matches nothing.
_PREFERRED_NODES = st.lists(
    st.fixed_dictionaries({"weight": _WEIGHT, "preference": node_selector_terms(least=0)}), max_size=2
)
_REQUIRED_PODS = st.lists(_pod_affinity_terms(), max_size=1)
_PREFERRED_PODS = st.lists(
    st.fixed_dictionaries({"weight": _WEIGHT, "podAffinityTerm": _pod_affinity_terms()}), max_size=1
)


@st.composite
def _affinities(draw: st.DrawFn) -> Manifest:
    affinity: Manifest = {}
    if draw(st.booleans()):
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": draw(_PREFERRED_NODES)}
        terms = draw(_REQUIRED_NODES)
        if terms:
            required = {"nodeSelectorTerms": terms}
            affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = required
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(_ONE_IN_THREE):
            affinity[kind] = {
                "requiredDuringSchedulingIgnoredDuringExecution": draw(_REQUIRED_PODS),
                "preferredDuringSchedulingIgnoredDuringExecution": draw(_PREFERRED_PODS),
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


_TOPOLOGY_KEYS = st.lists(_TOPOLOGY_KEY, unique=True)
_WHEN_UNSATISFIABLE = st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])


@st.composite
def _spread_constraints(draw: st.DrawFn) -> list[Manifest]:
    constraints = []
    for key in draw(_TOPOLOGY_KEYS):
        action = draw(_WHEN_UNSATISFIABLE)
        constraint = {
            "maxSkew": draw(st.integers(1, 3)),
            "topologyKey": key,
            "whenUnsatisfiable": action,
            "labelSelector": draw(_LABEL_SELECTORS),
        }
        if action == "DoNotSchedule" and draw(st.booleans()):
            constraint["minDomains"] = draw(st.integers(1, 4))
        constraints.append(constraint)
    return constraints


_PORTS = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.sampled_from([80, 443, 8080])},
        optional={
            "hostPort": st.sampled_from([80, 8080]),
            "hostIP": st.sampled_from(["", "0.0.0.0", "127.0.0.1"]),
            "protocol": st.sampled_from(["TCP", "UDP", "SCTP"]),
        },
    ),
    max_size=2,
)
_IMAGE = st.sampled_from(["web:1", "db:2"])
_RESOURCES = resources()


@st.composite
def _containers(draw: st.DrawFn, prefix: str, least: int, most: int) -> list[Manifest]:
    return [
        {
            "name": f"{prefix}-{index}",
            "image": draw(_IMAGE),
            "resources": draw(_RESOURCES),
            "ports": draw(_PORTS),
        }
        for index in range(draw(st.integers(least, most)))
    ]


# What makes containers start again; a pod in which one can make all of them needs a feature of its node.
_RESTART_RULES = st.sampled_from(["Restart", "RestartAllContainers"]).map(
    lambda action: {
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": action, "exitCodes": {"operator": "In", "values": [42]}}],
    }
)
_INIT_CONTAINERS = _containers("init", 0, 2)
_CONTAINERS = _containers("main", 1, 2)
_AFFINITIES = _affinities()
_TOLERATIONS = st.lists(tolerations(), max_size=2)
_SPREAD_CONSTRAINTS = _spread_constraints()
_PRIORITY = st.none() | st.integers(-10, 10)


@st.composite
def pod_manifests(draw: st.DrawFn, name: str | None = None, node_name: str = "") -> Manifest:
    """Draw a pod that the API server would accept; bound to `node_name`, or pending without one."""
    name = name if name is not None else f"pod-{draw(st.integers(0, 99))}"
    init_containers = draw(_INIT_CONTAINERS)
    for container in init_containers:
        if draw(st.booleans()):
            container["restartPolicy"] = "Always"
    containers = draw(_CONTAINERS)
    if draw(_ONE_IN_FOUR):
        containers[0] |= draw(_RESTART_RULES)
    spec: Manifest = {
        "containers": containers,
        "initContainers": init_containers,
        "affinity": draw(_AFFINITIES),
        "tolerations": draw(_TOLERATIONS),
        "topologySpreadConstraints": draw(_SPREAD_CONSTRAINTS),
        "nodeSelector": draw(_ONE_LABEL),
        "priority": draw(_PRIORITY),
        "nodeName": node_name,
    }
    if draw(_ONE_IN_FOUR):
        spec["overhead"] = {"cpu": "10m", "memory": "16Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": draw(_NAMESPACE),
            "labels": draw(_LABELS),
            "creationTimestamp": f"2024-01-01T00:00:{draw(st.integers(0, 59)):02}Z",
        },
        "spec": spec,
        "status": {"phase": "Running" if node_name else "Pending"},
    }


def pods(name: str | None = None, node_name: str = "") -> st.SearchStrategy[Pod]:
    return pod_manifests(name, node_name).map(pod_from_manifest)


# --- Nodes and clusters ------------------------------------------------------------------------------------------


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
_PLAIN_CAPACITY = {"cpu": "500m", "memory": "1Gi", "pods": "110"}
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
        "spec": {"taints": draw(_TAINTS), "unschedulable": draw(_ONE_IN_TEN)},
        "status": {
            "capacity": draw(_CAPACITY),
            "images": draw(_IMAGES),
            "declaredFeatures": draw(_DECLARED_FEATURES),
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

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:  # noqa: ARG002  # hypothesis' name
        """Print the manifests, each on a line of its own, instead of every attribute of every object."""
        with printer.group(4, "Cluster.of(", ")"):
            for obj in (*self.nodes, *self.bound, *self.pending):
                printer.breakable()
                printer.text(f"{to_manifest(obj)!r},")

    @classmethod
    def of(cls, *manifests: Manifest) -> Cluster:
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
def clusters(draw: st.DrawFn, most_nodes: int = 4, most_bound: int = 4, most_pending: int = 2) -> Cluster:
    """Draw a cluster with at least one node; names are unique, and bound pods are on nodes that exist.

    Bound pods needn't fit their nodes, as in real clusters after a change.
    """
    # Lists, whose items hypothesis leaves out one by one; names and hosts are given afterwards, since an item that
    # depended on another one couldn't be left out alone.
    hosts = draw(st.lists(_NODE, min_size=1, max_size=most_nodes))
    bound = draw(st.lists(st.tuples(st.integers(0, most_nodes - 1), _POD), max_size=most_bound))
    pending = draw(st.lists(_POD, max_size=most_pending))
    return Cluster(
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
