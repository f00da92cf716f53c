"""`kschedfw scale-down`: which nodes can go."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from kschedfw.cli import (
    DEFAULT_OPTIONS,
    ClusterArgument,
    ClusterOptions,
    ExitCode,
    NoProgressOption,
    SeedOption,
    labelled_progress_bar,
    with_input_options,
)
from kschedfw_advisor.cli.node_groups import NodeGroupOption, node_groups_of
from kschedfw_advisor.cli.scale_down_output import print_scale_down, to_json
from kschedfw_advisor.cli.what_if_input import (
    IgnorePendingOption,
    JsonOption,
    asked_about,
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

scale_down_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@scale_down_app.command(help=SCALE_DOWN_HELP)
@with_input_options
def scale_down(
    cluster: ClusterArgument = None,
    node_group: NodeGroupOption = None,
    given: ClusterOptions = DEFAULT_OPTIONS,
    delete_emptydir_data: Annotated[
        bool,
        typer.Option(
            "--delete-emptydir-data", help="Let pods with emptyDir volumes move, whose data is lost by it."
        ),
    ] = False,
    ignore_pending: IgnorePendingOption = False,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    no_progress: NoProgressOption = False,
) -> None:
    groups = node_groups_of(node_group or [])
    with asked_about(cluster, given, seed=seed, show_progress=not no_progress) as asked:
        with labelled_progress_bar(enabled=not no_progress) as progress:
            schedule_pending(asked, ignore=ignore_pending, progress=progress)
            answer = plan_scale_down(
                asked.what_if, groups, delete_emptydir_data=delete_emptydir_data, progress=progress
            )
        if as_json:
            print(json.dumps(to_json(answer, asked.background), indent=2, ensure_ascii=False))
        else:
            print_scale_down(answer, asked.background)
    if not answer.removals:
        raise typer.Exit(ExitCode.NOTHING_TO_DO)
