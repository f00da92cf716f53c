"""Which factors and metrics a report is about."""

from __future__ import annotations

import pytest
from kschedfw_lab import Results
from kschedfw_lab.report.question import Question, QuestionError, question_of
from report import scenes


def sweep() -> Results:
    return scenes.results(
        scenes.run(
            f"{policy}{weight}{seed}",
            {"cluster": "openb", "policy": policy, "weight=x": weight, "spread": spread, "seed": seed},
            placed=1,
            unschedulable=2,
            **{"utilisation.cpu": 0.5, "utilisation.memory": 0.5},
        )
        for policy in ("packing", "least, by half")
        for weight in (10, 2)
        for spread in (True,)
        for seed in (1, 2)
    )


def asked(*args: object, **options: object) -> Question:
    return question_of(sweep(), *args, **options)  # type: ignore[arg-type]


class TestBaseline:
    def test_by_default_the_first_factor_that_varies(self) -> None:
        assert (asked().compared, asked().baseline) == (("policy",), ("packing",))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("policy", {"policy": "packing"}),
            ("policy=least, by half", {"policy": "least, by half"}),
            ("weight=x=10", {"weight=x": 10}),
            ("weight=x", {"weight=x": 2}),
            ("spread=true", {"spread": True}),
            ("policy=least, by half,weight=x=2", {"policy": "least, by half", "weight=x": 2}),
            ("policy,weight=x=2", {"policy": "packing", "weight=x": 2}),
        ],
    )
    def test_as_text(self, text: str, expected: dict[str, object]) -> None:
        found = asked(text)
        assert dict(zip(found.compared, found.baseline, strict=True)) == expected

    def test_as_values(self) -> None:
        found = asked({"weight=x": 10})
        assert (found.compared, found.baseline) == (("weight=x",), (10,))

    def test_one_of_nothing(self) -> None:
        found = question_of(scenes.results([scenes.run("a", {"seed": 1}, placed=1)]))
        assert (found.compared, found.baseline, found.over) == ((), (), ("seed",))

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            (
                "polcy=x",
                "--baseline: there is no factor polcy; the factors are: cluster, policy, weight=x, spread, seed",
            ),
            ("policy=x", "--baseline: no run has policy=x; its values are: packing, least, by half"),
            ("weight=x=3", "--baseline: no run has weight=x=3; its values are: 2, 10"),
            ("seed=1", "--baseline seed: a repetition can't be compared; runs are paired by their seed"),
        ],
    )
    def test_refused(self, text: str, why: str) -> None:
        with pytest.raises(QuestionError) as refused:
            asked(text)
        assert str(refused.value) == why


class TestRepetitions:
    def test_seeds_always_are(self) -> None:
        assert asked().over == ("seed",)
        assert asked(over=["weight=x", "seed"]).over == ("seed", "weight=x")

    def test_refused(self) -> None:
        with pytest.raises(QuestionError, match="--over: there is no factor day; the factors are: cluster, "):
            asked(over=["day"])


class TestMetrics:
    def test_by_default_all(self) -> None:
        assert asked().metrics == ("placed", "unschedulable", "utilisation.cpu", "utilisation.memory")

    def test_in_the_order_of_the_results(self) -> None:
        assert asked(metrics=["utilisation.*", "placed"]).metrics == (
            "placed",
            "utilisation.cpu",
            "utilisation.memory",
        )

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("utilization.cpu", "--metric utilization.cpu: no run has it; did you mean utilisation.cpu?"),
            ("xyz", "--metric xyz: no run has it; the metrics are: placed, unschedulable, utilisation.cpu"),
        ],
    )
    def test_refused(self, name: str, why: str) -> None:
        with pytest.raises(QuestionError) as refused:
            asked(metrics=[name])
        assert str(refused.value).startswith(why)
