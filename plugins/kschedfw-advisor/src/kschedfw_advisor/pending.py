"""The pending pods of a cluster, grouped by the reasons why they are pending, and the remedies for each kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, TypeAlias

import attrs

from kschedfw import Node, Pod, WhatIf
from kschedfw.api import Finding, close_to, group_key
from kschedfw.cluster import Cluster, MissingObject, Workload, claim_problems, workload_of
from kschedfw.config import GENERIC_WORKLOAD
from kschedfw.explain import Cause, cause_of_group, causes_of, decided_on
from kschedfw.what_if import Refused
from kschedfw_advisor.changes import Change, Effort, edits_of
from kschedfw_advisor.cluster_changes import AddNodes
from kschedfw_advisor.corrections import RespellScheduler
from kschedfw_advisor.culprits import culprits
from kschedfw_advisor.idle import Idle, idle_workloads
from kschedfw_advisor.new_nodes import daemons_of
from kschedfw_advisor.node_groups import NodeGroup, node_shapes
from kschedfw_advisor.observed import (
    Disagreement,
    Stuck,
    awaiting_victims,
    disagreements_of,
    missing_group,
    stuck_pods,
    volume_obstacles,
)
from kschedfw_advisor.pod_rules import RemoveGates
from kschedfw_advisor.quotas import Uncreated, uncreated
from kschedfw_advisor.remedies import Remedy, attempt, find_remedies
from kschedfw_advisor.reports import NO_REPORTS, Reports
from kschedfw_advisor.settling import Settled, most_telling, settle
from kschedfw_advisor.sizes import too_large_for_all, too_large_for_allowed
from kschedfw_advisor.volumes_near import near_claims
from kschedfw_advisor.workloads import group_of, likeness

MOST_SHAPES: Final = 25
"""The number of the cluster's kinds of nodes that are tried as new nodes: the most frequent ones."""


FEWEST_KINDS: Final = 20
"""The number of kinds of pods that help is sought for by default in any cluster."""

_NODES_LOOKED_AT: Final = 20_000
"""The number of nodes, summed over kinds of pods, that the search for help looks at by default: about 4 s."""


