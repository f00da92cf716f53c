"""The state of a workbench, as the page shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
from kschedfw_lab.pages import ClusterMap, cluster_map
from msgspec.structs import replace

from kschedfw.cluster import Workload
from kschedfw_advisor.explore.changes import Change
from kschedfw_advisor.explore.forms import ProfileForm, profile_forms
from kschedfw_advisor.explore.outcome import Move, SimulatedOutcome, moves
from kschedfw_advisor.explore.pod_groups import PodGroupRow, pod_groups
from kschedfw_advisor.explore.workbench import Changes, Workbench

MOST_MOVES = 2_000
"""The number of moved pods that are listed; all are counted."""


class Waiting(msgspec.Struct, frozen=True):
    """Pods of a workload that wait for the same reason, by their places in the map.

    `workload` is the kind of the workload, empty for a pod by itself; `name` is the workload's name, or the pod's.
    """

    workload: str
    namespace: str
    name: str
    why: str
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

    `fresh` are the pods, by their places in the map, that have just been placed; `placed` are those of them that are
    members of none of the `pod_groups`. `waiting` are such pods that find no place. `kept` are the titles of
    `kept_changes`; `undo` and `redo` are those of the steps that these would take.
    """

    map: ClusterMap
    fresh: list[int]
    placed: list[int]
    waiting: list[Waiting]
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
    members = {place for row in together for place in row.pods}
    alone = {key: place for key, place in places.items() if place not in members}
    return State(
        map=cluster_map(after.nodes, after.pods, {key: after.fates[key].node or "" for key in places}),
        fresh=[place for key, place in places.items() if after.fates[key].is_new],
        placed=[place for key, place in alone.items() if after.fates[key].is_new],
        waiting=_waiting(bench, after, alone),
        pod_groups=together,
        profiles=profile_forms(bench.configuration(every).profiles, bench.original.profiles, bench.registry),
        kept=[change.title for change in bench.kept],
        undo=bench.undoable,
        redo=bench.redoable,
        notes=list(after.notes),
        kept_changes=list(bench.kept),
        tried=_tried(bench, before, after, changes) if changes else None,
    )


def _waiting(bench: Workbench, outcome: SimulatedOutcome, places: Mapping[str, int]) -> list[Waiting]:
    """Return the pods of these places that find no place, by workload and reason; those with the most pods first."""
    found: dict[tuple[Workload, str], list[int]] = {}
    for pod in outcome.pods:
        fate = outcome.fates[pod.key]
        if fate.node is None and pod.key in places:
            workload = bench.workload(pod) or Workload("", pod.namespace, pod.name)
            found.setdefault((workload, fate.why), []).append(places[pod.key])
    waiting = [
        Waiting(workload.kind, workload.namespace, workload.name, why, pods)
        for (workload, why), pods in found.items()
    ]
    return sorted(waiting, key=lambda each: -len(each.pods))


def _tried(bench: Workbench, before: SimulatedOutcome, after: SimulatedOutcome, changes: Changes) -> Tried:
    differing = list(moves(before, after))
    pods = {pod.key: pod for pod in (*before.pods, *after.pods)}
    listed = [
        replace(move, workload=str(bench.workload(pods[move.pod]) or "")) for move in differing[:MOST_MOVES]
    ]
    return Tried(
        changes=[change.title for change in changes],
        counts=dict(Counter(move.change for move in differing)),
        # In the order of the workloads, so that all pods of one are together.
        moves=sorted(listed, key=lambda move: move.workload),
        gains=dict(Counter(move.after for move in differing if move.after)),
        losses=dict(Counter(move.before for move in differing if move.before)),
    )
