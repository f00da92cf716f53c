"""NodeUnschedulable: cordoned nodes."""

from __future__ import annotations

import pytest

from kschedfw import make_node, make_pod
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.status import Code
from kschedfw.plugins.node_unschedulable import NodeUnschedulable
from kschedfw.testing import FrameworkHarness

TAINT = "node.kubernetes.io/unschedulable"
OPEN, CORDONED = make_node("open").build(), make_node("cordoned").unschedulable().build()
HARNESS = FrameworkHarness(NodeUnschedulable, nodes=[OPEN, CORDONED])


def test_a_cordoned_node_is_refused() -> None:
    verdicts = HARNESS.filter(make_pod().build())
    assert verdicts["open"].is_success
    assert verdicts["cordoned"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert verdicts["cordoned"].reasons == ("node(s) were unschedulable",)


@pytest.mark.parametrize("effect", ["", "NoSchedule"])
def test_who_tolerates_its_taint_may_go_there(effect: str) -> None:
    assert HARNESS.filter(make_pod().toleration(TAINT, effect=effect).build())["cordoned"].is_success


@pytest.mark.parametrize(("key", "effect"), [(TAINT, "NoExecute"), ("other", "NoSchedule")])
def test_other_tolerations_do_not_help(key: str, effect: str) -> None:
    assert not HARNESS.filter(make_pod().toleration(key, effect=effect).build())["cordoned"].is_success


def test_a_comparison_never_tolerates() -> None:
    pod = make_pod().toleration(TAINT, operator="Gt", value="-1", effect="NoSchedule").build()
    assert not HARNESS.filter(pod)["cordoned"].is_success


def test_uncordoning_helps_and_so_does_a_new_open_node() -> None:
    node_change, _ = HARNESS.framework.events_to_register()["NodeUnschedulable"]
    assert node_change.hint is not None
    pod = make_pod().build()
    assert node_change.hint(pod, CORDONED, OPEN) is QueueingHint.QUEUE
    assert node_change.hint(pod, None, OPEN) is QueueingHint.QUEUE
    assert node_change.hint(pod, None, CORDONED) is QueueingHint.SKIP
    assert node_change.hint(pod, OPEN, OPEN) is QueueingHint.SKIP


def test_a_toleration_of_its_own_helps_a_pod() -> None:
    _, toleration_change = HARNESS.framework.events_to_register()["NodeUnschedulable"]
    assert toleration_change.hint is not None
    pod = make_pod().uid("a").build()
    tolerant = make_pod().uid("a").toleration(TAINT).build()
    stranger = make_pod().uid("b").toleration(TAINT).build()
    assert toleration_change.hint(pod, pod, tolerant) is QueueingHint.QUEUE
    assert toleration_change.hint(pod, pod, pod) is QueueingHint.SKIP
    assert toleration_change.hint(pod, pod, stranger) is QueueingHint.SKIP
