"""`kschedfw scale-down`: which nodes can go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kschedfw.cli import (
    ClusterOptions,
    ExitCode,
    cluster_argument,
    cluster_options,
    json_option,
    labelled_progress_bar,
    no_progress_option,
    print_json,
    seed_option,
)
from kschedfw_advisor.cli.node_groups import node_group_option, node_groups_of
from kschedfw_advisor.cli.scale_down_output import print_scale_down, to_json
from kschedfw_advisor.cli.what_if_input import (
    asked_about,
    ignore_pending_option,
    schedule_pending,
)
from kschedfw_advisor.scale_down import plan_scale_down

SCALE_DOWN_HELP = """Show which nodes can go, such that their pods find another place, or be replaced by cheaper ones.

CLUSTER is as for simulate. A node's price is in its annotation kschedfw/price, or is that of its group: --node-group
FILE has groups as for scale-up, of which only nodes beyond their min go. Nodes are replaced by those of the groups, or,
without groups, by more of those that are there. Nothing is removed in earnest.

Pods are evicted as far as PodDisruptionBudgets allow, in rounds, and are scheduled again without preemption. Nodes of
the control plane stay, and so do nodes with pods that have no controller, or data in emptyDir or hostPath volumes;
cluster-autoscaler's annotations safe-to-evict, safe-to-evict-local-volumes and scale-down-disabled say otherwise. The
cluster's own pending pods are scheduled before all that.

\b
Exit codes:
  0    nodes can go, or be replaced by cheaper ones
  1    all nodes have to stay; or a plugin failed (see standard error)
  2    bad usage or bad input
  70   a bug in kschedfw
  130  interrupted
"""


@click.command("scale-down", help=SCALE_DOWN_HELP)
@cluster_argument
@node_group_option
@cluster_options
@click.option(
    "--delete-emptydir-data",
    is_flag=True,
    help="Let pods with emptyDir volumes move, whose data is lost by it.",
)
@ignore_pending_option
@seed_option
@json_option
@no_progress_option
def scale_down(
    cluster: Sequence[Path],
    node_group: Sequence[Path],
    given: ClusterOptions,
    delete_emptydir_data: bool,
    ignore_pending: bool,
    seed: int,
    as_json: bool,
    no_progress: bool,
) -> None:
    groups = node_groups_of(node_group)
    with asked_about(cluster, given, seed=seed, show_progress=not no_progress) as asked:
        with labelled_progress_bar(enabled=not no_progress) as progress:
            schedule_pending(asked, ignore=ignore_pending, progress=progress)
            answer = plan_scale_down(
                asked.what_if, groups, delete_emptydir_data=delete_emptydir_data, progress=progress
            )
        if as_json:
            print_json(to_json(answer, asked.background))
        else:
            print_scale_down(answer, asked.background)
    if not answer.removals:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)
