"""Advice for the page: what would help pending pods, as changes to try, and whether a node would be emptied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from kschedfw import WhatIf
from kschedfw.api import group_key
from kschedfw_advisor.drain_plan import DrainPlan, Move
from kschedfw_advisor.explore.changes import EditObjects, EditOf
from kschedfw_advisor.pending import PodKind, explain_pending
from kschedfw_advisor.remedies import Remedy
from kschedfw_advisor.workloads import group_of

MOST_KINDS: Final = 20
"""The number of kinds of pods that the page seeks help for: those with the most pods."""


class Help(msgspec.Struct, frozen=True):
    """A remedy: the number of pods that it places, the number of others that lose their place, and its change."""

    text: str
    placed: int
    pods: int
    displaced: int
    change: EditObjects


class KindAdvice(msgspec.Struct, frozen=True):
    """Pods that are alike, why they are pending, and what would help; see `PodKind`.

    `group` is the key of the PodGroup whose members these are, if they are scheduled together, and empty otherwise.
    """

    title: str
    group: str
    pods: list[str]
    message: str
    notes: list[str]
    fits: bool
    tried: int
    remedies: list[Help]


class Advice(msgspec.Struct, frozen=True):
    """Advice for the kinds of pending pods that were looked at; `unseen` is how many weren't."""

    kinds: list[KindAdvice]
    unseen: int


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


def advice_of(what_if: WhatIf, progress: Callable[[str, int, int], None]) -> Advice:
    """Return what would help the pending pods; those that need no help get their places in `what_if`."""
    answer = explain_pending(what_if, most=MOST_KINDS, progress=progress)
    kinds = [kind for why in answer.whys for kind in why.kinds]
    seen = [_kind_advice(kind) for kind in kinds if kind.tried or kind.fits]
    return Advice(seen, len(kinds) - len(seen))


def _kind_advice(kind: PodKind) -> KindAdvice:
    pods = [pod.key for pod in kind.pods]
    title = pods[0] if kind.workload is None else str(kind.workload)
    group = group_key(kind.pods[0]) if kind.workload == group_of(kind.pods[0]) else ""
    # The page makes changes only by editing manifests.
    remedies = [_help(remedy, pods) for remedy in kind.remedies if remedy.edits]
    return KindAdvice(
        title, group, pods, kind.message, list(map(str, kind.notes)), kind.fits, kind.tried, remedies
    )


def _help(remedy: Remedy, pods: list[str]) -> Help:
    edits = tuple(EditOf(edit.name, edit.path, edit.old, edit.new) for edit in remedy.edits)
    change = EditObjects(str(remedy), edits, tuple(pods))
    return Help(str(remedy), remedy.placed, remedy.pods, len(remedy.displaced), change)


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
