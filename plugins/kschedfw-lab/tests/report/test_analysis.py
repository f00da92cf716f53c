"""Is A better than B, and is that more than chance?"""

from __future__ import annotations

from statistics import fmean

import attrs
import pytest
from kschedfw_lab import QuestionError, ResultsError
from kschedfw_lab.report.analysis import Analysis, analyse
from kschedfw_lab.report.comparison import ComparisonVerdict, Direction, Row, direction_of
from kschedfw_lab.results.values import Value
from report import scenes


def verdicts(analysis: Analysis, metric: str = "placed") -> dict[str, ComparisonVerdict]:
    (table,) = (table for table in analysis.tables if table.metric == metric)
    return {
        analysis.treatment_label(row.treatment): row.difference.verdict
        for row in table.overall
        if row.difference
    }


def overall(analysis: Analysis, label: str) -> Row:
    return next(row for row in analysis.tables[0].overall if analysis.treatment_label(row.treatment) == label)


class TestComparison:
    def test_differences_are_told_by_pairs(self) -> None:
        """Seeds differ more than policies do, so the means' intervals overlap; the pairs' differences are clear."""
        analysis = analyse(scenes.results(scenes.policies({"default": 0, "good": 2, "bad": -3, "twin": 0})))
        assert verdicts(analysis) == {
            "good": ComparisonVerdict.HIGHER,
            "bad": ComparisonVerdict.LOWER,
            "twin": ComparisonVerdict.SAME,
        }
        default, good = overall(analysis, "default").estimate, overall(analysis, "good").estimate
        assert default is not None
        assert good is not None
        assert good.low is not None
        assert default.high is not None
        assert good.low < default.high

    def test_figures(self) -> None:
        runs = scenes.policies({"default": 0, "good": 2})
        row = overall(analyse(scenes.results(runs)), "good")
        good = [run.metrics["placed"] for run in runs if run.factors["policy"] == "good"]
        default = [run.metrics["placed"] for run in runs if run.factors["policy"] == "default"]
        assert row.estimate is not None
        assert row.difference is not None
        assert row.estimate.mean == pytest.approx(fmean(good))
        assert row.difference.values == tuple(a - b for a, b in zip(good, default, strict=True))
        assert row.difference.estimate.mean == pytest.approx(fmean(good) - fmean(default))
        assert row.difference.estimate.count == 10

    def test_what_may_be_chance(self) -> None:
        runs = scenes.policies({"default": 0})
        runs += [
            scenes.run(
                f"o{seed}", {"policy": "other", "seed": seed}, placed=100 + scenes.NOISE[seed % 12] + step
            )
            for seed, step in zip(scenes.SEEDS, (3, -2, 1, -1, 2, -3, 1, 1, -1, 0), strict=True)
        ]
        assert verdicts(analyse(scenes.results(runs))) == {"other": ComparisonVerdict.CHANCE}

    def test_another_baseline_turns_the_signs(self) -> None:
        results = scenes.results(scenes.policies({"default": 0, "good": 2}))
        assert verdicts(analyse(results, "policy=good")) == {"default": ComparisonVerdict.LOWER}

    def test_several_comparisons_need_more_pairs(self) -> None:
        """Six pairs are enough for one comparison, and too few for three: Holm's correction."""
        one = analyse(scenes.results(scenes.policies({"default": 0, "good": 4}, range(1, 7))))
        assert (verdicts(one), one.notes) == ({"good": ComparisonVerdict.HIGHER}, ())
        effects = {"default": 0, "good": 4, "twin": 0, "other": 0}
        three = analyse(scenes.results(scenes.policies(effects, range(1, 7))))
        assert verdicts(three)["good"] is ComparisonVerdict.TOO_FEW
        (note,) = three.notes
        assert note == (
            "Some pairs are too few to tell any difference from chance. 3 comparisons with a baseline take at least 7 "
            "pairs each."
        )

    def test_several_factors_at_once(self) -> None:
        runs = [
            scenes.run(
                f"{policy}{weight}{seed}",
                {"policy": policy, "weight": weight, "seed": seed},
                placed=weight + seed,
            )
            for policy in ("a", "b")
            for weight in (1, 2)
            for seed in scenes.SEEDS
        ]
        analysis = analyse(scenes.results(runs), "policy=a,weight=1")
        assert verdicts(analysis) == {
            "policy=a, weight=2": ComparisonVerdict.HIGHER,
            "policy=b, weight=1": ComparisonVerdict.SAME,
            "policy=b, weight=2": ComparisonVerdict.HIGHER,
        }

    def test_a_baseline_that_no_run_has_together(self) -> None:
        runs = [
            scenes.run(f"{policy}{weight}", {"policy": policy, "weight": weight, "seed": 1}, placed=1)
            for policy, weight in (("a", 1), ("b", 2))
        ]
        with pytest.raises(QuestionError, match="--baseline: no run has policy=a, weight=2 together"):
            analyse(scenes.results(runs), {"policy": "a", "weight": 2})

    def test_differences_by_rounding_alone_are_none(self) -> None:
        runs = scenes.policies({"default": 0})
        runs += [
            attrs.evolve(
                run,
                run=f"o{run.run}",
                factors={**run.factors, "policy": "other"},
                metrics={**run.metrics, "utilisation.cpu": run.metrics["utilisation.cpu"] * (1 + 1e-12)},
            )
            for run in runs
        ]
        assert verdicts(analyse(scenes.results(runs)), "utilisation.cpu") == {"other": ComparisonVerdict.SAME}

    @pytest.mark.parametrize("first", ["policy", "weight"])
    def test_a_factor_that_only_one_policy_has_is_compared_with_it(self, first: str) -> None:
        """The weight is none of the default's: each weight of the other policy is compared with the default."""
        factors: list[dict[str, Value]] = [
            {"policy": "default", "weight": None},
            {"policy": "packing", "weight": 1},
            {"policy": "packing", "weight": 5},
        ]
        names = sorted(factors[0], key=lambda name: name != first)
        runs = [
            scenes.run(
                f"{number}-{rate}-{seed}",
                {**{name: cell[name] for name in names}, "rate": rate, "seed": seed},
                placed=100 + scenes.NOISE[seed] + number,
            )
            for number, cell in enumerate(factors)
            for rate in (1, 2)
            for seed in scenes.SEEDS
        ]
        for baseline in (None, "policy=default"):
            analysis = analyse(scenes.results(runs), baseline)
            assert analysis.context_factors == ("rate",)
            assert set(verdicts(analysis).values()) == {ComparisonVerdict.HIGHER}
            assert len(verdicts(analysis)) == 2
            assert not analysis.unpaired

    def test_a_random_design_has_nothing_to_compare(self) -> None:
        """A thousand runs, and every one has factors of its own."""
        runs = [
            scenes.run(
                f"r{number}", {"weight": number / 7, "rate": number / 3, "seed": number}, placed=number
            )
            for number in range(1000)
        ]
        analysis = analyse(scenes.results(runs))
        assert (len(analysis.treatments), len(analysis.contexts), analysis.unpaired) == (1, 1000, ())
        assert analysis.notes[0].startswith("No factor is crossed with the others")
        forced = analyse(scenes.results(runs), "weight")
        assert (len(forced.treatments), len(forced.contexts), len(forced.unpaired)) == (1000, 1000, 999)

    def test_policies_crossed_with_a_random_design(self) -> None:
        """Neither weight nor rate is crossed with anything; together they are, with the policy."""
        runs = [
            scenes.run(
                f"{policy}{number}{seed}",
                {"weight": number / 7, "rate": number / 3, "policy": policy, "seed": seed},
                placed=number + effect,
            )
            for number in range(10)
            for policy, effect in {"a": 0, "b": 2}.items()
            for seed in (1, 2)
        ]
        analysis = analyse(scenes.results(runs))
        assert analysis.question.compared == ("policy",)
        only_b = analyse(scenes.results(run for run in runs if run.factors["policy"] == "b"))
        assert only_b.question.compared == ()
        assert verdicts(analyse(scenes.results(runs), over=["weight", "rate"])) == {
            "b": ComparisonVerdict.HIGHER
        }

    def test_policies_are_compared_at_each_rate_and_not_the_other_way_round(self) -> None:
        runs = scenes.policies({"default": 0, "good": 2}, rates=[1, 2, 3])
        assert analyse(scenes.results(runs)).question.compared == ("policy",)


