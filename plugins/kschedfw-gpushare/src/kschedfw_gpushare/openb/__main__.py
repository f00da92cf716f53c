"""`python -m kschedfw_gpushare.openb`: FGD's evaluation, with the published figures beside the measured ones."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kschedfw_lab import (
    add_options,
    by_policy,
    digest_of,
    engine_of,
    exit_code,
    reproduce,
    run_command,
    tell,
)

from kschedfw import load_configuration
from kschedfw_gpushare.args import Policy
from kschedfw_gpushare.openb.contenders import PLUGIN_POLICY, OfConfiguration, OfPlugin, OfPolicy
from kschedfw_gpushare.openb.figures import PUBLISHED, PUBLISHED_NAMES, as_json, read_published, tables
from kschedfw_gpushare.openb.tasks import Named, tasks_of
from kschedfw_gpushare.plugin import GpuShare

NODES = "openb_node_list_gpu_node.csv"
PODS = "openb_pod_list_default.csv"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the contenders, print their figures beside the published ones, and return the exit code."""
    options = _parser().parse_args(arguments)
    return run_command("openb", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    published = read_published(options.data / PUBLISHED, Path(options.pods).stem)
    nodes, pods = (options.data / options.nodes).absolute(), (options.data / options.pods).absolute()
    tasks, distributions = tasks_of(_contenders(options), nodes, pods, options.seeds)
    with engine_of(options, distributions) as engine:
        reproduced = reproduce(tasks, options.out, engine, resume=options.resume, tell=tell)
    runs = by_policy(reproduced.results)
    if options.json:
        sys.stdout.write(json.dumps(as_json(runs, published)) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in tables(runs, published))
    return exit_code(reproduced, tasks)


def _contenders(options: argparse.Namespace) -> Mapping[str, Named]:
    """Return the contenders by the names that they have in tables.

    Raises KschedfwError or OSError: a configuration can't be read.
    """
    chosen = options.policy or ([] if options.plugin or options.config else ["all"])
    policies = tuple(map(Policy, PUBLISHED_NAMES)) if "all" in chosen else tuple(map(Policy, chosen))
    found = {policy.value: Named(OfPolicy(policy), "policy") for policy in policies}
    for name in options.plugin:
        label = f"{name} ({PLUGIN_POLICY.value})" if name == GpuShare.name else name
        found[label] = Named(OfPlugin(name), "plugin")
    names = [file.name for file in options.config]
    for file in options.config:
        is_ambiguous = names.count(file.name) > 1 or file.name in found
        contender = OfConfiguration(load_configuration(file))
        found[str(file) if is_ambiguous else file.name] = Named(contender, digest_of(file))
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kschedfw_gpushare.openb",
        description="Measure how much of a cluster's GPUs policies allocate on the OpenB trace, by the protocol of "
        "FGD's authors.",
    )
    add_options(parser, seeds="42-51", directory="openb")
    parser.add_argument("--nodes", default=NODES, metavar="FILE", help="the nodes' file in it (%(default)s)")
    parser.add_argument("--pods", default=PODS, metavar="FILE", help="the pods' file in it (%(default)s)")
    parser.add_argument(
        "--policy",
        action="append",
        choices=["all", *(each.value for each in Policy)],
        help="of GpuShare; again for another one (all, if neither plugins nor configurations are named)",
    )
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="an installed plugin whose score takes the policy's place; again for another one",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a KubeSchedulerConfiguration, for everything else; again for another one",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
