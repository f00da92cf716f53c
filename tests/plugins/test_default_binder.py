"""DefaultBinder: telling the cluster."""

from __future__ import annotations

from kschedfw import make_node, make_pod
from kschedfw.api.pod import Pod
from kschedfw.framework.status import Code
from kschedfw.plugins.default_binder import DefaultBinder
from kschedfw.testing import FrameworkHarness


def test_the_cluster_knows_the_binding() -> None:
    pod = make_pod("web").build()
    harness = FrameworkHarness(DefaultBinder, nodes=[make_node("a").build()], pods=[pod])
    assert harness.bind(pod, "a").is_success
    bound = harness.cluster.get(Pod, pod.key)
    assert bound is not None
    assert bound.node_name == "a"


def test_what_the_cluster_refuses_is_an_error_with_its_cause() -> None:
    harness = FrameworkHarness(DefaultBinder, nodes=[make_node("a").build()])
    status = harness.bind(make_pod("nobody").build(), "a")
    assert status.code is Code.ERROR
    assert status.as_error() is not None
    assert "nobody" in status.message
