"""Groups of pods that are scheduled together, each as one row of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kschedfw import Pod
from kschedfw.api import PodGroup, group_key
from kschedfw_advisor.explore.outcome import Fate, SimulatedOutcome

PENDING = "pending"
IN_PART = "in part"
FITS = "would fit"
PLACED = "placed"


class PodGroupRow(msgspec.Struct, frozen=True):
    """A group: `pods` are its members, by their places in the map, of which `placed` have a node.

    `least` is how many must run; None if each may run without the others. `why` is the group's message, in
    kube-scheduler's words, or else that of most members without a node; empty for a placed group.
    """

    name: str
    state: str
    pods: list[int]
    placed: int
    least: int | None
    why: str


def pod_groups(outcome: SimulatedOutcome, places: Mapping[str, int]) -> list[PodGroupRow]:
    """Return the groups with members, those that lack places first; none where pods are scheduled one by one."""
    members: dict[str, list[Pod]] = {}
    for pod in outcome.pods if outcome.groups is not None else ():
        if key := group_key(pod):
            members.setdefault(key, []).append(pod)
    groups = outcome.groups or {}
    rows = [_row(key, pods, groups.get(key), outcome.fates, places) for key, pods in members.items()]
    order = (PENDING, IN_PART, FITS, PLACED)
    return sorted(rows, key=lambda row: (order.index(row.state), row.name))


def _row(
    key: str,
    pods: Sequence[Pod],
    group: PodGroup | None,
    fates: Mapping[str, Fate],
    places: Mapping[str, int],
) -> PodGroupRow:
    found = [fates[pod.key] for pod in pods]
    lacking = [fate for fate in found if fate.node is None]
    placed = len(found) - len(lacking)
    least = None if group is None else group.min_count
    if not lacking:
        state = FITS if any(fate.is_new for fate in found) else PLACED
    else:
        state = PENDING if placed < max(least or 1, 1) else IN_PART
    why = _why(group, lacking) if lacking else ""
    return PodGroupRow(key, state, [places[pod.key] for pod in pods], placed, least, why)


def _why(group: PodGroup | None, lacking: Sequence[Fate]) -> str:
    return next(_told(group), "") or Counter(fate.why for fate in lacking).most_common(1)[0][0]


def _told(group: PodGroup | None) -> Iterator[str]:
    for condition in () if group is None else group.status.conditions:
        # The first is of v1.36, the second of v1.37.
        types = ("PodGroupScheduled", "PodGroupInitiallyScheduled")
        if condition.type in types and condition.status == "False":
            yield condition.message