class TestContexts:
    def test_comparisons_are_made_in_each_and_overall(self) -> None:
        analysis = analyse(
            scenes.results(scenes.policies({"default": 0, "good": 2}, rates=[2.0, 0.5])), "policy=default"
        )
        assert (analysis.context_factors, analysis.contexts) == (("rate",), ((0.5,), (2.0,)))
        assert [analysis.context_label(row.context) for row in analysis.tables[0].rows] == [
            "rate=0.5",
            "rate=0.5",
            "rate=2",
            "rate=2",
        ]
        assert [row.difference.verdict for row in analysis.tables[0].rows if row.difference] == [
            ComparisonVerdict.HIGHER,
            ComparisonVerdict.HIGHER,
        ]
        assert verdicts(analysis) == {"good": ComparisonVerdict.HIGHER}

    def test_overall_a_repetition_counts_once(self) -> None:
        """Else a hundred contexts would make a hundred pairs of one seed."""
        analysis = analyse(
            scenes.results(scenes.policies({"default": 0, "good": 2}, rates=[1, 2, 3, 4])), "policy=default"
        )
        row = overall(analysis, "good")
        assert len(row.values) == 10
        assert row.difference is not None
        assert row.difference.estimate.count == 10

    def test_overall_only_contexts_count_that_all_have(self) -> None:
        runs = scenes.policies({"default": 0, "good": 2}, rates=[1, 2])
        runs += [
            scenes.run(f"d{seed}", {"rate": 3, "policy": "default", "seed": seed}, placed=1_000)
            for seed in scenes.SEEDS
        ]
        analysis = analyse(scenes.results(runs), "policy=default")
        assert max(overall(analysis, "default").values.values()) < 200

    def test_a_factor_can_be_taken_for_a_repetition(self) -> None:
        runs = scenes.policies({"default": 0, "good": 2}, seeds=[1], rates=[float(rate) for rate in range(8)])
        by_rate = analyse(scenes.results(runs), "policy=default")
        assert verdicts(by_rate) == {"good": ComparisonVerdict.TOO_FEW}
        assert by_rate.notes[0].startswith("Nothing was repeated with another seed")
        over = analyse(scenes.results(runs), "policy=default", over=["rate"])
        assert (over.context_factors, over.notes) == ((), ())
        assert len(overall(over, "good").values) == 8

    def test_what_never_varies_is_said_once(self) -> None:
        runs = [
            scenes.run(f"{seed}", {"cluster": "openb", "policy": "a", "seed": seed}, placed=1)
            for seed in (1, 2)
        ]
        assert analyse(scenes.results(runs)).constants == {"cluster": "openb", "policy": "a"}


