"""The volume plugins in both forms, and what they promise by `reads` and `sign`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.snapshot import ClaimIndex, Snapshot
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.status import Status
from kschedfw.plugins.node_volume_limits import NodeVolumeLimits
from kschedfw.plugins.volume_restrictions import VolumeRestrictions
from kschedfw.plugins.volume_zone import VolumeZone
from kschedfw.testing import FrameworkHarness
from kschedfw.testing.properties import examples
from tests.plugins.batches import Asked, some_rows, take
from tests.plugins.volume_objects import (
    CLAIMS,
    NODES,
    VolumeCluster,
    volume_clusters,
    volume_nodes,
    volume_pods,
)

pytestmark = pytest.mark.slow


def change(snapshot: Snapshot, data: st.DataObject) -> None:
    """One node gets another state or other pods, comes or goes, or two change places."""
    name = data.draw(st.sampled_from(NODES))
    known = name in snapshot
    kind = data.draw(st.sampled_from(["node", "pods", "order", "gone"]))
    if kind == "gone" and known and len(snapshot) > 1:
        snapshot.replace([info for info in snapshot.node_infos if info.name != name])
    elif kind == "order":
        snapshot.replace(data.draw(st.permutations(snapshot.node_infos)))
    elif kind == "pods" and known:
        pods = [
            data.draw(volume_pods(f"later-{index}", name)) for index in range(data.draw(st.integers(0, 3)))
        ]
        take(snapshot, snapshot.get(name).node, pods)
    else:
        bound = [info.pod for info in snapshot.get(name).pods] if known else []
        take(snapshot, data.draw(volume_nodes(name)), bound)


def harness_of(plugin: type[AnyPlugin], cluster: VolumeCluster) -> FrameworkHarness:
    return FrameworkHarness(plugin, nodes=cluster.nodes, pods=cluster.bound, objects=cluster.objects)


def refuses_before_nodes(harness: FrameworkHarness, pod: Pod) -> bool:
    _, status = harness.pre_filter(pod)
    return not status.is_success


@pytest.mark.parametrize("plugin", [VolumeRestrictions, VolumeZone], ids=lambda plugin: plugin.name)
@settings(max_examples=examples(60))
@given(volume_clusters(), st.data())
def test_both_forms_agree_and_answers_hold_while_the_cluster_changes(
    plugin: type[AnyPlugin], cluster: VolumeCluster, data: st.DataObject
) -> None:
    ask = Asked.of(harness_of(plugin, cluster))
    snapshot = ask.harness.snapshot
    for _ in range(data.draw(st.integers(1, 4))):
        for pod in cluster.pending:
            if refuses_before_nodes(ask.harness, pod):
                continue
            rows = data.draw(some_rows(len(snapshot)))
            assert ask.batch(pod, rows) == ask.scalar(pod, rows)
            ask.keeps_its_promises(pod)
        change(snapshot, data)


@settings(max_examples=examples(60))
@given(volume_clusters(), st.data())
def test_both_forms_of_node_volume_limits_agree_unless_the_batch_form_leaves_it_to_the_other(
    cluster: VolumeCluster, data: st.DataObject
) -> None:
    harness = harness_of(NodeVolumeLimits, cluster)
    plugin = harness.framework.plugins["NodeVolumeLimits"]
    assert isinstance(plugin, NodeVolumeLimits)
    for _ in range(data.draw(st.integers(1, 3))):
        for pod in cluster.pending:
            if refuses_before_nodes(harness, pod) or "NodeVolumeLimits" in harness.state.skip_filter_plugins:
                continue
            rows = data.draw(some_rows(len(harness.snapshot)))
            assert verdicts(plugin, harness, pod, rows) == [
                plugin.filter(harness.state, pod, harness.snapshot.node_infos[row]) for row in rows
            ]
        change(harness.snapshot, data)


def verdicts(
    plugin: NodeVolumeLimits, harness: FrameworkHarness, pod: Pod, rows: IntArray
) -> list[Status | None]:
    answer = plugin.filter_batch(harness.state, pod, harness.snapshot.table, rows)
    if answer is None:
        return [plugin.filter(harness.state, pod, harness.snapshot.node_infos[row]) for row in rows]
    return [answer.of(index) for index in range(len(rows))]


@settings(max_examples=examples(40))
@given(volume_clusters(), st.data())
def test_the_uses_of_claims_are_kept_in_step(cluster: VolumeCluster, data: st.DataObject) -> None:
    snapshot = Snapshot.of(cluster.nodes, cluster.bound)
    kept = snapshot.claims
    for _ in range(4):
        change(snapshot, data)
        anew = ClaimIndex(NodeTable.of(snapshot.node_infos))
        for name in CLAIMS:
            assert kept.is_used(f"default/{name}") == anew.is_used(f"default/{name}")
