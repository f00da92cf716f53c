"""Schedules pods until nothing changes any more, as a running scheduler does when it is given time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster.freeing import belongs_to_its_node, freed
from kschedfw.what_if.engine import Progress
from kschedfw.what_if.results import Placed, Refused
from kschedfw.what_if.transaction import Transaction
from kschedfw.what_if.what_if import WhatIf

MOST_ROUNDS: Final = 10
"""How often pods without a place are tried again, as long as others get one in between."""


@attrs.frozen
class Settled:
    """How the pods ended. `evicted` are the pods that lost their place for one of them, those that found another one
    included.
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
    and are scheduled, too; others are gone.
    """
    placed: dict[str, Placed] = {}
    refused: tuple[Refused, ...] = ()
    evicted: list[Pod] = []
    waiting = list(pods)
    for rounds_left in reversed(range(MOST_ROUNDS)):
        if not waiting:
            break
        # Nobody is evicted in the last round, so that nobody is left over.
        outcome = trial.schedule(waiting, preempt=preempt and rounds_left > 0, progress=progress)
        refused = outcome.refused
        waiting = [each.pod for each in refused]
        for each in outcome.placed:
            placed[each.pod.key] = each
            for victim in each.victims:
                evicted.append(victim)
                placed.pop(victim.key, None)
                if not victim.node_name:
                    waiting.append(victim)  # it was placed in this very transaction
                elif victim.metadata.controller is not None and not belongs_to_its_node(victim):
                    waiting.append(pending_again(what_if, trial, victim))
        if not outcome.placed:
            break
    return Settled(tuple(placed.values()), refused, tuple(evicted))


def pending_again(what_if: WhatIf, trial: Transaction, pod: Pod) -> Pod:
    """The pod that a controller makes in place of one that was bound and is gone; it is added."""
    pod = freed(pod, what_if.cluster.get(Node, pod.node_name))
    trial.add(pod)
    return pod
