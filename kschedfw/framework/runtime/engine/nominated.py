"""Nodes that have room for a pod, but not beside the pods that are nominated to them.

As in kube-scheduler (`RunFilterPluginsWithNominatedPods`), a node must pass with its nominated pods of equal or higher
priority, and without them. The pass looks at nodes without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import lt, sub
from typing import Final, TypeAlias

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import Codes, FloatArray, IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.engine.errors import NotTogetherError
from kschedfw.framework.runtime.engine.kept_totals import wanted_amounts
from kschedfw.framework.runtime.engine.node_by_node import NodeByNode
from kschedfw.framework.runtime.engine.passes import SmallCodes
from kschedfw.framework.runtime.engine.plan import Plan
from kschedfw.framework.runtime.engine.steps import Step

_FEW: Final = 8

_NominatedAmounts: TypeAlias = tuple[int, int, int, int]
"""CPU, memory, ephemeral storage and the number of pods."""


class NominatedRoom:
    """Tells which nodes refuse a pod because of the pods that are nominated to them."""

    def __init__(self, filters: NodeByNode, nominator: Nominator) -> None:
        self._filters = filters
        self._nominator = nominator
        self._version = self._layout = -1
        """The version of nominations, and the layout of the table, up to which the amounts below are known."""
        self._priority: int | None = None
        """The amounts are those of pods of this priority or a higher one."""
        self._by_node: dict[str, _NominatedAmounts] = {}
        """The amounts by the name of the node, also of nodes that the table lacks."""
        self._taken: tuple[IntArray, IntArray] = _columns({}, {})
        """The rows of the nodes, shape (k,), and the amounts, shape (k, 4)."""

    def refused(
        self, plan: Plan, state: CycleState, pod: Pod, nodes: NodeSelection, last: Sequence[Step]
    ) -> SmallCodes | None:
        """Return codes that aren't 0 where the nominated pods leave no room, shape (n,); None where they do everywhere.

        `state` has what the pre_filters wrote. The filters in `last` are asked afterwards, node by node and beside the
        nominated pods.

        Raises:
            NotTogetherError: a filter failed.
        """
        rows: IntArray | Sequence[int]
        if self._only_room_decides(plan, state, pod):
            fits = any(each.name in plan.computed for each in plan.filters if each not in last)
            rows = self._rows_without_room(pod, nodes) if fits else ()
        else:
            rows = self._rows_refused(state, pod, nodes, last)
        if not len(rows):
            return None
        # Of the whole table, though `nodes` may be a part: the compiled pass reads an entry for each row, unchecked.
        codes: SmallCodes = np.zeros(len(nodes.table), dtype=np.int8)
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
        table = nodes.table
        if not self._only_room_decides(plan, state, pod):
            for name in self._nominator.nominated_nodes():
                row = table.rows.get(name)
                if row is not None and totals[row] < 0:
                    found[row] = self._code_beside(plan, state, pod, table.node_infos[row], int(found[row]))
            return
        rows, amounts = self._taken_from(pod, nodes)
        refusing = totals[rows] < 0
        rows, amounts = rows[refusing], amounts[refusing]
        if not len(rows):
            return
        # Nodes with the same amounts too small, which refuse the pod for the same reason without the nominated pods, do
        # so beside them, too: by an `AmountsRule` a refusal follows from which amounts are too small. So one of them is
        # asked: of hundreds of preemptors, each would look at the nodes of all others.
        is_short = table.free[rows, :4] - amounts < np.array(wanted_amounts(pod.requests))
        kinds = found[rows].astype(np.int64) << 8 | np.packbits(is_short, axis=1)[:, 0]
        for kind in dict.fromkeys(kinds.tolist()):
            alike = rows[kinds == kind]
            info, before = table.node_infos[alike[0]], int(found[alike[0]])
            found[alike] = self._code_beside(plan, state, pod, info, before)

    def _code_beside(self, plan: Plan, state: CycleState, pod: Pod, info: NodeInfo, alone: int) -> int:
        """Return the code of a node's refusal beside its nominated pods; `alone` is the code without them.

        A refusal with the nominated pods comes before one without them.
        """
        before = plan.codes.statuses[alone]
        status = self._filters.refusal_beside_nominated_pods(state, pod, info, before)
        return alone if status is before else plan.codes.code_of(status)

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
        (rows, amounts), wanted = self._taken_from(pod, nodes), wanted_amounts(pod.requests)
        free = nodes.table.free
        if len(rows) > _FEW:
            short: IntArray = rows[(free[rows, :4] - amounts < np.array(wanted)).any(axis=1)]
            return short
        # NumPy's calls take longer than a few nodes do: 10 µs a pod, however few they are.
        return [
            row
            for row, taken in zip(rows.tolist(), amounts.tolist(), strict=True)
            if True in map(lt, map(sub, free[row, :4].tolist(), taken), wanted)
        ]

    def _taken_from(self, pod: Pod, nodes: NodeSelection) -> tuple[IntArray, IntArray]:
        """Return the rows of nodes with nominated pods that count for the pod, and the amounts that those take."""
        nominator, table, priority = self._nominator, nodes.table, pod.priority
        # Read first: a nomination that another thread adds meanwhile is looked at the next time.
        version = nominator.version
        if nominator.node_of(pod.uid):
            # The kept amounts count every nomination, but a pod's own one leaves it its room.
            return _columns(self._amounts_on(nominator.nominated_nodes(), pod), table.rows)
        is_same = self._priority == priority
        if is_same and self._version == version and self._layout == table.layout:
            return self._taken
        # Each preemptor is nominated, so that of many nominations one is new for the next.
        changed = nominator.changed_since(self._version) if is_same else None
        if changed is None:
            self._by_node = self._amounts_on(nominator.nominated_nodes(), pod)
        else:
            names = set(changed)
            for name in names:
                self._by_node.pop(name, None)
            self._by_node |= self._amounts_on(names, pod)
        self._version, self._layout, self._priority = version, table.layout, priority
        self._taken = _columns(self._by_node, table.rows)
        return self._taken

    def _amounts_on(self, names: Iterable[str], pod: Pod) -> dict[str, _NominatedAmounts]:
        amounts = {name: _sum_of(self._filters.nominated_pods(pod, name)) for name in names}
        return {name: its for name, its in amounts.items() if its[3]}

    def _rows_refused(
        self, state: CycleState, pod: Pod, nodes: NodeSelection, last: Sequence[Step]
    ) -> Sequence[int]:
        table, rows = nodes.table, []
        filters = [each for each in self._filters.reading_pods(state) if each not in last]
        for name in self._nominator.nominated_nodes():
            if (row := table.rows.get(name)) is None:
                continue
            info = table.node_infos[row]
            status = self._filters.refusal_with_nominated_pods(filters, state, pod, info)
            if not (status.is_success or status.is_rejected):
                raise NotTogetherError
            if not status.is_success:
                rows.append(row)
        return rows


def _columns(by_node: Mapping[str, _NominatedAmounts], rows: Mapping[str, int]) -> tuple[IntArray, IntArray]:
    there = [(rows[name], amounts) for name, amounts in by_node.items() if name in rows]
    amounts = np.array([amounts for _, amounts in there], dtype=np.int64).reshape(-1, 4)
    return np.array([row for row, _ in there], dtype=np.int64), amounts


def _sum_of(infos: Sequence[PodInfo]) -> _NominatedAmounts:
    """Return the CPU, memory and ephemeral storage that these pods request, and their number."""
    requests = [info.requests.amounts for info in infos]
    return (
        sum([each.milli_cpu for each in requests]),
        sum([each.memory for each in requests]),
        sum([each.ephemeral_storage for each in requests]),
        len(requests),
    )
