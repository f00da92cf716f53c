"""The state of a workbench, as the page shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import msgspec
from msgspec.structs import replace

from kschedfw.pages import ClusterMap, cluster_map
from kschedfw_advisor.explore.changes import Change
from kschedfw_advisor.explore.forms import ProfileForm, profile_forms
from kschedfw_advisor.explore.outcome import Move, Outcome, moves
from kschedfw_advisor.explore.pod_groups import PodGroupRow, pod_groups
from kschedfw_advisor.explore.workbench import Changes, Workbench

MOST_MOVES = 2_000
"""The number of moved pods that are listed; all are counted."""

PLACED_NOW = "would be placed"


class Group(msgspec.Struct, frozen=True):
    """Pending pods that fare alike, by their places in the map."""

    title: str
    note: str
    pods: list[int]


class Tried(msgspec.Struct, frozen=True):
    """The effect of changes that aren't kept: moves by kind, the first moves, and nodes that gain or lose pods."""

    changes: list[str]
    counts: dict[str, int]
    moves: list[Move]
    gains: dict[str, int]
    losses: dict[str, int]


class State(msgspec.Struct, frozen=True):
    """The cluster after the kept changes, or after those that are tried.

    `fresh` are the pods, by their places in the map, that have just been placed. `groups` are those that were pending,
    without the members of `pod_groups`. `kept` are the titles of `kept_changes`;
    `undo` and `redo` are those of the steps that these would take.
    """

    map: ClusterMap
    fresh: list[int]
    groups: list[Group]
    pod_groups: list[PodGroupRow]
    profiles: list[ProfileForm]
    kept: list[str]
    kept_changes: list[Change]
    undo: str | None
    redo: str | None
    notes: list[str]
    tried: Tried | None


def state_of(bench: Workbench, changes: Changes = ()) -> State:
    """The state with the kept changes and these, which are only tried.

    Raises:
        KschedfwError: a change can't be made.
    """
    before = bench.outcome()
    every = (*bench.kept, *changes)
    after = bench.outcome(every)
    places = {pod.key: place for place, pod in enumerate(after.pods)}
    together = pod_groups(after, places)
    return State(
        map=cluster_map(after.nodes, after.pods, {key: after.fates[key].node or "" for key in places}),
        fresh=[place for key, place in places.items() if after.fates[key].is_new],
        groups=list(_groups(after, places, {place for row in together for place in row.pods})),
        pod_groups=together,
        profiles=profile_forms(bench.configuration(every).profiles, bench.original.profiles, bench.registry),
        kept=[change.title for change in bench.kept],
        undo=bench.undoable,
        redo=bench.redoable,
        notes=list(after.notes),
        kept_changes=list(bench.kept),
        tried=_tried(bench, before, after, changes) if changes else None,
    )


def _groups(outcome: Outcome, places: dict[str, int], without: Collection[int]) -> Iterator[Group]:
    """The pods that were pending, by why they still are; those that find a node come last.

    Pods whose places are in `without` are left out.
    """
    by_why: dict[str, list[int]] = {}
    placed = []
    for key, place in places.items():
        if place in without:
            continue
        fate = outcome.fates[key]
        if fate.is_new:
            placed.append(place)
        elif fate.node is None:
            by_why.setdefault(fate.why, []).append(place)
    for why, pods in sorted(by_why.items(), key=lambda group: -len(group[1])):
        yield Group(why, "", pods)
    if placed:
        yield Group(PLACED_NOW, "On the map they are where they would go.", placed)


def _tried(bench: Workbench, before: Outcome, after: Outcome, changes: Changes) -> Tried:
    differing = list(moves(before, after))
    pods = {pod.key: pod for pod in (*before.pods, *after.pods)}
    listed = [replace(move, workload=bench.workload(pods[move.pod])) for move in differing[:MOST_MOVES]]
    return Tried(
        changes=[change.title for change in changes],
        counts=dict(Counter(move.change for move in differing)),
        # In the order of the workloads, so that all pods of one are together.
        moves=sorted(listed, key=lambda move: move.workload),
        gains=dict(Counter(move.after for move in differing if move.after)),
        losses=dict(Counter(move.before for move in differing if move.before)),
    )
