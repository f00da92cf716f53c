"""Designs: which combinations are run."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab import Drawn, Grid, Paired, Range, SweepError
from kschedfw_lab.sweep.design import Design, DrawMethod, read_design
from kschedfw_lab.sweep.factors import Factor
from kschedfw_lab.sweep.values import Choices
from sweep.scenes import cells, tiny

from kschedfw.testing.properties import examples

few = st.lists(st.integers(0, 100), min_size=1, max_size=5, unique=True)


def factors(**values: object) -> list[Factor]:
    return [
        Factor(name, each if isinstance(each, Range) else Choices(tuple(each)))  # type: ignore[arg-type]
        for name, each in values.items()
    ]


def points(design: Design, **values: object) -> list[tuple[object, ...]]:
    return [tuple(point.values()) for point in design.points(factors(**values))]


@given(a=few, b=few, seed=few)
def test_a_grid_is_the_product_with_the_last_factor_fastest(
    a: list[int], b: list[int], seed: list[int]
) -> None:
    assert points(Grid(), a=a, b=b, seed=seed) == list(itertools.product(a, b, seed))


@given(
    samples=st.integers(1, 40),
    seed=st.integers(0, 5),
    method=st.sampled_from(get_args(DrawMethod)),
    seeds=few,
)
def test_every_drawn_point_is_run_with_every_seed(
    samples: int, seed: int, method: DrawMethod, seeds: list[int]
) -> None:
    found = points(Drawn(samples, seed, method=method), x=Range(0.0, 1.0), seed=seeds, y=Range(1, 1000))
    assert len(found) == samples * len(seeds)
    assert Counter(each[1] for each in found) == dict.fromkeys(seeds, samples)
    assert [(x, y) for x, _, y in found[:: len(seeds)]] == [
        (x, y) for x, _, y in found[len(seeds) - 1 :: len(seeds)]
    ]


@given(samples=st.integers(1, 60), seed=st.integers(0, 100))
def test_a_latin_hypercube_uses_every_part_of_every_range_once(samples: int, seed: int) -> None:
    found = points(
        Drawn(samples, seed, method="latin-hypercube"), x=Range(0.0, 1.0), n=Range(0, samples - 1), seed=[0]
    )
    # The numbers are rounded to six digits, which may take one over the border of its part.
    assert sorted(int(x * samples + 1e-3) for x, _, _ in found if isinstance(x, float)) == pytest.approx(
        list(range(samples)), abs=1
    )
    assert sorted(n for _, n, _ in found) == list(range(samples))  # type: ignore[type-var]


@given(samples=st.integers(1, 40), seed=st.integers(0, 100), method=st.sampled_from(get_args(DrawMethod)))
def test_a_further_factor_changes_no_other_value(samples: int, seed: int, method: DrawMethod) -> None:
    design = Drawn(samples, seed, method=method)
    alone = points(design, x=Range(0.0, 1.0), seed=[0])
    together = points(design, w=Range(1, 9), x=Range(0.0, 1.0), seed=[0])
    assert [x for x, _ in alone] == [x for _, x, _ in together]


def test_the_same_design_gives_the_same_points_and_another_seed_others() -> None:
    def found(seed: int) -> list[tuple[object, ...]]:
        return points(Drawn(20, seed), x=Range(0.0, 1.0), seed=[0])

    assert found(1) == found(1)
    assert found(1) != found(2)


def test_paired_factors_go_together() -> None:
    assert points(Paired(), a=[1, 2], b=[3, 4], c=[5], seed=[0, 1]) == [
        (1, 3, 5, 0),
        (1, 3, 5, 1),
        (2, 4, 5, 0),
        (2, 4, 5, 1),
    ]


def test_pairs_need_equally_many_values() -> None:
    with pytest.raises(SweepError, match="equally many values, or one: a has 2, b has 3"):
        points(Paired(), a=[1, 2], b=[1, 2, 3], seed=[0])


def test_other_factors_can_be_crossed() -> None:
    found = points(Drawn(3, crossed=("a", "seed")), a=[1, 2], x=Range(0.0, 1.0), seed=[7])
    assert [a for a, _, _ in found] == [1, 2] * 3


@pytest.mark.parametrize(
    ("design", "why"),
    [
        (Drawn(2, crossed=("sede",)), "design.crossed: there is no factor 'sede'; did you mean seed?"),
        (Drawn(60_000), "120,000 combinations of values; at most 100,000"),
        (Drawn(2, crossed=("x",)), "factors.x: any number from 0.0 to 1.0 is a value"),
        (Grid(), "factors.x: any number from 0.0 to 1.0 is a value"),
        (Paired(), "factors.x: any number from 0.0 to 1.0 is a value"),
    ],
)
def test_designs_that_can_not_be_made(design: Design, why: str) -> None:
    with pytest.raises(SweepError) as caught:
        points(design, x=Range(0.0, 1.0), seed=[0, 1])
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "design",
    [Grid(), Paired(), Paired(("a",)), Drawn(3, 4), Drawn(3, 4, ("a", "b"), method="latin-hypercube")],
)
def test_a_design_is_read_as_it_is_written(design: Design) -> None:
    assert read_design(design.to_json()) == design


class TestInASweep:
    @settings(max_examples=examples(20))
    @given(seeds=few, weights=few)
    def test_the_plan_has_the_runs_of_the_design_that_keep_the_constraints(
        self, seeds: list[int], weights: list[int]
    ) -> None:
        wanted = [(w, s) for w, s in itertools.product(weights, seeds) if w <= s]
        sweep = tiny(
            {"plugins.ImageLocality": weights, "seed": seeds}, constraints=["plugins.ImageLocality <= seed"]
        )
        if not wanted:
            with pytest.raises(SweepError, match="exclude every point"):
                sweep.plan()
            return
        assert cells(sweep, "plugins.ImageLocality", "seed") == wanted
        assert sweep.plan().excluded == len(weights) * len(seeds) - len(wanted)

    def test_the_same_sweep_has_the_same_plan(self) -> None:
        def plan() -> list[str]:
            sweep = tiny({"seed": [0, 1], "percentageOfNodesToScore": Range(1, 100)}, design=Drawn(5, 3))
            return [run.key for run in sweep.plan().runs]

        assert plan() == plan()
        assert len(set(plan())) == 10

    def test_points_that_are_drawn_twice_are_run_once(self) -> None:
        sweep = tiny({"plugins.ImageLocality": [1, 2]}, design=Drawn(10))
        plan = sweep.plan()
        assert (len(plan.runs), plan.repeated) == (2, 8)
