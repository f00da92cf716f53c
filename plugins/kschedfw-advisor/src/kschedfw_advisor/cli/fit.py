"""`kschedfw fit`: how many more replicas of a pod, or copies of a group of pods, a cluster takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from kschedfw.cli import (
    FILE,
    ExitCode,
    IntRange,
    UsageError,
    cluster_argument,
    print_json,
)
from kschedfw_advisor.cli.fit_output import Answer, Fits, print_fit
from kschedfw_advisor.cli.pod_templates import PodOptions, PodTemplate, Template, read_pod_templates
from kschedfw_advisor.cli.what_if_input import (
    Question,
    ignore_pending_option,
    question_options,
    schedule_pending,
)
from kschedfw_advisor.quotas import allowances
from kschedfw_advisor.turns import Wanted, fit_in_turns
from kschedfw_advisor.turns import fit as fit_one

FIT_HELP = """Show how many more replicas of a pod fit, where, and what stops the next.

CLUSTER is as for simulate. The pod is that of --pod FILE: a Pod, or a workload with a template of one. Without a file,
it is a pod of one container with --cpu and --memory. With several pods, the answer is given for each by itself, and for
all together, a replica of each in turn.

Where the configuration's feature gates have groups of pods scheduled together, the pods of a PodGroup are one: the
answer is how many copies of the group fit with all their pods.

Replicas are placed as kube-scheduler places them, without preemption. The cluster's own pending pods are scheduled
first. Where the pod's namespace has a ResourceQuota, the answer says how many replicas that allows, too.

\b
Exit codes:
  0    a replica fits, or a copy of the group (of several: one of each)
  1    none fits, or a quota allows none; or a plugin failed (see standard
       error)
  2    bad usage or bad input
  70   a bug in kschedfw
  130  interrupted
  141  the reader of the output has gone
"""


@click.command("fit", help=FIT_HELP)
@cluster_argument
@click.option(
    "--pod", type=FILE, multiple=True, metavar="FILE", help="The manifest of a pod or workload. Repeatable."
)
@click.option(
    "--image",
    default="",
    show_default=False,
    metavar="NAME",
    help="The image of the pod's (first) container.",
)
@click.option(
    "--cpu",
    default="",
    show_default=False,
    metavar="AMOUNT",
    help="The CPU that its container requests, e.g. 500m.",
)
@click.option(
    "--memory",
    default="",
    show_default=False,
    metavar="AMOUNT",
    help="The memory that its container requests, e.g. 1Gi.",
)
@click.option(
    "--at-most",
    type=IntRange(1, 1_000_000),
    default=10_000,
    metavar="N",
    help="Stop after so many replicas of a pod.",
)
@question_options
@ignore_pending_option
@click.option("--top", type=IntRange(1), default=5, metavar="N", help="How many nodes to name in each row.")
def fit(
    cluster: Sequence[Path],
    pod: Sequence[Path],
    image: str,
    cpu: str,
    memory: str,
    at_most: int,
    question: Question,
    ignore_pending: bool,
    top: int,
) -> None:
    requested = PodOptions(image, cpu, memory)
    with question.about(cluster) as asked:
        with question.progress_bar() as progress:
            what_if = asked.what_if
            found = read_pod_templates(
                pod, requested, question.given.reading, what_if.cluster, what_if.feature_gates
            )
            templates = found.templates
            _check_schedulers(templates, asked.scheduler_names)
            schedule_pending(asked, ignore=ignore_pending, progress=progress)
            wanted = [_wanted(each) for each in templates]
            with what_if.transaction() as trial:
                found.add_objects(trial, what_if.cluster)
                alone = [
                    fit_one(
                        trial, wanting, at_most, None if progress is None else partial(progress, each.name)
                    )
                    for each, wanting in zip(templates, wanted, strict=True)
                ]
                together = None
                if len(wanted) > 1:
                    together = fit_in_turns(
                        trial, wanted, at_most, None if progress is None else partial(progress, "together")
                    )
                cluster_now, pods_of_each = what_if.cluster, [each.pods for each in templates]
                allowed = [allowances([pods], cluster_now, at_most)[0] for pods in pods_of_each]
                allowed_together = allowances(pods_of_each, cluster_now, at_most)
        answer = Answer(
            tuple(map(Fits, templates, alone, allowed)),
            None if together is None else tuple(map(Fits, templates, together, allowed_together)),
            at_most,
            len(what_if.nodes),
            asked.background,
        )
        if question.as_json:
            print_json(answer.to_json())
        else:
            print_fit(answer, top=top)
    if not all(each.fit.count and (each.allowed is None or each.allowed.count) for each in answer.alone):
        raise click.exceptions.Exit(ExitCode.NOTHING_TO_DO)


def _wanted(template: Template) -> Wanted:
    return template.pod if isinstance(template, PodTemplate) else template


def _check_schedulers(templates: Sequence[Template], known: Sequence[str]) -> None:
    for each in templates:
        for pod in each.pods:
            if (name := pod.spec.scheduler_name) not in known:
                raise UsageError(
                    f"{each}: spec.schedulerName: no profile is named {name}; there is {', '.join(known)}"
                )
