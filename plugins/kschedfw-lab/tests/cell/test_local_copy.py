"""A private copy of a shared state: how it lags, what it shows, and what it writes."""

from __future__ import annotations

import attrs
import pytest
from kschedfw_lab.cell.local_copy import LocalCopy
from kschedfw_lab.cell.shared_state import Claim, CommitMode, Detection, SharedState

from kschedfw import InMemoryCluster, Node, Pod, make_node, make_pod
from kschedfw.api import CustomKind, CustomResource
from kschedfw.api.reading import read_custom_object
from kschedfw.cluster import ConflictError, WatchEvent


class Stage:
    def __init__(self) -> None:
        self.time = 0.0
        self.truth = InMemoryCluster([make_node("a").build(), make_node("b").build()])
        self.pods = [self.truth.add(make_pod(f"p{number}").build()) for number in range(3)]
        self.state = SharedState(self.truth)

    def copy(self, delay: float = 0.0) -> LocalCopy:
        return LocalCopy(self.state, now=lambda: self.time, delay=delay, detection=Detection.COARSE)


def bound_in(copy: LocalCopy) -> dict[str, str]:
    return {pod.name: pod.node_name for pod in copy.list(Pod) if pod.node_name}


def test_changes_may_arrive_while_the_copy_follows() -> None:
    """Another thread changes the truth in between: here it does so while two times are compared."""
    stage = Stage()
    news = [make_pod("news").build()]

    class Moment(float):
        def __le__(self, other: float) -> bool:
            while news:
                stage.truth.add(news.pop())
            return super().__le__(other)

        def __gt__(self, other: float) -> bool:
            return not self <= other

    copy = LocalCopy(stage.state, now=lambda: Moment(0.0))
    stage.truth.bind(stage.pods[0], "a")
    copy.sync()
    assert bound_in(copy) == {"p0": "a"}
    assert {pod.name for pod in copy.list(Pod)} == {"p0", "p1", "p2", "news"}


@attrs.frozen
class Gang(CustomResource):
    kind = CustomKind("example.com/v1", "Gang")

    size: int = 1


def test_objects_of_a_custom_kind_that_cannot_be_read_are_left_out_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    for name, size in (("right", 2), ("wrong", "two")):
        gang = {"apiVersion": "example.com/v1", "kind": "Gang", "metadata": {"name": name}, "size": size}
        stage.truth.add(read_custom_object(gang))
    copy = stage.copy()
    assert [gang.name for gang in copy.list(Gang)] == ["right"]
    assert [gang.size for gang in copy.list(Gang)] == [2]
    (record,) = caplog.records
    assert "left out of the list of Gang" in record.getMessage()


class TestLag:
    def test_nothing_is_seen_before_a_sync(self) -> None:
        stage = Stage()
        copy = stage.copy()
        stage.truth.bind(stage.pods[0], "a")
        assert (bound_in(copy), copy.lag) == ({}, 1)
        copy.sync()
        assert (bound_in(copy), copy.lag) == ({"p0": "a"}, 0)

    def test_a_sync_stops_at_the_delay(self) -> None:
        stage = Stage()
        copy = stage.copy(delay=5)
        stage.truth.bind(stage.pods[0], "a")
        stage.time = 2
        stage.truth.bind(stage.pods[1], "a")
        stage.time = 6
        copy.sync()
        assert bound_in(copy) == {"p0": "a"}
        copy.resync()
        assert bound_in(copy) == {"p0": "a", "p1": "a"}

    def test_sequence_numbers_lag_as_well(self) -> None:
        stage = Stage()
        copy = stage.copy()
        stage.truth.bind(stage.pods[0], "a")
        assert copy.sequence("a") == stage.state.sequence("a") - 1
        copy.sync()
        assert copy.sequence("a") == stage.state.sequence("a")

    def test_what_it_writes_itself_is_seen_at_once_and_nothing_else(self) -> None:
        stage = Stage()
        copy = stage.copy(delay=5)
        stage.truth.bind(stage.pods[0], "a")
        copy.bind(stage.pods[1], "b")
        assert bound_in(copy) == {"p1": "b"}
        assert copy.sequence("b") == stage.state.sequence("b")
        stored = copy.add(make_node("c").build())
        assert copy.get(Node, "c") == stored
        copy.delete(stored)
        assert copy.get(Node, "c") is None

    def test_a_closed_copy_follows_nothing(self) -> None:
        stage = Stage()
        copy = stage.copy()
        seen: list[WatchEvent] = []
        copy.watch(seen.append)
        copy.close()
        told = len(seen)
        stage.truth.bind(stage.pods[0], "a")
        copy.sync()
        assert len(seen) == told


class TestBinding:
    def test_a_conflict_brings_the_copy_up_to_date(self) -> None:
        stage = Stage()
        copy = stage.copy(delay=100)
        stage.truth.bind(stage.pods[0], "a")
        with pytest.raises(ConflictError, match="default/p1: conflict: node a has moved"):
            copy.bind(stage.pods[1], "a")
        assert bound_in(copy) == {"p0": "a"}
        copy.bind(stage.pods[1], "a")
        assert stage.truth.get(Pod, "default/p1") == copy.get(Pod, "default/p1")

    def test_pods_of_a_transaction_are_bound_when_their_binding_cycle_comes_to_it(self) -> None:
        stage = Stage()
        copy = stage.copy()
        claims = [Claim(pod, "a", copy.sequence("a")) for pod in stage.pods]
        copy.commit(claims, CommitMode.ALL_OR_NOTHING)
        for pod in stage.pods:
            copy.bind(pod, "a")
        with pytest.raises(ConflictError, match="already assigned"):
            copy.bind(stage.pods[0], "a")


class TestWhatIsVisible:
    def test_pending_pods_of_others_are_not_told(self) -> None:
        stage = Stage()
        copy = LocalCopy(stage.state, detection=Detection.COARSE, is_mine=lambda pod: pod.name == "p1")
        seen: list[str] = []
        copy.watch(lambda event: seen.append(event.object.name))
        assert seen == ["a", "b", "default", "p1"]
        stage.truth.bind(stage.pods[0], "a")
        copy.sync()
        assert seen == ["a", "b", "default", "p1", "p0"]

    def test_nodes_that_are_not_offered_are_gone(self) -> None:
        stage = Stage()
        copy = stage.copy()
        seen: list[tuple[str, str]] = []
        copy.watch(lambda event: seen.append((event.type, event.object.name)))
        seen.clear()
        copy.offer({"b"})
        assert [node.name for node in copy.list(Node)] == ["b"]
        assert copy.get(Node, "a") is None
        stage.truth.update(make_node("a").labels(x="y").build())
        copy.sync()
        copy.offer(None)
        assert seen == [("DELETED", "a"), ("ADDED", "a")]
        node = copy.get(Node, "a")
        assert node is not None
        assert node.labels["x"] == "y"
