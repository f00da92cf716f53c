"""Which changes get pods a place that have none: candidates, of which those are kept that help in a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kschedfw import Pod, Transaction, WhatIf
from kschedfw.api import group_key
from kschedfw.explain import Explanation
from kschedfw.what_if import Placed, Waiting
from kschedfw_advisor.candidates import Changes, candidates, size
from kschedfw_advisor.changes import AddNodes, DeletePod, Effort
from kschedfw_advisor.counting import smallest_count
from kschedfw_advisor.edits import Edit
from kschedfw_advisor.settling import pending_again

MOST_TRIES: Final = 200
"""How many candidates are tried for pods of a kind."""


@attrs.frozen
class Remedy:
    """Changes that were tried, and got some of the pods a place.

    `edits` are what the changes do to manifests; those of a pod are told of the first of the pods. `nodes` are the
    nodes that the pods went to, one for each pod that got a place; `pods` is how many pods wanted one. `displaced` are
    the pods that the changes delete and that find no other place. `waiting` is how many more pods would fit if others
    of their group did.
    """

    changes: Changes
    pods: int
    nodes: tuple[str, ...]
    displaced: tuple[str, ...] = ()
    waiting: int = 0
    edits: tuple[Edit, ...] = ()

    @property
    def placed(self) -> int:
        """How many of the pods got a place."""
        return len(self.nodes)

    @property
    def effort(self) -> Effort:
        """The greatest effort of its changes."""
        return max(change.effort for change in self.changes)

    def __str__(self) -> str:
        return ", and ".join(map(str, self.changes))


@attrs.frozen
class Search:
    """What was found for pods: why the first has no place, and the remedies, the smallest first.

    `tried` is how many candidates were tried, and `untried` how many were left.
    """

    explanation: Explanation
    remedies: tuple[Remedy, ...]
    tried: int
    untried: int = 0


def find_remedies(
    what_if: WhatIf, pods: Sequence[Pod], additions: Sequence[AddNodes] = (), siblings: Sequence[Pod] = ()
) -> Search:
    """What would get the pods a place: for each sort of change the smallest one that helps.

    The pods are alike, and have no place now. `additions` are the nodes that there might be more of. `siblings` would
    fit but wait for others, which may be these. Each remedy was tried in a transaction of its own, where nothing is
    preempted.
    """
    with what_if.transaction() as trial:
        # A member of a group fits by itself, but not after the others.
        explanation = trial.explain(pods[0], [pod for pod in pods[1:] if group_key(pod)])
    best: dict[tuple[type, ...], Remedy] = {}
    tried = 0
    found = candidates(pods[0], explanation, what_if.cluster, additions)
    for changes in found[:MOST_TRIES]:
        sort = tuple(dict.fromkeys(type(each) for each in changes))
        known = best.get(sort)
        if known is not None and known.placed == len(pods) and AddNodes not in sort:
            continue  # what comes later is larger
        tried += 1
        remedy = attempt(what_if, changes, pods, siblings)
        if remedy is not None and remedy.placed < len(pods):
            remedy = _with_more_nodes(what_if, remedy, pods, siblings)
        if remedy is not None and remedy.placed and (known is None or _order(remedy) < _order(known)):
            best[sort] = remedy
    remedies = tuple(_without_detours(tuple(best.values())))
    return Search(explanation, remedies, tried, untried=max(0, len(found) - MOST_TRIES))


def _order(remedy: Remedy) -> tuple[float, ...]:
    return (-remedy.placed, len(remedy.displaced), *size(remedy.changes))


def _without_detours(remedies: Sequence[Remedy]) -> Sequence[Remedy]:
    """The remedies in their order, without those that a simpler one makes pointless.

    A remedy is simpler if it gets as many pods a place with fewer changes. Where correcting a typo gets them all a
    place, nothing is said that takes that name seriously and costs more than another rule of the pod.
    """
    return [
        each
        for each in sorted(remedies, key=lambda remedy: size(remedy.changes))
        if not any(_makes_pointless(other, each) for other in remedies)
    ]


def _makes_pointless(simpler: Remedy, remedy: Remedy) -> bool:
    if simpler.placed < remedy.placed:
        return False
    if simpler.effort is Effort.TYPO and remedy.effort > Effort.POD_RULE:
        return True
    fewer = len(simpler.changes) < len(remedy.changes)
    return fewer and (simpler.effort is not Effort.TOO_MUCH or remedy.effort is Effort.TOO_MUCH)


def attempt(
    what_if: WhatIf, changes: Changes, pods: Sequence[Pod], siblings: Sequence[Pod] = ()
) -> Remedy | None:
    """Make the changes in a transaction, and schedule the pods; None if none of them would run, or wait for others.

    Siblings of a pod's PodGroup are scheduled with it. Others are scheduled only if one of the pods waits, so that they
    take no room from pods that don't.
    """
    with what_if.transaction() as trial:
        for change in changes:
            change.make(trial, what_if.cluster)
        if not trial.can_schedule(_changed(trial, pods[0], changes)):
            return None
        rest = [_changed(trial, pod, changes) for pod in pods[1:]]
        groups = {group_key(pod) for pod in pods} - {""}
        wanted = {pod.key for pod in pods}
        others = [pod for pod in siblings if pod.key not in wanted]
        members = [pod for pod in others if group_key(pod) in groups]
        found = trial.schedule([pods[0], *rest, *members])
        if found.waiting and len(others) > len(members):
            trial.schedule([pod for pod in others if pod not in members])
        waiting = {each.pod.key for each in trial.waiting}
        fitting: tuple[Placed | Waiting, ...] = (*found.placed, *found.waiting)
        placed = [each for each in fitting if each.pod.key in wanted - waiting]
        fit = len(waiting & wanted) + sum(bool(each.node_name) for each in found.refused)
        if not (placed or fit):
            return None
        deleted = [change.pod for change in changes if isinstance(change, DeletePod)]
        back = [pending_again(what_if, trial, pod) for pod in deleted] if placed else []
        refused = trial.schedule(back).refused if back else ()
        return Remedy(
            changes,
            len(pods),
            tuple(each.node_name for each in placed),
            tuple(each.pod.key for each in refused),
            waiting=fit,
        )


def _changed(trial: Transaction, pod: Pod, changes: Changes) -> Pod:
    """The pod with the changes, in the transaction, too."""
    changed = pod
    for change in changes:
        changed = change.changed(changed)
    return pod if changed == pod else trial.update(changed)


def _with_more_nodes(what_if: WhatIf, remedy: Remedy, pods: Sequence[Pod], siblings: Sequence[Pod]) -> Remedy:
    """The remedy with as many new nodes as it takes to get all pods a place that such nodes can.

    Pods of a group may all wait until the last of the nodes is there.
    """
    addition = next((each for each in remedy.changes if isinstance(each, AddNodes)), None)
    if addition is None:
        return remedy
    tried: dict[int, Remedy | None] = {}

    def place(count: int) -> int:
        counted = attrs.evolve(addition, count=count)
        changes = tuple(counted if each is addition else each for each in remedy.changes)
        tried[count] = attempt(what_if, changes, pods, siblings)
        found = tried[count]
        return 0 if found is None else found.placed

    most = min(len(pods), addition.group.max)
    more = tried[smallest_count(place, most)] if most > 1 else None
    return more if more is not None and more.placed > remedy.placed else remedy
