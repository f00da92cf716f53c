"""What plots show, and where."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab.pages.axes import MOST_SERIES, WIDTH, Axis, mark, ticks
from kschedfw_lab.report import charts, intervals
from kschedfw_lab.report.analysis import analyse
from kschedfw_lab.report.curves import curves
from kschedfw_lab.report.numbers import Format, judgement, probability, unit_of
from kschedfw_lab.results.values import Value
from report import scenes

values = st.floats(-1e12, 1e12).map(lambda value: value if abs(value) > 1e-6 else 0.0)


def left(path: str) -> float:
    """The distance from the left at which a path begins."""
    return float(path[1:].split(maxsplit=1)[0])


class TestAxis:
    def test_on_a_logarithmic_axis_each_power_of_ten_takes_as_much_room(self) -> None:
        axis = Axis.powers([0.02, 30.0], 200.0, 0.0)
        assert axis.ticks() == [0.01, 0.1, 1.0, 10.0, 100.0]
        assert [axis.at(value) for value in (0.01, 1.0, 100.0)] == [200.0, 100.0, 0.0]

    def test_a_logarithmic_axis_draws_what_is_below_it_at_its_low_end(self) -> None:
        axis = Axis.powers([0.0, 1.0], 200.0, 0.0)
        assert axis.low == 0.001
        assert axis.at(0.0) == axis.at(-3.0) == 200.0

    @given(st.lists(values, min_size=1))
    def test_everything_has_room_and_ticks_are_few(self, given: list[float]) -> None:
        axis = Axis.over(given, 10, WIDTH)
        assert all(10 <= axis.at(value) <= WIDTH for value in given)
        found = axis.ticks()
        assert len(found) <= 6
        assert all(
            axis.low - 1e-6 * abs(axis.low) <= tick <= axis.high + 1e-6 * abs(axis.high) for tick in found
        )

    @pytest.mark.parametrize(
        ("low", "high", "unit", "expected"),
        [
            (0, 1000, "placed", ["0", "200", "400", "600", "800", "1,000"]),
            (-1, 1, "wait_seconds.mean", ["−1.0", "−0.5", "0.0", "0.5", "1.0"]),
            (0.9, 0.92, "utilisation.cpu", ["90.0%", "90.5%", "91.0%", "91.5%", "92.0%"]),
            (0, 1.25, "x", ["0.00", "0.25", "0.50", "0.75", "1.00", "1.25"]),
        ],
    )
    def test_ticks_are_round(self, low: float, high: float, unit: str, expected: list[str]) -> None:
        assert [tick.text for tick in ticks(Axis(low, high, 0, 100), unit_of(unit))] == expected

    def test_shapes_tell_treatments_apart(self) -> None:
        marks = {mark(series, 5, 5).partition(" ")[2] for series in range(8)}
        assert len(marks) == MOST_SERIES
        assert mark(8, 5, 5) != mark(0, 5, 5)  # same colour, other shape


class TestNumbers:
    def test_the_interval_gives_the_digits(self) -> None:
        analysis = analyse(scenes.results(scenes.policies({"default": 0, "good": 2})))
        placed, utilisation = analysis.tables
        row = placed.overall[0]
        assert Format.of(placed).mean(row.estimate) == "101.1"
        assert Format.of(placed).interval(row.estimate) == "98.6 to 103.6"
        assert Format.of(utilisation).mean(utilisation.overall[0].estimate) == "50.5%"
        difference = utilisation.overall[1].difference
        assert difference is not None
        assert Format.of(utilisation).difference(difference.estimate.mean) == "+1.00 pp"

    def test_without_intervals(self) -> None:
        runs = [scenes.run(policy, {"policy": policy, "seed": 1}, placed=7, cost=1234.5) for policy in "ab"]
        placed, cost = analyse(scenes.results(runs)).tables
        assert Format.of(placed).mean(placed.overall[0].estimate) == "7"
        assert Format.of(cost).mean(cost.overall[0].estimate) == "1,234"
        assert Format.of(cost).interval(cost.overall[0].estimate) == "–"

    def test_no_negative_zero(self) -> None:
        runs = [scenes.run(policy, {"policy": policy, "seed": 1}, x=7) for policy in "ab"]
        (table,) = analyse(scenes.results(runs)).tables
        assert Format.of(table).value(-0.2) == "0"

    @pytest.mark.parametrize(("p", "text"), [(0.0004, "< 0.001"), (0.0123, "0.012"), (1, "1.000")])
    def test_probabilities(self, p: float, text: str) -> None:
        assert probability(p) == text

    def test_more_placed_is_better_and_more_waiting_is_worse(self) -> None:
        runs = [
            scenes.run(
                f"{policy}{seed}",
                {"policy": policy, "seed": seed},
                placed=effect + seed,
                imbalance=effect + seed,
                **{"wait_seconds.mean": float(effect + seed)},
            )
            for policy, effect in {"a": 0, "b": 3}.items()
            for seed in scenes.SEEDS
        ]
        told = []
        for table in analyse(scenes.results(runs)).tables:
            difference = table.overall[1].difference
            assert difference is not None
            told.append(judgement(table, difference).words)
        assert told == ["higher, better", "higher", "higher, worse"]


class TestIntervals:
    def test_a_row_per_treatment_the_baseline_first(self) -> None:
        analysis = analyse(scenes.results(scenes.policies({"a": 0, "b": 2, "c": -1})), "policy=b")
        table = analysis.tables[0]
        plot = intervals.means(analysis, table, Format.of(table), None)
        assert plot is not None
        assert [(row.number, row.name) for row in plot.rows] == [(0, "b"), (1, "a"), (2, "c")]
        for row in plot.rows:
            low, high = map(float, re.findall(r"[MH]([\d.]+)", row.interval)[:2])
            assert 0 <= low <= left(row.mark) <= high <= WIDTH
            assert row.values.count("M") == 10

    def test_differences_have_a_line_at_zero(self) -> None:
        analysis = analyse(scenes.results(scenes.policies({"a": 0, "b": 2, "c": -1})))
        table = analysis.tables[0]
        plot = intervals.differences(analysis, table, Format.of(table), None)
        assert plot is not None
        assert plot.zero is not None
        higher, lower = plot.rows
        assert left(lower.mark) < plot.zero < left(higher.mark)


class TestCharts:
    def test_a_line_per_treatment_over_a_factor_of_numbers(self) -> None:
        analysis = analyse(scenes.results(scenes.policies({"a": 0, "b": 2}, rates=[1, 2, 4])), "policy=a")
        table = analysis.tables[0]
        assert charts.numeric_factor(analysis) == "rate"
        chart = charts.means(analysis, table, Format.of(table), "rate")
        assert chart is not None
        assert [series.name for series in chart.series] == ["a", "b"]
        assert [series.line.count("L") for series in chart.series] == [2, 2]

    def test_one_line_over_the_factor_that_is_compared(self) -> None:
        runs = [
            scenes.run(f"{weight}{seed}", {"weight": weight, "seed": seed}, placed=weight * 10 + seed)
            for weight in (1, 2, 3)
            for seed in (1, 2)
        ]
        analysis = analyse(scenes.results(runs))
        table = analysis.tables[0]
        assert charts.numeric_factor(analysis) == "weight"
        chart = charts.means(analysis, table, Format.of(table), "weight")
        assert chart is not None
        (series,) = chart.series
        assert series.line.count("L") == 2

    def test_every_run_over_each_factor_of_a_random_design(self) -> None:
        runs = [
            scenes.run(
                f"r{number}",
                {"weight": number / 7, "kind": "x", "rate": number / 3, "seed": 1},
                placed=number,
            )
            for number in range(10)
        ]
        analysis = analyse(scenes.results(runs))
        table = analysis.tables[0]
        assert charts.numeric_contexts(analysis) == ["weight", "rate"]
        assert charts.numeric_factor(analysis) is None
        chart = charts.values(analysis, table, Format.of(table), "rate")
        assert chart is not None
        (series,) = chart.series
        assert series.marks.count("M") == 10

    def test_pairs(self) -> None:
        analysis = analyse(scenes.results(scenes.policies({"a": 0, "b": 2})))
        table = analysis.tables[0]
        chart = charts.pairs(analysis, table, Format.of(table))
        assert chart is not None
        (series,) = chart.series
        assert series.marks.count("M") == 10

    def test_more_treatments_than_can_be_told_apart(self) -> None:
        effects = {f"policy{number}": number for number in range(12)}
        analysis = analyse(scenes.results(scenes.policies(effects, [1, 2, 3])))
        chart = charts.pairs(analysis, analysis.tables[0], Format.of(analysis.tables[0]))
        assert chart is not None
        assert (len(chart.series), chart.left_out) == (7, 4)

    def test_no_pairs_no_plot(self) -> None:
        analysis = analyse(scenes.results(scenes.policies({"a": 0, "b": 2}, [1])))
        assert charts.pairs(analysis, analysis.tables[0], Format.of(analysis.tables[0])) is None


class TestCurves:
    def test_means_and_ranges_over_time(self) -> None:
        runs = scenes.policies({"a": 0, "b": 2}, [1, 2])
        analysis = analyse(scenes.results(runs))
        points = [(run.run, time, "pending", 10.0 * time) for run in runs for time in (0.0, 1.0, 5.0)]
        columns = dict(
            zip(("run", "time", "metric", "value"), map(list, zip(*points, strict=True)), strict=True)
        )
        (chart,) = curves(analysis, runs, columns)
        assert [series.name for series in chart.series] == ["a", "b"]
        assert all(series.line and series.band for series in chart.series)
        first, second = (series.line for series in chart.series)
        assert first == second

    def test_a_value_holds_until_the_next(self) -> None:
        runs = scenes.policies({"a": 0}, [1])
        analysis = analyse(scenes.results(runs))
        columns: dict[str, list[Value]] = {
            "run": [runs[0].run] * 2,
            "time": [0.0, 10.0],
            "metric": ["x"] * 2,
            "value": [1.0, 3.0],
        }
        (chart,) = curves(analysis, runs, columns)
        heights = {point.split(" ")[1] for point in chart.series[0].line[1:].split("L")}
        assert len(heights) == 2

    def test_of_runs_that_failed_there_are_none(self) -> None:
        runs = [scenes.failed("a", {"policy": "a", "seed": 1})]
        columns: dict[str, list[Value]] = {
            "run": [],
            "time": [],
            "metric": [],
            "value": [],
        }
        assert curves(analyse(scenes.results(runs)), runs, columns) == []


def test_axes_of_equal_values() -> None:
    axis = Axis.over([0.0], 0, 10)
    assert math.isclose(axis.at(0.0), 5)
