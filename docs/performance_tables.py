"""Writes the figures of docs/performance.md: `python docs/performance_tables.py REPORT...`.

The reports come from `kschedfw bench --json`. Each fills the tables of its kind: of the workloads, of growth by nodes,
by placed pods, by devices, or by what groups have; the others stay as they are. Workloads about devices have tables of
their own, and so have those about groups, and those whose pods differ. Every table ends with the machine, and with the
commit and date if the report names them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kschedfw_lab.bench.workloads import DISTINCT_WORKLOADS, find_workload

PAGE = Path(__file__).parent / "performance.md"

Report = Mapping[str, Any]

_PARTS = ("algorithm", "end-to-end")
_GROWN = {
    "nodes": ("nodes", "KiB/node"),
    "pods": ("placed before", "KiB/placed pod"),
    "devices": ("devices of each node", "KiB/device"),
}
_GROWN_GROUPS = {"members": "pods of a group", "racks": "racks"}
_LEFT = {"workload"}


def filled(page: str, report: Report) -> str:
    """The page with the report's figures in place of those that it had."""
    for table, lines in _tables(report):
        begin, end = f"<!-- figures: {table} -->\n", "<!-- end of figures -->"
        before, found, rest = page.partition(begin)
        if not found:
            raise SystemExit(f"{PAGE.name} has no line {begin.strip()}")
        text = "\n".join([*lines, "", _origin(report), "", end])
        page = f"{before}{begin}\n{text}{rest.partition(end)[2]}"
    return page


def _tables(report: Report) -> Iterator[tuple[str, Iterable[str]]]:
    """The tables that the report has figures for: what they are called, and their lines."""
    growth = report["growth"]
    if growth is not None and growth["axis"] in _GROWN_GROUPS:
        yield f"growth-{growth['axis']}", _growth_of_groups(growth)
        return
    if growth is not None:
        about_devices = all(find_workload(row["measurement"]["workload"]).devices for row in growth["rows"])
        yield f"{'device-' * about_devices}growth-{growth['axis']}", _growth(growth)
        return
    rows: dict[str, list[Report]] = {}
    for each in report["measurements"]:
        workload = find_workload(each["workload"])
        kind = "group-" if workload.members else "device-" * bool(workload.devices)
        kind += "distinct-" * (each["workload"] in DISTINCT_WORKLOADS)
        rows.setdefault(f"{kind}workloads", []).append(each)
    for table, measured in rows.items():
        yield table, _workloads(measured)


def _origin(report: Report) -> str:
    machine = report["machine"]
    when = f" at {report['commit']}, {report['date']}" if "commit" in report else ""
    return (
        f"kschedfw {machine['kschedfw']}{when}, {machine['python']}, NumPy {machine['numpy']}, {machine['system']}, "
        f"{machine['cpus']} CPUs."
    )


def _workloads(measurements: Iterable[Report]) -> Iterator[str]:
    """A row for each workload, whose parts and samplings are columns; a cell is empty where nothing was measured."""
    found: dict[str, dict[tuple[str, int], Report]] = {}
    for each in measurements:
        found.setdefault(each["workload"], {})[each["part"], each["percentage"]] = each

    def row(workload: str) -> Sequence[str]:
        measured = found[workload]
        speeds = [_speed(measured.get((part, percentage))) for part in _PARTS for percentage in (0, 100)]
        whole, alone = measured.get(("end-to-end", 0)), measured.get(("algorithm", 0))
        last = ("", "") if whole is None else (_milliseconds(whole["latencySeconds"]["p99"]), _mib(whole))
        return (workload, *speeds, *last, *_beside_kube_scheduler(alone))

    headers = ("workload", "algorithm", "all nodes", "end to end", "all nodes", "p99", "memory")
    yield from _table((*headers, "kube-scheduler", "ratio", "side by side"), map(row, found))


def _speed(measured: Report | None) -> str:
    return "" if measured is None else f"{measured['podsPerSecond']:,.0f}"


def _beside_kube_scheduler(alone: Report | None) -> tuple[str, str, str]:
    """kube-scheduler's speed in pods per second, the ratio to it, and its speed side by side."""
    if alone is None:
        return "", "", ""
    yardstick, beside = alone["kubeSchedulerPodsPerSecond"], alone["kubeSchedulerSideBySidePodsPerSecond"]
    return (
        "" if yardstick is None else f"{yardstick:,.0f}",
        "" if yardstick is None else f"{alone['podsPerSecond'] / yardstick:,.2f}",
        "" if beside is None else f"{beside:,.0f}",
    )


def _growth(growth: Report) -> Iterator[str]:
    def row(each: Report) -> Sequence[str]:
        measured = each["measurement"]
        per_pod = 1 / measured["podsPerSecond"] if measured["podsPerSecond"] else 0.0
        latency = measured["latencySeconds"]
        return (
            f"{each['size']:,}",
            _milliseconds(per_pod),
            _milliseconds(measured["cpuSecondsPerPod"]),
            _milliseconds(latency["p50"]),
            _milliseconds(latency["p99"]),
            f"{each['bytesEach'] / 1024:,.2f}",
            _mib(measured),
        )

    grown, each = _GROWN[growth["axis"]]
    yield from _table((grown, "per pod", "CPU/pod", "p50", "p99", each, "memory"), map(row, growth["rows"]))


def _growth_of_groups(growth: Report) -> Iterator[str]:
    """A row for each size, with what both parts of the scheduler take."""
    by_size: dict[int, dict[str, Report]] = {}
    for each in growth["rows"]:
        by_size.setdefault(each["size"], {})[each["measurement"]["part"]] = each["measurement"]

    def row(size: int) -> Sequence[str]:
        parts = [by_size[size].get(part) for part in _PARTS]
        taken = [
            ""
            if part is None
            else _milliseconds(part["cpuSeconds"] / part["attempts"] if part["attempts"] else 0.0)
            for part in parts
        ]
        return (f"{size:,}", *taken, *map(_speed, parts))

    headers = (_GROWN_GROUPS[growth["axis"]], "algorithm", "end to end", "pods/s", "pods/s end to end")
    yield from _table(headers, map(row, by_size))


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
