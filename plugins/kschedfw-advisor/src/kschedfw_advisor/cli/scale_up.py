"""`kschedfw scale-up`: which new nodes get the pending pods a place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kschedfw.cli import (
    ExitCode,
    UsageError,
    cluster_argument,
    counted,
    print_json,
)
from kschedfw_advisor.cli.node_groups import node_group_option
from kschedfw_advisor.cli.scale_up_output import print_scale_up, to_json
from kschedfw_advisor.cli.what_if_input import Question, question_options
from kschedfw_advisor.node_groups import NodeGroup
from kschedfw_advisor.quotas import uncreated
from kschedfw_advisor.scale_up import plan_scale_up

SCALE_UP_HELP = """Show how many nodes of which group get the pending pods a place, and what they cost.

CLUSTER is as for simulate. --node-group FILE has the groups: a Node that new ones are like, or a mapping with name,
template (a Node), and, as far as wanted, min, max, price, and selector (the labels of the nodes that the group has
already). A Node may have its price in the annotation kschedfw/price.

Pods are scheduled onto the cluster with the new nodes as kube-scheduler does it, without preemption. All pods that can
get a place have one then, and wouldn't with a node less of any group. With the extra optimal (SciPy), all mixtures of
groups are searched, and the answer says how much cheaper another one could be at most.

\b
Exit codes:
  0    all pending pods get a place, or none is pending
  1    some get none, whatever nodes are added; or a plugin failed (see
       standard error)
  2    bad usage or bad input
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""


@click.command("scale-up", help=SCALE_UP_HELP)
@cluster_argument
@node_group_option
@question_options
def scale_up(
    cluster: Sequence[Path],
    groups: Sequence[NodeGroup],
    question: Question,
) -> None:
    if not groups:
        raise UsageError("which nodes could be added? Give --node-group FILE")
    with question.about(cluster) as asked:
        with question.progress_bar() as progress:
            answer = plan_scale_up(asked.what_if, groups, progress)
        lacking = [*uncreated(asked.what_if.cluster, asked.background.reports)]
        background = asked.background.without(lacking)
        background.notes.extend(
            f"{counted(each.pods, 'pod')} of {each.workload} can't be created, whatever nodes there are: {each.reason}"
            for each in lacking
        )
        if question.as_json:
            print_json(to_json(answer, groups, background, lacking))
        else:
            print_scale_up(answer, groups, background)
    if answer.best.refused:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)
