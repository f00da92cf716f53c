"""An agent's observation of a cluster: the node table and a pod, as arrays of shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from kschedfw import IntArray, NodeTable, Pod
from kschedfw.api import CPU, MEMORY, PODS

Shares: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.int8]
Observation: TypeAlias = dict[str, npt.NDArray[Any]]
"""Arrays by name. `Units.space` gives their shapes and ranges."""

_FEW_ROWS: Final = 32
"""The most changed nodes whose rows are written one by one. For more nodes, NumPy is faster."""


@attrs.frozen(eq=False)
class Units:
    """The axes of an observation.

    Attributes:
        nodes: the number of rows for nodes. Rows beyond a cluster's nodes are 0.
        resources: the resources of the columns.
        largest: by resource, the amount that counts as 1: that of the largest node; shape (r,), float64, > 0.
    """

    nodes: int
    resources: tuple[str, ...]
    largest: npt.NDArray[np.float64]

    @classmethod
    def of(cls, table: NodeTable, nodes: int | None = None, resources: Sequence[str] | None = None) -> Units:
        """Return the units for a cluster.

        By default there are as many rows as nodes, and a column for each resource that any node has: CPU, memory and
        pods first, then the others by name.
        """
        most = {name: int(table.allocatable[:, column].max()) for name, column in table.columns.items()}
        if resources is None:
            there = {name for name, amount in most.items() if amount > 0}
            first = [name for name in (CPU, MEMORY, PODS) if name in there]
            resources = (*first, *sorted(there.difference(first)))
        # At least 1, since a resource that no node has can't be a divisor.
        largest = np.array([max(1, most.get(name, 0)) for name in resources], dtype=np.float64)
        return cls(len(table) if nodes is None else nodes, tuple(resources), largest)

    def space(self) -> spaces.Space[Observation]:
        """The space of the observations."""
        table = (self.nodes, len(self.resources))
        parts: dict[str, spaces.Space[Any]] = {
            "free": spaces.Box(0.0, 1.0, table, np.float32),
            "capacity": spaces.Box(0.0, 1.0, table, np.float32),
            "pod": spaces.Box(0.0, 1.0, (len(self.resources),), np.float32),
            "feasible": spaces.MultiBinary(self.nodes),
        }
        space: spaces.Space[Any] = spaces.Dict(parts)
        return space


class Observer:
    """Observes the nodes of one table."""

    def __init__(self, table: NodeTable, units: Units) -> None:
        self._table = table
        self._units = units
        self._seen: tuple[int, int] | None = None
        self._columns: Sequence[int | None] = ()
        self._per_unit: npt.NDArray[np.float64] = np.zeros((0, 0))
        self._capacity: Shares = np.zeros((0, 0), dtype=np.float32)
        self._free: Shares = np.zeros((0, 0), dtype=np.float32)
        self._free_at = -1
        """The version of the table's `pod_changes` that `_free` corresponds to; -1 before the first observation."""

    def observation(self, pod: Pod | None, mask: Mask) -> Observation:
        """Return new arrays: the nodes, the pod to decide on, and its mask."""
        return {
            "free": self.free(),
            "capacity": self.capacity(),
            "pod": self.pod(pod),
            "feasible": mask.copy(),
        }

    def free(self) -> Shares:
        """Return the share of each node's resource that no pod has requested, shape (n, r); 0 if the node has none."""
        self._follow_nodes()
        self._follow_pods()
        return self._free.copy()

    def capacity(self) -> Shares:
        """Return each node's amount of each resource, divided by that of the largest node, shape (n, r)."""
        self._follow_nodes()
        return self._capacity.copy()

    def pod(self, pod: Pod | None) -> Shares:
        """Return the pod's requests, divided by the amounts of the largest node, shape (r,); 0 without a pod."""
        units = self._units
        if pod is None:
            return np.zeros(len(units.resources), dtype=np.float32)
        amounts = pod.requests.amounts
        wanted = (1 if name == PODS else amounts.get(name) for name in units.resources)
        # For so few numbers, Python takes a third of NumPy's time.
        shares = [
            min(amount / most, 1.0) for amount, most in zip(wanted, units.largest.tolist(), strict=True)
        ]
        return np.array(shares, dtype=np.float32)

    def mask(self, rows: IntArray | None) -> Mask:
        """Return an array with 1 in these rows, else 0; shape (n,)."""
        mask = np.zeros(self._units.nodes, dtype=np.int8)
        if rows is not None:
            mask[rows] = 1
        return mask

    def _follow_nodes(self) -> None:
        """Recompute what depends only on node objects, if any of them has changed."""
        table, units = self._table, self._units
        seen = table.layout, table.node_changes.version
        if seen == self._seen:
            return
        self._seen = seen
        self._free_at = -1
        self._columns = [table.columns.get(name) for name in units.resources]
        nothing = np.zeros(len(table), dtype=np.int64)
        allocatable = np.stack(
            [nothing if column is None else table.allocatable[:, column] for column in self._columns]
        )
        self._per_unit = np.divide(1.0, allocatable, out=np.zeros(allocatable.shape), where=allocatable > 0)
        self._capacity = np.zeros((units.nodes, len(units.resources)), dtype=np.float32)
        self._capacity[: len(table)] = np.clip(allocatable.T / units.largest, 0.0, 1.0)

    def _follow_pods(self) -> None:
        """Update `_free`. In the usual case, one pod came to one node since the last observation."""
        table, units = self._table, self._units
        version = table.pod_changes.version
        if version == self._free_at:
            return
        changed = None if self._free_at < 0 else table.pod_changes.since(self._free_at)
        self._free_at = version
        if changed is None or len(changed) > _FEW_ROWS:
            self._free = np.zeros((units.nodes, len(units.resources)), dtype=np.float32)
            for index, column in enumerate(self._columns):
                if column is not None:
                    # Multiply in float64; the only rounding is that to float32 here.
                    self._free[: len(table), index] = table.free[:, column] * self._per_unit[index]
            # Overcommitted nodes have less than nothing free.
            np.clip(self._free, 0.0, 1.0, out=self._free)
            return
        free = table.free
        for row in set(changed):
            for index, column in enumerate(self._columns):
                if column is not None:
                    share = free.item(row, column) * self._per_unit.item(index, row)
                    self._free[row, index] = min(max(share, 0.0), 1.0)
