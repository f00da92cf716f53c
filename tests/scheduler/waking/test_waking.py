"""A scheduler that waited places what a new one places after the same event, and a plugin's exception is found."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kschedfw import (
    ActionType,
    ClusterEvent,
    EventResource,
    NodeInfo,
    Plugin,
    Profile,
    QueueingHint,
    Registry,
    Status,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.testing.properties import examples
from kschedfw.testing.waking import Gap, NotWokenError, Scene, Tally, Trial
from tests.scheduler.waking.run import run_trial

pytestmark = pytest.mark.slow


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32))
def test_a_pod_that_waited_is_placed_as_by_a_new_scheduler(seed: int) -> None:
    tally = run_trial(seed, pods=12)
    share = 10 * tally.placeable // max(tally.cases, 1)
    event(f"{share}0 % and more of the refused pods fit after the change")


def test_at_least_a_third_of_the_refused_pods_fit_after_the_change() -> None:
    total = sum((run_trial(seed, pods=5) for seed in range(20)), Tally())
    assert total.placeable >= total.cases / 3, str(total)


class Picky(Plugin):
    """Wants nodes with a label, and says that it takes note of new nodes alone."""

    name = "Picky"

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return None if "good" in node_info.node.labels else Status.unschedulable("node(s) were no good")

    @hookimpl
    def events_to_register(self) -> list[ClusterEvent]:
        return [ClusterEvent(EventResource.NODE, ActionType.ADD, lambda *_: QueueingHint.QUEUE)]


GAP = Gap("Picky", EventResource.NODE, ActionType.UPDATE_NODE_LABEL, "it looks at new nodes alone")


def trial_of(*gaps: Gap, lasts: bool = False) -> Trial:
    registry = Registry()
    registry.register(Picky)
    node = make_node("n").capacity(cpu=4, pods=9)
    states = [make_node("n").capacity(cpu=4, pods=9).labels(good="yes").build(), node.build()]
    profile = Profile(["PrioritySort", "Picky", "DefaultBinder"])
    things, lasting = ([], [states]) if lasts else ([states], [])
    scene = Scene(things, [make_pod().build()], lasting=lasting)
    return Trial(scene, Random(0), profile, registry, gaps)


def test_a_hint_that_passes_over_a_helpful_event_is_found() -> None:
    with pytest.raises(
        NotWokenError,
        match=r"a pod that Picky refused isn't tried again when Node n changes \(NodeUpdateNodeLabel\)",
    ):
        trial_of().run(30)


def test_a_known_gap_is_counted_and_not_reported() -> None:
    tally = trial_of(GAP).run(30)
    assert 0 < tally.in_gaps < tally.placeable
    assert "by events that known gaps pass over" in str(tally)
    # Other pods fitted after the only node had come, which no plugin had refused.
    assert 0 < tally.by_plugin["Picky"] < tally.placeable


def test_a_lasting_node_changes_and_never_goes_so_that_the_filter_gives_every_refusal() -> None:
    tally = trial_of(GAP, lasts=True).run(8)
    assert 0 < tally.placeable == tally.by_plugin["Picky"]


def test_the_same_random_gives_the_same_trial() -> None:
    assert run_trial(7) == run_trial(7)
