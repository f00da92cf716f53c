"""Pods in turn get the nodes that a pass over all nodes finds for each, with those before it in place."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
pytest.importorskip("numba", reason="needs the extra fast")

from kschedfw.framework.runtime.engine import _pass, numpy_pass  # noqa: E402  # they can't be imported without Numba
from kschedfw.scheduler.groups import _turns  # noqa: E402

SOME = st.sampled_from([0, 100, 250, 1000, 4000])
MANY = st.sampled_from([1000, 4000, 8000, 10_000])


@given(st.data(), st.integers(1, 6), st.integers(1, 8), st.booleans())
def test_each_pod_sees_those_before_it(data: st.DataObject, count: int, number: int, moves: bool) -> None:
    def rows(amounts: st.SearchStrategy[int], resources: int) -> list[list[int]]:
        return [data.draw(st.lists(amounts, min_size=count, max_size=count)) for _ in range(resources)]

    allocatable = rows(MANY, 2)
    requested, non_zero, others = rows(SOME, 2), rows(SOME, 2), rows(st.integers(0, 5), 3)
    free = [[a - b for a, b in zip(*both, strict=True)] for both in zip(allocatable, requested, strict=True)]
    scores = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 40.0, -5000.0]), min_size=count, max_size=count))
    )
    both = data.draw(st.tuples(SOME, SOME))
    weights = data.draw(st.tuples(*[st.integers(0, 2)] * 3))
    start, most = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 6))
    taken = np.array([*both, 1, 1, 1])
    free_of = np.array([*free, *others])
    floats = np.array([*allocatable, *requested, *non_zero], dtype=np.float64)
    wanted, extended = (*both, 1, 1), np.array([[4, 1]])

    expected, free_left, now, at = [], free_of.copy(), floats.copy(), start
    for _ in range(number):
        totals = np.empty(count)
        balances = np.array([numpy_pass.balance(*now[[0, 2, 1, 3], row]) for row in range(count)])
        columns = free_left, now[:2], now[2:4], now[4:], balances
        asked = wanted, extended, both, both, weights
        feasible, looked_at = _pass.totals_of(scores, columns, asked, at % count, most, totals)
        if moves:
            at += looked_at
        if not feasible:
            break
        best = np.empty(count, dtype=np.int64)
        first = (at - looked_at * moves) % count
        row = int(best[: _pass.best_of(totals, first, looked_at, best)].min())
        expected.append((row, feasible, looked_at))
        free_left[:, row] -= taken
        now[2:, row] += [*both, *both]

    found = np.zeros((3, number), dtype=np.int64)
    placed, ended = _turns.place_in_turn(
        number, scores, free_of, floats, np.array([*wanted, 1]), both, both, weights, taken,
        np.array([*both, *both]), start, 10**6, moves, most, np.arange(count), np.zeros(0, dtype=np.int64), found,
    )  # fmt: skip
    assert list(zip(*found[:, :placed].tolist(), strict=True)) == expected
    assert ended == at
    event(f"all placed: {placed == number}")
