"""Where nothing changes, time passes in one step, and all is as if pods had been tried again and again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    Node,
    Plugin,
    Pod,
    Profile,
    Registry,
    Scheduler,
    Status,
    VirtualClock,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.scheduler.queue import SchedulingQueue
from kschedfw.scheduler.queue.stillness import flushes_before
from kschedfw.testing.properties import examples

REGISTRY = Registry()
START = 1_000_000.3
TIMEOUT = 300.0


def flushed_one_by_one(since: float, timeout: float, now: float) -> tuple[int, float]:
    count = 0
    while (due := math.nextafter(since + timeout, math.inf)) < now:
        count, since = count + 1, due
    return count, since


@given(
    st.floats(-1e10, 1e10) | st.integers(0, 34).map(lambda exponent: 2.0**exponent - 1000),
    st.sampled_from([300.0, 0.1, 1.0, 12.7, math.inf]),
    st.floats(0, 1),
)
@example(2.0**30 - 1000.0, 300.0, 1.0)
@example(-998.0, 300.0, 0.003)
def test_flushes_are_counted_at_once_as_one_by_one(since: float, timeout: float, share: float) -> None:
    now = since + share * 2000 * min(timeout, 1e3)
    assert flushes_before(since, timeout, now) == flushed_one_by_one(since, timeout, now)
    # A flush that is due exactly now is still to come.
    _, last = flushed_one_by_one(since, timeout, now)
    assert flushes_before(since, timeout, last)[1] < last or last == since


def test_flushes_of_a_thousand_years_are_counted_at_once() -> None:
    count, last = flushes_before(0.0, TIMEOUT, 3e10)
    # A step is a float longer than the timeout.
    assert count == pytest.approx(1e8, abs=10)
    assert 3e10 - TIMEOUT - 1 <= last < 3e10


class AfterSixHours(Plugin):
    """Refuses a pod until six hours after the start, which no event announces."""

    name = "AfterSixHours"

    @hookimpl
    def filter(self, pod: Pod) -> Status:
        if pod.labels.get("late") and self.handle.clock.now() < START + 6 * 3600:
            return Status.unschedulable("too early")
        return Status.success()


TIMED = Profile([*default_profile().multi_point, EnabledPlugin(AfterSixHours.name)])
TIMED_REGISTRY = Registry()
TIMED_REGISTRY.register(AfterSixHours)


@attrs.frozen
class Event:
    """So many seconds after the one before, something happens to the cluster."""

    after: float
    what: Callable[[InMemoryCluster], object]
    told: str

    def __repr__(self) -> str:
        return f"{self.after}: {self.told}"


def _pod(name: str, cpu: str, priority: int, **labels: str) -> Pod:
    return make_pod(name).requests(cpu=cpu).priority(priority).labels(labels).build()


def _adding(pod: Pod) -> Callable[[InMemoryCluster], object]:
    return lambda cluster: cluster.add(pod) if cluster.get(Pod, pod.key) is None else None


def _deleting(name: str) -> Callable[[InMemoryCluster], object]:
    def delete(cluster: InMemoryCluster) -> None:
        if (pod := cluster.get(Pod, f"default/{name}")) is not None:
            cluster.delete(pod)

    return delete


def _cordon(cluster: InMemoryCluster) -> None:
    node = cluster.get(Node, "n0")
    assert node is not None
    spec = attrs.evolve(node.spec, unschedulable=not node.spec.unschedulable)
    cluster.update(attrs.evolve(node, spec=spec))


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Pods that come, some of which never fit, are gated, or preempt; pods that go; a node that is cordoned."""
    found = []
    for index in range(draw(st.integers(1, 10))):
        after = draw(st.sampled_from((0.0, 0.5, 20.0, 299.0, 300.0, 300.5, 5000.0, 40_000.0)))
        match draw(st.sampled_from(("add", "add", "add", "gated", "delete", "cordon"))):
            case "add":
                cpu = draw(st.sampled_from(("500m", "1", "3", "64")))
                pod = _pod(f"p{index}", cpu, draw(st.sampled_from((0, 0, 5))))
                found.append(Event(after, _adding(pod), f"add {pod.name} {cpu} {pod.priority}"))
            case "gated":
                gated = make_pod(f"p{index}").scheduling_gate("g").build()
                found.append(Event(after, _adding(gated), f"add gated p{index}"))
            case "delete":
                name = f"p{draw(st.integers(0, 9))}"
                found.append(Event(after, _deleting(name), f"delete {name}"))
            case _:
                found.append(Event(after, _cordon, "cordon or uncordon"))
    return [
        *found,
        Event(draw(st.sampled_from((300.0, 90_000.0))), _adding(_pod("last", "1", 9)), "add last"),
    ]


class _Retrying(SchedulingQueue):
    """The queue as it would be if each pod were tried again at each timeout."""

    def _rests(self) -> bool:
        return False


def history(
    coming: Sequence[Event], profile: Profile, registry: Registry, *, retries: bool, start: float = START
) -> tuple[list[Any], int]:
    """What can be seen of the pods after each event, and the number of attempts that were made."""
    clock = VirtualClock(start)
    nodes = [make_node(f"n{index}").capacity(cpu="4", memory="8Gi", pods=20).build() for index in range(3)]
    cluster = InMemoryCluster(nodes)
    scheduler = Scheduler(
        cluster, [profile], registry=registry, clock=clock, random=Random(1), retry_unchanged=False
    )
    if retries:
        scheduler.queue.__class__ = _Retrying
    seen: list[Any] = []
    attempts = scheduler.run_until_idle()
    for event in coming:
        until = clock.now() + event.after
        while (due := scheduler.queue.next_deadline()) is not None and due < until:
            clock.advance_to(due)
            attempts += scheduler.run_until_idle()
        clock.advance_to(until)
        event.what(cluster)
        seen.append(_state(cluster, scheduler))
        attempts += scheduler.run_until_idle()
        seen.append(_state(cluster, scheduler))
    scheduler.close()
    return seen, attempts


