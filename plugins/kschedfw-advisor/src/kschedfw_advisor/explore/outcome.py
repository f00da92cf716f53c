"""The fates of a cluster's pods after changes, and the differences between two outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs
import msgspec

from kschedfw import Node, Pod
from kschedfw.api import PodGroup


@attrs.frozen
class Fate:
    """The fate of a pod: its node, or why it has none. `is_new` tells that it was pending before."""

    node: str | None = None
    why: str = ""
    is_new: bool = False


@attrs.frozen(eq=False)
class SimulatedOutcome:
    """The cluster after changes, and after all pending pods were tried in the order of the queue.

    `fates` has every pod by its key, those that preemption took away included; `pods` only those that are there.
    `groups` are the PodGroups with their conditions then, by key; None where pods are scheduled one by one. `notes` are
    on the changes.
    """

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    fates: Mapping[str, Fate]
    notes: Sequence[str] = ()
    groups: Mapping[str, PodGroup] | None = None


MOVES: Final = {
    "moves": ("moves", "move"),
    "newly placed": ("finds a place", "find a place"),
    "no longer placed": ("loses its place", "lose their places"),
    "added": ("is added", "are added"),
    "gone": ("is gone", "are gone"),
}
"""The kinds of moves in words, of one pod and of several."""


class Move(msgspec.Struct, frozen=True):
    """A pod that fares differently: where it is before and after, or why it is nowhere.

    `workload` is the workload that it is of; empty for a pod by itself, and where nobody has looked.
    """

    pod: str
    change: str
    before: str | None
    after: str | None
    why: str
    workload: str = ""


def moves(before: SimulatedOutcome, after: SimulatedOutcome) -> Iterator[Move]:
    """The pods that fare differently, in the order of the clusters."""
    for pod in {**before.fates, **after.fates}:
        had, has = before.fates.get(pod), after.fates.get(pod)
        old = None if had is None else had.node
        new = None if has is None else has.node
        if had is None:
            yield Move(pod, "added", None, new, "" if has is None else has.why)
        elif has is None:
            yield Move(pod, "gone", old, None, "deleted")
        elif old != new:
            change = "moves" if old and new else "newly placed" if new else "no longer placed"
            yield Move(pod, change, old, new, has.why)
