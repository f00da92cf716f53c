"""What was published, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from kschedfw_lab.packing.policies import Policy
from kschedfw_lab.packing.statements import MEASURES, STATEMENTS, statements_table, table, verdicts
from kschedfw_lab.results.results import RunResult


def runs(policy: Policy, **values: Sequence[float]) -> Sequence[RunResult]:
    """A run per value; metrics that aren't named are 1."""
    seeds = len(next(iter(values.values())))
    found = []
    for seed in range(seeds):
        metrics = {each.metric: 1.0 for each in MEASURES}
        metrics |= {name.replace("__", "."): of_seeds[seed] for name, of_seeds in values.items()}
        found.append(RunResult(f"{policy} {seed}", {"policy": policy, "seed": seed}, metrics))
    return found


def test_the_table_has_means_with_intervals() -> None:
    lines = list(table({"packing": runs(Policy.PACKING, refused=[0.1, 0.2], machines=[100, 102])}))
    assert lines[:2] == ["| | packing |", "| --- | ---: |"]
    assert "| pods refused, % | 15.0 ± 63.5 |" in lines
    assert any(line.startswith("| machines that 1,000 pods need | 101.0 ± ") for line in lines)


@pytest.mark.parametrize(
    ("packing", "agrees"),
    [([104, 104.1, 103.9], True), ([101, 101.1, 101], False), ([109, 109.1, 109], False)],
)
def test_a_statement_with_a_figure_holds_where_the_interval_is_within_it(
    packing: Sequence[float], agrees: bool
) -> None:
    found = {
        "packing": runs(Policy.PACKING, machines=packing),
        "hybrid": runs(Policy.HYBRID, machines=[100, 100, 100]),
    }
    verdict, *_ = [each for each in verdicts(found) if each.statement.metric == "machines"]
    assert verdict.measured.mean == pytest.approx(sum(packing) / 3 - 100)
    assert verdict.agrees is agrees


@pytest.mark.parametrize(("spreading", "agrees"), [([0.9, 0.8, 0.85], True), ([0.9, 0.1, 0.0], False)])
def test_a_statement_of_more_holds_where_the_interval_is_above_nothing(
    spreading: Sequence[float], agrees: bool
) -> None:
    found = {
        "spreading": runs(Policy.SPREADING, refused__large=spreading),
        "packing": runs(Policy.PACKING, refused__large=[0.1, 0.1, 0.1]),
    }
    verdict, *_ = [each for each in verdicts(found) if each.statement.metric == "refused.large"]
    assert verdict.agrees is agrees


def test_policies_are_compared_by_seed_and_only_if_both_were_measured() -> None:
    packing = runs(Policy.PACKING, machines=[100, 200])
    assert list(verdicts({"packing": packing})) == []
    hybrid = list(reversed(runs(Policy.HYBRID, machines=[100, 200])))
    verdict, *_ = verdicts({"packing": packing, "hybrid": hybrid})
    assert verdict.measured.mean == 0
    assert verdict.measured.half == 0


def test_every_statement_has_its_row() -> None:
    same = {policy.value: runs(policy, machines=[1, 1]) for policy in Policy}
    lines = list(statements_table(list(verdicts(same))))
    assert len(lines) == 2 + len(STATEMENTS)
    assert all(line.endswith("| 0.0 ± 0.0 | no |") for line in lines[2:])
