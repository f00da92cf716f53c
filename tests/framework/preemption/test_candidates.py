"""Among several candidates, the one is taken whose victims are missed least."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.framework.extender import Victims
from kschedfw.framework.preemption import Candidate, best_candidates
from tests.framework.preemption.scenes import pod

LOWEST = -(1 << 31)


def candidate(
    node_name: str, *priorities: int, violations: int = 0, started: tuple[float | None, ...] = ()
) -> Candidate:
    """Victims with these priorities; they started at these seconds, or all at 0."""
    times = started or (0.0,) * len(priorities)
    pods = tuple(
        pod(f"{node_name}-{i}", priority=priority, started=time)
        for i, (priority, time) in enumerate(zip(priorities, times, strict=True))
    )
    return Candidate(node_name, Victims(pods, violations))


def best(*candidates: Candidate) -> list[str]:
    return [each.node_name for each in best_candidates(candidates)]


def test_the_fewest_violated_budgets_decide_first() -> None:
    assert best(candidate("violating", 1, violations=1), candidate("harmless", 100, 100)) == ["harmless"]


def test_then_the_lowest_priority_of_the_most_important_victim() -> None:
    assert best(candidate("one-important", 10), candidate("many-others", 9, 9, 9, 9)) == ["many-others"]


def test_then_the_smallest_sum_of_priorities() -> None:
    assert best(candidate("more", 10, 5), candidate("less", 10, 4)) == ["less"]


def test_another_victim_is_no_gain_however_negative_its_priority() -> None:
    assert best(candidate("two", 10, -100), candidate("one", 10)) == ["one"]
    assert best(candidate("three", 0, -100, -100), candidate("two", 0, 0)) == ["two"]


def test_the_lowest_priority_of_all_adds_nothing_to_the_sum_so_the_number_of_victims_decides() -> None:
    assert best(candidate("two", 0, LOWEST), candidate("one", 0)) == ["one"]


def test_then_the_latest_start_of_the_earliest_started_victim() -> None:
    early = candidate("early", 1, 1, started=(1.0, 9.0))
    late = candidate("late", 1, 1, started=(3.0, 2.0))
    assert best(early, late) == ["late"]


def test_only_victims_of_the_highest_priority_count_for_the_start() -> None:
    assert best(
        candidate("a", 5, 1, started=(6.0, 1.0)),
        candidate("b", 5, 1, started=(5.0, 9.0)),
    ) == ["a"]


def test_a_victim_that_has_not_started_counts_as_latest() -> None:
    assert best(candidate("running", 1, started=(9e9,)), candidate("starting", 1, started=(None,))) == [
        "starting"
    ]


def test_what_is_equal_in_everything_is_tied_and_keeps_its_order() -> None:
    assert best(candidate("b", 1), candidate("worse", 2), candidate("a", 1)) == ["b", "a"]


def test_none_and_one_need_no_criteria() -> None:
    assert best() == []
    assert best(Candidate("without victims", Victims(()))) == ["without victims"]


def test_a_plugin_may_bring_its_own_criteria() -> None:
    found = best_candidates(
        [candidate("a", 1), candidate("b", 2), candidate("c", 2, 2)],
        [lambda each: each.victims.pods[0].priority, lambda each: len(each.victims.pods)],
    )
    assert [each.node_name for each in found] == ["c"]


PRIORITIES = st.lists(st.integers(-3, 3), min_size=1, max_size=3).map(
    lambda found: sorted(found, reverse=True)
)


@given(st.lists(st.tuples(PRIORITIES, st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6))
def test_the_best_are_those_that_do_least_harm_whatever_their_order(
    described: list[tuple[list[int], int, int]],
) -> None:
    def harm(each: Candidate) -> tuple[float, ...]:
        pods = each.victims.pods
        top = [p for p in pods if p.priority == pods[0].priority]
        return (
            each.victims.num_pdb_violations,
            pods[0].priority,
            sum(p.priority + (1 << 31) for p in pods),
            len(pods),
            -min(p.status.start_time.timestamp() for p in top if p.status.start_time is not None),
        )

    candidates = [
        candidate(f"n{i}", *priorities, violations=violations, started=(float(start),) * len(priorities))
        for i, (priorities, violations, start) in enumerate(described)
    ]
    least = min(map(harm, candidates))
    assert list(best_candidates(candidates)) == [each for each in candidates if harm(each) == least]
    assert set(best_candidates(candidates[::-1])) == set(best_candidates(candidates))


@pytest.mark.parametrize("priority", [LOWEST, 0, (1 << 31) - 1])
def test_extreme_priorities_are_handled_exactly(priority: int) -> None:
    assert best(candidate("two", priority, priority), candidate("one", priority)) == ["one"]
