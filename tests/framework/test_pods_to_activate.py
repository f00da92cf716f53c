"""Pods that a plugin asks for are handed on once."""

from __future__ import annotations

from kschedfw import CycleState
from kschedfw.framework.cycle_state import activate_pods, take_pods_to_activate
from tests.framework.support import pod


def test_without_a_wish_there_are_none() -> None:
    assert take_pods_to_activate(CycleState()) == ()


def test_all_that_were_asked_for_come_in_order_and_each_once() -> None:
    state = CycleState()
    activate_pods(state, pod("a"), pod("b"))
    activate_pods(state, pod("b"), pod("c"))
    assert [each.name for each in take_pods_to_activate(state)] == ["a", "b", "c"]


def test_the_latest_state_of_a_pod_counts() -> None:
    state = CycleState()
    activate_pods(state, pod("a"))
    activate_pods(state, pod("a", priority=7))
    assert [each.priority for each in take_pods_to_activate(state)] == [7]


def test_what_was_taken_does_not_come_again_but_new_wishes_do() -> None:
    state = CycleState()
    activate_pods(state, pod("a"))
    take_pods_to_activate(state)
    assert take_pods_to_activate(state) == ()
    activate_pods(state, pod("b"))
    assert [each.name for each in take_pods_to_activate(state)] == ["b"]


def test_each_cycle_has_its_own_wishes() -> None:
    state, other = CycleState(), CycleState()
    activate_pods(state, pod("a"))
    assert take_pods_to_activate(other) == ()


def test_no_pods_are_no_wish() -> None:
    state = CycleState()
    activate_pods(state)
    assert take_pods_to_activate(state) == ()
