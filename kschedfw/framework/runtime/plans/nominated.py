"""Nodes that have room for a pod, but not beside the pods that are nominated to them.

As in kube-scheduler (`RunFilterPluginsWithNominatedPods`), a node must pass with its nominated pods of equal or higher
priority, and without them. The pass looks at nodes without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.answers.filtering import Filters
from kschedfw.framework.runtime.plans.kept_totals import wanted_amounts
from kschedfw.framework.runtime.plans.passes import SmallCodes
from kschedfw.framework.runtime.plans.plan import NotPlannedError, ShapePlan

_FEW: Final = 8
_MOST_ASKED: Final = 16
"""The number of nodes up to which filters are called for each: for more, the hooks' way keeps their answers."""


@attrs.frozen(eq=False)
class _Taken:
    """What nominated pods of a priority or a higher one would take: rows of nodes, and amounts of shape (k, 4)."""

    key: tuple[int, int, int]
    """The versions of nominations and of the table's layout, and the priority."""
    rows: IntArray
    amounts: IntArray
    few: Sequence[tuple[int, Sequence[int]]] = attrs.field(init=False)
    """The same as ints, if they are few."""

    @few.default
    def _as_ints(self) -> Sequence[tuple[int, Sequence[int]]]:
        return list(zip(self.rows[:_FEW].tolist(), self.amounts[:_FEW].tolist(), strict=True))


class NominatedRoom:
    """Tells which nodes refuse a pod because of the pods that are nominated to them."""

    def __init__(self, filters: Filters, nominator: Nominator) -> None:
        self._filters = filters
        self._nominator = nominator
        self._taken: _Taken | None = None

    def refused(
        self, plan: ShapePlan, state: CycleState, pod: Pod, nodes: NodeSelection, skipped: frozenset[str]
    ) -> SmallCodes | None:
        """Return codes that aren't 0 where the nominated pods leave no room, shape (n,); None where they do everywhere.

        `state` has what the pre_filters of plugins that are asked about every pod wrote. `skipped` are the plugins
        whose filters are skipped.

        Raises:
            NotPlannedError: hooks must be called for the pod, since many nodes would have to be asked, or one failed.
        """
        rows: IntArray | Sequence[int]
        if self._only_room_decides(plan, pod, skipped):
            rows = self._rows_without_room(pod, nodes)
        else:
            rows = self._rows_refused(plan, state, pod, nodes, skipped)
        if not len(rows):
            return None
        codes: SmallCodes = np.zeros(len(nodes), dtype=np.int8)
        codes[rows] = 1
        return codes

    def _only_room_decides(self, plan: ShapePlan, pod: Pod, skipped: frozenset[str]) -> bool:
        """Tell whether more pods on a node can't change any answer but that about free amounts."""
        return (
            self._filters.pod_followers <= skipped
            and not pod.requests.demand.scalar_resources
            and all(
                each.filtering is None or each.name in skipped or each.plugin.reads is Reads.NODE
                for each in plan.asked
            )
        )

    def _rows_without_room(self, pod: Pod, nodes: NodeSelection) -> IntArray | Sequence[int]:
        taken, free, wanted = self._taken_from(pod, nodes), nodes.table.free, wanted_amounts(pod.requests)
        if len(taken.rows) > _FEW:
            left = free[taken.rows, :4] - taken.amounts
            rows: IntArray = taken.rows[(left < np.array(wanted)).any(axis=1)]
            return rows
        # NumPy's calls take longer than a few nodes do.
        found = []
        for row, amounts in taken.few:
            cpu, memory, storage, pods = free[row, :4].tolist()
            if (
                cpu - amounts[0] < wanted[0]
                or memory - amounts[1] < wanted[1]
                or storage - amounts[2] < wanted[2]
                or pods - amounts[3] < wanted[3]
            ):
                found.append(row)
        return found

    def _taken_from(self, pod: Pod, nodes: NodeSelection) -> _Taken:
        key = self._nominator.version, nodes.table.layout, pod.priority
        # The kept amounts count every nomination, but a pod's own one leaves it its room.
        is_nominated = bool(self._nominator.node_of(pod.uid))
        if not is_nominated and self._taken is not None and self._taken.key == key:
            return self._taken
        crowded = self._crowded(pod, nodes)
        amounts = [
            [
                sum(each.milli_cpu for each in requests),
                sum(each.memory for each in requests),
                sum(each.ephemeral_storage for each in requests),
                len(requests),
            ]
            for _, infos in crowded
            for requests in [[info.requests.amounts for info in infos]]
        ]
        rows = np.array([row for row, _ in crowded], dtype=np.int64)
        taken = _Taken(key, rows, np.array(amounts, dtype=np.int64).reshape(-1, 4))
        if not is_nominated:
            self._taken = taken
        return taken

    def _crowded(self, pod: Pod, nodes: NodeSelection) -> Sequence[tuple[int, Sequence[PodInfo]]]:
        """Return the rows of nodes with nominated pods that count for this pod, and these pods."""
        rows = nodes.table.rows
        return [
            (rows[name], infos)
            for name in self._nominator.nominated_nodes()
            if name in rows and (infos := self._filters.nominated_pods(pod, name))
        ]

    def _rows_refused(
        self, plan: ShapePlan, state: CycleState, pod: Pod, nodes: NodeSelection, skipped: frozenset[str]
    ) -> Sequence[int]:
        crowded = self._crowded(pod, nodes)
        if len(crowded) > _MOST_ASKED:
            raise NotPlannedError
        asked = CycleState()
        asked.take(plan.written)
        asked.take(state)
        asked.skip_filter_plugins = skipped
        if crowded:
            # A plan spares the pre_filters of plugins whose answers the pass computes.
            for each in plan.computed:
                each.is_skipped(each.pre_filter, asked, pod, nodes)
        filters, rows = self._filters.reading_pods(asked), []
        for row, _ in crowded:
            status = self._filters.refusal_with_nominated_pods(
                filters, asked, pod, nodes.table.node_infos[row]
            )
            if status.is_success:
                continue
            if not status.is_rejected or status.retry_at is not None:
                raise NotPlannedError
            rows.append(row)
        return rows
