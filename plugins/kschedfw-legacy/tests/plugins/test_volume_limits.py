"""EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits: how many in-tree volumes a node can attach."""

from __future__ import annotations

from typing import Any

import pytest
from kschedfw_legacy.plugins.volume_limits import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits
from legacy_objects import EBS, csi_node, storage_class

from kschedfw import make_claim, make_node, make_pod, make_volume
from kschedfw.api import NodeBuilder
from kschedfw.api.pod import Pod
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.status import Code
from kschedfw.testing import FrameworkHarness

INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def source(plugin: type[AnyPlugin], name: str) -> dict[str, Any]:
    sources: dict[type[AnyPlugin], dict[str, Any]] = {
        EBSLimits: {"awsElasticBlockStore": {"volumeID": name}},
        GCEPDLimits: {"gcePersistentDisk": {"pdName": name}},
        AzureDiskLimits: {"azureDisk": {"diskName": name, "diskURI": "https://example"}},
        CinderLimits: {"cinder": {"volumeID": name}},
    }
    return sources[plugin]


def holding(plugin: type[AnyPlugin], count: int, *, node: str = "", first: int = 0) -> Pod:
    pod = make_pod(f"pod-{first}").uid(f"pod-{first}")
    for index in range(first, first + count):
        pod.volume(f"v{index}", source(plugin, f"disk-{index}"))
    return pod.node(node).build() if node else pod.build()


@pytest.mark.parametrize(
    ("plugin", "node", "limit"),
    [
        (EBSLimits, make_node("n"), 39),
        (EBSLimits, make_node("n").labels({INSTANCE_TYPE: "m5.large"}), 25),
        (EBSLimits, make_node("n").labels({INSTANCE_TYPE: "m4.large"}), 39),
        (EBSLimits, make_node("n").capacity({"attachable-volumes-aws-ebs": 3}), 3),
        (GCEPDLimits, make_node("n"), 16),
        (GCEPDLimits, make_node("n").capacity({"attachable-volumes-gce-pd": 127}), 127),
        (AzureDiskLimits, make_node("n"), 16),
        (CinderLimits, make_node("n"), 256),
    ],
)
def test_the_limit_is_the_nodes_own_or_a_default(
    plugin: type[AnyPlugin], node: NodeBuilder, limit: int
) -> None:
    old = holding(plugin, limit - 1, node="n")
    harness = FrameworkHarness(plugin, nodes=[node.build()], pods=[old])
    assert harness.filter(holding(plugin, 1, first=1000))["n"].is_success
    assert harness.filter(holding(plugin, 2, first=0))["n"].is_success  # these two are there already
    status = harness.filter(holding(plugin, 2, first=1000))["n"]
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, ("node(s) exceed max volume count",))


def full(*objects: Any, pod: Pod) -> Code:
    node = make_node("n").capacity({"attachable-volumes-aws-ebs": 0}).build()
    return FrameworkHarness(EBSLimits, nodes=[node], objects=objects).filter(pod)["n"].code


def test_claims_count_by_their_volume_or_else_by_their_class() -> None:
    pod = make_pod().claim("a").build()
    bound = make_claim("a").bound_to("pv").storage_class("ebs")
    ebs, other = make_volume("pv").source(source(EBSLimits, "x")), make_volume("pv").csi("d", "x")
    assert full(bound.build(), ebs.build(), pod=pod) is Code.UNSCHEDULABLE
    assert full(bound.build(), other.build(), storage_class("ebs", EBS), pod=pod) is Code.SUCCESS
    assert full(bound.build(), storage_class("ebs", EBS), pod=pod) is Code.UNSCHEDULABLE
    unbound = make_claim("a").storage_class("ebs").build()
    assert full(unbound, storage_class("ebs", EBS), pod=pod) is Code.UNSCHEDULABLE
    assert full(unbound, storage_class("ebs"), pod=pod) is Code.SUCCESS
    assert full(make_claim("a").build(), pod=pod) is Code.SUCCESS
    assert full(pod=pod) is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_where_the_plugin_has_been_migrated_the_driver_counts() -> None:
    pod = holding(EBSLimits, 1)
    assert full(csi_node("n", {}, migrated=[EBS]), pod=pod) is Code.SUCCESS
    assert full(csi_node("n", {}), pod=pod) is Code.UNSCHEDULABLE


@pytest.mark.parametrize("plugin", [EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits])
def test_other_pods_are_none_of_its_business(plugin: type[AnyPlugin]) -> None:
    harness = FrameworkHarness(plugin, nodes=[make_node("n").build()])
    for pod in (make_pod().build(), make_pod().volume("tmp", {"emptyDir": {}}).build()):
        harness.pre_filter(pod)
        assert harness.state.skip_filter_plugins == {plugin.name}
        assert harness.framework.plugins[plugin.name].sign(pod) == ()
