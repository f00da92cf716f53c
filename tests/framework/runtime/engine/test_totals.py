"""The rows with the highest totals are known without a look at all totals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.framework.outcome import rows_with_most
from kschedfw.framework.runtime.engine.kept_totals import BestRows

TOTALS = st.integers(0, 4)  # few, so that many are equal


@given(st.lists(TOTALS, min_size=1, max_size=8), st.lists(st.tuples(st.integers(0, 7), TOTALS), max_size=30))
def test_rows_are_those_with_the_highest_total_until_all_totals_are_lower_than_the_first_highest(
    first: list[int], changes: list[tuple[int, int]]
) -> None:
    totals = np.array(first, dtype=np.int64)
    best = BestRows(totals)
    assert list(best.rows) == rows_with_most(totals).tolist()
    for index, after in changes:
        row = index % len(totals)
        before, totals[row] = int(totals[row]), after
        are_kept = best.changed(row, before, after)
        assert are_kept is bool(totals.max() >= max(first))
        if not are_kept:
            return
        assert list(best.rows) == rows_with_most(totals).tolist()


def test_row_that_falls_back_to_the_first_highest_total_is_tied_with_the_others() -> None:
    """A node that became better, and is as good as the others again when a pod took it."""
    best = BestRows(np.array([5, 5, 3], dtype=np.int64))
    assert best.changed(0, 5, 6)
    assert list(best.rows) == [0]
    assert best.changed(0, 6, 5)
    assert list(best.rows) == [0, 1]
