"""How long pods back off, and in which order they come out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.scheduler.queue.backoff import BackoffPolicy, BackoffQueue
from tests.scheduler.queue.support import pod


def queued(
    name: str = "pod", *, timestamp: float = 0.0, refused: int = 0, errors: int = 0, priority: int = 0
) -> QueuedPodInfo:
    return QueuedPodInfo(
        PodInfo.of(pod(name, priority=priority)),
        timestamp=timestamp,
        unschedulable_count=refused,
        consecutive_errors_count=errors,
    )


def higher(first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
    return first.pod.priority > second.pod.priority


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (5000, 10)]
)
def test_backoff_doubles_up_to_the_maximum(failures: int, seconds: float) -> None:
    assert BackoffPolicy().duration(failures) == seconds


def test_an_initial_backoff_above_the_maximum_is_cut() -> None:
    assert BackoffPolicy(initial=20, maximum=10).duration(1) == 10


def test_errors_are_counted_apart_from_refusals() -> None:
    policy = BackoffPolicy(windows=False)
    assert policy.expiration(queued(refused=4)) == 8
    assert policy.expiration(queued(refused=4, errors=1)) == 1


def test_a_pod_that_never_failed_does_not_back_off() -> None:
    assert not BackoffPolicy().is_backing_off(queued(), now=0)
    assert queued().backoff_expiration is None


def test_a_maximum_of_zero_switches_backoff_off() -> None:
    assert not BackoffPolicy(maximum=0).is_backing_off(queued(refused=3), now=0)


@given(
    timestamp=st.floats(0, 1e6),
    failures=st.integers(1, 6),
    later=st.floats(0, 20),
    windows=st.booleans(),
)
def test_backoff_is_never_shorter_than_its_duration_and_at_most_a_window_longer(
    timestamp: float, failures: int, later: float, windows: bool
) -> None:
    policy = BackoffPolicy(windows=windows)
    info = queued(timestamp=timestamp, refused=failures)
    end = timestamp + policy.duration(failures)
    release = policy.release_time(info)
    assert end < release <= (end + 1 if windows else math.nextafter(end, math.inf))
    now = timestamp + later
    assert policy.is_backing_off(info, now) is (now < release)
    assert not policy.is_backing_off(info, release)


def test_refused_pods_of_one_window_are_ordered_by_priority() -> None:
    queue = BackoffQueue(BackoffPolicy(), higher)
    for name, timestamp, priority in [
        ("late", 1.5, 9),
        ("low", 0.1, 1),
        ("high", 0.9, 5),
        ("early", -0.5, 0),
    ]:
        queue.add(queued(name, timestamp=timestamp, refused=1, priority=priority))
    assert [info.pod.name for info in queue.ordered()] == ["early", "high", "low", "late"]
    assert [popped.pod.name for _ in range(4) if (popped := queue.pop_early()) is not None] == [
        "early",
        "high",
        "low",
        "late",
    ]


def test_without_windows_the_end_of_backoff_alone_decides() -> None:
    queue = BackoffQueue(BackoffPolicy(windows=False), higher)
    for name, timestamp, priority in [("low", 0.1, 1), ("high", 0.9, 5)]:
        queue.add(queued(name, timestamp=timestamp, refused=1, priority=priority))
    assert [info.pod.name for info in queue.ordered()] == ["low", "high"]


def test_pods_after_an_error_are_never_popped_early() -> None:
    queue = BackoffQueue(BackoffPolicy(), higher)
    queue.add(queued("failed", errors=1))
    assert queue.pop_early() is None
    assert queue.pop_completed(1.9) == []
    assert [info.pod.name for info in queue.pop_completed(2.0)] == ["failed"]


def test_what_is_over_leaves_and_the_rest_stays() -> None:
    queue = BackoffQueue(BackoffPolicy(), higher)
    assert queue.next_release() == math.inf
    for name, failures in [("one", 1), ("three", 3)]:
        queue.add(queued(name, refused=failures))
        queue.add(queued(f"{name}-failed", errors=failures))
    assert queue.next_release() == 2
    assert [info.pod.name for info in queue.pop_completed(2.5)] == ["one", "one-failed"]
    assert len(queue) == 2
    assert queue.next_release() == 5
    assert "three" in queue
    assert "three-failed" in queue
    assert queue.remove("three-failed") is not None
    assert queue.get("three-failed") is None
    assert queue.remove("three") is not None
    assert len(queue) == 0


@pytest.mark.parametrize("errors", [0, 1])
def test_a_changed_pod_finds_its_new_place(errors: int) -> None:
    queue = BackoffQueue(BackoffPolicy(), higher)
    first, second = (queued(name, refused=1, errors=errors, priority=5) for name in ("first", "second"))
    first.sequence, second.sequence = 1, 2
    queue.add(first)
    queue.add(second)
    first.update(pod("first", priority=1))
    queue.update(first)
    assert [info.pod.name for info in queue.ordered()] == (
        ["first", "second"] if errors else ["second", "first"]
    )
