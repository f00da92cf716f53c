"""Scheduling of pods until nothing changes any more, as a running scheduler does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import attrs

from kschedfw import Node, Pod, Transaction, WhatIf
from kschedfw.cluster import belongs_to_its_node, freed
from kschedfw.what_if import Placed, PodResult, Progress, Refused

MOST_ROUNDS: Final = 10
"""The number of times that pods without a place are retried while others get places."""


@attrs.frozen
class Settled:
    """The result of scheduling pods until nothing changes.

    `refused` have a `node_name` if they fit, and wait in vain for others. `evicted` are the pods that lost their place
    for one of them, those that found another one included.
    """

    placed: tuple[Placed, ...] = ()
    refused: tuple[Refused, ...] = ()
    evicted: tuple[Pod, ...] = ()


def settle(
    what_if: WhatIf,
    trial: Transaction,
    pods: Iterable[Pod],
    *,
    preempt: bool = False,
    progress: Progress | None = None,
) -> Settled:
    """Schedule the pods, and again those without a place as long as others find one.

    With `preempt`, pods may be evicted for others of higher priority. Those that have a controller are pending then,
    and are scheduled, too; others are gone. Pods that wait for permission give up their places when nothing else moves
    any more, as their time would be over then, and the others are scheduled without them.
    """
    ends: dict[str, Placed | Refused] = {}
    stuck: set[tuple[str, ...]] = set()
    evicted: list[Pod] = []
    pending = list(pods)
    for rounds_left in reversed(range(MOST_ROUNDS)):
        if not pending:
            break
        # Nobody is evicted in the last round, so that nobody is left over.
        outcome = trial.schedule(pending, preempt=preempt and rounds_left > 0, progress=progress)
        # A transaction with waiting pods can't be committed; and others may use their places.
        trial.evict(*(each.pod for each in outcome.waiting))
        in_vain = [each.in_vain() for each in outcome.waiting]
        for refusal in (*outcome.refused, *in_vain):
            ends[refusal.pod.key] = _more_telling(ends.get(refusal.pod.key), refusal, stuck)
        ends |= {each.pod.key: each for each in outcome.placed}
        outcomes: tuple[PodResult, ...] = (*outcome.placed, *outcome.waiting, *outcome.refused)
        victims = [pod for each in outcomes for pod in each.victims]
        evicted += victims
        pending = [each.pod for each in outcome.refused]
        for victim in victims:
            ends.pop(victim.key, None)
            if (
                victim.node_name
                and victim.metadata.controller is not None
                and not belongs_to_its_node(victim)
            ):
                pending.append(pending_again(what_if, trial, victim))
            elif not victim.node_name and victim.key not in {pod.key for pod in pending}:
                # It was placed in this very transaction.
                pending.append(victim)
        if outcome.placed:
            pending += [each.pod for each in outcome.waiting]
        elif preempt and any(each.node_name for each in outcome.refused):
            # A gang was given up when the first of its pods fitted nowhere. Without preemption it isn't, so that each
            # of its pods tells whether it fits.
            preempt = False
        elif in_vain:
            stuck |= {each.reasons for each in in_vain}
        elif not victims:
            break
    placed = tuple(each for each in ends.values() if isinstance(each, Placed))
    return Settled(placed, tuple(each for each in ends.values() if isinstance(each, Refused)), tuple(evicted))


def most_telling(refused: Sequence[Refused]) -> Refused:
    """Return the refusal that says why such pods have no place: the first with the reasons that most of them have.

    A pod that fits and waits for others doesn't show what they lack, so it counts only if all pods do so.
    """
    nowhere = [each for each in refused if not each.node_name] or refused
    reasons = Counter(each.reasons for each in nowhere).most_common(1)[0][0]
    return next(each for each in nowhere if each.reasons == reasons)


def _more_telling(
    before: Placed | Refused | None, now: Refused, stuck: Collection[tuple[str, ...]]
) -> Refused:
    """Return which of two refusals of a pod is shown."""
    if not isinstance(before, Refused) or before.node_name:
        return now
    if now.reasons == before.reasons:
        # The earlier one may tell of preemption, too.
        return before
    # A pod without which its group is stuck fits once the others of the group have given up their places.
    return before if now.reasons in stuck else now


def pending_again(what_if: WhatIf, trial: Transaction, pod: Pod) -> Pod:
    """Add and return the pod that a controller makes in place of one that was bound and is gone."""
    pod = freed(pod, what_if.cluster.get(Node, pod.node_name))
    trial.add(pod)
    return pod
