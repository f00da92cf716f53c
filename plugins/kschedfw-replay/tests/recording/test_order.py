"""Changes come in by several watches, and are put into the order in which the API server stored them."""

from __future__ import annotations

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_replay.recording.order import insert_by_version, version_of

from kschedfw import make_node, make_pod
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.testing.properties import examples


def inserted(versions: list[int]) -> list[int]:
    changes: list[int] = []
    for version in versions:
        index = insert_by_version(changes, version, lambda each: each)
        assert changes[index] == version
    return changes


@given(st.data())
@settings(max_examples=examples(500, usual=50))
def test_watches_that_are_each_in_order_are_in_order_together(data: st.DataObject) -> None:
    streams = [sorted(stream) for stream in data.draw(st.lists(st.sets(st.integers(1, 1000)), max_size=4))]
    came: list[int] = []
    while any(streams):
        came.append(data.draw(st.sampled_from([each for each in streams if each])).pop(0))
    if len(came) <= 100:
        assert inserted(came) == sorted(came)


def test_changes_without_a_version_stay_where_they_came() -> None:
    assert inserted([3, 0, 2, 0, 1]) == [3, 0, 2, 0, 1]
    assert inserted([0, 3, 2, 0]) == [0, 2, 3, 0]


def test_the_first_list_is_not_sorted_at_length() -> None:
    assert inserted([*range(1000, 0, -1)]).index(1) == 899


def test_a_version_is_a_number_or_none() -> None:
    def event(version: str) -> WatchEvent:
        node = make_node("n").build()
        return WatchEvent(
            EventType.ADDED, node.with_metadata(attrs.evolve(node.metadata, resource_version=version))
        )

    assert [version_of(event(each)) for each in ("", "17", "abc")] == [0, 17, 0]
    assert version_of(WatchEvent(EventType.ADDED, make_pod("p").build())) == 0