def _state(cluster: InMemoryCluster, scheduler: Scheduler) -> Any:
    queue = scheduler.queue
    infos = [info for pod in cluster.list(Pod) if (info := queue.get(pod.uid)) is not None]
    return (
        [
            (pod.name, pod.node_name, pod.status.nominated_node_name, pod.status.conditions)
            for pod in cluster.list(Pod)
        ],
        queue.counts(),
        [
            (info.pod.name, info.timestamp, info.flush_timestamp, info.attempts, info.unschedulable_count)
            for info in sorted(infos, key=lambda info: info.sequence)
        ],
    )


@pytest.mark.slow
@given(events())
@example(
    [
        Event(0.0, _cordon, "cordon"),
        Event(299.0, _adding(_pod("p4", "64", 0)), "add p4"),
        Event(299.0, _cordon, "uncordon"),
        Event(300.0, _adding(_pod("p7", "64", 0)), "add p7"),
        Event(90_000.0, _adding(_pod("last", "1", 9)), "add last"),
    ]
)
@settings(max_examples=examples(300, usual=16))
def test_pods_are_as_if_they_had_been_tried_at_each_timeout(coming: list[Event]) -> None:
    still, few = history(coming, default_profile(), REGISTRY, retries=False)
    retried, many = history(coming, default_profile(), REGISTRY, retries=True)
    assert still == retried
    assert few <= many


@given(
    st.sampled_from([9, 10, 11, 14, 20]),
    st.integers(1, 3),
    st.integers(0, 2),
    st.tuples(st.integers(-6, 6), st.integers(-6, 6)),
    st.tuples(st.sampled_from([0, 5]), st.sampled_from([0, 5])),
)
@example(11, 1, 2, (4, 2), (0, 0))
@example(11, 2, 1, (4, -4), (0, 0))
@example(20, 3, 1, (-3, 0), (0, 0))
@settings(max_examples=examples(200, usual=10))
def test_order_is_kept_where_two_flushes_fall_together(
    exponent: int, before: int, later: int, halves: tuple[int, int], priorities: tuple[int, int]
) -> None:
    """From a power of two on, floats are twice as far apart, and times that differed before are rounded to one."""
    power = 2.0**exponent
    half = math.ulp(power) / 2
    first = max(0.0, power - before * TIMEOUT + halves[0] * half)
    apart = max(0.0, later * TIMEOUT + halves[1] * half)
    coming = [
        Event(first, _adding(_pod("first", "64", priorities[0])), "add first"),
        Event(apart, _adding(_pod("second", "64", priorities[1])), "add second"),
        Event(2000.0, _adding(_pod("last", "1", 9)), "add last"),
    ]
    still, _ = history(coming, default_profile(), REGISTRY, retries=False, start=0.0)
    retried, _ = history(coming, default_profile(), REGISTRY, retries=True, start=0.0)
    assert still == retried


def test_time_passes_in_one_step_where_nothing_changes() -> None:
    coming = [
        Event(0.0, _adding(_pod("never", "64", 0)), "add"),
        Event(1e9, _adding(_pod("p", "1", 0)), "add"),
    ]
    seen, attempts = history(coming, default_profile(), REGISTRY, retries=False)
    # Twice, since the first attempt writes a condition; then at the event, which comes between two timeouts.
    assert attempts <= 5
    assert seen[-1][2][0][3] == pytest.approx(1e9 / TIMEOUT, rel=1e-3), (
        "its attempts are counted nevertheless"
    )


def test_ties_are_broken_as_if_pods_had_been_tried_at_each_timeout() -> None:
    """Preemption draws the node where it begins at each attempt, and finds nothing each time."""
    coming = [Event(0.0, _adding(_pod(f"full{index}", "3", 9)), "add") for index in range(3)]
    coming.append(Event(20.0, _adding(_pod("waits", "3", 0)), "add"))
    coming.append(Event(86_400.0, _deleting("full0"), "delete"))
    coming += [Event(0.0, _adding(_pod(f"small{index}", "100m", 0)), "add") for index in range(8)]
    still, few = history(coming, default_profile(), REGISTRY, retries=False)
    retried, many = history(coming, default_profile(), REGISTRY, retries=True)
    assert still == retried
    assert few + 200 < many


@pytest.mark.parametrize("reads_the_clock", [True, False])
def test_pod_of_a_plugin_that_reads_the_clock_is_tried_at_each_timeout(reads_the_clock: bool) -> None:
    late = _pod("late", "1", 0, late="yes" if reads_the_clock else "")
    coming = [Event(0.0, _adding(late), "add"), Event(86_400.0, _adding(_pod("p", "64", 0)), "add")]
    still, few = history(coming, TIMED, TIMED_REGISTRY, retries=False)
    retried, many = history(coming, TIMED, TIMED_REGISTRY, retries=True)
    assert still == retried
    assert few == many
    assert (few > 6 * 3600 / TIMEOUT) is reads_the_clock


@pytest.mark.slow
@given(events(), st.sampled_from(["500m", "64"]))
@settings(max_examples=examples(100, usual=8))
def test_pods_beside_one_that_waits_for_a_time_are_as_if_tried_at_each_timeout(
    coming: list[Event], cpu: str
) -> None:
    coming = [Event(0.0, _adding(_pod("late", cpu, 0, late="yes")), "add late"), *coming]
    assert (
        history(coming, TIMED, TIMED_REGISTRY, retries=False)[0]
        == (history(coming, TIMED, TIMED_REGISTRY, retries=True)[0])
    )
