"""The scheduler's threads: as many filters at a time as it says, and none after there are enough nodes."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from kschedfw import NodeInfo, Profile
from kschedfw.framework.status import Status
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import PluginClass, answering, plugin, pod
from tests.scheduler.support import POOL, Bench

POD = pod()


def meeting(barrier: threading.Barrier, hook: str) -> PluginClass:
    """A plugin whose hook, on each thread's first call, waits until all threads have called it."""
    met = threading.local()

    def wait() -> Any:
        if not hasattr(met, "once"):
            met.once = True
            barrier.wait()
        return 0 if hook == "score" else None

    return plugin("Meeting", **{hook: wait})


@pytest.mark.parametrize("nodes", [16, 17, 64, 300])
@pytest.mark.parametrize("hook", ["filter", "score"])
def test_sixteen_nodes_are_looked_at_at_the_same_time(hook: str, nodes: int) -> None:
    barrier = threading.Barrier(16, timeout=PATIENCE)
    bench = Bench(
        meeting(barrier, hook), plugin("Even", score=answering(0)), nodes=POOL[:nodes], parallelism=16
    )
    assert bench.schedule(POD).feasible_nodes >= min(nodes, 100)
    assert not barrier.broken
    bench.framework.close()


def test_with_parallelism_one_everything_runs_on_the_callers_thread() -> None:
    threads: set[int] = set()

    def note() -> Any:
        threads.add(threading.get_ident())
        return None

    def score() -> int:
        threads.add(threading.get_ident())
        return 0

    Bench(plugin("A", filter=note, score=score), nodes=POOL[:64]).schedule(POD)
    assert threads == {threading.get_ident()}


def test_sixteen_hooks_that_block_do_so_at_once() -> None:
    together, have_met = threading.Barrier(16), threading.Event()

    def block() -> None:
        if not have_met.is_set():
            together.wait(PATIENCE)  # breaks, and fails the filter, where fewer come
            have_met.set()

    bench = Bench(
        plugin("Slow", filter=block), plugin("Even", score=answering(0)), nodes=POOL[:96], parallelism=16
    )
    assert bench.schedule(POD).feasible_nodes == 96
    bench.framework.close()


def test_few_nodes_are_looked_at_after_there_are_enough() -> None:
    answered: list[str] = []

    def answer(node_info: NodeInfo) -> None:
        time.sleep(0.0005)
        answered.append(node_info.name)

    bench = Bench(
        plugin("A", filter=answer),
        plugin("Even", score=answering(0)),
        nodes=POOL,
        parallelism=4,
        profile=Profile(["A", "Even"], percentage_of_nodes_to_score=1),
    )
    assert bench.schedule(POD).feasible_nodes == 100
    # How far the other threads are when the last of the first 100 answers, is up to the machine.
    enough = max(answered.index(each.name) for each in POOL[:100])
    assert len(answered[enough:]) < 100
    bench.framework.close()


def test_few_nodes_are_looked_at_after_an_error() -> None:
    answered: list[str] = []

    def answer(node_info: NodeInfo) -> Status | None:
        time.sleep(0.0005)
        answered.append(node_info.name)
        return Status.from_error("broken") if node_info.name == "n0" else None

    bench = Bench(plugin("A", filter=answer), plugin("Even", score=answering(0)), nodes=POOL, parallelism=4)
    with pytest.raises(Exception, match="broken"):
        bench.schedule(POD)
    assert len(answered[answered.index("n0") :]) < 100
    bench.framework.close()
