"""Numba is loaded when enough pods have come that this pays."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from kschedfw import InMemoryCluster, Scheduler, make_pod
from kschedfw.framework.runtime.engine.pass_in_use import MOST_FOLLOWED, compiled_pass, pass_for, with_numpy
from kschedfw.framework.runtime.engine.passes import Pass
from kschedfw.scheduler import InlineExecutor
from tests.framework.runtime.engine.support import House, some_nodes

LARGE, SMALL = 256, 255


@pytest.fixture
def _not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)


@pytest.mark.usefixtures("_not_loaded")
class TestWhileNumbaIsNotLoaded:
    def test_first_pods_in_a_large_cluster_are_placed_with_numpy(self) -> None:
        assert {pass_for(LARGE, pods) for pods in range(32)} == {with_numpy()}

    def test_later_ones_are_placed_by_the_compiled_pass(self) -> None:
        pytest.importorskip("numba", reason="needs the extra fast")
        del sys.modules["numba"]
        assert pass_for(LARGE, 32) is compiled_pass()

    def test_small_cluster_loads_it_only_for_very_many_pods(self) -> None:
        assert {pass_for(SMALL, pods) for pods in range(10_000)} == {with_numpy()}

    def test_scheduler_that_binds_in_the_background_loads_it_later(self) -> None:
        pytest.importorskip("numba", reason="needs the extra fast")
        del sys.modules["numba"]
        forms = [pass_for(LARGE, pods, binds_in_background=True) for pods in (32, 4_999, 5_000)]
        assert forms == [with_numpy(), with_numpy(), compiled_pass()]


@pytest.mark.parametrize("in_background", [False, True])
def test_scheduler_with_an_executor_of_threads_binds_in_the_background(
    in_background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []

    def noted(_nodes: int, _pods: int, *, binds_in_background: bool) -> Pass:
        told.append(binds_in_background)
        return with_numpy()

    monkeypatch.setattr("kschedfw.framework.runtime.engine.together.pass_for", noted)
    cluster = InMemoryCluster([*some_nodes(20), make_pod("p").requests(cpu="100m").build()])
    with ThreadPoolExecutor(1) as executor:
        scheduler = Scheduler(cluster, executor=executor if in_background else InlineExecutor())
        scheduler.run_until_idle()
        scheduler.close()
    assert told == [in_background]


@pytest.mark.parametrize("percentage", [0, 100])
def test_pods_alike_count_only_in_clusters_that_are_larger_still(
    percentage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    def noted(_nodes: int, pods: int, *, binds_in_background: bool) -> Pass:
        told.append(pods)
        return with_numpy()

    monkeypatch.setattr("kschedfw.framework.runtime.engine.together.pass_for", noted)
    for nodes, alike in ((300, 1), (MOST_FOLLOWED + 1, 6)):
        told.clear()
        house = House(some_nodes(nodes), percentage=percentage)
        for number in range(6):
            house.host(make_pod(f"alike{number}").requests(cpu="100m").build())
        for number in range(3):
            house.host(make_pod(f"differs{number}").requests(cpu=f"{200 + number}m").build())
        # The first one of its kind counts, too, since it isn't known yet that others will follow.
        assert told[6:] == [alike, alike + 1, alike + 2]


def test_loaded_numba_is_used_at_once_whoever_loaded_it() -> None:
    pytest.importorskip("numba", reason="needs the extra fast")
    assert pass_for(1, 0) is compiled_pass()


def test_without_numba_every_pod_is_placed_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr("kschedfw.framework.runtime.engine.pass_in_use.compiled_pass", lambda: None)
    assert {pass_for(LARGE, pods) for pods in range(40)} == {with_numpy()}
