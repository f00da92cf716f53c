"""Values are drawn from the lists and ranges of the specification, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.sweep.factors import Factor
from kschedfw_lab.sweep.values import Choices, Range
from kschedfw_lab.tuning.drawing import Drawing
from kschedfw_lab.tuning.outcome import TrialEnd

RANGES = [
    Range(1, 9),
    Range(1, 64, scale="log"),
    Range(2, 10, step=4),
    Range(0.5, 2.0),
    Range(0.5, 2.0, step=0.5),
    Range(0.1, 10.0, scale="log"),
    Range(1, 100, points=3, scale="log"),
]


@given(seed=st.integers(0, 2**32 - 1))
def test_drawn_values_are_in_their_ranges(seed: int) -> None:
    factors = [Factor(f"f{index}", values) for index, values in enumerate(RANGES)]
    factors.append(Factor("list", Choices((False, 1, {"a": [1]}))))
    drawing = Drawing(factors, [0.0], maximize=True, seed=seed, pruning=True)
    for _ in range(3):
        draw = drawing.draw()
        for factor in factors:
            value = draw.values[factor.name]
            if isinstance(factor.values, Range) and factor.values.is_continuous:
                assert isinstance(value, float)
                assert factor.values.low <= value <= factor.values.high
            else:
                assert value in factor.values.listed
        draw.scores.append(1.0)
        drawing.end(draw, TrialEnd.COMPLETE)


@pytest.mark.parametrize("maximize", [True, False])
def test_it_draws_where_trials_were_good(maximize: bool) -> None:
    drawing = Drawing([Factor("x", Range(-10.0, 10.0))], [0.0], maximize=maximize, seed=1, pruning=False)
    drawn = []
    for _ in range(60):
        draw = drawing.draw()
        x = draw.values["x"]
        assert isinstance(x, float)
        hill = -((x - 3) ** 2)
        draw.scores.append(hill if maximize else -hill)
        drawing.end(draw, TrialEnd.COMPLETE)
        drawn.append(abs(x - 3))
    assert sum(drawn[40:]) < sum(drawn[:20]) / 2
