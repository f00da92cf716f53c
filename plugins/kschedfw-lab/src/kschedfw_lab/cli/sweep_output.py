"""Prints the output of `kschedfw sweep`: the list of runs, a line of JSON for each, and the summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kschedfw.api.reading import printable
from kschedfw.cli import counted, print_json_line, tell
from kschedfw_lab.sweep.engine import Engine
from kschedfw_lab.sweep.plan import Plan
from kschedfw_lab.sweep.runs import Run, RunOutcome
from kschedfw_lab.sweep.sweeping import Summary


def print_run(run: Run, outcome: RunOutcome, done: int, total: int) -> None:
    """Print a finished run as a line of JSON."""
    print_json_line(
        {
            **_run_json(run),
            "metrics": dict(outcome.metrics),
            "error": outcome.error,
            "done": done,
            "total": total,
        }
    )


def print_dry_run(plan: Plan, todo: Sequence[Run], seconds: float, engine: Engine, *, as_json: bool) -> None:
    """Print the runs to do, one a line, and how long they take if each takes as long as the first one."""
    in_all = seconds * len(todo) / min(engine.workers, max(1, len(todo)))
    if as_json:
        for run in todo:
            print_json_line(_run_json(run))
        print_json_line(
            {"runs": len(plan.runs), "toDo": len(todo), "secondsPerRun": seconds, "seconds": in_all}
        )
        return
    for run in todo:
        print(f"{run.key}  {values_of(run)}")
    if todo:
        print()
    print(f"{_counts(plan, len(todo))} on {engine.name}")
    if todo:
        print(f"about {duration(in_all)}, if all take as long as the first one: {duration(seconds)}")


def print_summary(summary: Summary, plan: Plan, directory: Path, seconds: float, *, as_json: bool) -> None:
    """Print a summary of the sweep, and on stderr why runs have failed."""
    if summary.stale:
        stale = (
            f"{counted(len(summary.stale), 'run')} of another specification, or of other inputs or versions"
        )
        tell([f"note: {directory}: has {stale}; the tables leave them out"])
    errors = Counter(each.error for each in summary.results.runs() if each.error)
    tell([f"{counted(count, 'run')} failed: {error}" for error, count in errors.most_common()])
    if as_json:
        print_json_line(
            {
                "results": str(directory),
                "runs": len(plan.runs),
                "done": summary.done,
                "failed": summary.failed,
                "skipped": summary.skipped,
                "stale": len(summary.stale),
                "interrupted": summary.interrupted,
                "elapsedSeconds": seconds,
            }
        )
        return
    missing = len(plan.runs) - summary.done - summary.skipped
    parts = [f"{counted(summary.done, 'run')} done in {duration(seconds)}"]
    if summary.skipped:
        parts.append(f"{summary.skipped:,} there already")
    if summary.failed:
        parts.append(f"{summary.failed:,} failed")
    if missing:
        parts.append(f"{missing:,} missing, --resume does the rest")
    print("; ".join(parts))
    print(f"results: {directory}")


def values_of(run: Run) -> str:
    """Format the run's factors with their values."""
    return " ".join(f"{name}={printable(_text(value))}" for name, value in run.values.items())


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _counts(plan: Plan, todo: int) -> str:
    parts = [counted(todo, "run")]
    if plan.excluded:
        parts.append(f"{plan.excluded:,} excluded by constraints")
    if plan.repeated:
        parts.append(f"{plan.repeated:,} drawn twice")
    if skipped := len(plan.runs) - todo:
        parts.append(f"{skipped:,} done already")
    return f"{parts[0]} ({', '.join(parts[1:])})" if parts[1:] else parts[0]


def duration(seconds: float) -> str:
    """Format seconds for people: `0.12 s`, `48 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 9.5:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _run_json(run: Run) -> dict[str, object]:
    return {"run": run.key, "factors": dict(run.values)}
