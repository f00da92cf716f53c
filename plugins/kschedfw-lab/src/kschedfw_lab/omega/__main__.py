"""`python -m kschedfw_lab.omega`: runs all sweeps, and writes tables and plots."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from kschedfw_lab.omega.page import write_page
from kschedfw_lab.omega.run import run
from kschedfw_lab.omega.sweeps import Point, points
from kschedfw_lab.omega.tables import Row, write_figures, write_runs
from kschedfw_lab.omega.workload import Workload, WorkloadError, openb, published

_PROGRESS = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all sweeps, and write runs.csv, figures.csv and figures.html. Return the exit code: 0, or 2 for bad usage."""
    options = _parser().parse_args(arguments)
    workloads: dict[str, Path | None] = {"published": None}
    if options.openb is not None:
        workloads["openb"] = options.openb
        try:
            # Read only to find errors before any run. The workers read it themselves.
            openb(options.openb)
        except OSError as error:
            print(f"omega: {error.filename}: can't be read: {error.strerror}", file=sys.stderr)
            return 2
        except WorkloadError as error:
            print(f"omega: {error}", file=sys.stderr)
            return 2
    options.out.mkdir(parents=True, exist_ok=True)
    todo = [
        (point, seed, workloads[point.workload])
        for point in points(workloads, options.scale)
        for seed in range(1, options.seeds + 1)
    ]
    rows: list[Row] = []
    with ProcessPoolExecutor(options.workers) as pool:
        for done, found in enumerate(pool.map(_rows, todo, chunksize=4), 1):
            rows += found
            if done % _PROGRESS == 0 or done == len(todo):
                print(f"omega: {done} of {len(todo)} runs", file=sys.stderr)
    write_runs(rows, options.out / "runs.csv")
    write_figures(rows, options.out / "figures.csv")
    write_page(rows, options.out / "figures.html")
    for name in ("runs.csv", "figures.csv", "figures.html"):
        print(options.out / name)
    return 0


def _rows(task: tuple[Point, int, Path | None]) -> list[Row]:
    point, seed, folder = task
    return [Row(point, seed, each) for each in run(_workload(point.rate, folder), point.setting, seed)]


@cache
def _workload(rate: float, folder: Path | None) -> Workload:
    return published(rate) if folder is None else openb(folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kschedfw_lab.omega",
        description="Run the experiments of Omega's paper in virtual time, and write tables and plots: runs.csv has "
        "a row per run and kind of jobs, figures.csv means with 95 % confidence intervals, figures.html the same as "
        "plots, like the paper's figures.",
    )
    parser.add_argument("--out", type=Path, default=Path("omega"), metavar="DIR", help="where they go")
    parser.add_argument("--seeds", type=_at_least_one, default=10, metavar="N", help="runs of each setting")
    parser.add_argument("--openb", type=Path, metavar="DIR", help="the OpenB trace, as a second workload")
    parser.add_argument("--workers", type=_at_least_one, default=2, metavar="N", help="processes")
    parser.add_argument(
        "--scale", type=_above_zero, default=1.0, metavar="X", help="multiplies the virtual time"
    )
    return parser


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number from 1 on")
    return value


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
