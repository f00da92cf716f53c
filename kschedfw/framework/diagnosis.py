"""The reasons why a pod fits on no node (kube-scheduler `NodeToStatus`, `Diagnosis`, `FitError`).

For explanations, also the evidence for a filter's refusal: the numbers and objects that caused it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Protocol, TypeAlias, runtime_checkable

import attrs
import numpy as np

from kschedfw.api import EMPTY, FrozenDict, KschedfwError, Pod
from kschedfw.api.records import define, frozen
from kschedfw.api.words import counted
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.status import Code, Status

_NO_ROWS: Final[IntArray] = np.empty(0, dtype=np.int64)
_NO_CODES: Final[Codes] = np.empty(0, dtype=np.int32)


@frozen(eq=False, slots=False)
class NodeCodes:
    """The statuses of many nodes, as codes.

    `codes` has one code for each of `nodes`, int32 of shape (k,): an index into `statuses`, or 0 for a node without a
    status.
    """

    nodes: NodeSelection
    codes: Codes
    statuses: Sequence[Status]
    count: int = attrs.field(kw_only=True)
    """The number of nodes with a status."""
    # Kept from the start: the table's rows may move while callers still ask why a pod didn't fit.
    _node_infos: Sequence[NodeInfo] = attrs.field(init=False)
    _rows: Mapping[str, int] = attrs.field(init=False)

    @count.default
    def _counted(self) -> int:
        return int(np.count_nonzero(self.codes))

    @_node_infos.default
    def _node_infos_now(self) -> Sequence[NodeInfo]:
        return self.nodes.table.node_infos

    @_rows.default
    def _rows_now(self) -> Mapping[str, int]:
        return self.nodes.table.rows

    @classmethod
    def none(cls, table: NodeTable) -> NodeCodes:
        """Return an instance without nodes."""
        return cls(NodeSelection(table, _NO_ROWS), _NO_CODES, (), count=0)

    def get(self, node_name: str) -> Status | None:
        row = self._rows.get(node_name)
        code = 0 if row is None else int(self._by_row[row])
        return self.statuses[code] if code else None

    @cached_property
    def distinct(self) -> Mapping[Status, int]:
        """The number of nodes of each distinct status."""
        counts = np.bincount(self.codes)
        # The code 0 stands for nodes without a status.
        return {self.statuses[code]: int(counts[code]) for code in counts.nonzero()[0].tolist() if code}

    def with_code(self, code: Code) -> NodeSelection:
        """Return the nodes whose status has this code, in the table's order."""
        if not any(status.code is code for status in self.distinct):
            return NodeSelection(self.nodes.table, np.empty(0, dtype=np.int64))
        has_it = np.fromiter((status.code is code for status in self.statuses), np.bool_, len(self.statuses))
        # Code 0 stands for nodes without a status, whatever `statuses[0]` is.
        has_it[0] = False
        return NodeSelection(self.nodes.table, np.flatnonzero(has_it[self._by_row]))

    def without(self, node_name: str) -> NodeCodes:
        """Return a copy without this node's status."""
        codes = self.codes.copy()
        codes[self.nodes.rows == self._rows[node_name]] = 0
        return NodeCodes(self.nodes, codes, self.statuses)

    def __iter__(self) -> Iterator[tuple[str, Status]]:
        rows = self.nodes.rows
        for position in np.flatnonzero(self.codes).tolist():
            yield self._node_infos[rows[position]].name, self.statuses[self.codes[position]]

    @cached_property
    def _by_row(self) -> Codes:
        if self.nodes.is_whole_table:
            return self.codes
        by_row = np.zeros(len(self._node_infos), dtype=self.codes.dtype)
        by_row[self.nodes.rows] = self.codes
        return by_row


_NOT_LISTED = Status.unresolvable()


