"""The plugins that look at one node at a time: their batch forms, learned or written, and their promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw.api.affinity import NodeAffinity as AddedAffinity
from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.plugins.image_locality import ImageLocality
from kschedfw.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from kschedfw.plugins.node_name import NodeName
from kschedfw.plugins.node_ports import NodePorts
from kschedfw.plugins.node_unschedulable import NodeUnschedulable
from kschedfw.plugins.taint_toleration import TaintToleration
from kschedfw.testing import FrameworkHarness
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters, nodes, pods
from tests.plugins.batches import Asked, some_rows, take

pytestmark = pytest.mark.slow

PLUGINS = (NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, ImageLocality)
NAMES = [f"node-{index}" for index in range(6)]


def some_pods() -> st.SearchStrategy[tuple[Pod, ...]]:
    """Some of them name their node."""
    each = st.one_of(pods(), *(pods(node_name=name) for name in NAMES[:2]))
    return st.lists(each, min_size=1, max_size=3).map(tuple)


def added_affinities() -> st.SearchStrategy[AddedAffinity | None]:
    affinities = pods().map(lambda pod: pod.spec.affinity.node_affinity)
    return affinities.filter(lambda added: not any(NodeAffinityArgs(added).validate()))


def asked(plugin: type[AnyPlugin], cluster: DrawnCluster, added: AddedAffinity | None) -> Asked:
    args = {"NodeAffinity": NodeAffinityArgs(added)} if plugin is NodeAffinity else {}
    return Asked.of(FrameworkHarness(plugin, nodes=cluster.nodes, pods=cluster.bound, args=args))


def change(snapshot: Snapshot, data: st.DataObject) -> None:
    """One node gets another state or other pods, comes or goes, or two change places."""
    name = data.draw(st.sampled_from(NAMES))
    known = name in snapshot
    kind = data.draw(st.sampled_from(["node", "pods", "order", "gone"]))
    if kind == "gone" and len(snapshot) > 1:
        snapshot.replace([info for info in snapshot.node_infos if info.name != name])
        snapshot.update_image_states()
    elif kind == "order":
        snapshot.replace(data.draw(st.permutations(snapshot.node_infos)))
    elif kind == "pods" and known:
        bound = data.draw(st.lists(pods(node_name=name), max_size=2))
        take(snapshot, snapshot.get(name).node, bound)
    else:
        bound = [info.pod for info in snapshot.get(name).pods] if known else []
        take(snapshot, data.draw(nodes(name)), bound)


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@settings(max_examples=examples(20))
@given(clusters(most_nodes=6, most_pending=0), some_pods(), st.data())
def test_both_forms_agree_and_answers_hold_while_the_cluster_changes(
    plugin: type[AnyPlugin], cluster: DrawnCluster, some: tuple[Pod, ...], data: st.DataObject
) -> None:
    added = data.draw(st.none() | added_affinities()) if plugin is NodeAffinity else None
    ask = asked(plugin, cluster, added)
    snapshot = ask.harness.snapshot
    for _ in range(data.draw(st.integers(1, 4))):
        for pod in some:
            rows = data.draw(some_rows(len(snapshot)))
            assert ask.batch(pod, rows) == ask.scalar(pod, rows)
            if not plugin.pure:
                ask.keeps_its_promises(pod)
        change(snapshot, data)
    every = np.arange(len(snapshot))
    for pod in some:
        assert ask.batch(pod, every) == ask.scalar(pod, every)
        if not plugin.pure:
            ask.keeps_its_promises(pod)
