"""Remedies: candidates that got pods a place when they were tried in a transaction."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import partial
from typing import Final

import attrs

from kschedfw import Pod, Transaction, WhatIf
from kschedfw.api import group_key
from kschedfw.explain import Explanation
from kschedfw.what_if import Placed, PodResult, Schedule, Waiting
from kschedfw_advisor.candidates import Changes, candidates, size, with_effective_tolerations
from kschedfw_advisor.changes import Change, Effort
from kschedfw_advisor.claim_candidates import claim_candidates
from kschedfw_advisor.cluster_changes import AddNodes, DeletePod
from kschedfw_advisor.counting import smallest_count
from kschedfw_advisor.edits import Edit
from kschedfw_advisor.ending import after_ends, ending_pods
from kschedfw_advisor.readmission import Readmission
from kschedfw_advisor.request_changes import RequestLess
from kschedfw_advisor.settling import pending_again
from kschedfw_advisor.sizes import serving_all
from kschedfw_advisor.typos import typos
from kschedfw_advisor.workloads import are_interchangeable, pinned_to, unpinned

_ABOUT_THE_NODE_ALONE: Final = frozenset(("NodeAffinity", "NodeResourcesFit", "TaintToleration"))
"""Plugins that refuse an empty new node for what it is, and not for other nodes or the pods on them."""

MOST_TRIES: Final = 200
"""The most candidates that are tried for pods of a kind."""


@attrs.frozen
class Remedy:
    """Changes that were tried, and got some of the pods a place.

    `edits` are the changes of manifests; those of a pod are given for the first of the pods. `nodes` are the
    nodes that the pods went to, one for each pod that got a place; `pods` is how many pods wanted one. `displaced` are
    the pods that the changes delete and that find no other place; so many of them are `equals`, as important as the
    pods. `waiting` is how many more pods would fit if others of their group did.
    """

    changes: Changes
    pods: int
    nodes: tuple[str, ...]
    displaced: tuple[str, ...] = ()
    waiting: int = 0
    edits: tuple[Edit, ...] = ()
    equals: int = 0

    @property
    def gained(self) -> int:
        """Return the number of pods that got a place, less those as important that lost theirs."""
        return self.placed - self.equals

    @property
    def placed(self) -> int:
        """Return the number of pods that got a place."""
        return len(self.nodes)

    @property
    def effort(self) -> Effort:
        """The greatest effort of its changes."""
        return max(change.effort for change in self.changes)

    def __str__(self) -> str:
        return ", and ".join(map(str, self.changes))


@attrs.frozen
class RemedySearch:
    """The result of a search: why the first pod has no place, and the remedies, the smallest first.

    `tried` is how many candidates were tried, and `untried` how many were left.
    """

    explanation: Explanation
    remedies: tuple[Remedy, ...]
    tried: int
    untried: int = 0


def find_remedies(
    what_if: WhatIf,
    pods: Sequence[Pod],
    additions: Sequence[AddNodes] = (),
    siblings: Sequence[Pod] = (),
    first: Changes = (),
) -> RemedySearch:
    """Return the remedies that get the pods a place: the smallest of each kind of change.

    The pods are alike, and have no place now. `additions` are the nodes that there might be more of. `siblings` would
    fit but wait for others, which may be these. Each remedy was tried in a transaction of its own, where nothing is
    preempted. It begins with the changes in `first`, which don't get all pods a place by themselves. Where correcting
    typos doesn't either, remedies are found that begin with that, too.
    """
    search = _search(what_if, pods, additions, siblings, first)
    typo = next((each for each in search.remedies if each.effort is Effort.TYPO), None)
    misspelt = () if typo is None else typo.changes
    if typo is None and (possible := tuple(typos(pods[0], what_if.cluster))):
        misspelt = _acceptable(pods[0], possible, Readmission.of(what_if.cluster))
    if first or not misspelt or (typo is not None and typo.placed == len(pods)):
        return search
    more = _search(what_if, pods, additions, siblings, misspelt)
    return RemedySearch(
        search.explanation,
        tuple(_without_detours((*search.remedies, *more.remedies))),
        search.tried + more.tried,
        search.untried + more.untried,
    )


def _search(
    what_if: WhatIf,
    pods: Sequence[Pod],
    additions: Sequence[AddNodes],
    siblings: Sequence[Pod],
    first: Changes,
) -> RemedySearch:
    wanted = {pod.key for pod in pods}
    readmission = Readmission.of(what_if.cluster)
    pins = [pinned_to(pod) for pod in pods]
    targets = frozenset(name for name in pins if name is not None) if None not in pins else frozenset()
    with what_if.transaction() as trial:
        for change in first:
            change.make(trial, what_if.cluster)
        pod, *others = [_changed(trial, pod, first) for pod in pods]
        if targets:
            # One explanation for the nodes of all pods: their template is what changes.
            pod = trial.update(unpinned(pod))
            explanation = trial.explain(pod)
        elif group_key(pod):
            # A member of a group fits by itself, but not after the others.
            explanation = trial.explain(pod, others)
        else:
            # Some of the pods may have a place by the first changes.
            refused = trial.schedule([pod, *others]).refused if first else ()
            pod = refused[0].pod if refused else pod
            explanation = trial.explain(pod)
        found = [
            (*first, *changes)
            for changes in sorted(
                (
                    *candidates(
                        with_effective_tolerations(pod, what_if.feature_gates),
                        explanation,
                        what_if.cluster,
                        trial.pods_on,
                        additions,
                        targets,
                    ),
                    *claim_candidates((pod, *others), what_if.cluster),
                ),
                key=size,
            )
            if not any(isinstance(each, DeletePod) and each.pod.key in wanted for each in changes)
            and readmission.keeps(pod, _with_all(pod, changes))
        ]
    try_changes = partial(
        attempt, what_if, pods=pods, siblings=siblings, interchangeable=are_interchangeable(pods)
    )
    waiting = None if first else after_ends(try_changes, ending_pods(what_if.cluster))
    if waiting is not None and waiting.placed == len(pods):
        # As with preemption under way: they only have to wait.
        return RemedySearch(explanation, (waiting,), 1)
    best: dict[tuple[tuple[type[Change], Hashable], ...], Remedy] = {}
    tried = 0
    # A member of a group is asked about with its group, not by itself.
    useless = frozenset() if group_key(pods[0]) else _on_useless_nodes(what_if, pods[0], found)
    # The smallest come first, so that larger ones of the same sort needn't be tried once one helps all pods.
    for changes in found[:MOST_TRIES]:
        sort = tuple(dict.fromkeys((type(each), each.requirement) for each in changes))
        known = best.get(sort)
        if known is not None and known.placed == len(pods) and size(changes) >= size(known.changes):
            continue
        if any(each.placed == len(pods) and _outdoes(each, changes) for each in best.values()):
            # They couldn't place more, so they wouldn't be told.
            continue
        tried += 1
        if changes in useless:
            continue
        remedy = try_changes(changes)
        if remedy is not None and remedy.placed < len(pods):
            remedy = _with_more_nodes(try_changes, remedy, known, pods)
            remedy = _for_all_pods(try_changes, remedy, pods[0], explanation, targets, readmission)
        if remedy is not None and remedy.placed and group_key(pods[0]):
            remedy = _smallest(try_changes, remedy)
        if remedy is not None and remedy.placed and (known is None or _order(remedy) < _order(known)):
            best[sort] = remedy
    partly = () if waiting is None else (waiting,)
    remedies = tuple(_without_detours((*partly, *best.values())))
    return RemedySearch(explanation, remedies, tried, untried=max(0, len(found) - MOST_TRIES))


def _on_useless_nodes(what_if: WhatIf, pod: Pod, found: Iterable[Changes]) -> frozenset[Changes]:
    """The candidates with a new node that refuses the pod by itself, whatever else there is.

    All new nodes are added at once, and asked about for each way in which the candidates change the pod.
    """
    ways: dict[Pod, list[tuple[Changes, AddNodes]]] = {}
    for changes in found:
        for addition in (each for each in changes if isinstance(each, AddNodes)):
            ways.setdefault(_with_all(pod, changes), []).append((changes, addition))
    useless: set[Changes] = set()
    with what_if.transaction() as trial:
        additions = dict.fromkeys(addition for wanted in ways.values() for _, addition in wanted)
        # One of each is enough: the nodes of an addition are equal.
        nodes = {addition: addition.add_to(trial)[0].name for addition in additions}
        for changed, wanted in ways.items():
            trial.update(changed)
            refusals = trial.can_schedule(changed).diagnosis.node_to_status
            useless.update(
                changes
                for changes, addition in wanted
                if refusals.get(nodes[addition]).plugin in _ABOUT_THE_NODE_ALONE
            )
    return frozenset(useless)


def _with_all(pod: Pod, changes: Changes) -> Pod:
    for change in changes:
        pod = change.changed(pod)
    return pod


def _acceptable(pod: Pod, changes: Iterable[Change], readmission: Readmission) -> Changes:
    """Return the changes in their order, without those that the API server would refuse or undo."""
    found: Changes = ()
    for change in changes:
        if readmission.keeps(pod, _with_all(pod, (*found, change))):
            found = (*found, change)
    return found


def _order(remedy: Remedy) -> tuple[float, ...]:
    return (-remedy.gained, len(remedy.displaced), *size(remedy.changes))


def _rank(remedy: Remedy) -> tuple[float, ...]:
    kept_or_corrected, *others = size(remedy.changes)
    return (kept_or_corrected, -remedy.gained, *others)


def _without_detours(remedies: Sequence[Remedy]) -> Sequence[Remedy]:
    """The remedies, the best first, without those that a simpler one makes pointless.

    What gains places for more pods is better than a smaller change, except that corrections of typos come first, and
    places that are kept for other pods last.

    A remedy is simpler if it gets as many pods a place with fewer changes. Where correcting a typo gets them all a
    place, nothing is said that takes that name seriously and costs more than another rule of the pod.
    """
    return [
        each
        for each in sorted(remedies, key=_rank)
        if not any(_makes_pointless(other, each) for other in remedies)
    ]


def _makes_pointless(simpler: Remedy, remedy: Remedy) -> bool:
    if _corrects_more(remedy, simpler):
        return False
    return simpler.gained >= remedy.gained and _outdoes(simpler, remedy.changes)


def _corrects_more(remedy: Remedy, simpler: Remedy) -> bool:
    """Tell whether the remedy corrects a typo that the simpler one works around, beside changes that take little."""
    typos = [each for each in remedy.changes if each.effort is Effort.TYPO]
    rest = [each for each in remedy.changes if each.effort is not Effort.TYPO]
    is_cheap = all(each.effort <= Effort.POD_RULE for each in rest)
    return is_cheap and any(each not in simpler.changes for each in typos) and simpler.effort > Effort.TYPO


def _outdoes(simpler: Remedy, changes: Changes) -> bool:
    """Tell whether the remedy is simpler than the changes."""
    effort = max(change.effort for change in changes)
    own = [change for change in simpler.changes if change not in changes]
    if own and effort > Effort.POD_RULE and all(change.effort is Effort.TYPO for change in own):
        return True
    fewer = len(simpler.changes) < len(changes)
    return fewer and (simpler.effort < Effort.MET_RULE or effort >= simpler.effort)


def attempt(
    what_if: WhatIf,
    changes: Changes,
    pods: Sequence[Pod],
    siblings: Sequence[Pod] = (),
    *,
    interchangeable: bool = False,
) -> Remedy | None:
    """Make the changes in a transaction, and schedule the pods; None if none of them would run, or wait for others.

    Of pods that are known to be `interchangeable` (`are_interchangeable`), those after a refused one aren't tried.
    Siblings of a pod's PodGroup are scheduled with it. Others are scheduled only if one of the pods waits, so that they
    take no room from pods that don't.
    """
    with what_if.transaction() as trial:
        for change in changes:
            change.make(trial, what_if.cluster)
        groups = {group_key(pod) for pod in pods} - {""}
        # Members of a group are scheduled together: the first that is refused says nothing of the others.
        one_by_one = interchangeable and not groups
        # Pods of a DaemonSet are for different nodes: the first says nothing of the others either.
        # With preemption, a pod that fits nowhere may get a place nevertheless.
        preempt = any(change.preempts for change in changes)
        alone = one_by_one or preempt or pinned_to(pods[0]) is not None
        if not alone and not trial.can_schedule(_changed(trial, pods[0], changes)):
            return None
        wanted = {pod.key for pod in pods}
        others = [pod for pod in siblings if pod.key not in wanted]
        members = [pod for pod in others if group_key(pod) in groups]
        if one_by_one:
            found = _schedule_until_refused(trial, pods, changes, preempt=preempt)
        else:
            wanting = [_changed(trial, pod, changes) for pod in pods]
            found = trial.schedule([*wanting, *members], preempt=preempt)
        if found.waiting and len(others) > len(members):
            trial.schedule([pod for pod in others if pod not in members])
        waiting = {each.pod.key for each in trial.waiting}
        fitting: tuple[Placed | Waiting, ...] = (*found.placed, *found.waiting)
        placed = [each for each in fitting if each.pod.key in wanted - waiting]
        fit = len(waiting & wanted) + sum(bool(each.node_name) for each in found.refused)
        if not (placed or fit):
            return None
        deleted = [change.pod for change in changes if isinstance(change, DeletePod)]
        deleted += [pod for each in fitting for pod in each.victims if pod.node_name]
        # A deleted pod comes back. It is scheduled last, to see whether it is displaced.
        back = [pending_again(what_if, trial, pod) for pod in deleted] if placed else []
        refused = trial.schedule(back).refused if back else ()
        return Remedy(
            changes,
            len(pods),
            tuple(each.node_name for each in placed),
            tuple(each.pod.key for each in refused),
            waiting=fit,
            equals=sum(each.pod.priority >= pods[0].priority for each in refused),
        )


def _schedule_until_refused(
    trial: Transaction, pods: Sequence[Pod], changes: Changes, *, preempt: bool
) -> Schedule:
    """Schedule pods that are interchangeable, in lots of growing size, until one is refused: the rest would be, too.

    Pods that wait for others may have to give up their places to those that come later, so then all are scheduled.
    """
    outcomes: list[PodResult] = []
    begin, size = 0, 1
    while begin < len(pods):
        lot = [_changed(trial, pod, changes) for pod in pods[begin : begin + size]]
        found = trial.schedule(lot, preempt=preempt)
        outcomes += (*found.placed, *found.waiting, *found.refused)
        if found.refused and not trial.waiting:
            break
        begin, size = begin + size, 2 * size
    return Schedule.of(outcomes)


def _changed(trial: Transaction, pod: Pod, changes: Changes) -> Pod:
    """Return the pod with the changes, and write it to the transaction."""
    changed = _with_all(pod, changes)
    return pod if changed == pod else trial.update(changed)


def _smallest(try_changes: Callable[[Changes], Remedy | None], remedy: Remedy) -> Remedy:
    """The remedy with the smallest amounts that get as many pods of a group a place.

    What is missing was found out for one member, beside others that are as they were. But all members change: each that
    requests less leaves room for the rest.
    """
    for place in range(len(remedy.changes)):
        remedy = _with_smaller(try_changes, remedy, place)
    return remedy


def _with_smaller(try_changes: Callable[[Changes], Remedy | None], remedy: Remedy, place: int) -> Remedy:
    """The remedy with the change at this place as small as gets as many pods a place."""
    change = remedy.changes[place]
    tried = {0: remedy}

    def fails(steps: int) -> bool:
        found = try_changes((*remedy.changes[:place], change.smaller(steps), *remedy.changes[place + 1 :]))
        if found is None or found.placed < remedy.placed:
            return True
        tried[steps] = found
        return False

    # Bisect for the first number of steps that fails: once one fails, larger ones are taken to fail, too.
    bisect(range(1, change.steps + 1), False, key=fails)
    return tried[max(tried)]


def _for_all_pods(
    try_changes: Callable[[Changes], Remedy | None],
    remedy: Remedy,
    pod: Pod,
    explanation: Explanation,
    targets: Collection[str],
    readmission: Readmission,
) -> Remedy:
    """The remedy with a request so small that more of the pods fit: they have one template, and so one request."""
    (change, *others) = remedy.changes
    if others or not isinstance(change, RequestLess) or change.effort is Effort.TYPO or group_key(pod):
        return remedy
    request = serving_all(explanation, change.resource, remedy.pods, targets)
    less = RequestLess.of(pod, change.resource, request) if 0 < request < change.request else None
    may_be = less is not None and readmission.keeps(pod, less.changed(pod))
    found = try_changes((less,)) if less is not None and may_be else None
    return found if found is not None and found.placed > remedy.placed else remedy


def _with_more_nodes(
    try_changes: Callable[[Changes], Remedy | None], remedy: Remedy, known: Remedy | None, pods: Sequence[Pod]
) -> Remedy:
    """The remedy with as many new nodes as it takes to get all pods a place that such nodes can.

    Pods of a group may all wait until the last of the nodes is there. Where a remedy is `known` that gets all a place,
    only smaller ones are of interest.
    """
    addition = next((each for each in remedy.changes if isinstance(each, AddNodes)), None)
    if addition is None:
        return remedy
    tried: dict[int, Remedy | None] = {}

    def counted(count: int) -> Changes:
        new = attrs.evolve(addition, count=count)
        return tuple(new if each is addition else each for each in remedy.changes)

    def place(count: int) -> int:
        tried[count] = try_changes(counted(count))
        found = tried[count]
        return 0 if found is None else found.placed

    most = min(len(pods), addition.group.max)
    if known is not None and known.placed == len(pods):
        while most > 1 and size(counted(most)) >= size(known.changes):
            most -= 1
        if most > 1 and place(most) < len(pods):
            return remedy
    # If each new node takes as many of the pods as the first one, so many are needed.
    guess = math.ceil(len(pods) / remedy.placed) if remedy.placed else None
    more = tried[smallest_count(place, most, guess=guess, all_of_them=len(pods))] if most > 1 else None
    return more if more is not None and more.placed > remedy.placed else remedy
