"""Each function of the pass, compiled and with NumPy, gives what the plugins' own forms give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.framework.nodes.amounts import balance_of
from kschedfw.framework.nodes.arrays import LARGEST_EXACT, FloatArray, IntArray
from kschedfw.framework.results import Normalizing
from kschedfw.framework.runtime.engine import numpy_pass, pass_in_use
from kschedfw.framework.runtime.engine.passes import searched
from kschedfw.plugins._resources import Usage
from kschedfw.plugins.node_resources_balanced_allocation import scores_of
from kschedfw.plugins.node_resources_fit.scoring import least_allocated, most_allocated


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def form(request: pytest.FixtureRequest) -> Any:
    """The two forms of the pass."""
    if request.param == "numpy":
        return pass_in_use.with_numpy()
    pytest.importorskip("numba", reason="needs the extra fast")
    return pass_in_use.compiled_pass()


AMOUNTS = st.sampled_from([0, 1, 2, 3, 7, 100, 999, 1000, 2**20, 3 * 2**30, LARGEST_EXACT // 3])
THREE = st.tuples(AMOUNTS, AMOUNTS, AMOUNTS)
TOTALS = st.lists(st.sampled_from([-1.0, 0.0, 1.0, 50.0, 99.0, 100.0]), min_size=1, max_size=11)
RAW = st.integers(0, 400)


def floats(values: object) -> FloatArray:
    made: FloatArray = np.array(values, dtype=np.float64)
    made.setflags(write=False)  # the loops are compiled for arrays that can't be written to
    return made


def score(
    form: Any, weights: tuple[int, int, int], first: tuple[int, int, int], second: tuple[int, int, int]
) -> float:
    """The score of one node by its amounts of two resources: there, used, and requested by the pod."""
    there, used = floats([[first[0]], [second[0]]]), floats([[first[1]], [second[1]]])
    requests = first[2], second[2]
    free = np.zeros((4, 1), np.int64)
    anything: FloatArray = floats([0])
    balance = floats([balance_of(first[0], first[1], second[0], second[1])])
    found: float = form.total_at(
        0,
        anything,
        (free, there, used, used, balance),
        ((0, 0, 0, 0), np.empty((0, 2), np.int64), requests, requests, weights),
    )
    return found


@given(THREE, THREE)
def test_scores_by_free_and_by_used_shares_are_those_of_the_scalar_form(
    form: Any, first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    usages = [Usage(*amounts, 1) for amounts in (first, second)]
    assert score(form, (1, 0, 0), first, second) == least_allocated(usages)
    assert score(form, (0, 0, 1), first, second) == most_allocated(usages)


@given(THREE, THREE)
def test_kept_balance_of_a_node_is_that_of_the_pass(
    first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    (there, taken, _), (there_2, taken_2, _) = first, second
    found = numpy_pass.balance(*map(float, (there, taken, there_2, taken_2)))
    assert balance_of(there, taken, there_2, taken_2) == found


@given(THREE, THREE)
def test_score_by_balance_is_that_of_the_scalar_form(
    form: Any, first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    assert score(form, (0, 1, 0), first, second) == scores_of([Usage(*first, 1), Usage(*second, 1)], 1)[0]


@st.composite
def columns(draw: st.DrawFn) -> list[Any]:
    """The arguments of a pass over up to 9 nodes that tells a node's total by every part of it."""
    count = draw(st.integers(1, 9))

    def amounts(resources: int) -> IntArray:
        rows = st.lists(AMOUNTS, min_size=count, max_size=count)
        made: IntArray = np.array([draw(rows) for _ in range(resources)], dtype=np.int64)
        return made

    free = amounts(6)
    free.setflags(write=False)
    few = st.sampled_from([0, 1, 100])
    extended = draw(st.lists(st.tuples(st.sampled_from([4, 5]), few), max_size=2))
    return [
        floats(draw(st.lists(st.sampled_from([-(2.0**54), 0.0, 300.0]), min_size=count, max_size=count))),
        (free, floats(amounts(2)), floats(amounts(2)), floats(amounts(2)), floats(amounts(1)[0] % 101)),
        (
            draw(st.tuples(few, few, few, st.just(1))),
            np.array(extended, np.int64).reshape(-1, 2),
            draw(st.tuples(few, few)),
            draw(st.tuples(few, few)),
            draw(st.tuples(*[st.integers(0, 2)] * 3)),
        ),
    ]


@given(columns(), st.integers(0, 8), st.integers(1, 9))
def test_total_of_one_node_is_that_of_a_pass_over_all(
    form: Any, arguments: list[Any], start: int, most: int
) -> None:
    count = len(arguments[0])
    alone = [form.total_at(row, *arguments) for row in range(count)]
    totals = np.full(count, np.nan)
    start %= count
    feasible, looked_at = form.totals_of(*arguments, start, most, totals)
    visited = [(start + step) % count for step in range(looked_at)]
    assert [max(totals[row], -1.0) for row in visited] == [max(alone[row], -1.0) for row in visited]
    passing = [row for row in visited if alone[row] >= 0]
    assert feasible == len(passing) <= most
    # A search ends before the first node that would be one too many.
    following = (start + looked_at) % count
    assert looked_at == count or (feasible == most and alone[following] >= 0)


