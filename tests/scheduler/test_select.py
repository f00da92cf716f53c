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
from kschedfw.framework.outcome import Totals
from kschedfw.scheduler import Scheduler
from kschedfw.scheduler.select import (
    FirstByNameSelector,
    HostSelector,
    ReservoirSelector,
    RoundRobinSelector,
    pick_of,
)

TOTALS = st.lists(st.integers(-5, 5), min_size=1, max_size=30)


def nodes(count: int) -> NodeSelection:
    return Snapshot.of(make_node(f"n{index}").build() for index in range(count)).selection


def taken(selector: HostSelector, totals: list[int]) -> int:
    """The index of the node that the selector takes."""
    given = Totals(np.array(totals))
    return int(given.best[selector.select(given, nodes(len(totals)))])


class NoRandom(Random):
    """Fails when asked for a number."""

    def random(self) -> float:
        pytest.fail("a number was drawn")

    def getrandbits(self, k: int) -> int:
        pytest.fail("a number was drawn")


@given(TOTALS, st.integers())
def test_the_pick_is_one_of_the_best(totals: list[int], seed: int) -> None:
    assert totals[taken(ReservoirSelector(Random(seed)), totals)] == max(totals)


@given(TOTALS)
def test_all_of_the_best_are_known(totals: list[int]) -> None:
    best = [index for index, total in enumerate(totals) if total == max(totals)]
    assert Totals(np.array(totals)).best.tolist() == best


@given(TOTALS, st.integers())
def test_the_same_seed_picks_the_same(totals: list[int], seed: int) -> None:
    first, second = (taken(ReservoirSelector(Random(seed)), totals) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("totals", [[7], [1, 3, 2], [-2, -1]])
def test_a_single_best_node_takes_no_chance(totals: list[int]) -> None:
    assert taken(ReservoirSelector(NoRandom()), totals) == totals.index(max(totals))


@pytest.mark.parametrize("ties", [2, 3, 7, 20])
def test_every_one_of_the_best_is_as_likely_as_the_others(ties: int) -> None:
    random, draws = Random(2024), 1000 * ties
    picks = Counter(pick_of(ties, random) for _ in range(draws))
    assert set(picks) == set(range(ties))
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

    assert pick_of(4, Replaying()) == pick


def test_round_robin_takes_the_best_in_turn_and_the_turn_goes_on_where_there_is_no_choice() -> None:
    selector = RoundRobinSelector()
    tied, single = [7, 3, 7, 7], [1, 2]
    assert [taken(selector, totals) for totals in (tied, tied, single, tied, tied)] == [0, 2, 1, 0, 2]


@given(st.lists(TOTALS, min_size=1, max_size=10))
def test_round_robin_picks_one_of_the_best(rounds: list[list[int]]) -> None:
    selector = RoundRobinSelector()
    for totals in rounds:
        assert totals[taken(selector, totals)] == max(totals)


@given(st.permutations(["a", "b", "c", "d"]))
def test_first_by_name_takes_the_best_whose_name_is_first_wherever_it_stands(names: list[str]) -> None:
    selection = Snapshot.of(make_node(name).build() for name in names).selection
    totals = Totals(np.array([1 if name == "a" else 5 for name in names]))
    index = totals.best[FirstByNameSelector().select(totals, selection)]
    assert selection[index].name == "b"


def test_a_selector_of_ones_own_sees_the_nodes() -> None:
    class LastByName:
        def select(self, totals: Totals, nodes: NodeSelection) -> int:
            best: list[int] = totals.best.tolist()
            return best.index(max(best, key=lambda index: nodes.names[index]))

    cluster = InMemoryCluster([*(make_node(name).build() for name in "cab"), make_pod("web").build()])
    scheduler = Scheduler(cluster, selector=LastByName())
    scheduler.run_until_idle()
    scheduler.close()
    assert [pod.node_name for pod in cluster.list(Pod)] == ["c"]
