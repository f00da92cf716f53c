"""New nodes come with the pods of DaemonSets."""

from __future__ import annotations

from kschedfw_advisor.new_nodes import add_nodes, daemons_of
from small_clusters import node, owned, what_if

from kschedfw import Pod, make_pod
from kschedfw.api.builders import NodeBuilder, PodBuilder


def daemons(daemon: PodBuilder, new: NodeBuilder) -> list[tuple[str, str]]:
    """The pods that two new nodes get in a cluster with this pod of a DaemonSet."""
    agent = owned(daemon.node("n1").requests(cpu=1), "agent", "DaemonSet")
    cluster = what_if(node("n1").build(), agent)
    with cluster.transaction() as trial:
        add_nodes(trial, new.build(), 2, daemons_of(cluster.cluster))
        return [(pod.name, pod.node_name) for pod in cluster.cluster.list(Pod) if pod.node_name != "n1"]


def test_each_gets_a_pod_of_a_daemon_set_that_suits_it() -> None:
    assert daemons(make_pod("agent-n1"), node("new")) == [("agent-new-1", "new-1"), ("agent-new-2", "new-2")]


def test_none_where_the_node_selector_or_a_taint_keeps_it_off() -> None:
    assert not daemons(make_pod("agent-n1").node_selector(disk="ssd"), node("new"))
    assert not daemons(make_pod("agent-n1"), node("new").taint("gpu"))
    assert daemons(make_pod("agent-n1").toleration("gpu", operator="Exists"), node("new").taint("gpu"))
    assert daemons(make_pod("agent-n1"), node("new").taint("spot", effect="PreferNoSchedule"))


def test_other_pods_get_what_is_left() -> None:
    agent = owned(make_pod("agent-n1").node("n1").requests(cpu=1), "agent", "DaemonSet")
    wanting = make_pod("wanting").requests(cpu=4).build()
    cluster = what_if(node("n1").build(), agent, wanting)
    with cluster.transaction() as trial:
        add_nodes(trial, node("new").build(), 1, daemons_of(cluster.cluster))
        (refused,) = trial.schedule([wanting]).refused
    assert refused.message == "0/2 nodes are available: 2 Insufficient cpu."
