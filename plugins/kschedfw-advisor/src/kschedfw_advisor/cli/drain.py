"""`kschedfw drain`: whether nodes can be drained."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from kschedfw import Node
from kschedfw.cli import (
    ExitCode,
    UsageError,
    check_name,
    print_json,
)
from kschedfw_advisor.cli.drain_output import print_drain, to_json
from kschedfw_advisor.cli.what_if_input import (
    Question,
    delete_emptydir_data_option,
    ignore_pending_option,
    question_options,
    schedule_pending,
)
from kschedfw_advisor.drain_plan import emptydir_data, plan_drain
from kschedfw_advisor.refusal_causes import causes_by_pod

DRAIN_HELP = """Show whether nodes can be drained: where their pods go, in which order, and what stands in the way.

The arguments are CLUSTER NODE...: a file or directory of manifests, as for simulate, and the nodes. With --context or
--kubeconfig, all arguments are nodes. Nothing is drained in earnest.

All nodes are cordoned first. Their pods are evicted as far as PodDisruptionBudgets allow; once these have another
place, what the budgets held back is evicted, and so on. Pods of DaemonSets and mirror pods stay. Pods with emptyDir
volumes are only evicted with --delete-emptydir-data. The cluster's own pending pods are scheduled before all that.

\b
Exit codes:
  0    the nodes can be drained, and every pod finds another place
  1    a pod can't be evicted, finds no place, or has no controller that
       would make it anew; or a plugin failed (see standard error)
  2    bad usage or bad input
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""


@click.command("drain", help=DRAIN_HELP)
@click.argument(
    "arguments", nargs=-1, required=True, metavar="CLUSTER NODE...", help="Manifests, and the nodes to drain."
)
@question_options
@delete_emptydir_data_option
@ignore_pending_option
def drain(
    arguments: Sequence[str],
    question: Question,
    delete_emptydir_data: bool,
    ignore_pending: bool,
) -> None:
    files, nodes = ([], arguments) if question.given.live.is_wanted else (arguments[:1], arguments[1:])
    if not nodes:
        raise UsageError(
            f"{arguments[0]}: a cluster and a node are needed: CLUSTER NODE..., or --context NAME NODE..."
        )
    with question.about([Path(file) for file in files]) as asked:
        with question.progress_bar() as progress:
            known = [node.name for node in asked.what_if.cluster.list(Node)]
            for node in nodes:
                check_name("node", node, known)
            schedule_pending(asked, ignore=ignore_pending, progress=progress)
            with asked.what_if.transaction() as trial:
                plan = plan_drain(
                    asked.what_if,
                    trial,
                    list(dict.fromkeys(nodes)),
                    None if progress is None else partial(progress, "draining"),
                    held_back=(lambda _: None) if delete_emptydir_data else emptydir_data,
                )
                refused = (each.pod for each in plan.steps if each.is_refused)
                causes = causes_by_pod(trial, refused) if question.as_json else {}
        if question.as_json:
            print_json(to_json(plan, asked.background, causes))
        else:
            print_drain(plan, asked.background)
    if not plan.succeeds:
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)
