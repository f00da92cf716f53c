"""Schedulers in parallel on one shared state: threads, and processes."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from multiprocessing.connection import Connection
from random import Random

import pytest
from kschedfw_lab.cell import OptimisticScheduler, StillFits
from kschedfw_lab.cell.local_copy import LocalCopy
from kschedfw_lab.cell.parallel import RemoteState, StateServer, run_in_threads, schedule_until
from kschedfw_lab.cell.shared_state import Detection, SharedState

from kschedfw import InMemoryCluster, Pod, make_node, make_pod
from kschedfw.cluster import ClusterError, NotFoundError
from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.slow

NODES, PODS, ROOM = 5, 19, 4


def shared() -> SharedState:
    """A cluster that the pods nearly fill."""
    truth = InMemoryCluster(make_node(f"n{number}").capacity(cpu=ROOM).build() for number in range(NODES))
    for number in range(PODS):
        truth.add(make_pod(f"p{number}").requests(cpu=1).build())
    return SharedState(truth, StillFits(truth))


def is_placed(state: SharedState) -> bool:
    return all(pod.node_name for pod in state.truth.list(Pod))


def check(state: SharedState) -> None:
    load = Counter(pod.node_name for pod in state.truth.list(Pod))
    assert is_placed(state)
    assert max(load.values()) <= ROOM


@pytest.mark.parametrize("detection", Detection)
def test_threads_that_all_want_the_same_pods(detection: Detection) -> None:
    state = shared()
    schedulers = [
        OptimisticScheduler(state, name=f"s{number}", random=Random(number), detection=detection)
        for number in range(3)
    ]
    run_in_threads(schedulers, lambda: is_placed(state))
    check(state)
    assert sum(each.accounts.accepted for each in schedulers) == PODS


def test_what_a_thread_raises_ends_all() -> None:
    state = shared()
    schedulers = [OptimisticScheduler(state), OptimisticScheduler(state, is_mine=lambda _: False)]
    schedulers[0].schedule_next = lambda: 1 // 0  # type: ignore[assignment, return-value]
    with pytest.raises(ZeroDivisionError):
        run_in_threads(schedulers, lambda: False)


def work(connection: Connection, number: int) -> None:
    """A child process: a scheduler with half of the pods."""
    scheduler = OptimisticScheduler(
        RemoteState(connection),
        random=Random(number),
        is_mine=lambda pod: int(pod.name[1:]) % 2 == number,
    )

    def is_done() -> bool:
        return all(pod.node_name for pod in scheduler.copy.list(Pod))

    schedule_until(scheduler, is_done)


def test_processes() -> None:
    state = shared()
    server = StateServer(state)
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=work, args=(server.connect(), number)) for number in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE)
        assert child.exitcode == 0
    check(state)


class TestRemoteState:
    def test_a_copy_follows_and_writes_as_beside_it(self) -> None:
        state = shared()
        copy = LocalCopy(RemoteState(StateServer(state).connect()), detection=Detection.COARSE)
        pod = copy.list(Pod)[0]
        copy.bind(pod, "n0")
        assert copy.get(Pod, pod.key) == state.truth.get(Pod, pod.key)
        assert copy.sequence("n0") == state.sequence("n0")

    def test_errors_are_those_of_the_truth(self) -> None:
        remote = RemoteState(StateServer(shared()).connect())
        with pytest.raises(NotFoundError, match="Pod default/nobody doesn't exist"):
            remote.truth.delete(make_pod("nobody").build())

    def test_a_truth_that_is_gone(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        remote = RemoteState(theirs)
        ours.close()
        with pytest.raises(ClusterError, match="is gone"):
            remote.truth.delete(make_pod("nobody").build())
