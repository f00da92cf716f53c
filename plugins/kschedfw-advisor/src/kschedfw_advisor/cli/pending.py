"""`kschedfw pending`: why pods are pending, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from kschedfw import Node
from kschedfw.cli import (
    ExitCode,
    IntRange,
    UsageError,
    check_name,
    cluster_argument,
    print_json,
)
from kschedfw.cluster import WorkloadName, workload_of, workload_of_controller
from kschedfw_advisor.cli.node_groups import node_group_option
from kschedfw_advisor.cli.pending_output import print_odd_amounts, print_pending, to_json
from kschedfw_advisor.cli.what_if_input import Asked, Question, question_options
from kschedfw_advisor.lint import odd_amounts
from kschedfw_advisor.node_groups import NodeGroup
from kschedfw_advisor.pending import About, explain_pending, kinds_by_default, not_misspelt

PENDING_HELP = """Show why pods are pending, and what would help: for each kind of them the smallest changes that do.

CLUSTER is as for simulate. The pending pods are scheduled first; those without a place are grouped by why. For each
kind of pod, changes are tried one by one in a copy of the cluster: a label, a toleration, more CPU on a node or less in
the request, another pod deleted, one more node like one that is there or of --node-group, and others. What is shown as
a help was tried, and it helped. Nothing is preempted for it. All pending pods are scheduled; with --namespace or
--workload only those of one are shown.

\b
Exit codes:
  0    no pod is pending without a place
  1    some are; or a plugin failed (see standard error)
  2    bad usage or bad input
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""


@click.command("pending", help=PENDING_HELP)
@cluster_argument
@node_group_option
@question_options
@click.option(
    "--top",
    type=IntRange(1),
    default=3,
    metavar="N",
    help="How many changes to show for each kind of pod.",
)
@click.option(
    "--kinds",
    type=IntRange(0),
    metavar="N",
    help="For how many kinds of pods to look for help, those with the most pods first; by default 20, and more "
    "in clusters of less than 1,000 nodes.",
)
@click.option(
    "--lint/--no-lint",
    is_flag=True,
    help="Also name amounts of memory and storage that are a few bytes, wherever they stand: 512m for 512Mi.",
)
@click.option(
    "--workload",
    metavar="KIND/NAME",
    help="Tell only of the pods of this workload: deployment/web or deployment/shop/web.",
)
def pending(
    cluster: Sequence[Path],
    groups: Sequence[NodeGroup],
    question: Question,
    top: int,
    kinds: int | None,
    lint: bool,
    workload: str | None,
) -> None:
    with question.about(cluster, namespaces=True) as asked:
        about = _about(asked, workload)
        with question.progress_bar() as progress:
            answer = explain_pending(
                asked.what_if,
                groups,
                most=kinds_by_default(len(asked.what_if.cluster.list(Node))) if kinds is None else kinds,
                reports=asked.background.reports,
                progress=progress,
                about=about,
            )
        background = asked.background.without(answer.uncreated, answer.idle)
        missing = tuple(not_misspelt(background.missing, answer, asked.what_if.cluster))
        background = attrs.evolve(background, missing=missing)
        odd = odd_amounts(asked.what_if.cluster, background.reports.workloads) if lint else ()
        if question.as_json:
            found = to_json(answer, background)
            if lint:
                found["oddAmounts"] = [each.to_json() for each in odd]
            print_json(found)
        else:
            print_pending(answer, background, top=top)
            if odd:
                print_odd_amounts(odd)
    if answer.whys:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)


def _about(asked: Asked, text: str | None) -> About | None:
    """Return a test of the namespaces and workloads that were asked for; None if all are shown.

    Raises:
        UsageError: the workload isn't KIND/NAME, or no pod is of it.
    """
    wanted = asked.namespace
    if text is None:
        return None if wanted is None else lambda namespace, _: namespace == wanted
    name = WorkloadName.parse(text, wanted)
    if name is None:
        raise UsageError(
            f"--workload {text}: expected KIND/NAME or KIND/NAMESPACE/NAME, such as deployment/web"
        )
    pods = asked.what_if.pods
    known = {found for pod in pods if (found := workload_of(pod, asked.what_if.cluster)) is not None}
    known |= {
        workload_of_controller(each.controller, each.pod.partition("/")[0])
        for each in asked.background.reports.refused
        if each.controller is not None
    }
    if not any(map(name.means, known)):
        alike = {str(each.name) for each in known if each.kind.lower() == name.kind}
        check_name(name.kind, name.name, alike - {name.name})
    return lambda _, workload: name.means(workload)
