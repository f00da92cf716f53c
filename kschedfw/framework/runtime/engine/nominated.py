"""Nodes that have room for a pod, but not beside the pods that are nominated to them.

As in kube-scheduler (`RunFilterPluginsWithNominatedPods`), a node must pass with its nominated pods of equal or higher
priority, and without them. The pass looks at nodes without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import Codes, FloatArray, IntArray
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.engine.errors import NotTogetherError
from kschedfw.framework.runtime.engine.kept_totals import wanted_amounts
from kschedfw.framework.runtime.engine.node_by_node import NodeByNode
from kschedfw.framework.runtime.engine.passes import SmallCodes
from kschedfw.framework.runtime.engine.plan import Plan


@frozen(eq=False)
class _Taken:
    """Amounts that nominated pods of a priority or a higher one would take, shape (k, 4), and their nodes' rows."""

    version: int
    """The version of nominations."""
    layout: int
    """The layout of the table that has the rows."""
    priority: int
    by_node: dict[str, tuple[int, int, int, int]]
    """The amounts by the name of the node, also of nodes that the table lacks."""
    rows: IntArray
    amounts: IntArray


class NominatedRoom:
    """Tells which nodes refuse a pod because of the pods that are nominated to them."""

    def __init__(self, filters: NodeByNode, nominator: Nominator) -> None:
        self._filters = filters
        self._nominator = nominator
        self._taken: _Taken | None = None

    def refused(self, plan: Plan, state: CycleState, pod: Pod, nodes: NodeSelection) -> SmallCodes | None:
        """Return codes that aren't 0 where the nominated pods leave no room, shape (n,); None where they do everywhere.

        `state` has what the pre_filters wrote.

        Raises:
            NotTogetherError: a filter failed.
        """
        rows: IntArray | Sequence[int]
        if self._only_room_decides(plan, state, pod):
            fits = any(each.name in plan.computed for each in plan.filters)
            rows = self._rows_without_room(pod, nodes) if fits else ()
        else:
            rows = self._rows_refused(state, pod, nodes)
        if not len(rows):
            return None
        codes: SmallCodes = np.zeros(len(nodes), dtype=np.int8)
        codes[rows] = 1
        return codes

    def add_refusals(
        self,
        plan: Plan,
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        totals: FloatArray,
        found: Codes,
    ) -> None:
        """Replace the codes of nodes that refuse the pod because of the pods that are nominated to them.

        `found` has the code of the first refusal without these pods by row; `totals` are below 0 where a node refuses.
        """
        table, codes = nodes.table, plan.codes
        shortages = self._shortages(plan, state, pod, nodes)
        known: dict[tuple[int, int], int] = {}
        for name in self._nominator.nominated_nodes():
            row = table.rows.get(name)
            if row is None or totals[row] >= 0:
                continue
            alone, short = int(found[row]), shortages.get(row)
            code = None if short is None else known.get((alone, short))
            if code is None:
                # A refusal with the nominated pods comes before one without them.
                before, info = codes.statuses[alone], table.node_infos[row]
                status = self._filters.refusal_beside_nominated_pods(state, pod, info, before)
                code = alone if status is before else codes.code_of(status)
                if short is not None:
                    known[alone, short] = code
            found[row] = code

    def _shortages(self, plan: Plan, state: CycleState, pod: Pod, nodes: NodeSelection) -> Mapping[int, int]:
        """Return which amounts are too small beside the nominated pods, as bits, by the row of a node with such pods.

        Nodes with equal bits, which refuse the pod for the same reason without these pods, do so beside them, too: by
        an `AmountsRule` a refusal follows from which amounts are too small. Return nothing if more than room decides.
        """
        if not self._only_room_decides(plan, state, pod):
            return {}
        taken, wanted = self._taken_from(pod, nodes), np.array(wanted_amounts(pod.requests))
        is_short = nodes.table.free[taken.rows, :4] - taken.amounts < wanted
        bits = np.packbits(is_short, axis=1)[:, 0]
        return dict(zip(taken.rows.tolist(), bits.tolist(), strict=True))

    def _only_room_decides(self, plan: Plan, state: CycleState, pod: Pod) -> bool:
        """Tell whether more pods on a node can't change any answer but that about free amounts."""
        skipped = state.skip_filter_plugins
        return (
            self._filters.pod_followers <= skipped
            and not pod.requests.demand.scalar_resources
            and all(
                each.name in skipped or each.name in plan.computed or plan.follows_nodes(each)
                for each in plan.filters
            )
        )

    def _rows_without_room(self, pod: Pod, nodes: NodeSelection) -> IntArray | Sequence[int]:
        taken, free, wanted = self._taken_from(pod, nodes), nodes.table.free, wanted_amounts(pod.requests)
        if not len(taken.rows):
            return ()
        left = free[taken.rows, :4] - taken.amounts
        rows: IntArray = taken.rows[(left < np.array(wanted)).any(axis=1)]
        return rows

    def _taken_from(self, pod: Pod, nodes: NodeSelection) -> _Taken:
        # The kept amounts count every nomination, but a pod's own one leaves it its room.
        is_nominated = bool(self._nominator.node_of(pod.uid))
        known = None if is_nominated else self._taken
        version, priority, table = self._nominator.version, pod.priority, nodes.table
        changed: Iterable[str] | None = None
        if known is not None and known.priority == priority:
            if known.version == version and known.layout == table.layout:
                return known
            changed = self._nominator.changed_since(known.version)
        by_node = {} if known is None or changed is None else known.by_node
        # Each preemptor is nominated, so that of many nominations one is new for the next.
        for name in self._nominator.nominated_nodes() if changed is None else set(changed):
            amounts = _sum_of(self._filters.nominated_pods(pod, name))
            if amounts[3]:
                by_node[name] = amounts
            else:
                by_node.pop(name, None)
        there = [(table.rows[name], amounts) for name, amounts in by_node.items() if name in table.rows]
        rows = np.array([row for row, _ in there], dtype=np.int64)
        its = np.array([amounts for _, amounts in there], dtype=np.int64).reshape(-1, 4)
        taken = _Taken(version, table.layout, priority, by_node, rows, its)
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

    def _rows_refused(self, state: CycleState, pod: Pod, nodes: NodeSelection) -> Sequence[int]:
        filters, infos, rows = self._filters.reading_pods(state), nodes.table.node_infos, []
        for row, _ in self._crowded(pod, nodes):
            status = self._filters.refusal_with_nominated_pods(filters, state, pod, infos[row])
            if not (status.is_success or status.is_rejected):
                raise NotTogetherError
            if not status.is_success:
                rows.append(row)
        return rows


def _sum_of(infos: Sequence[PodInfo]) -> tuple[int, int, int, int]:
    """Return the CPU, memory and ephemeral storage that these pods request, and their number."""
    requests = [info.requests.amounts for info in infos]
    return (
        sum([each.milli_cpu for each in requests]),
        sum([each.memory for each in requests]),
        sum([each.ephemeral_storage for each in requests]),
        len(requests),
    )
