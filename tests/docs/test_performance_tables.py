"""The figures of docs/performance.md come from reports of `kschedfw bench --json`."""

from __future__ import annotations

import re
import runpy
import time
from pathlib import Path
from typing import Any

import attrs
import pytest
from kschedfw_lab.bench.growth import Axis, GrowthRow
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.report import BenchReport, Machine
from kschedfw_lab.bench.results import Measurement
from kschedfw_lab.bench.stage import Case

from kschedfw import Evaluation, Registry, default_profile

SCRIPT = Path(__file__).parents[2] / "docs" / "performance_tables.py"
PAGE: Path = runpy.run_path(str(SCRIPT))["PAGE"]


@pytest.fixture(scope="module")
def measured() -> Measurement:
    return measure(Case("basic", 10, 5, 2), time.perf_counter, registry=Registry())


@pytest.fixture(scope="module")
def workloads(measured: Measurement) -> BenchReport:
    return BenchReport(Machine.this(), default_profile(), Evaluation.MEMO, [measured])


@pytest.fixture(scope="module")
def growth(measured: Measurement) -> BenchReport:
    rows = [GrowthRow(1_234, measured, 512.0)]
    return BenchReport(Machine.this(), default_profile(), Evaluation.MEMO, axis=Axis.PODS, growth=rows)


def filled(page: str, report: dict[str, Any]) -> str:
    text: str = runpy.run_path(str(SCRIPT))["filled"](page, report)
    return text


@pytest.mark.parametrize(("report", "row"), [("workloads", "| basic |  | "), ("growth", "| 1,234 |")])
def test_a_report_fills_its_table_whatever_stood_there(
    report: str, row: str, request: pytest.FixtureRequest
) -> None:
    content = request.getfixturevalue(report).to_json()
    once = filled(PAGE.read_text(encoding="utf-8"), content)
    assert row in once
    assert filled(once, content) == once


def test_workloads_whose_pods_differ_and_those_about_devices_and_groups_have_tables_of_their_own(
    measured: Measurement,
) -> None:
    names = ("basic", "basic-distinct", "claim-template", "claim-template-distinct", "gang", "gang-distinct")
    rows = [attrs.evolve(measured, workload=name, nodes=1_234) for name in names]
    report = BenchReport(Machine.this(), default_profile(), Evaluation.MEMO, rows)
    tables = filled(PAGE.read_text(encoding="utf-8"), report.to_json()).split("<!-- figures: ")[1:]
    found = {
        table.partition(" ")[0]: [
            line.split()[1] for line in table.splitlines() if re.match(r"\| [a-z-]+ \|  \| \d", line)
        ]
        for table in tables
    }
    assert found["workloads"] == ["basic"]
    assert found["distinct-workloads"] == ["basic-distinct"]
    assert found["device-workloads"] == ["claim-template"]
    assert found["device-distinct-workloads"] == ["claim-template-distinct"]
    assert found["group-workloads"] == ["gang"]
    assert found["group-distinct-workloads"] == ["gang-distinct"]


def test_the_tables_leave_each_other_alone(workloads: BenchReport, growth: BenchReport) -> None:
    page = PAGE.read_text(encoding="utf-8")
    either = filled(filled(page, workloads.to_json()), growth.to_json())
    assert either == filled(filled(page, growth.to_json()), workloads.to_json())


def test_a_report_that_names_its_commit_and_date_has_both_below_its_table(workloads: BenchReport) -> None:
    report = workloads.to_json() | {"commit": "abc1234", "date": "2026-11-23"}
    assert f"kschedfw {Machine.this().kschedfw} at abc1234, 2026-11-23, CPython" in filled(
        PAGE.read_text(), report
    )
