"""The decisions of `PodDevices` for many nodes at once. Both forms agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kschedfw import Column, IntArray, NodeTable, Reads, Status, Verdicts
from kschedfw.plugins import amount_columns, any_mask
from kschedfw_devices.dynamic_resources.answers import PROBLEMS, AllocationTimeoutError
from kschedfw_devices.dynamic_resources.decision import LEFT_OVER, NOT_AVAILABLE, PodDevices, terms_of
from kschedfw_devices.dynamic_resources.inventory import Inventory

_STATUSES: Final = (
    Status.success(),
    *map(Status.unresolvable, PROBLEMS[1:]),
    Status.unresolvable(NOT_AVAILABLE),
)
_NOT_AVAILABLE: Final = len(_STATUSES) - 1
_UNKNOWN: Final = -1
"""The number of a node whose reach isn't known."""
_LEFT_OVER: Final = Status.unresolvable(LEFT_OVER)

_Mask = npt.NDArray[np.bool_]


class ReachColumn:
    """The number of each node's reach in an inventory, by row of the table."""

    def __init__(self, inventory: Inventory, table: NodeTable) -> None:
        self.inventory = inventory
        self._column = Column(table, Reads.NODE, np.int32, _UNKNOWN)

    def numbers(self, table: NodeTable, rows: IntArray) -> IntArray:
        self._column.follow(table)
        for row in self._column.missing(rows).tolist():
            self._column.values[row] = self.inventory.on(table.node_infos[row].node).number
        return self._column.values[rows].astype(np.int64, copy=False)


def verdicts(devices: PodDevices, nodes: NodeTable, rows: IntArray, numbers: IntArray) -> Verdicts | None:
    """Return `PodDevices.problem_on` for each of the rows; None if nodes must be asked one by one.

    `numbers` are those of the nodes' reaches. If a node ends the attempt, later nodes aren't examined.
    """
    if devices.left_over is not None:
        return Verdicts.refuse(np.ones(len(rows), dtype=np.bool_), _LEFT_OVER)
    if not _can_group(devices):
        return None
    codes = np.zeros(len(rows), dtype=np.int8)
    statuses = list(_STATUSES)
    for resources, which in _by_resources(devices, nodes, rows):
        question = devices.demand(resources).question
        if question is None:
            continue
        found, error = question.codes(numbers[which])
        if len(found) < len(which):
            node_name = nodes.node_infos[rows[which[len(found)]]].name
            statuses.append(Status.from_error(error or AllocationTimeoutError(node_name)))
            found = np.append(found, np.full(len(which) - len(found), len(statuses) - 1, dtype=np.int8))
        codes[which] = found
    # Last, as in `PodDevices.problem_on`: a node that lacks devices says so.
    usable = _usable(devices, nodes, rows)
    if usable is not None:
        codes[(codes == 0) & ~usable] = _NOT_AVAILABLE
    return Verdicts(codes, tuple(statuses))


def scores(devices: PodDevices, nodes: NodeTable, rows: IntArray, numbers: IntArray) -> IntArray | None:
    """Return `PodDevices.score` for each of the rows, for which `verdicts` must have been called."""
    if not devices.has_alternatives:
        return np.zeros(len(rows), dtype=np.int64)
    if not _can_group(devices):
        return None
    total = np.zeros(len(rows), dtype=np.int64)
    for resources, which in _by_resources(devices, nodes, rows):
        question = devices.demand(resources).question
        if question is not None:
            total[which] = question.scores(numbers[which]) + devices.score_of_allocated
    return total


def _can_group(devices: PodDevices) -> bool:
    """Tell whether columns suffice for the pod's extended resources; they don't tell which nodes know a resource."""
    return devices.special is None or all(name in devices.classes for name in devices.extended_resources)


def _by_resources(
    devices: PodDevices, nodes: NodeTable, rows: IntArray
) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield positions in `rows`, grouped by the pod's extended resources that must come from devices there."""
    everywhere = np.arange(len(rows))
    names: Sequence[str] = () if devices.special is None else devices.extended_resources
    lacking = [amount_columns(nodes, rows, name)[0] == 0 for name in names]
    if all(each.all() for each in lacking):
        yield tuple(names), everywhere
        return
    # One question for each combination, of which there are few: a pod requests few extended resources.
    for combination in np.unique(np.array(lacking), axis=1).T:
        same = np.logical_and.reduce([each == one for each, one in zip(lacking, combination, strict=True)])
        resources = tuple(name for name, is_lacking in zip(names, combination, strict=True) if is_lacking)
        yield resources, everywhere[same]


def _usable(devices: PodDevices, nodes: NodeTable, rows: IntArray) -> _Mask | None:
    """Return the nodes where all allocated claims can be used, as a mask; None for all nodes."""
    usable: _Mask | None = None
    for claim in devices.claims:
        terms = terms_of(claim)
        if terms is None and devices.may_be_ready(claim):
            continue
        here = np.full(len(rows), devices.may_be_ready(claim))
        if terms is not None:
            here &= any_mask(terms, nodes, rows)
        usable = here if usable is None else usable & here
    return usable
