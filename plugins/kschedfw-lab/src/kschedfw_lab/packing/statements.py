"""The statements of Borg's authors about spreading and packing, with the measured figures, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from kschedfw_lab.packing.compaction import PODS
from kschedfw_lab.packing.policies import Policy
from kschedfw_lab.report.statistics import Estimate
from kschedfw_lab.results.results import RunResult

Runs = Mapping[str, Sequence[RunResult]]
"""The runs of each policy, ordered by seed."""


@attrs.frozen
class Measure:
    """A metric as a row of the table. Shares are shown in percent."""

    metric: str
    text: str
    is_share: bool = False


MEASURES: Final = (
    Measure("refused", "pods refused, %", is_share=True),
    Measure("refused.large", "pods with 8 GPUs refused, %", is_share=True),
    Measure("room.large", "machines with room for another one"),
    Measure("empty_machines", "machines without pods"),
    Measure("utilisation.gpus", "GPUs allocated, %", is_share=True),
    Measure("utilisation.cpu", "CPU allocated, %", is_share=True),
    Measure("stranded.gpus", "idle GPUs that a typical pod can't use, %", is_share=True),
    Measure("stranded.cpu", "idle CPU that a typical pod can't use, %", is_share=True),
    Measure("machines", f"machines that {PODS:,} pods need"),
    Measure("machines.without_gpus", "machines that they need, without their GPUs"),
)


def table(runs: Runs) -> Iterator[str]:
    """Yield a Markdown table of means with 95 % intervals, with a column per policy."""
    yield "| |" + "".join(f" {policy} |" for policy in runs)
    yield "| --- |" + " ---: |" * len(runs)
    for measure in MEASURES:
        cells = (_cell(measure, [run.metrics[measure.metric] for run in of_one]) for of_one in runs.values())
        yield f"| {measure.text} |" + "".join(f" {cell} |" for cell in cells)


def _cell(measure: Measure, values: Sequence[float]) -> str:
    found = Estimate.of([100 * value for value in values] if measure.is_share else values)
    return _shown(found)


def _shown(found: Estimate) -> str:
    mean = round(found.mean, 1) + 0.0  # Adding 0.0 turns -0.0 into 0.0.
    return f"{mean:.1f}" + ("" if found.half is None else f" ± {found.half:.1f}")


@attrs.frozen
class Statement:
    """A published statement, and the difference between two policies that shows it.

    `first` and `second` are policies. Their values of `metric` are compared seed by seed: first minus second, or this
    difference in percent of the second if `relative`. The statement holds if the whole 95 % interval is between `least`
    and `most`.
    """

    text: str
    published: str
    metric: str
    first: Policy
    second: Policy
    least: float
    most: float = float("inf")
    is_share: bool = False
    relative: bool = False


STATEMENTS: Final = (
    Statement(
        "Spreading fragments, so that large tasks find no place: more of them are refused, in points",
        "more",
        "refused.large",
        Policy.SPREADING,
        Policy.PACKING,
        least=0,
        is_share=True,
    ),
    Statement(
        "Best fit leaves machines empty: more of them, machines",
        "more",
        "empty_machines",
        Policy.PACKING,
        Policy.SPREADING,
        least=0,
    ),
    Statement(
        "… which makes it easy to place large tasks: more machines have room for one, machines",
        "more",
        "room.large",
        Policy.PACKING,
        Policy.SPREADING,
        least=0,
    ),
    Statement(
        "A hybrid that strands less packs better than best fit: best fit needs more machines, %",
        "3 to 5",
        "machines",
        Policy.PACKING,
        Policy.HYBRID,
        least=3,
        most=5,
        relative=True,
    ),
    Statement(
        "… the same, where only CPU and memory count, %",
        "3 to 5",
        "machines.without_gpus",
        Policy.PACKING,
        Policy.HYBRID,
        least=3,
        most=5,
        relative=True,
    ),
)


@attrs.frozen
class StatementVerdict:
    """The measured difference for a statement, and whether it agrees with the statement."""

    statement: Statement
    measured: Estimate
    agrees: bool


def verdicts(runs: Runs) -> Iterator[StatementVerdict]:
    """Yield the verdicts on statements whose two policies were measured with the same seeds."""
    for statement in STATEMENTS:
        if statement.first not in runs or statement.second not in runs:
            continue
        second = {run.factors["seed"]: run.metrics[statement.metric] for run in runs[statement.second]}
        differences = [
            _difference(statement, run.metrics[statement.metric], second[run.factors["seed"]])
            for run in runs[statement.first]
            if run.factors["seed"] in second
        ]
        if differences:
            found = Estimate.of(differences)
            low = found.mean if found.low is None else found.low
            high = found.mean if found.high is None else found.high
            is_more = low > 0 if statement.least == 0 else low >= statement.least
            yield StatementVerdict(statement, found, is_more and high <= statement.most)


def _difference(statement: Statement, first: float, second: float) -> float:
    if statement.relative:
        return 100 * (first / second - 1)
    return (first - second) * (100 if statement.is_share else 1)


def statements_table(found: Sequence[StatementVerdict]) -> Iterator[str]:
    """Yield a Markdown table with each statement, the published and the measured value."""
    yield "| statement | published | measured | agrees |"
    yield "| --- | ---: | ---: | --- |"
    for each in found:
        agrees = "yes" if each.agrees else "no"
        yield f"| {each.statement.text} | {each.statement.published} | {_shown(each.measured)} | {agrees} |"
