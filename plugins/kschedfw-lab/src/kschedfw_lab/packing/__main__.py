"""`python -m kschedfw_lab.packing`: compares packing and spreading with the published statements."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

import attrs

from kschedfw.cli import print_json
from kschedfw_lab.packing.churn import measure
from kschedfw_lab.packing.policies import Policy
from kschedfw_lab.packing.statements import StatementVerdict, statements_table, table, verdicts
from kschedfw_lab.packing.workload import NODES, PODS, read_trace
from kschedfw_lab.reproduction import (
    Reproduced,
    add_options,
    by_policy,
    digest_of,
    engine_of,
    exit_code,
    installed,
    reproduce,
    run_command,
    task,
    tell,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the policies, print the published statements beside the measured figures, and return the exit code."""
    options = _parser().parse_args(arguments)
    return run_command("packing", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    nodes, pods = (options.data / options.nodes).absolute(), (options.data / options.pods).absolute()
    read_trace(nodes, pods)
    distributions = installed()
    content = ["packing", digest_of(nodes, pods)]
    tasks = [
        task(
            policy,
            seed,
            partial(measure, nodes, pods, policy, seed),
            content=content,
            distributions=distributions,
        )
        for seed in options.seeds
        for policy in Policy
    ]
    with engine_of(options, distributions) as engine:
        reproduced = reproduce(tasks, options.out, engine, resume=options.resume, tell=tell)
    _show(reproduced, as_json=options.json)
    return exit_code(reproduced, tasks)


def _show(reproduced: Reproduced, *, as_json: bool) -> None:
    runs = by_policy(reproduced.results)
    found = list(verdicts(runs))
    if as_json:
        rows = [{**run.factors, **run.metrics} for of_one in runs.values() for run in of_one]
        print_json({"statements": [_json(each) for each in found], "runs": rows})
    elif runs:
        print(*table(runs), "", *statements_table(found), sep="\n")


def _json(verdict: StatementVerdict) -> dict[str, object]:
    statement = verdict.statement
    return {
        "statement": statement.text,
        "published": statement.published,
        "measured": attrs.asdict(verdict.measured),
        "agrees": verdict.agrees,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kschedfw_lab.packing",
        description="Let pods of the OpenB trace come and go under policies that pack and that spread, find out "
        "into how few machines they can be packed, and hold it against what Borg's authors say of such policies.",
    )
    add_options(parser, seeds="1-10", directory="packing")
    parser.add_argument("--nodes", default=NODES, metavar="FILE", help="the nodes' file in it (%(default)s)")
    parser.add_argument("--pods", default=PODS, metavar="FILE", help="the pods' file in it (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
