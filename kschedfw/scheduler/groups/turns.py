"""Equal pods that are placed one after the other, each as if those before it were bound, without calls of hooks.

This is what a group's members are in a trial of a placement. Nothing is written to the snapshot: the amounts of the
placement's nodes are copied, and change from pod to pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import numpy as np

from kschedfw.api.records import frozen
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.runtime.engine.kept_totals import pass_input
from kschedfw.framework.runtime.engine.passes import ANY_AMOUNT, CpuAndMemory, Weights
from kschedfw.framework.runtime.engine.plan import PlannedPod
from kschedfw.framework.runtime.framework import Framework
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from kschedfw.scheduler.select import FirstByNameSelector, ReservoirSelector

_NO_RANKS: IntArray = np.empty(0, dtype=np.int64)


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
) -> tuple[IntArray, CpuAndMemory, CpuAndMemory, Weights, IntArray, IntArray]:
    """Return the arguments of the compiled search that differ from pod to pod.

    `scalars` are the resources beside CPU, memory and storage.
    """
    (wanted, _, scored, amounts, weights), requests = pass_input(pod.plan, pod.requests, table), pod.requests
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


def place_in_turn(
    algorithm: GenericScheduler,
    framework: Framework,
    runs: Sequence[tuple[PlannedPod, int]],
    placements: Sequence[NodeSelection],
) -> Sequence[Sequence[EqualPlaces]] | None:
    """Return the places of so many pods of each kind on each of the placements, which don't see one another.

    Each pod gets its place as by `GenericScheduler.schedule_within` with those before it in place. Return None, with
    nothing drawn, where this can't be told without calling hooks.
    """
    if framework.parts.extenders or not framework.has_score_plugins or not all(map(len, placements)):
        return None
    selector, random, moves = algorithm.selector, algorithm.random, not algorithm.is_exhaustive
    # The compiled search draws as Python's generator does. A subclass of `Random` may draw otherwise, and picks of
    # other selectors only they can make.
    draws = isinstance(selector, ReservoirSelector) and type(random) is Random
    if not (draws or isinstance(selector, FirstByNameSelector)):
        return None
    search, table, start = compiled_search(), placements[0].table, algorithm.next_start_node_index
    assert search is not None
    scalars = _scalar_resources(runs)
    kinds = [(number, pod.base, _arguments(pod, table, scalars)) for pod, number in runs]
    columns = [table.free.T[:4], *[_free(table, name)[np.newaxis] for name in scalars]]
    free_of_all = np.concatenate(columns) if scalars else columns[0]
    floats_of_all = np.concatenate(
        (table.allocatable_floats.T, table.requested_floats.T, table.non_zero_floats.T)
    )
    # A state of `Random` is 624 words and the position of the next one. It goes back after all searches, so that
    # draws that follow are those of a serial search.
    version, state, gauss = random.getstate() if draws else (0, (), None)
    words = np.array(state, dtype=np.int64)
    found_in_all = []
    for nodes in placements:
        rows = nodes.rows
        # `take` copies: the loop writes to these arrays, and the snapshot's must stay as they are.
        free, floats = free_of_all.take(rows, axis=1), floats_of_all.take(rows, axis=1)
        ranks = selector.ranks(table).take(rows) if isinstance(selector, FirstByNameSelector) else _NO_RANKS
        most = algorithm.nodes_to_find(framework, len(nodes))
        turns = []
        for number, scores, arguments in kinds:
            found: IntArray = np.empty((3, number), dtype=np.int64)
            placed, start = search(
                number,
                scores.take(rows),
                free,
                floats,
                *arguments,
                start,
                len(table),
                moves,
                most,
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
    algorithm.next_start_node_index = start
    return found_in_all


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


@cache
def compiled_search() -> Callable[..., tuple[int, int]] | None:
    """Return the compiled search, `_turns.place_in_turn`; None without Numba."""
    try:
        # Numba takes a while to load, and may be missing.
        from kschedfw.scheduler.groups._turns import place_in_turn
    except ImportError:
        return None
    return place_in_turn
