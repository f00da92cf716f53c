"""SchedulingGates: pods that wait for somebody's permission."""

from __future__ import annotations

from kschedfw import make_pod
from kschedfw.framework.events import ActionType, QueueingHint
from kschedfw.framework.status import Code
from kschedfw.plugins.scheduling_gates import SchedulingGates
from kschedfw.testing import FrameworkHarness

HARNESS = FrameworkHarness(SchedulingGates)


def test_a_pod_without_gates_passes() -> None:
    assert HARNESS.pre_enqueue(make_pod().build()).is_success


def test_a_gated_pod_is_kept_out_and_told_by_which_gates() -> None:
    status = HARNESS.pre_enqueue(make_pod().scheduling_gate("quota", "example.com/licence").build())
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("waiting for scheduling gates: [quota example.com/licence]",)


def test_only_the_removal_of_its_own_last_gate_brings_a_pod_back() -> None:
    (event,) = HARNESS.framework.events_to_register()["SchedulingGates"]
    assert event.action is ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    assert event.hint is not None
    gated = make_pod().uid("a").scheduling_gate("quota").build()
    free = make_pod().uid("a").build()
    stranger = make_pod().uid("b").build()
    assert event.hint(gated, gated, free) is QueueingHint.QUEUE
    assert event.hint(gated, gated, gated) is QueueingHint.SKIP
    assert event.hint(gated, gated, stranger) is QueueingHint.SKIP
