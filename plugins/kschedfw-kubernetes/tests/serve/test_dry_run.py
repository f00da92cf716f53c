"""A dry run reads the cluster as it is, and writes nothing by any way."""

from __future__ import annotations

import inspect

import pytest
from kschedfw_kubernetes.serve.dry_run import DryRunCluster, without_writes

from kschedfw import InMemoryCluster, Node, make_node, make_pod
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.cluster import Cluster
from kschedfw.config import parse_configuration
from kschedfw.framework.profile import ExtensionPoint

READS = {"get", "list", "watch"}


@pytest.fixture
def cluster() -> InMemoryCluster:
    return InMemoryCluster([make_node("n").build(), make_pod("web").build()])


def test_what_is_read_is_the_cluster_s(cluster: InMemoryCluster) -> None:
    dry, seen = DryRunCluster(cluster), []
    dry.watch(lambda event: seen.append(event.object))()
    assert dry.get(Pod, "default/web") is cluster.get(Pod, "default/web")
    assert dry.list(Node) == cluster.list(Node)
    assert {obj.metadata.name for obj in seen} >= {"n", "web"}


def test_nothing_is_written(cluster: InMemoryCluster) -> None:
    dry, before = DryRunCluster(cluster), cluster.resource_version
    pod = cluster.list(Pod)[0]
    dry.bind(pod, "n")
    dry.delete(pod)
    assert dry.add(pod) is pod
    assert dry.update(pod) is pod
    dry.patch_pod_status(pod, condition=PodCondition("PodScheduled", "False"), nominated_node_name="n")
    dry.record_event(pod, "Normal", "Scheduled", "")
    assert (cluster.resource_version, cluster.events) == (before, ())


def test_no_method_of_a_cluster_gets_through_unnoticed() -> None:
    public = {name for name, _ in inspect.getmembers(Cluster, inspect.isfunction) if not name.startswith("_")}
    assert public == READS | {"add", "update", "bind", "delete", "patch_pod_status", "record_event"}
    assert not hasattr(DryRunCluster, "__getattr__")


def test_nobody_else_writes_either() -> None:
    extender = {"urlPrefix": "http://h", "filterVerb": "filter", "bindVerb": "bind"}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    dry = without_writes(parse_configuration({**kind, "extenders": [extender]}))
    assert not dry.leader_election.leader_elect
    assert [(each.filter_verb, each.bind_verb) for each in dry.extenders] == [("filter", "")]
    points = dry.profiles[0].points
    assert [plugin.name for plugin in points[ExtensionPoint.BIND]] == ["DefaultBinder"]
    assert points[ExtensionPoint.PRE_BIND] == points[ExtensionPoint.POST_BIND] == ()
    assert "VolumeBinding" in {plugin.name for plugin in points[ExtensionPoint.RESERVE]}
