"""Pods, from manifests."""

from __future__ import annotations

from hypothesis import strategies as st

from kschedfw.api import Pod, pod_from_manifest
from kschedfw.testing.strategies.parts import (
    EFFECTS,
    NAMESPACES,
    ONE_IN_FOUR,
    ONE_IN_THREE,
    Manifest,
    label_selectors,
    labels,
    namespace_selectors,
    node_selector_terms,
    resources,
)

_LABELS = labels()
_ONE_LABEL = labels(1)
_LABEL_SELECTORS = label_selectors()
_NAMESPACE = st.sampled_from(NAMESPACES)
_NAMESPACES = st.lists(_NAMESPACE, max_size=2, unique=True)
# Every namespace, some of them, and all but some.
_EVERY_NAMESPACE: Manifest = {}
_NAMESPACE_SELECTORS = st.just(_EVERY_NAMESPACE) | namespace_selectors()
_TOPOLOGY_KEY = st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"])


@st.composite
def _pod_affinity_terms(draw: st.DrawFn) -> Manifest:
    term: Manifest = {"topologyKey": draw(_TOPOLOGY_KEY), "labelSelector": draw(_LABEL_SELECTORS)}
    if draw(st.booleans()):
        term["namespaces"] = draw(_NAMESPACES)
    if draw(st.booleans()):
        term["matchLabelKeys"] = ["app"]
    if draw(st.booleans()):
        term["namespaceSelector"] = draw(_NAMESPACE_SELECTORS)
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
        if draw(ONE_IN_THREE):
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


# Rules by which containers start again; a pod in which one can restart all of them needs a feature of its node.
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
    if draw(ONE_IN_FOUR):
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
    if draw(ONE_IN_FOUR):
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
