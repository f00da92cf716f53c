"""Writes a benchmark's measurements as the runs of a tidy table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kschedfw import Evaluation
from kschedfw_lab.bench.growth import Axis
from kschedfw_lab.bench.report import BenchReport
from kschedfw_lab.bench.results import Measurement
from kschedfw_lab.bench.stage import Case
from kschedfw_lab.results.keeping import Keeper
from kschedfw_lab.results.values import Value

REPEAT: Final = "repeat"
FACTORS: Final = (
    "workload",
    "part",
    "percentage",
    "nodes",
    "initial_pods",
    "devices",
    "members",
    "racks",
    "profile",
    "form",
    REPEAT,
)
"""The columns of the factors.

`profile` is `measured`, `default`, or `without` (with --forms, the plugin). `repeat` counts from 1; measuring into the
same directory again continues it.
"""


def keep(report: BenchReport, cases: Mapping[str, Case], keeper: Keeper) -> None:
    """Add all measurements of the report. `cases` are the requested cases by workload."""
    for profile, measurements in (("measured", report.measurements), ("default", report.baseline)):
        for each in measurements:
            factors = _factors(each, profile, cases[each.workload].devices, report.evaluation)
            keeper.add(factors, _metrics(each), repeat=REPEAT)
    for row in report.growth:
        each = row.measurement
        per_node = row.size if report.axis is Axis.DEVICES else cases[each.workload].devices
        factors = _factors(each, "measured", per_node, report.evaluation)
        held = {} if row.bytes_each is None else {"bytes_each": row.bytes_each}
        keeper.add(factors, {**_metrics(each), **held}, repeat=REPEAT)
    if report.forms is not None:
        forms = report.forms
        for runs in forms.runs:
            factors = {
                "workload": forms.workload,
                "part": "algorithm",
                "percentage": forms.percentage,
                "nodes": forms.nodes,
                "initial_pods": forms.initial_pods,
                "devices": cases[forms.workload].devices,
                "members": cases[forms.workload].members,
                "racks": cases[forms.workload].racks,
                "profile": "without" if runs.form is None else "measured",
                "form": "" if runs.form is None else runs.form.value,
            }
            for seconds in runs.seconds:
                metrics = {"seconds_per_pod": seconds, "nodes_asked": runs.asked}
                keeper.add(factors, metrics, repeat=REPEAT)


def _factors(each: Measurement, profile: str, devices: int, evaluation: Evaluation) -> dict[str, Value]:
    return {
        "workload": each.workload,
        "part": each.part.value,
        "percentage": each.percentage,
        "nodes": each.nodes,
        "initial_pods": each.initial_pods,
        "devices": devices,
        "members": each.members,
        "racks": each.racks,
        "profile": profile,
        "form": evaluation.value,
    }


def _metrics(each: Measurement) -> dict[str, float]:
    memory = {} if each.peak_resident_bytes is None else {"peak_resident_bytes": each.peak_resident_bytes}
    calls = {} if each.calls_per_pod is None else {"calls_per_pod": each.calls_per_pod}
    return {
        "pods": each.wanted,
        "finished": each.finished,
        "placed": each.placed,
        "attempts": each.attempts,
        "seconds": each.seconds,
        "seconds_per_pod": each.seconds_per_pod,
        "cpu_seconds_per_pod": each.cpu_seconds_per_pod,
        "pods_per_second": each.pods_per_second,
        "latency_seconds.p50": each.latency.p50,
        "latency_seconds.p99": each.latency.p99,
        "latency_seconds.max": each.latency.max,
        "create_seconds": each.create_seconds,
        "garbage_collection_seconds": each.garbage_collection.seconds,
        **memory,
        **calls,
    }