@define(eq=False)
class NodeToStatus:
    """The status of each refused node, and one status for all nodes that aren't listed.

    The filters' statuses are in `codes`. `statuses` has those that were set for single nodes, which take precedence.
    """

    statuses: dict[str, Status] = attrs.field(factory=dict)
    absent: Status = _NOT_LISTED
    codes: NodeCodes | None = None

    def get(self, node_name: str) -> Status:
        status = self.statuses.get(node_name)
        if status is None and self.codes is not None:
            status = self.codes.get(node_name)
        return self.absent if status is None else status

    def set(self, node_name: str, status: Status) -> None:
        if self.codes is not None and self.codes.get(node_name) is not None:
            # A node is in one of the two, so that the counts of both may be added.
            self.codes = self.codes.without(node_name)
        self.statuses[node_name] = status

    def nodes_with(self, code: Code, nodes: NodeSelection) -> NodeSelection:
        """Return the nodes whose status has this code, in the order of `nodes`."""
        if (
            nodes.is_whole_table
            and not self.statuses
            and self.absent.code is not code
            and self.codes is not None
        ):
            return self.codes.with_code(code)
        if self.codes is None and not self.statuses:
            return nodes if self.absent.code is code else nodes[:0]
        names = nodes.table.names
        rows = [row for row in nodes.rows.tolist() if self.get(names[row]).code is code]
        return NodeSelection(nodes.table, np.array(rows, dtype=np.int64))

    def distinct(self) -> Mapping[Status, int]:
        """Return the number of nodes of each distinct status."""
        if not self.statuses:
            return {} if self.codes is None else self.codes.distinct
        counts = Counter(self.statuses.values())
        if self.codes is not None:
            counts.update(self.codes.distinct)
        return counts

    def __iter__(self) -> Iterator[tuple[str, Status]]:
        """Iterate over the nodes that have a status of their own, with that status."""
        if self.codes is not None:
            yield from self.codes
        yield from self.statuses.items()

    def __len__(self) -> int:
        return len(self.statuses) + (0 if self.codes is None else self.codes.count)


@define(eq=False)
class Diagnosis:
    """The statuses of hooks and extenders that explain why a pod doesn't fit.

    `pre_filter_message` is set when a plugin's pre_filter rejected the pod outright, and empty if it gave no reasons:
    the pre_filters of plugins after it may not have been called. `unschedulable_plugins` are the
    plugins that refused the pod: the answer of one of them must change before the pod can fit.
    `pending_plugins` are the plugins among them that wait for something outside the cluster.

    `nominated_node_name` is the node on which preemption has made room for the pod; empty if there is none.
    `post_filter_failed` means that preemption ended with an exception; the pod is tried again after its
    backoff. With an ERROR that a plugin reports the pod waits for events, as in kube-scheduler.
    """

    node_to_status: NodeToStatus = attrs.field(factory=NodeToStatus)
    pre_filter_message: str | None = None
    post_filter_message: str = ""
    nominated_node_name: str = ""
    post_filter_failed: bool = False
    _unschedulable_plugins: set[str] = attrs.field(factory=set, init=False)
    _pending_plugins: set[str] = attrs.field(factory=set, init=False)
    _unread: list[NodeCodes] = attrs.field(factory=list, init=False)
    """Codes whose plugins aren't added to the sets yet. The sets are only needed if no node fits."""

    def __repr__(self) -> str:
        said = self.pre_filter_message or f"{counted(len(self.node_to_status), 'node')} refused"
        by = f" by {', '.join(sorted(self.unschedulable_plugins))}" if self.unschedulable_plugins else ""
        return f"<Diagnosis: {said}{by}>"

    @property
    def unschedulable_plugins(self) -> set[str]:
        self._read()
        return self._unschedulable_plugins

    @property
    def pending_plugins(self) -> set[str]:
        self._read()
        return self._pending_plugins

    @property
    def retry_at(self) -> float | None:
        """The earliest `retry_at` of all refusals, in seconds since the epoch; None if no refusal has one."""
        said = self.node_to_status
        times = [status.retry_at for status in (said.absent, *said.statuses.values())]
        if said.codes is not None:
            times += [status.retry_at for status in said.codes.distinct]
        return min((time for time in times if time is not None), default=None)

    def add_plugin_status(self, status: Status) -> None:
        """Record the plugin that gave a refusal."""
        if not status.plugin:
            return
        if status.is_rejected:
            self._unschedulable_plugins.add(status.plugin)
        if status.code is Code.PENDING:
            self._pending_plugins.add(status.plugin)

    def add_codes(self, codes: NodeCodes) -> None:
        """Add the filters' statuses of many nodes, and the plugins that gave them."""
        if codes.count:
            self.node_to_status.codes = codes
            self._unread.append(codes)

    def _read(self) -> None:
        while self._unread:
            for status in self._unread.pop().distinct:
                self.add_plugin_status(status)

    def reasons(self, number_of_nodes: int) -> Mapping[str, int]:
        """Return the number of nodes for each reason, given the number of nodes in the cluster."""
        counts: dict[str, int] = {}
        distinct = [*self.node_to_status.distinct().items()]
        if (rest := number_of_nodes - len(self.node_to_status)) > 0:
            distinct.append((self.node_to_status.absent, rest))
        for status, nodes in distinct:
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + nodes
        return counts


