"""What pods cost over time, as a multiple of a yardstick: a command.

    python -m tests.benchmarks.history            measure, and compare with the history
    python -m tests.benchmarks.history --append   measure, compare, and add a line to the history

Each row is a small workload. Between its pods a loop is run that has nothing to do with kschedfw, and a pod's cost is
told in such loops, by the processor's time. So the machine, and who else uses it, matter little. The history is
`benchmarks/history.jsonl`; each line has the cost by row, and a name for the state of the code. A cost of more than
1.2 times the median of the last five lines is called a regression, and measured once more before it is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import attrs
import numpy as np
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.results import Part
from kschedfw_lab.bench.stage import ADAPTIVE, ALL_NODES, Case

from kschedfw import Registry

FILE = Path(__file__).parents[2] / "benchmarks" / "history.jsonl"
REGRESSION = 1.2
"""How many times as much as before is one."""
LINES = 5
"""How many lines back "before" reaches."""

_NODES, _INITIAL, _PODS = 1_000, 200, 150


def _row(workload: str, part: Part = Part.ALGORITHM, percentage: int = ALL_NODES) -> Case:
    return Case(workload, _NODES, _INITIAL, _PODS, part, percentage)


ROWS: Mapping[str, Case] = {
    "basic": _row("basic"),
    "basic, default sampling": _row("basic", percentage=ADAPTIVE),
    "basic, end to end": _row("basic", Part.END_TO_END),
    "basic-distinct": _row("basic-distinct"),
    "basic-distinct, default sampling": _row("basic-distinct", percentage=ADAPTIVE),
    "node-affinity-distinct": _row("node-affinity-distinct"),
    "topology-spreading": _row("topology-spreading"),
    "topology-spreading-distinct": _row("topology-spreading-distinct"),
    "preferred-pod-affinity": _row("preferred-pod-affinity"),
    "preferred-pod-affinity-distinct": _row("preferred-pod-affinity-distinct"),
    "openb": _row("openb"),
}


class Yardstick:
    """A loop of Python and NumPy, as scheduling has them, and how long it took each time."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._numbers = np.arange(5_000, dtype=np.int64)

    def run(self) -> None:
        began = time.process_time()
        counts: dict[str, int] = {}
        for number in range(400):
            key = f"{number % 40}"
            counts[key] = counts.get(key, 0) + number
        for factor in range(1, 11):
            (self._numbers * factor > 7_000).any()
        self.seconds.append(time.process_time() - began)


def cost(case: Case, registry: Registry) -> float:
    """What a pod costs, in loops of the yardstick: the median of each, so that a few slow ones don't count."""
    yardstick = Yardstick()
    measured = measure(case, time.process_time, registry=registry, between=yardstick.run)
    return measured.latency.p50 / median(yardstick.seconds)


@attrs.frozen
class Entry:
    """A line of the history: the state of the code, and the cost by row."""

    name: str
    costs: Mapping[str, float]

    def to_line(self) -> str:
        return json.dumps(
            {"name": self.name, "costs": {row: round(cost, 3) for row, cost in self.costs.items()}}
        )


def read(file: Path) -> list[Entry]:
    """The history, oldest first; empty if there is none."""
    if not file.exists():
        return []
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [Entry(line["name"], line["costs"]) for line in lines]


def before(row: str, history: Sequence[Entry]) -> float | None:
    """What the row has cost lately; None if it is new."""
    costs = [entry.costs[row] for entry in history if row in entry.costs]
    return median(costs[-LINES:]) if costs else None


def is_regression(cost: float, row: str, history: Sequence[Entry]) -> bool:
    known = before(row, history)
    return known is not None and cost > REGRESSION * known


def compared(costs: Mapping[str, float], history: Sequence[Entry]) -> Iterator[str]:
    """The table, a line a row."""
    yield f"{'row':<36}{'loops':>8}{'before':>8}{'ratio':>8}"
    for row, found in costs.items():
        known = before(row, history)
        line = f"{row:<36}{found:>8.2f}"
        if known is not None:
            line += f"{known:>8.2f}{found / known:>8.2f}"
        yield line + ("  REGRESSION" if is_regression(found, row, history) else "")


def measured(rows: Mapping[str, Case], history: Sequence[Entry]) -> dict[str, float]:
    """The cost of each row; where it looks like a regression, the lower one of two."""
    registry = Registry()
    costs: dict[str, float] = {}
    for row, case in rows.items():
        costs[row] = cost(case, registry)
        if is_regression(costs[row], row, history):
            costs[row] = min(costs[row], cost(case, registry))
    return costs


def main(arguments: Sequence[str], rows: Mapping[str, Case] = ROWS, file: Path = FILE) -> None:
    if unknown := set(arguments) - {"--append"}:
        raise SystemExit(f"unknown argument {min(unknown)}; there is --append")
    history = read(file)
    costs = measured(rows, history)
    print(*compared(costs, history), sep="\n")
    if "--append" in arguments:
        with file.open("a", encoding="utf-8") as lines:
            print(Entry(_state_of_the_code(), costs).to_line(), file=lines)


def _state_of_the_code() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=FILE.parent,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return described.stdout.strip() or "unknown"


if __name__ == "__main__":
    main(sys.argv[1:])