@given(TOTALS, st.integers(0, 10), st.integers(0, 11), st.data())
def test_normalized_scores_are_added_where_a_node_is_feasible(
    form: Any, totals: list[float], start: int, looked_at: int, data: st.DataObject
) -> None:
    count = len(totals)
    start, looked_at = start % count, min(looked_at, count)
    raw = floats(data.draw(st.lists(RAW, min_size=count, max_size=count)))
    visited = [(start + step) % count for step in range(looked_at)]
    feasible = [row for row in visited if totals[row] >= 0]
    for is_stretched in (True, False):
        found = np.zeros(count)
        form.add_normalized(floats(totals), start, looked_at, raw, is_stretched, 2.0, found)
        if not feasible:
            continue
        its = raw[feasible].astype(np.int64)
        if is_stretched:
            scores = Normalizing.STRETCHED.of(its)
        elif its.max():
            scores = 100 * (its.max() + its.min() - its) // its.max()
        else:
            scores = np.full(len(its), 100)
        assert found[feasible].tolist() == [
            totals[row] + 2 * score for row, score in zip(feasible, scores, strict=True)
        ]
        refused = [row for row in visited if totals[row] < 0]
        assert (found[refused] < 0).all()


@pytest.mark.parametrize("position", range(9))
@pytest.mark.parametrize("extreme", [0, 400])
def test_bounds_of_scores_are_found_wherever_they_are(form: Any, position: int, extreme: int) -> None:
    raw, found = np.full(9, 100), np.zeros(9)
    raw[position] = extreme
    form.add_normalized(floats(np.zeros(9)), 0, 9, floats(raw), True, 1.0, found)
    assert found.tolist() == Normalizing.STRETCHED.of(raw).tolist()


def test_scores_beyond_what_floats_hold_exactly_are_not_normalized(form: Any) -> None:
    raw = floats([0, float(LARGEST_EXACT + 1)])
    assert not form.add_normalized(floats([0, 0]), 0, 2, raw, True, 1.0, np.zeros(2))


@given(TOTALS, st.integers(0, 10), st.integers(1, 11))
def test_best_and_feasible_nodes_are_in_visiting_order(
    form: Any, totals: list[float], start: int, looked_at: int
) -> None:
    count = len(totals)
    start, looked_at = start % count, min(looked_at, count)
    visited = [(start + step) % count for step in range(looked_at)]
    feasible = [row for row in visited if totals[row] >= 0]
    array = np.array(totals)
    assert form.feasible_rows(array, start, looked_at, len(feasible)).tolist() == feasible
    if feasible:
        best, highest = np.zeros(count, dtype=np.int64), max(totals[row] for row in feasible)
        number = form.best_of(array, start, looked_at, best)
        assert best[:number].tolist() == [row for row in feasible if totals[row] == highest]


@given(
    st.lists(st.integers(-1, 2), min_size=1, max_size=9), st.lists(RAW, min_size=4, max_size=4), st.booleans()
)
def test_domains_tell_their_nodes_values_and_refusals(
    form: Any, codes: list[int], values: list[int], adds: bool
) -> None:
    array = np.array(codes, dtype=np.int32)
    scores, found = floats(range(len(codes))), np.full(len(codes), 5.0)
    of_nodes = [values[code] for code in codes]  # the last value is that of code -1
    form.gather(array, np.array(values, dtype=np.int64), adds, found)
    assert found.tolist() == [value + 5 * adds for value in of_nodes]
    refused = np.array(values) % 2 == 1
    form.refuse_domains(scores, array, refused, -8.0, found)
    assert found.tolist() == [-8.0 if value % 2 else row for row, value in enumerate(of_nodes)]
    form.refuse(scores, (np.array(of_nodes) % 2).astype(np.int8), -8.0, found)
    assert found.tolist() == [-8.0 if value % 2 else row for row, value in enumerate(of_nodes)]


@given(TOTALS, st.integers(0, 10), st.integers(1, 11))
def test_search_among_known_totals_ends_before_the_surplus_node(
    totals: list[float], start: int, most: int
) -> None:
    count, found, looked_at = len(totals), 0, 0
    start %= count
    for step in range(count):
        if totals[(start + step) % count] >= 0:
            if found == most:
                break
            found += 1
        looked_at += 1
    assert searched(np.array(totals), start, most) == (found, looked_at)


def test_code_on_disk_is_another_one_when_a_file_changes_that_functions_of_it_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numba = pytest.importorskip("numba", reason="needs the extra fast")
    from kschedfw.framework.runtime.engine import _pass

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def kept_after_a_call() -> set[str]:
        def double(number: int) -> int:
            return 2 * number

        assert _pass.compiled(double)(4) == 8
        return {file.name for file in tmp_path.rglob("*.nbi")}

    first = kept_after_a_call()
    assert len(first) == 1
    assert kept_after_a_call() == first
    monkeypatch.setattr(_pass, "_SOURCES", "of a later release")
    assert len(kept_after_a_call()) == 2
