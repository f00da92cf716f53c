"""`kschedfw scale-down`: which nodes can go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kschedfw.cli import (
    ExitCode,
    cluster_argument,
    print_json,
)
from kschedfw_advisor.cli.node_groups import node_group_option
from kschedfw_advisor.cli.scale_down_output import print_scale_down, to_json
from kschedfw_advisor.cli.what_if_input import (
    Question,
    delete_emptydir_data_option,
    ignore_pending_option,
    question_options,
    schedule_pending,
)
from kschedfw_advisor.node_groups import NodeGroup
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
  141  the reader of the output has gone
"""


@click.command("scale-down", help=SCALE_DOWN_HELP)
@cluster_argument
@node_group_option
@question_options
@delete_emptydir_data_option
@ignore_pending_option
def scale_down(
    cluster: Sequence[Path],
    groups: Sequence[NodeGroup],
    question: Question,
    delete_emptydir_data: bool,
    ignore_pending: bool,
) -> None:
    with question.about(cluster) as asked:
        with question.progress_bar() as progress:
            schedule_pending(asked, ignore=ignore_pending, progress=progress)
            answer = plan_scale_down(
                asked.what_if, groups, delete_emptydir_data=delete_emptydir_data, progress=progress
            )
        if question.as_json:
            print_json(to_json(answer, asked.background))
        else:
            print_scale_down(answer, asked.background)
    if not answer.removals:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)
