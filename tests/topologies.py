"""Hypothesis strategies for small clusters whose pods have to do with each other, and for how such clusters change.

Everything comes from very small sets, so that terms and pods, nodes and domains meet all the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from tests.plugins.cycles import make_node, make_pod

KEYS = ("zone", "host")
SPACES = ("default", "there")
LABELS: tuple[dict[str, str], ...] = ({}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "front"})
NODE_NAMES = ("a", "b", "c", "d")

SELECTORS: tuple[dict[str, Any] | None, ...] = (
    None,
    {},
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "db"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
)

NAMESPACE_SELECTORS: tuple[dict[str, Any] | None, ...] = (
    None,
    None,
    {},
    {"matchLabels": {"team": "blue"}},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue"]}]},
    {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
    {
        "matchExpressions": [
            {"key": "team", "operator": "NotIn", "values": ["red"]},
            {"key": "team", "operator": "Exists"},
        ]
    },
)

_IN_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    """Manifests of pod (anti-)affinity terms."""
    term: dict[str, Any] = {"topologyKey": draw(st.sampled_from(KEYS))}
    if (selector := draw(st.sampled_from(SELECTORS))) is not None:
        term["labelSelector"] = selector
    if spaces := draw(st.sampled_from([[], [], ["there"], ["there", "default"]])):
        term["namespaces"] = spaces
    if (of_spaces := draw(st.sampled_from(NAMESPACE_SELECTORS))) is not None:
        term["namespaceSelector"] = of_spaces
    return term


@st.composite
def affinities(draw: st.DrawFn) -> dict[str, Any]:
    """Manifests of affinities with up to two terms of each kind, most of them with fewer."""
    some = st.lists(terms(), max_size=2) if draw(st.booleans()) else st.just([])
    weighted = st.builds(
        lambda weight, term: {"weight": weight, "podAffinityTerm": term}, st.sampled_from([1, 5, 30]), terms()
    )
    some_weighted = st.lists(weighted, max_size=2) if draw(st.booleans()) else st.just([])
    return {
        kind: {_IN_AFFINITY: draw(some), _PREFERRED: draw(some_weighted)}
        for kind in ("podAffinity", "podAntiAffinity")
    }


_FEW_AFFINITIES = st.shared(st.lists(affinities(), min_size=1, max_size=3), key="affinities")
"""For all pods of an example, so that there are pods with equal terms."""


@st.composite
def pods(draw: st.DrawFn, on: str = "") -> Pod:
    """Pods with labels and terms; some are on their way out."""
    leaving = {"deletionTimestamp": "2024-01-01T00:00:00Z"} if draw(st.integers(0, 3)) == 0 else {}
    return make_pod(
        f"pod-{draw(st.integers(0, 10**9))}",
        draw(st.sampled_from(LABELS)),
        on=on,
        namespace=draw(st.sampled_from(SPACES)),
        metadata=leaving,
        affinity=draw(st.sampled_from(draw(_FEW_AFFINITIES))),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Nodes in one of two zones or in none, most with a label for themselves."""
    labels = {
        "zone": draw(st.sampled_from(["", "z1", "z2"])),
        "host": draw(st.sampled_from(["", name, name])),
    }
    return make_node(name, {key: value for key, value in labels.items() if value})


@attrs.frozen
class Step:
    """A state that the cluster's nodes come into; unless their names have changed, only `changed` have."""

    node_infos: Sequence[NodeInfo]
    changed: Sequence[NodeInfo] | None

    def apply(self, snapshot: Snapshot) -> None:
        if self.changed is None:
            snapshot.replace(self.node_infos)
        else:
            snapshot.update(self.changed)


@st.composite
def histories(draw: st.DrawFn, most: int = 5) -> list[Step]:
    """States of a cluster one after another, the first one with `changed` None.

    Pods come and go, nodes get other labels, come, go, and change places.
    """
    infos: dict[str, NodeInfo] = {}
    steps = []
    for index in range(draw(st.integers(1, most))):
        if index == 0 or draw(st.integers(0, 2)) == 0:
            names = draw(st.lists(st.sampled_from(NODE_NAMES), unique=True))
            infos = {name: infos.get(name) or draw(_node_infos(name)) for name in names}
            steps.append(Step(list(infos.values()), None))
            continue
        changed = [draw(_next_state(infos[name])) for name in infos if draw(st.booleans())]
        infos.update({info.name: info for info in changed})
        steps.append(Step(list(infos.values()), changed))
    return steps


@st.composite
def _node_infos(draw: st.DrawFn, name: str) -> NodeInfo:
    return NodeInfo.of(draw(nodes(name)), draw(st.lists(pods(on=name), max_size=4)))


@st.composite
def _next_state(draw: st.DrawFn, info: NodeInfo) -> NodeInfo:
    info = info.clone()
    if draw(st.integers(0, 3)) == 0:
        info.set_node(draw(nodes(info.name)))
    for leaving in [each for each in info.pods if draw(st.integers(0, 2)) == 0]:
        info.remove_pod(leaving.pod)
    for pod in draw(st.lists(pods(on=info.name), max_size=2)):
        info.add_pod(PodInfo.of(pod))
    return info
