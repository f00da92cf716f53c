"""Which of the best nodes is taken: each with the same probability, and the same ones for the same seed."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.runtime.engine.totals import Totals
from kschedfw.scheduler import Scheduler, Selection, select_host
from kschedfw.scheduler.select import FirstByNameSelector, ReservoirSelector, RoundRobinSelector

TOTALS = st.lists(st.integers(-5, 5), min_size=1, max_size=30)


def nodes(count: int) -> NodeSelection:
    return Snapshot.of(make_node(f"n{index}").build() for index in range(count)).selection


class NoRandom(Random):
    """Fails when asked for a number."""

    def random(self) -> float:
        pytest.fail("a number was drawn")

    def getrandbits(self, k: int) -> int:
        pytest.fail("a number was drawn")


@given(TOTALS, st.integers())
def test_the_pick_is_one_of_the_best_and_all_of_them_are_known(totals: list[int], seed: int) -> None:
    selection = select_host(Totals(np.array(totals)), Random(seed))
    best = [index for index, total in enumerate(totals) if total == max(totals)]
    assert selection.tied.tolist() == best
    assert selection.index in best


@given(TOTALS, st.integers())
def test_the_same_seed_picks_the_same(totals: list[int], seed: int) -> None:
    first, second = (select_host(Totals(np.array(totals)), Random(seed)) for _ in range(2))
    assert first.index == second.index


@pytest.mark.parametrize("totals", [[7], [1, 3, 2], [-2, -1]])
def test_a_single_best_node_takes_no_chance(totals: list[int]) -> None:
    best = totals.index(max(totals))
    assert select_host(Totals(np.array(totals)), NoRandom()).index == best


@pytest.mark.parametrize("ties", [2, 3, 7, 20])
def test_every_one_of_the_best_is_as_likely_as_the_others(ties: int) -> None:
    random, draws = Random(2024), 1000 * ties
    totals = Totals(np.array([0, *[9] * ties, 3]))
    picks = Counter(select_host(totals, random).index for _ in range(draws))
    assert set(picks) == set(range(1, ties + 1))
    chi_square = sum((count - 1000) ** 2 / 1000 for count in picks.values())
    degrees = ties - 1
    assert chi_square < degrees + 4 * (2 * degrees) ** 0.5, "four standard deviations above its mean"


@pytest.mark.parametrize(
    ("numbers", "pick"),
    [
        ([0.49, 0.5, 0.9], 1),  # 1/0.51: the second; 2/0.5: the fifth, and there are only four
        ([0.5, 0.9], 2),  # 1/0.5: the third; 3/0.1: beyond the end
        ([0.8], 0),  # 1/0.2: beyond the end at once
        ([0.0, 0.0, 0.0, 0.0], 3),  # each replaces the one before
    ],
)
def test_a_number_tells_which_of_the_best_is_the_next_to_replace_the_pick(
    numbers: list[float], pick: int
) -> None:
    class Replaying(Random):
        def random(self) -> float:
            return numbers.pop(0)

    assert select_host(Totals(np.array([5, 5, 5, 5])), Replaying()).index == pick


@given(TOTALS, st.integers())
def test_the_reservoir_is_what_is_used_by_default(totals: list[int], seed: int) -> None:
    selector = ReservoirSelector(Random(seed))
    assert (
        selector.select(Totals(np.array(totals)), nodes(len(totals))).index
        == select_host(Totals(np.array(totals)), Random(seed)).index
    )


def test_round_robin_takes_the_best_in_turn_and_the_turn_goes_on_where_there_is_no_choice() -> None:
    selector = RoundRobinSelector()
    tied, single = Totals(np.array([7, 3, 7, 7])), Totals(np.array([1, 2]))
    picks = [
        selector.select(totals, nodes(len(totals.values))) for totals in (tied, tied, single, tied, tied)
    ]
    assert [pick.index for pick in picks] == [0, 2, 1, 0, 2]
    assert picks[0].tied.tolist() == [0, 2, 3]


@given(st.lists(TOTALS, min_size=1, max_size=10))
def test_round_robin_picks_one_of_the_best(rounds: list[list[int]]) -> None:
    selector = RoundRobinSelector()
    for totals in rounds:
        selection = selector.select(Totals(np.array(totals)), nodes(len(totals)))
        assert totals[selection.index] == max(totals)
        assert all(totals[index] == max(totals) for index in selection.tied)


@given(st.permutations(["a", "b", "c", "d"]))
def test_first_by_name_takes_the_best_whose_name_is_first_wherever_it_stands(names: list[str]) -> None:
    selection = Snapshot.of(make_node(name).build() for name in names).selection
    totals = Totals(np.array([1 if name == "a" else 5 for name in names]))
    assert selection[FirstByNameSelector().select(totals, selection).index].name == "b"


def test_a_selector_of_ones_own_sees_the_nodes() -> None:
    class LastByName:
        def select(self, totals: Totals, nodes: NodeSelection) -> Selection:
            best = totals.best.tolist()
            return Selection(max(best, key=lambda index: nodes.names[index]), totals)

    cluster = InMemoryCluster([*(make_node(name).build() for name in "cab"), make_pod("web").build()])
    scheduler = Scheduler(cluster, selector=LastByName())
    scheduler.run_until_idle()
    scheduler.close()
    assert [pod.node_name for pod in cluster.list(Pod)] == ["c"]
