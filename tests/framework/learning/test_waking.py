"""A pod that a pure filter refused is woken by the changes that matter to the filter, and by no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import (
    CycleState,
    InMemoryCluster,
    NodeInfo,
    Plugin,
    Pod,
    Profile,
    QueueingHint,
    Registry,
    Scheduler,
    StateKey,
    Status,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples
from tests.framework.learning.drawn_hooks import PureHooks, refusing_hooks
from tests.framework.learning.waking_trial import run_trial
from tests.framework.support import answering, make_framework, plugin


def hints(kind: type[Plugin[Any]], *, nodes: Sequence[Any] = (), pods: Sequence[Pod] = ()) -> Any:
    """The hints about nodes and pods of a framework with such a plugin."""
    framework = make_framework(kind, nodes=nodes, pods=pods)
    node, pod = framework.events_to_register()["P"]
    return node.hint, pod.hint


def refuse(refused: bool) -> Status | None:
    return Status.unschedulable("node(s) no") if refused else None


def by_rack(node_info: NodeInfo) -> Status | None:
    return refuse(node_info.node.labels.get("rack") != "r1")


def by_pods(node_info: NodeInfo) -> Status | None:
    return refuse(len(node_info.pods) > 1)


WAITING = make_pod("waiting").build()
BARE, GOOD = make_node("n").build(), make_node("n").labels(rack="r1").build()
OTHER = make_pod("other").node("n").build()
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def test_a_changed_node_is_asked_about_again() -> None:
    after_node, _ = hints(plugin("P", pure=True, filter=by_rack))
    assert after_node(WAITING, BARE, GOOD) is QUEUE
    assert after_node(WAITING, None, GOOD) is QUEUE
    assert after_node(WAITING, None, BARE) is SKIP
    assert after_node(WAITING, GOOD, BARE) is SKIP
    assert after_node(WAITING, GOOD, None) is SKIP


def test_a_node_on_which_the_pod_passed_before_was_refused_by_others() -> None:
    after_node, _ = hints(plugin("P", pure=True, filter=by_rack))
    assert after_node(WAITING, GOOD, GOOD) is SKIP


WANTED = StateKey[str]("P.wanted")


def note_rack(state: CycleState, pod: Pod) -> Status | None:
    """Refuses a pod with a rack that can't be, and skips one without a rack."""
    rack = pod.labels.get("rack")
    if rack is None:
        return Status.skip()
    state.write(WANTED, rack)
    return refuse(rack == "nowhere")


def by_noted_rack(state: CycleState, node_info: NodeInfo) -> Status | None:
    return refuse(node_info.node.labels.get("rack") != state.read(WANTED))


def test_the_filter_finds_what_the_pure_pre_filter_writes() -> None:
    after_node, after_pod = hints(
        plugin("P", pure=True, pre_filter=note_rack, filter=by_noted_rack), nodes=[BARE]
    )
    wants = make_pod("waiting").labels(rack="r1").build()
    assert after_node(wants, BARE, GOOD) is QUEUE
    assert after_node(wants, None, BARE) is SKIP
    assert after_pod(wants, OTHER, None) is SKIP


def test_a_pod_that_a_pure_pre_filter_refused_waits_for_its_own_change() -> None:
    after_node, after_pod = hints(plugin("P", pure=True, pre_filter=note_rack, filter=by_noted_rack))
    lost = make_pod("waiting").labels(rack="nowhere").build()
    assert after_node(lost, None, GOOD) is SKIP
    assert after_pod(lost, lost, WAITING) is QUEUE
    # Whoever refused a pod that the plugin skips, the plugin didn't.
    assert after_node(WAITING, None, GOOD) is QUEUE


def test_a_pre_filter_that_reads_the_nodes_is_woken_by_each_of_them() -> None:
    def count(nodes: Sequence[NodeInfo]) -> Status | None:
        return refuse(len(nodes) < 3)

    after_node, _ = hints(plugin("P", pure=True, pre_filter=count, filter=by_rack))
    assert after_node(WAITING, None, BARE) is QUEUE


def test_pods_on_nodes_wake_only_if_the_filter_asks_about_them() -> None:
    _, after_pod = hints(plugin("P", pure=True, filter=by_rack), nodes=[BARE])
    assert after_pod(WAITING, OTHER, None) is SKIP
    after_node, after_pod = hints(plugin("P", pure=True, filter=by_pods), nodes=[BARE])
    assert after_pod(WAITING, OTHER, None) is QUEUE
    assert after_pod(WAITING, None, OTHER) is QUEUE
    assert after_node(WAITING, BARE, GOOD) is QUEUE
    # Of a node that the last cycle hasn't seen, nothing is known.
    assert after_pod(WAITING, make_pod("far").node("new").build(), None) is QUEUE


def test_a_change_of_the_pod_itself_and_of_nominations_wakes() -> None:
    _, after_pod = hints(plugin("P", pure=True, filter=by_rack), nodes=[BARE])
    assert after_pod(WAITING, WAITING, WAITING) is QUEUE
    other = make_pod("else").build()
    assert after_pod(WAITING, other, None) is QUEUE
    nominated = other.with_status(attrs.evolve(other.status, nominated_node_name="n"))
    assert after_pod(WAITING, nominated, None) is SKIP
    _, after_pod = hints(plugin("P", pure=True, filter=by_pods), nodes=[BARE])
    assert after_pod(WAITING, nominated, None) is QUEUE


@pytest.mark.parametrize(
    "members",
    [
        {"pure": False},
        {"pure": ("filter",), "pre_filter": lambda: None},
        {"pure": True, "permit": lambda: None},
        {"pure": True, "pre_enqueue": lambda: None},
    ],
)
def test_every_event_counts_where_more_than_a_pure_filter_may_refuse(members: dict[str, object]) -> None:
    assert "P" not in make_framework(plugin("P", filter=by_rack, **members)).events_to_register()


def test_events_that_a_plugin_names_itself_count() -> None:
    named = make_framework(plugin("P", pure=True, filter=by_rack, events_to_register=answering([])))
    assert named.events_to_register()["P"] == ()


class Rack(Plugin):
    name = "Rack"
    pure = True

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return by_rack(node_info)


def test_a_refused_pod_waits_for_the_change_that_helps() -> None:
    registry = Registry()
    registry.register(Rack)
    cluster = InMemoryCluster([BARE])
    scheduler = Scheduler(
        cluster, [Profile(["PrioritySort", "Rack", "DefaultBinder"])], registry=registry, clock=FakeClock()
    )
    cluster.add(WAITING)
    scheduler.run_until_idle()
    cluster.add(make_node("m").build())
    assert scheduler.queue.counts()[Place.UNSCHEDULABLE] == 1
    cluster.add(make_node("k").labels(rack="r1").build())
    assert scheduler.queue.counts()[Place.UNSCHEDULABLE] == 0


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(st.integers(0, 2**32), refusing_hooks)
def test_a_pod_that_waited_is_placed_as_by_a_new_scheduler(seed: int, drawn: PureHooks) -> None:
    run_trial(seed, drawn, pods=8)
