"""The timeline of a simulation: what it has recorded leads to where the pods are in the end."""

from __future__ import annotations

from hypothesis import given, settings

from kschedfw import InMemoryCluster, Pod, make_node, make_pod
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.simulator import Arrivals, Simulation, Timeline
from kschedfw.simulator.arrivals import DURATION
from kschedfw.simulator.timeline import PENDING
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters


def replayed(timeline: Timeline, step: int) -> dict[str, str]:
    """Where the pods are at the end of a step."""
    places: dict[str, str] = dict(timeline.start)
    for when, pod, place in timeline.moves:
        if when > step:
            break
        if place is None:
            places.pop(pod, None)
        else:
            places[pod] = place
    return places


@settings(max_examples=examples(20))
@given(clusters(most_nodes=4, most_bound=4, most_pending=5))
def test_the_moves_lead_from_the_start_to_the_end(given: DrawnCluster) -> None:
    cluster = InMemoryCluster([*given.nodes, *given.bound, *given.pending])
    before = {pod.key: pod.node_name for pod in cluster.list(Pod)}
    timeline = Timeline()
    Simulation(cluster, parallelism=1, timeline=timeline).run()
    assert timeline.start == before
    last = len(timeline.times) - 1
    assert replayed(timeline, last) == {pod.key: pod.node_name for pod in cluster.list(Pod)}
    assert [step for step, _, _ in timeline.moves] == sorted(step for step, _, _ in timeline.moves)
    assert all(step <= last for step, _, _ in timeline.moves)


@settings(max_examples=examples(20))
@given(clusters(most_nodes=4, most_bound=4, most_pending=5))
def test_timeline_changes_no_decision(given: DrawnCluster) -> None:
    objects = [*given.nodes, *given.bound, *given.pending]
    plain, watched = (
        Simulation(InMemoryCluster(objects)),
        Simulation(InMemoryCluster(objects), timeline=Timeline()),
    )
    assert plain.run() == watched.run()


def test_a_step_is_an_attempt_and_has_the_queues() -> None:
    node = make_node("node").capacity(cpu=1, pods=10).build()
    pods = [make_pod(name).requests(cpu="1").build() for name in ("first", "second")]
    timeline = Timeline()
    Simulation(InMemoryCluster([node, *pods]), timeline=timeline).run()
    assert list(timeline.queues[Place.ACTIVE]) == [2, 1, 0]
    assert list(timeline.queues[Place.UNSCHEDULABLE]) == [0, 0, 1]
    assert timeline.moves == [(1, "default/first", "node")]
    assert replayed(timeline, 2) == {"default/first": "node", "default/second": PENDING}


def test_pods_that_come_and_go_do_so_at_their_time() -> None:
    node = make_node("node").capacity(cpu=1, pods=10).build()
    pods = [
        make_pod(name)
        .requests(cpu="1")
        .annotations({DURATION: "5", "openb.trace/creation-time": time})
        .build()
        for name, time in (("first", "0"), ("second", "1"))
    ]
    timeline = Timeline()
    Simulation(InMemoryCluster([node, *pods]), arrivals=Arrivals(), timeline=timeline).run()
    assert timeline.start == {"default/first": PENDING}
    told = [
        (timeline.times[step], pod.removeprefix("default/"), place) for step, pod, place in timeline.moves
    ]
    assert told == [
        (0, "first", "node"),
        (1, "second", PENDING),
        (5, "first", None),
        (5, "second", "node"),
        (10, "second", None),
    ]