class NoNodesAvailableError(KschedfwError):
    """The error of scheduling a pod in a cluster without nodes."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


@define(eq=False)
class FitError(KschedfwError):
    """The error of a pod that fits on no node. Its text is kube-scheduler's for the pod's condition."""

    pod: Pod
    number_of_nodes: int
    diagnosis: Diagnosis

    def __str__(self) -> str:
        text = f"0/{self.number_of_nodes} nodes are available:"
        if self.diagnosis.pre_filter_message:
            # Every node carries this very message, so counting reasons would only repeat it.
            text += f" {self.diagnosis.pre_filter_message}."
        else:
            counts = self.diagnosis.reasons(self.number_of_nodes)
            # As texts, as kube-scheduler sorts: "10 …" comes before "2 …".
            if reasons := sorted(f"{count} {reason}" for reason, count in counts.items()):
                text += f" {', '.join(reasons)}."
        if self.diagnosis.post_filter_message:
            text += f" {self.diagnosis.post_filter_message}"
        return text


_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def code_of_plugin(name: str) -> str:
    """Return the code of refusals for which a plugin gives none: its name in kebab-case; `extender` without a name."""
    return _WORD_START.sub("-", name).lower() or "extender"


EvidenceValue: TypeAlias = str | int | float | None
"""The values of JSON that are no containers."""


def _frozen(values: Mapping[str, EvidenceValue]) -> FrozenDict[str, EvidenceValue]:
    return FrozenDict(values)


@frozen
class Evidence:
    """One reason why a pod can't go on a node, in numbers.

    `asked` is the requirement of the pod, or of the node, in words that are the same for all nodes with the
    same requirement: `cpu: 2 requested`. `found` is what this node has instead, `1920m free of 4 allocatable,
    80m short`; it may be empty. `gap` is the distance of the node from passing, as a share of the requirement
    (0.04: 4 % of it are missing), and None where there is no distance, as with a taint. `values` are the
    numbers and names in it, for programs. `code` names the kind of requirement, such as `node-selector`: kebab-case,
    stable, and the same for all plugins. Equal codes and values have equal texts. Empty stands for the plugin's own
    kind, whose code is the plugin's name (`code_of_plugin`).
    """

    asked: str
    found: str = ""
    gap: float | None = None
    values: FrozenDict[str, EvidenceValue] = attrs.field(default=EMPTY, converter=_frozen)
    code: str = ""

    def __str__(self) -> str:
        return f"{self.asked}; {self.found}" if self.found else self.asked


@runtime_checkable
class GivesEvidence(Protocol):
    """A filter plugin that can give evidence for its refusals."""

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:
        """Return the evidence for the refusal of a node that `filter` refused just now, with the same arguments.

        Called for explanations only, never while pods are scheduled. Must not change anything.
        """
        ...
