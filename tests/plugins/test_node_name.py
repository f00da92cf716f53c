"""NodeName: pods that name their node."""

from __future__ import annotations

from kschedfw import make_node, make_pod
from kschedfw.framework.status import Code
from kschedfw.plugins.node_name import NodeName
from kschedfw.testing import FrameworkHarness

HARNESS = FrameworkHarness(NodeName, nodes=[make_node("a").build(), make_node("b").build()])


def test_a_pod_that_names_no_node_fits_everywhere() -> None:
    assert all(status.is_success for status in HARNESS.filter(make_pod().build()).values())


def test_a_pod_that_names_a_node_fits_there_only() -> None:
    verdicts = HARNESS.filter(make_pod().node("b").build())
    assert verdicts["b"].is_success
    assert verdicts["a"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert verdicts["a"].reasons == ("node(s) didn't match the requested node name",)


def test_a_new_node_may_help() -> None:
    assert len(HARNESS.framework.events_to_register()["NodeName"]) == 1
