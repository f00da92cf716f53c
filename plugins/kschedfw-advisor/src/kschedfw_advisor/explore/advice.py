"""The page's first answer: why pods wait, with changes to try that help them; and whether a node would be emptied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kschedfw import Node, Pod, WhatIf
from kschedfw.api import group_key
from kschedfw.cli import missing_lines
from kschedfw.cluster import Workload, missing_objects
from kschedfw_advisor.causes import Cause, cause_of
from kschedfw_advisor.cli.what_if_output import Background, counts_text
from kschedfw_advisor.drain_plan import DrainPlan, Move
from kschedfw_advisor.explore.changes import EditObjects, EditOf
from kschedfw_advisor.observed import recorded_message
from kschedfw_advisor.pending import Pending, PodKind, Why, explain_pending, kinds_by_default, not_misspelt
from kschedfw_advisor.remedies import Remedy
from kschedfw_advisor.reports import NO_REPORTS, Reports
from kschedfw_advisor.workloads import group_of

_FEWEST_KINDS: Final = 40
"""The number of kinds of pods that the page seeks help for in any cluster: nobody waits for it to be done."""


class Help(msgspec.Struct, frozen=True):
    """A remedy: the number of pods that it places and where, and the number of others that lose their place.

    `change` tries it; None for a remedy that no edit of a manifest makes.
    """

    text: str
    placed: int
    pods: int
    nodes: str
    displaced: int
    change: EditObjects | None


class KindAdvice(msgspec.Struct, frozen=True):
    """Pods that are alike, why they are pending, and what would help; see `PodKind`.

    `workload` is the kind of their workload, empty for a pod by itself; `name` is the workload's name, or the pod's.
    `group` is the key of the PodGroup whose members these are, if they are scheduled together, and empty otherwise.
    `code` and `cause` say why they wait; `message` does so in kube-scheduler's words, `recorded` is what the cluster
    itself says if that differs. A kind that wasn't `seen` has no remedies since none were sought.
    """

    workload: str
    namespace: str
    name: str
    group: str
    pods: list[str]
    code: str
    cause: str
    message: str
    recorded: str
    notes: list[str]
    fits: bool
    seen: bool
    tried: int
    remedies: list[Help]


class Trouble(msgspec.Struct, frozen=True):
    """A workload with a problem beside scheduling, and the cause in a sentence.

    `code` is `not-created` for `number` pods that the API server refuses, so that no scheduler sees them, `not-started`
    for `pods` that have a node and don't start there, and `no-pods` for a workload that nobody makes pods for.
    `workload` is the kind of the workload, empty for a pod by itself, whose name is `name` then.
    """

    code: str
    workload: str
    namespace: str
    name: str
    pods: list[str]
    number: int
    cause: str


class Contradiction(msgspec.Struct, frozen=True):
    """A pod that the cluster calls unschedulable and that has a place here; `likely` is why."""

    pod: str
    node: str
    recorded: str
    likely: str


class Advice(msgspec.Struct, frozen=True):
    """Everything that `kschedfw pending` knows of the cluster.

    `waiting` is the number of pods without a place, all of which are in `kinds`; `placed` is that of other pending
    pods, which find one. `preempted` are pods that these would take the place of. `kinds` and `troubles` begin with
    those of the most pods.
    """

    waiting: int
    placed: int
    kinds: list[KindAdvice]
    troubles: list[Trouble]
    preempted: list[str]
    elsewhere: list[str]
    contradictions: list[Contradiction]
    missing: list[str]
    notes: list[str]


class Emptied(msgspec.Struct, frozen=True):
    """The outcome of a drain that would empty a node.

    `evicted` pods would leave it for `places` other nodes, except the `homeless`, each with the reason why it
    has no other place. `blocked` pods can't be evicted; `staying` is how many belong to the node.
    """

    evicted: int
    places: int
    homeless: list[tuple[str, str]]
    blocked: list[tuple[str, str]]
    staying: int


def advice_of(
    what_if: WhatIf,
    progress: Callable[[str, int, int], None],
    notes: Sequence[str] = (),
    reports: Reports = NO_REPORTS,
) -> Advice:
    """Return why pods wait and what would help; those that need no help get their places in `what_if`.

    `notes` and `reports` are of the reading of the cluster: what was done first, and pods that aren't there.
    """
    most = max(_FEWEST_KINDS, kinds_by_default(len(what_if.cluster.list(Node))))
    answer = explain_pending(what_if, most=most, reports=reports, progress=progress)
    background = Background([*notes], reports=reports).without(answer.uncreated, answer.idle)
    evicted = {pod.key for pod in answer.settled.evicted}
    return Advice(
        waiting=answer.pods,
        placed=sum(each.pod.key not in evicted for each in answer.settled.placed),
        kinds=sorted(
            (_kind_advice(kind, why, what_if) for why in answer.whys for kind in why.kinds),
            key=lambda kind: -len(kind.pods),
        ),
        troubles=sorted(_troubles(answer), key=lambda trouble: -trouble.number),
        preempted=sorted(evicted),
        elsewhere=[pod.key for pod in answer.elsewhere],
        contradictions=[
            Contradiction(each.pod.key, each.node_name, each.recorded, each.likely)
            for each in answer.disagreements
        ],
        missing=list(
            missing_lines(tuple(not_misspelt(missing_objects(what_if.cluster), answer, what_if.cluster)))
        ),
        notes=list(background.all_notes()),
    )


def _troubles(answer: Pending) -> Iterator[Trouble]:
    for refused in answer.uncreated:
        yield _trouble("not-created", refused.workload, (), refused.pods, refused.reason)
    for stuck in answer.stuck:
        cause = str(stuck.finding)
        if stuck.workload is not None:
            yield _trouble("not-started", stuck.workload, stuck.pods, len(stuck.pods), cause)
            continue
        for pod in stuck.pods:
            yield _trouble("not-started", Workload("", pod.namespace, pod.name), [pod], 1, cause)
    for idle in answer.idle:
        yield _trouble("no-pods", idle.workload, (), 0, str(idle.finding))


def _trouble(code: str, workload: Workload, pods: Iterable[Pod], number: int, cause: str) -> Trouble:
    keys = [pod.key for pod in pods]
    return Trouble(code, workload.kind, workload.namespace, workload.name, keys, number, cause)


def _kind_advice(kind: PodKind, why: Why, what_if: WhatIf) -> KindAdvice:
    first = kind.pods[0]
    cause = cause_of(kind, why.reasons, what_if.cluster)
    workload = kind.workload or Workload("", first.namespace, first.name)
    recorded = recorded_message(first)
    return KindAdvice(
        workload=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        group=group_key(first) if kind.workload == group_of(first) else "",
        pods=[pod.key for pod in kind.pods],
        code=cause.code,
        cause=cause.text,
        message=kind.message,
        recorded="" if recorded == kind.message else recorded,
        notes=list(_notes(kind, cause)),
        fits=kind.fits,
        seen=bool(kind.tried or kind.fits),
        tried=kind.tried,
        # The page makes changes only by editing manifests.
        remedies=[_help(remedy, kind.pods) for remedy in kind.remedies if remedy.edits],
    )


def _notes(kind: PodKind, cause: Cause) -> Iterator[str]:
    """Yield what is known beside the cause: obstacles that no change removes, and who is behind others."""
    told = {cause.text.rstrip(".")}
    for finding in (*kind.notes, *kind.culprits):
        text = str(finding)
        # A cause about resources names the largest node itself.
        is_new = text not in told and (finding.code, cause.code) != ("request-too-large", "resources")
        told.add(text)
        if is_new:
            yield text


def _help(remedy: Remedy, pods: Sequence[Pod]) -> Help:
    edits = tuple(EditOf(edit.name, edit.path, edit.old, edit.new) for edit in remedy.edits)
    # The page makes changes only by editing manifests.
    change = EditObjects(str(remedy), edits, tuple(pod.key for pod in pods)) if edits else None
    nodes = counts_text(remedy.nodes)
    return Help(str(remedy), remedy.placed, remedy.pods, nodes, len(remedy.displaced), change)


def emptied_of(plan: DrainPlan) -> Emptied:
    """Return the answer that a plan to drain a node gives."""
    moving = [step for step in plan.steps if step.move is Move.MOVES]
    homeless = [step for step in plan.steps if step.move is not Move.MOVES]
    return Emptied(
        len(plan.steps),
        len({step.to_node for step in moving}),
        [(step.pod.key, step.message or _WITHOUT[step.move]) for step in homeless],
        [(blocked.pod.key, blocked.reason) for blocked in plan.blocked],
        len(plan.staying),
    )


_WITHOUT: Final = {
    Move.NO_PLACE: "it finds no other place",
    Move.DISPLACED: "it loses its place to a pod of higher priority",
    Move.LOST: "it has no controller, so nothing makes it anew",
    Move.PREEMPTED: "it loses its place to a pod of higher priority, and has no controller",
}