def kinds_by_default(nodes: int) -> int:
    """Return for how many kinds of pods help is sought in a cluster of so many nodes: what takes seconds."""
    return max(FEWEST_KINDS, _NODES_LOOKED_AT // max(nodes, 1))


About: TypeAlias = Callable[[str, Workload | None], bool]
"""Tells whether an answer is about the pods of a namespace and a workload; the workload is None for pods without."""

_PREEMPTING: Final = ("preemption is under way",)


class KindOutcome(StrEnum):
    """The result for pods without a place."""

    HELPED = "helped"
    HELPED_IN_PART = "helped-in-part"
    NOTHING_HELPS = "nothing-helps"
    WAITS_FOR_OTHERS = "waits-for-others"
    PREEMPTING = "preempting"
    NOT_LOOKED_AT = "not-looked-at"

    @property
    def meaning(self) -> str:
        """Return what it says of the pods."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    KindOutcome.HELPED: "a change gets all of the pods a place",
    KindOutcome.HELPED_IN_PART: "a change gets some of the pods a place",
    KindOutcome.NOTHING_HELPS: "no change that was tried helps",
    KindOutcome.WAITS_FOR_OTHERS: "the pods fit, and wait for others, such as the rest of their group",
    KindOutcome.PREEMPTING: "the pods fit once the victims of their preemption have ended",
    KindOutcome.NOT_LOOKED_AT: "no change was tried: `--kinds` is for how many kinds of pods that is done",
}


@attrs.frozen
class PodKind:
    """Pending pods of one workload that are alike (`likeness`).

    `message` is why the first of them has no place, in kube-scheduler's words; `remedies` are the smallest changes that
    help, the smallest first. `tried` is the number of changes that were tried, `untried` the number of further ones.
    Both are 0 for a kind that wasn't looked at. A kind that `fits` needs no change: it waits for other kinds, such as
    the rest of its gang, or for the victims of its preemption to end. `notes` are obstacles that no change to pods
    and nodes removes. `workload` is None for pods without a controller. `causes` are the requirements that keep the
    first pod off nodes, the decisive ones first, and `culprits` who or what is behind these; `group_cause` is why its
    group has no place, for programs. `reason` is why no scheduler tries the pods, or that preemption is under way for
    them; None otherwise.
    """

    pods: tuple[Pod, ...]
    message: str
    fits: bool = False
    remedies: tuple[Remedy, ...] = ()
    tried: int = 0
    untried: int = 0
    workload: Workload | None = None
    notes: tuple[Finding, ...] = ()
    causes: tuple[Cause, ...] = ()
    culprits: tuple[Finding, ...] = ()
    group_cause: Mapping[str, object] | None = None
    reason: Finding | None = None

    @property
    def outcome(self) -> KindOutcome:
        """Return what came out for these pods."""
        if self.reason is not None and self.reason.code == "preemption-under-way":
            return KindOutcome.PREEMPTING
        if self.fits:
            return KindOutcome.WAITS_FOR_OTHERS
        if not self.tried:
            return KindOutcome.NOT_LOOKED_AT
        best = max((remedy.placed for remedy in self.remedies), default=0)
        if not best:
            return KindOutcome.NOTHING_HELPS
        return KindOutcome.HELPED if best == len(self.pods) else KindOutcome.HELPED_IN_PART


@attrs.frozen
class Why:
    """Pods that are pending for the same reasons, by kind."""

    reasons: tuple[str, ...]
    kinds: tuple[PodKind, ...]

    @property
    def pods(self) -> int:
        """Return the number of pods of all kinds."""
        return sum(len(kind.pods) for kind in self.kinds)


@attrs.frozen
class Pending:
    """The result for the pending pods of a cluster.

    `settled` says which of them have a place now, and which have none. `whys` groups the latter, those with the most
    pods first. `elsewhere` are for schedulers that the configuration has no profile for. `disagreements` are about pods
    that have a place here and none in the cluster itself. `uncreated` is about pods that quotas or limits keep from
    being created, `stuck` about pods that have a node and don't start there, `idle` about workloads without pods.
    """

    settled: Settled
    whys: tuple[Why, ...]
    elsewhere: tuple[Pod, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    uncreated: tuple[Uncreated, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    idle: tuple[Idle, ...] = ()

    @property
    def pods(self) -> int:
        """Return the number of pods without a place."""
        return sum(why.pods for why in self.whys)


def explain_pending(
    what_if: WhatIf,
    groups: Iterable[NodeGroup] = (),
    *,
    most: int | None = None,
    reports: Reports = NO_REPORTS,
    progress: Callable[[str, int, int], None] | None = None,
    about: About | None = None,
) -> Pending:
    """Schedule the pending pods, and find out what would help those that get no place.

    The pods that get one keep it in `what_if`. For each other kind, changes are tried. Kinds beyond the
    first `most` only get the reason, except those that no scheduler tries. `reports` are the input's own word on pods
    that weren't created or don't start. New nodes may be of the `groups`, or like the ones that the cluster has. The
    answer is about the pods of whose namespace and workload `about` holds; all pending pods are scheduled.
    """
    wanted = what_if.pending
    waiting = [pod for pod in what_if.pods if not (pod.node_name or pod.is_terminal or pod.is_terminating)]
    gated = [pod for pod in waiting if pod.spec.scheduling_gates]
    others = {pod.key for pod in (*gated, *wanted)}
    elsewhere = [pod for pod in waiting if pod.key not in others]
    with what_if.transaction() as trial:
        scheduling = None if progress is None else partial(progress, "scheduling")
        settled = settle(what_if, trial, wanted, preempt=True, progress=scheduling)
        # Changes are tried beside the pods that need none, which keep their places.
        trial.commit()
    cluster = what_if.cluster
    preempting = awaiting_victims(what_if, [each.pod for each in settled.refused])
    misspelt = [pod for pod in elsewhere if close_to(pod.spec.scheduler_name, what_if.scheduler_names)]
    kinds = [
        *_kinds(
            [each for each in settled.refused if each.pod.key not in preempting],
            cluster,
            grouping=what_if.feature_gates.enabled(GENERIC_WORKLOAD),
        ),
        *_preempting(
            [each.pod for each in settled.refused if each.pod.key in preempting], cluster, preempting
        ),
        *_unscheduled(gated, cluster, _gated),
        *_unscheduled(misspelt, cluster, _without_scheduler),
    ]
    if about is not None:
        told = partial(_is_told, about=about, cluster=cluster)
        kinds = [(reasons, kind) for reasons, kind in kinds if told(kind.pods[0])]
        settled = attrs.evolve(settled, placed=tuple(each for each in settled.placed if told(each.pod)))
        elsewhere = [pod for pod in elsewhere if told(pod)]
    daemons = daemons_of(cluster)
    additions = [
        *(AddNodes(group, exists=False, daemons=daemons) for group in groups),
        *(
            AddNodes(shape, exists=True, daemons=daemons)
            for shape in node_shapes(cluster.list(Node))[:MOST_SHAPES]
        ),
    ]
    siblings = [each.pod for each in settled.refused if each.node_name]
    found: dict[tuple[str, ...], list[PodKind]] = {}
    # The kinds with the most pods first, since only the first `most` are looked at.
    for number, (reasons, kind) in enumerate(sorted(kinds, key=lambda each: -len(each[1].pods))):
        if most is None or number < most:
            if progress is not None:
                progress("trying changes", number, len(kinds) if most is None else min(most, len(kinds)))
            kind = _with_remedies(what_if, kind, additions, siblings)
        elif (change := _to_be_scheduled(kind.pods[0], what_if)) is not None:
            kind = _with_edits(what_if, _with_change(what_if, kind, change))
        found.setdefault(reasons, []).append(kind)
    whys = [Why(reasons, tuple(each)) for reasons, each in found.items()]
    evicted = {pod.key for pod in settled.evicted}
    # A pod that was evicted in favour of another one had a place in the cluster, so nothing disagrees.
    placed = (each for each in settled.placed if each.pod.key not in evicted)
    disagreements = tuple(disagreements_of(placed, cluster))
    rest = tuple(pod for pod in elsewhere if pod not in misspelt)
    lacking = uncreated(cluster, reports)
    stuck = stuck_pods(cluster, reports.of_pods)
    idle = idle_workloads(reports, cluster)
    if about is not None:
        lacking = (each for each in lacking if about(each.workload.namespace, each.workload))
        stuck = (each for each in stuck if about(each.pods[0].namespace, each.workload))
        idle = (each for each in idle if about(each.workload.namespace, each.workload))
    ordered = tuple(sorted(whys, key=lambda why: -why.pods))
    return Pending(settled, ordered, rest, disagreements, tuple(lacking), tuple(stuck), tuple(idle))


def _is_told(pod: Pod, about: About, cluster: Cluster) -> bool:
    return about(pod.namespace, workload_of(pod, cluster))


def not_misspelt(
    missing: Iterable[MissingObject], answer: Pending, cluster: Cluster
) -> Iterator[MissingObject]:
    """Return the missing objects except those whose names the answer calls misspelt: no export would have these.

    Left are objects that pods name of which the answer doesn't say so.
    """
    told: dict[tuple[str, str], set[str]] = {}
    for kind in (kind for why in answer.whys for kind in why.kinds if kind.tried or kind.fits):
        for problem in claim_problems(kind.pods[0], cluster):
            if problem.misspelt is not None:
                told.setdefault(problem.misspelt, set()).update(pod.key for pod in kind.pods)
    for found in missing:
        pods = [pod for pod in found.pods if pod not in told.get((found.kind, found.name), ())]
        if pods:
            yield attrs.evolve(found, pods=tuple(pods))


def _kinds(
    refused: Sequence[Refused], cluster: Cluster, *, grouping: bool
) -> list[tuple[tuple[str, ...], PodKind]]:
    """The kinds of the refused pods, each with the reasons that most of its pods have.

    With `grouping`, pods of a PodGroup are scheduled together, so they are one kind, those first that fit nowhere.
    Pods of a kind may be refused for different reasons, since each is tried at another moment. What would help is
    found out for all of them at one moment, in the end.
    """
    found: dict[tuple[Workload | None, Hashable, bool], list[Refused]] = {}
    kind: tuple[Workload | None, Hashable, bool]
    for each in refused:
        # What helps one that fits and waits for its gang is what helps those of the gang that don't fit.
        fits = bool(each.node_name)
        if grouping and group_key(each.pod):
            kind = (group_of(each.pod), None, False)
        else:
            kind = (workload_of(each.pod, cluster), likeness(each.pod), fits)
        found.setdefault(kind, []).append(each)
    kinds = []
    for (workload, _, fits), alike in found.items():
        nowhere = [each for each in alike if not each.node_name]
        alike = [*nowhere, *(each for each in alike if each.node_name)]
        first = most_telling(alike)
        pods = tuple(each.pod for each in alike)
        notes = [
            *(problem.finding for problem in claim_problems(pods[0], cluster)),
            *near_claims(pods[0], cluster),
            *(missing_group(pods[0], cluster) if grouping else ()),
        ]
        kinds.append(
            (first.reasons, PodKind(pods, first.message, fits, workload=workload, notes=tuple(notes)))
        )
    return kinds


def _unscheduled(
    pods: Sequence[Pod], cluster: Cluster, reason_of: Callable[[Pod], Finding]
) -> list[tuple[tuple[str, ...], PodKind]]:
    """The kinds of pods that no scheduler tries, each with the finding that says why."""
    found: dict[tuple[Workload | None, Hashable, Finding], list[Pod]] = {}
    for pod in pods:
        found.setdefault((workload_of(pod, cluster), likeness(pod), reason_of(pod)), []).append(pod)
    kinds: list[tuple[tuple[str, ...], PodKind]] = []
    for (workload, _, reason), alike in found.items():
        notes = tuple(problem.finding for problem in claim_problems(alike[0], cluster))
        kind = PodKind(tuple(alike), str(reason), workload=workload, notes=notes, reason=reason)
        kinds.append(((str(reason),), kind))
    return kinds


def _preempting(
    pods: Sequence[Pod], cluster: Cluster, reasons: Mapping[str, Finding]
) -> list[tuple[tuple[str, ...], PodKind]]:
    """The kinds of pods that fit once the victims of preemption have ended: they need no other help."""
    return [
        (_PREEMPTING, attrs.evolve(kind, notes=(reasons[kind.pods[0].key], *kind.notes), fits=True))
        for _, kind in _unscheduled(pods, cluster, lambda pod: reasons[pod.key])
    ]


def _gated(pod: Pod) -> Finding:
    gates = tuple(gate.name for gate in pod.spec.scheduling_gates)
    return Finding.of("scheduling-gates", "waiting for scheduling gates: [{gates}]", gates=gates)


def _without_scheduler(pod: Pod) -> Finding:
    name = pod.spec.scheduler_name
    return Finding.of("scheduler-missing", "no profile has the scheduler name {scheduler}", scheduler=name)


def _with_remedies(
    what_if: WhatIf, kind: PodKind, additions: Sequence[AddNodes], siblings: Sequence[Pod]
) -> PodKind:
    """Return the kind with its remedies, and with notes on volumes that keep it off nodes."""
    if kind.fits:
        return kind
    change = _to_be_scheduled(kind.pods[0], what_if)
    if change is not None:
        kind = _with_change(what_if, kind, change)
    if sum(remedy.placed for remedy in kind.remedies) < len(kind.pods):
        first = () if change is None else (change,)
        found = find_remedies(what_if, kind.pods, additions, siblings, first)
        causes = causes_of(found.explanation)
        with what_if.transaction() as trial:
            behind = (
                *culprits(found.explanation, causes, what_if.cluster, trial.pods_on),
                *too_large_for_allowed(kind.pods[0], what_if.cluster.list(Node)),
            )
        opened = next((node for remedy in found.remedies[:1] for node in remedy.nodes), "")
        kind = attrs.evolve(
            kind,
            remedies=(*kind.remedies, *found.remedies),
            tried=kind.tried + found.tried,
            untried=found.untried,
            notes=(*kind.notes, *volume_obstacles(kind.pods[0], found.explanation)),
            culprits=behind,
            # The first remedy opens a node: what it removes there decides, not what a nearer node lacks.
            causes=decided_on(causes, found.explanation, opened),
            group_cause=_group_cause(what_if, kind.pods),
        )
        if not any(remedy.effort is Effort.TYPO for remedy in kind.remedies):
            notes = too_large_for_all(kind.pods[0], what_if.cluster.list(Node))
            kind = attrs.evolve(kind, notes=(*kind.notes, *notes))
    return _with_edits(what_if, kind)


def _group_cause(what_if: WhatIf, pods: Sequence[Pod]) -> Mapping[str, object] | None:
    """Return why the PodGroup of the pods has no place; None for pods of none, or that aren't scheduled together."""
    if not (group_key(pods[0]) and what_if.feature_gates.enabled(GENERIC_WORKLOAD)):
        return None
    with what_if.transaction() as trial:
        return cause_of_group(trial.explain_group(pods))


def _with_change(what_if: WhatIf, kind: PodKind, change: Change) -> PodKind:
    """The kind with this change, if it helps."""
    remedy = attempt(what_if, (change,), kind.pods)
    return attrs.evolve(kind, remedies=() if remedy is None or not remedy.placed else (remedy,), tried=1)


def _with_edits(what_if: WhatIf, kind: PodKind) -> PodKind:
    """Return the kind with the edits of manifests in its remedies."""
    remedies = [
        attrs.evolve(each, edits=tuple(edits_of(each.changes, kind.pods[0], what_if.cluster)))
        for each in kind.remedies
    ]
    return attrs.evolve(kind, remedies=tuple(remedies))


def _to_be_scheduled(pod: Pod, what_if: WhatIf) -> Change | None:
    """Return the change that is needed before any scheduler tries the pod; None if one tries it already."""
    if gates := tuple(gate.name for gate in pod.spec.scheduling_gates):
        return RemoveGates(gates)
    name = pod.spec.scheduler_name
    meant = close_to(name, what_if.scheduler_names)
    return None if meant is None else RespellScheduler(name, meant)
