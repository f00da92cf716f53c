"""Numba is loaded when enough pods have come that this pays."""

from __future__ import annotations

import sys

import pytest

from kschedfw import make_pod
from kschedfw.framework.runtime.engine.pass_in_use import MOST_FOLLOWED, compiled_pass, pass_for, with_numpy
from kschedfw.framework.runtime.engine.passes import Pass
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


@pytest.mark.parametrize("percentage", [0, 100])
def test_pods_alike_count_only_in_clusters_that_are_larger_still(
    percentage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    def noted(_nodes: int, pods: int) -> Pass:
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
