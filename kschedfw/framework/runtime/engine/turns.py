"""Equal pods that are placed one after the other, each as if those before it were bound, without calls of hooks.

This is what a group's members are in a trial of a placement. Nothing is written to the snapshot: the amounts of the
placement's nodes are copied, and change from pod to pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Final, cast

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.api.requests import PodRequests
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AnyPlugin, TakesMembersAlike, keeps_promise
from kschedfw.framework.runtime.engine.kept_totals import pass_input
from kschedfw.framework.runtime.engine.passes import ANY_AMOUNT, Amounts, Weights
from kschedfw.framework.runtime.engine.plan import Base

TRIAL_HOOKS: Final = ("reserve", "unreserve", "permit", "post_filter", "placement_feasible")
"""The hooks that are called for each member while a group is tried, if `takes_members_alike` doesn't say otherwise."""

_NO_RANKS: IntArray = np.empty(0, dtype=np.int64)


@frozen(eq=False)
class PlannedPod:
    """A pod about which no plugin has to be asked on any node: its plan has all answers."""

    base: Base
    requests: PodRequests
    written: CycleState
    """The state that the pre_filters and pre_scores wrote."""
    skipped_filters: frozenset[str]
    skipped_scores: frozenset[str]

    def is_like(self, other: PlannedPod) -> bool:
        """Return whether both have the same answers on every node."""
        return self.base is other.base and self.requests is other.requests

    def write_to(self, state: CycleState) -> None:
        """Write what later hooks read, as the steps from pre_filter to score would."""
        state.take(self.written)
        state.skip_filter_plugins = self.skipped_filters
        state.skip_score_plugins = self.skipped_scores


@frozen(eq=False)
class Search:
    """The nodes of a placement, and how they are searched.

    `most` nodes are found at most. Of the best ones the one with the lowest of `ranks` is taken; without ranks a random
    one.
    """

    nodes: NodeSelection
    most: int
    ranks: IntArray | None = None


@frozen(eq=False)
class EqualPlaces:
    """The nodes of equal pods, placed one after the other.

    Each sequence has an entry per pod that got a node: its row, the number of feasible nodes, and the number of nodes
    looked at. The other pods, which come last, fit on no node.
    """

    rows: Sequence[int]
    feasible: Sequence[int]
    looked_at: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)


def _arguments(
    pod: PlannedPod, table: NodeTable, scalars: Sequence[str]
) -> tuple[IntArray, Amounts, Amounts, Weights, IntArray, IntArray]:
    """Return the arguments of the compiled search that differ from pod to pod.

    `scalars` are the resources beside CPU, memory and storage.
    """
    (wanted, _, scored, amounts, weights), requests = pass_input(pod.base, pod.requests, table), pod.requests
    its = requests.amounts
    both = its.milli_cpu, its.memory
    # Demand and requests differ while a pod is resized in place (`PodRequests`).
    all_wanted = [*wanted, *[requests.demand.get(name) or ANY_AMOUNT for name in scalars]]
    taken = [*both, its.ephemeral_storage, 1, *map(its.get, scalars)]
    added = [*both, requests.non_zero_milli_cpu, requests.non_zero_memory]
    return (
        np.array(all_wanted, dtype=np.int64),
        scored,
        amounts,
        weights,
        np.array(taken, dtype=np.int64),
        np.array(added, dtype=np.int64),
    )


def in_turn(
    runs: Sequence[tuple[PlannedPod, int]],
    searches: Sequence[Search],
    random: Random,
    start: int,
    *,
    moves: bool,
) -> tuple[Sequence[Sequence[EqualPlaces]], int]:
    """Place so many pods of each kind, one after the other, on the nodes of each search, which doesn't see the others.

    The searches draw from `random` in their order. The first one begins at node `start`, which `moves` on with each
    pod. Return what was found in each search for each kind, and the next start.
    """
    place_in_turn, table = compiled_turns(), searches[0].nodes.table
    assert place_in_turn is not None
    scalars = _scalar_resources(runs)
    kinds = [(number, pod.base.scores, _arguments(pod, table, scalars)) for pod, number in runs]
    columns = [table.free.T[:4], *[_free(table, name)[np.newaxis] for name in scalars]]
    free_of_all = np.concatenate(columns) if scalars else columns[0]
    floats_of_all = np.concatenate(
        (table.allocatable_floats.T[:2], table.requested_floats.T[:2], table.non_zero_floats.T)
    )
    draws = any(search.ranks is None for search in searches)
    # A state of `Random` is 624 words and the position of the next one. It goes back after all searches, so that
    # draws that follow are those of a serial search.
    version, state, gauss = random.getstate() if draws else (0, (), None)
    words = np.array(state, dtype=np.int64)
    found_in_all = []
    for search in searches:
        rows = search.nodes.rows
        # `take` copies: the loop writes to these arrays, and the snapshot's must stay as they are.
        free, floats = free_of_all.take(rows, axis=1), floats_of_all.take(rows, axis=1)
        ranks = _NO_RANKS if search.ranks is None else search.ranks
        turns = []
        for number, scores, arguments in kinds:
            found: IntArray = np.empty((3, number), dtype=np.int64)
            placed, start = place_in_turn(
                number,
                scores.take(rows),
                free,
                floats,
                *arguments,
                start,
                len(table),
                moves,
                search.most,
                ranks,
                words,
                found,
            )
            if moves and placed < number:  # each of the others looks at all nodes in vain
                start = (start + (number - placed - 1) * len(rows)) % len(table)
            turns.append(EqualPlaces(rows[found[0, :placed]].tolist(), *found[1:, :placed].tolist()))
        found_in_all.append(turns)
    if draws:
        random.setstate((version, tuple(words.tolist()), gauss))
    return found_in_all, start


def _scalar_resources(runs: Sequence[tuple[PlannedPod, int]]) -> Sequence[str]:
    """Return the names of the resources that pods of these kinds request beside CPU, memory and storage, sorted."""
    names: set[str] = set()
    for pod, _ in runs:
        names.update(pod.requests.demand.scalar_resources, pod.requests.amounts.scalar_resources)
    return sorted(names)


def _free(table: NodeTable, resource: str) -> IntArray:
    """Return the free amounts by row, shape (n,); 0 where no node has the resource."""
    column = table.columns.get(resource)
    return np.zeros(len(table), dtype=np.int64) if column is None else table.free[:, column]


def takes_members_alike(plugin: AnyPlugin, pod: Pod) -> bool:
    """Tell whether the plugin promises `TakesMembersAlike` for this pod, and for its own hooks, not for its base's."""
    hooks = (*TRIAL_HOOKS, "pre_filter", "pre_score")
    return keeps_promise(plugin, "takes_members_alike", hooks) and cast(
        "TakesMembersAlike", plugin
    ).takes_members_alike(pod)


@cache
def compiled_turns() -> Callable[..., tuple[int, int]] | None:
    """Return the compiled search, `_turns.place_in_turn`; None without Numba."""
    try:
        # Numba takes a while to load, and may be missing.
        from kschedfw.framework.runtime.engine._turns import place_in_turn
    except ImportError:
        return None
    return place_in_turn