class TestGaps:
    def test_failed_runs_are_left_out_and_named(self) -> None:
        runs = scenes.policies({"default": 0, "good": 2})
        runs[13] = scenes.failed("good4", runs[13].factors)
        analysis = analyse(scenes.results(runs))
        assert [run.run for run in analysis.failed] == ["good4"]
        (gap,) = analysis.unpaired
        assert (
            analysis.treatment_label(gap.treatment),
            analysis.repetition_label(gap.repetition),
            gap.why,
        ) == (
            "good",
            "seed=4",
            "it failed",
        )
        difference = overall(analysis, "good").difference
        assert difference is not None
        assert difference.estimate.count == 9

    def test_missing_runs_are_named(self) -> None:
        runs = scenes.policies({"default": 0}, range(1, 9)) + scenes.policies({"good": 2}, range(2, 10))
        analysis = analyse(scenes.results(runs))
        assert [(each.repetition, each.why) for each in analysis.unpaired] == [
            ((1,), "it wasn't run"),
            ((9,), "the baseline wasn't run"),
        ]

    def test_no_pair_at_all(self) -> None:
        runs = scenes.policies({"default": 0}, [1, 2]) + scenes.policies({"good": 2}, [3, 4])
        analysis = analyse(scenes.results(runs))
        assert verdicts(analysis) == {}
        assert overall(analysis, "good").estimate is not None

    def test_a_single_seed(self) -> None:
        analysis = analyse(scenes.results(scenes.policies({"default": 0, "good": 2}, [1])))
        row = overall(analysis, "good")
        assert row.estimate is not None
        assert row.estimate.low is None
        assert verdicts(analysis) == {"good": ComparisonVerdict.TOO_FEW}
        (note,) = analysis.notes
        assert note == (
            "Nothing was repeated with another seed, so there are no intervals, and nobody can tell a difference from "
            "chance."
        )

    def test_a_metric_that_some_runs_lack(self) -> None:
        runs = [
            scenes.run("a", {"policy": "a", "seed": 1}, placed=1, cost=3.0),
            scenes.run("b", {"policy": "b", "seed": 1}, placed=1),
        ]
        analysis = analyse(scenes.results(runs))
        (cost,) = (table for table in analysis.tables if table.metric == "cost")
        assert [row.estimate is None for row in cost.rows] == [False, True]

    def test_nothing(self) -> None:
        analysis = analyse(scenes.results([]))
        assert (analysis.runs, analysis.tables) == (0, ())

    def test_nothing_but_failures(self) -> None:
        analysis = analyse(scenes.results([scenes.failed("a", {"policy": "a", "seed": 1})]))
        assert (analysis.runs, analysis.tables, len(analysis.failed)) == (1, (), 1)

    def test_runs_that_nothing_tells_apart(self) -> None:
        runs = [scenes.run(key, {"policy": "a", "seed": 1}, placed=1) for key in "xy"]
        with pytest.raises(ResultsError, match="runs x and y have the same factors"):
            analyse(scenes.results(runs))


@pytest.mark.parametrize(
    ("metric", "direction"),
    [
        ("placed", Direction.UP),
        ("utilisation.cpu", Direction.UP),
        ("pending.Insufficient cpu", Direction.DOWN),
        ("wait_seconds.p95", Direction.DOWN),
        ("imbalance.cpu", Direction.NEITHER),
        ("mine", Direction.NEITHER),
    ],
)
def test_whether_more_is_better(metric: str, direction: Direction) -> None:
    assert direction_of(metric) is direction
