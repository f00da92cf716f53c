"""Writes the figures of docs/performance.md: `python docs/performance_tables.py REPORT...`.

The reports come from `kschedfw bench --json`. Each fills the table of its kind: of the workloads, of growth by nodes,
by placed pods or by devices; the others stay as they are. Workloads about devices have tables of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kschedfw.bench.workloads import WORKLOADS

PAGE = Path(__file__).parent / "performance.md"

Report = Mapping[str, Any]

_PARTS = {"algorithm": "algorithm", "end-to-end": "end to end"}
_SAMPLINGS = {0: "default", 100: "all nodes"}
_GROWN = {
    "nodes": ("nodes", "KiB/node"),
    "pods": ("placed before", "KiB/placed pod"),
    "devices": ("devices of each node", "KiB/device"),
}
_LEFT = {"workload", "part", "sampling"}


def filled(page: str, report: Report) -> str:
    """The page with the report's figures in place of those that it had."""
    growth = report["growth"]
    table = "workloads" if growth is None else f"growth-{growth['axis']}"
    measured = report["measurements"] if growth is None else [row["measurement"] for row in growth["rows"]]
    if all(WORKLOADS[each["workload"]].devices for each in measured):
        table = f"device-{table}"
    begin, end = f"<!-- figures: {table} -->\n", "<!-- end of figures -->"
    before, found, rest = page.partition(begin)
    if not found:
        raise SystemExit(f"{PAGE.name} has no line {begin.strip()}")
    lines = _workloads(report) if growth is None else _growth(growth)
    return f"{before}{begin}\n" + "\n".join([*lines, "", _origin(report), "", end]) + rest.partition(end)[2]


def _origin(report: Report) -> str:
    machine = report["machine"]
    return (
        f"kschedfw {machine['kschedfw']}, {machine['python']}, NumPy {machine['numpy']}, {machine['system']}, "
        f"{machine['cpus']} CPUs."
    )


def _workloads(report: Report) -> Iterator[str]:
    def row(measured: Report) -> Sequence[str]:
        latency, yardstick = measured["latencySeconds"], measured["kubeSchedulerPodsPerSecond"]
        return (
            measured["workload"],
            _PARTS[measured["part"]],
            _SAMPLINGS.get(measured["percentage"], f"{measured['percentage']} %"),
            f"{measured['podsPerSecond']:,.0f}",
            _milliseconds(latency["p50"]),
            _milliseconds(latency["p99"]),
            _mib(measured),
            "" if yardstick is None else f"{yardstick:,.0f}",
            "" if yardstick is None else f"{measured['podsPerSecond'] / yardstick:,.2f}",
        )

    headers = ("workload", "part", "sampling", "pods/s", "p50", "p99", "memory", "kube-scheduler", "ratio")
    yield from _table(headers, map(row, report["measurements"]))


def _growth(growth: Report) -> Iterator[str]:
    def row(each: Report) -> Sequence[str]:
        measured = each["measurement"]
        per_pod = 1 / measured["podsPerSecond"] if measured["podsPerSecond"] else 0.0
        latency = measured["latencySeconds"]
        return (
            f"{each['size']:,}",
            _milliseconds(per_pod),
            _milliseconds(latency["p50"]),
            _milliseconds(latency["p99"]),
            f"{each['bytesEach'] / 1024:,.2f}",
            _mib(measured),
        )

    grown, each = _GROWN[growth["axis"]]
    yield from _table((grown, "per pod", "p50", "p99", each, "memory"), map(row, growth["rows"]))


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headers)} |"
    yield f"| {' | '.join('---' if header in _LEFT else '---:' for header in headers)} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.2f} ms"


def _mib(measured: Report) -> str:
    size = measured["peakResidentBytes"]
    return "?" if size is None else f"{size / (1 << 20):,.0f} MiB"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    for path in sys.argv[1:]:
        text = filled(text, json.loads(Path(path).read_text(encoding="utf-8")))
    PAGE.write_text(text, encoding="utf-8")
