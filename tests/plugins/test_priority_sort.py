"""PrioritySort: the order of the queue."""

from __future__ import annotations

from functools import cmp_to_key

from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_pod
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.plugins.priority_sort import PrioritySort
from kschedfw.testing import FrameworkHarness

HARNESS = FrameworkHarness(PrioritySort)


def queued(priority: int | None, timestamp: float) -> QueuedPodInfo:
    pod = make_pod()
    if priority is not None:
        pod.priority(priority)
    return QueuedPodInfo(PodInfo.of(pod.build()), timestamp)


def before(first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
    return HARNESS.framework.less(first, second)


def test_the_higher_priority_goes_first_however_late_it_came() -> None:
    assert before(queued(10, 99.0), queued(1, 0.0))
    assert not before(queued(1, 0.0), queued(10, 99.0))


def test_among_equal_priorities_the_earlier_pod_goes_first() -> None:
    assert before(queued(5, 1.0), queued(5, 2.0))
    assert not before(queued(5, 2.0), queued(5, 1.0))


def test_equal_pods_are_not_before_each_other() -> None:
    assert not before(queued(5, 1.0), queued(5, 1.0))


def test_no_priority_counts_as_zero() -> None:
    assert before(queued(1, 0.0), queued(None, 0.0))
    assert before(queued(None, 0.0), queued(-1, 0.0))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), max_size=8))
def test_sorting_with_it_gives_descending_priorities_and_ascending_times(
    entries: list[tuple[int, int]],
) -> None:
    pods = [queued(priority, float(time)) for priority, time in entries]
    pods.sort(key=cmp_to_key(lambda a, b: -1 if before(a, b) else int(before(b, a))))
    order = [(-info.pod.priority, info.timestamp) for info in pods]
    assert order == sorted(order)
