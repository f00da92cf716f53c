"""An analysis as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from kschedfw_lab.report.analysis import Analysis
from kschedfw_lab.report.comparison import Cell, Difference, MetricTable, Row
from kschedfw_lab.report.statistics import Estimate
from kschedfw_lab.results.values import Value

Json: TypeAlias = Mapping[str, object]


def document(analysis: Analysis) -> dict[str, object]:
    """Return the whole analysis in the format that docs/report.md describes."""
    question = analysis.question
    return {
        "runs": analysis.runs,
        "compared": list(question.compared),
        "baseline": dict(zip(question.compared, question.baseline, strict=True)),
        "over": list(question.over),
        "constants": dict(analysis.constants),
        "notes": list(analysis.notes),
        "metrics": [_metric(analysis, table) for table in analysis.tables],
        "failed": [
            {"run": run.run, "factors": dict(run.factors), "error": run.error} for run in analysis.failed
        ],
        "unpaired": [
            {
                "context": _context(analysis, each.context),
                "treatment": _treatment(analysis, each.treatment),
                "repetition": _named(question.over, each.repetition),
                "why": each.why,
            }
            for each in analysis.unpaired
        ],
    }


def _metric(analysis: Analysis, table: MetricTable) -> Json:
    return {
        "metric": table.metric,
        "direction": table.direction.value,
        "overall": [_row(analysis, row) for row in table.overall],
        "contexts": [_row(analysis, row) for row in table.rows] if analysis.context_factors else [],
    }


def _row(analysis: Analysis, row: Row) -> Json:
    return {
        "context": _context(analysis, row.context),
        "treatment": _treatment(analysis, row.treatment),
        "isBaseline": row.treatment == analysis.baseline,
        **_estimate("values", row.estimate),
        "difference": None if row.difference is None else _difference(row.difference),
    }


def _difference(difference: Difference) -> Json:
    return {
        **_estimate("pairs", difference.estimate),
        "p": difference.p,
        "correctedP": difference.corrected,
        "verdict": difference.verdict.value,
    }


def _estimate(count: str, estimate: Estimate | None) -> Json:
    if estimate is None:
        return {count: 0, "mean": None, "low": None, "high": None}
    return {count: estimate.count, "mean": estimate.mean, "low": estimate.low, "high": estimate.high}


def _context(analysis: Analysis, place: int | None) -> dict[str, Value]:
    return {} if place is None else _named(analysis.context_factors, analysis.contexts[place])


def _treatment(analysis: Analysis, place: int) -> dict[str, Value]:
    return _named(analysis.question.compared, analysis.treatments[place])


def _named(factors: tuple[str, ...], cell: Cell) -> dict[str, Value]:
    return dict(zip(factors, cell, strict=True))
