"""The nodes of a snapshot in columns, for hooks that answer for all of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kschedfw.api.node import Taint
from kschedfw.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.resource import Resource
from kschedfw.framework.results import IntArray

NO_LABEL = -1


class LabelColumn:
    """One label of all nodes, dictionary-encoded.

    `codes` has shape (n,) and dtype int32: an index into `values`, or -1 where a node lacks the label.
    """

    def __init__(self, labels: Sequence[str | None]) -> None:
        index: dict[str, int] = {}
        self.codes: npt.NDArray[np.int32] = np.fromiter(
            (NO_LABEL if label is None else index.setdefault(label, len(index)) for label in labels),
            dtype=np.int32,
            count=len(labels),
        )
        self.values: tuple[str, ...] = tuple(index)


class NodeTable:
    """Columns over n nodes and r resources; row i is node i of the snapshot. Hooks only read them.

    `allocatable` and `requested` have shape (n, r), int64, in the resources' base units (millicores, bytes,
    counts), the columns named by `resources`, of which the first four are always cpu, memory, ephemeral-storage and
    pods. `non_zero_requested` has shape (n, 2): CPU and memory as scores count them. `pod_counts` and
    `unschedulable` have shape (n,). Labels and taints are encoded when first asked for.
    """

    def __init__(self, node_infos: Sequence[NodeInfo]) -> None:
        self.node_infos = node_infos
        self.names: tuple[str, ...] = tuple(info.name for info in node_infos)
        self.rows: Mapping[str, int] = {name: row for row, name in enumerate(self.names)}
        scalars = {name for info in node_infos for name in info.allocatable.scalar_resources}
        scalars.update(name for info in node_infos for name in info.requested.scalar_resources)
        self.resources: tuple[str, ...] = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS, *sorted(scalars))
        self.columns: Mapping[str, int] = {name: column for column, name in enumerate(self.resources)}
        self.allocatable: IntArray = self._amounts([info.allocatable for info in node_infos])
        self.requested: IntArray = self._amounts([info.requested for info in node_infos])
        self.non_zero_requested: IntArray = np.array(
            [(info.non_zero_requested.milli_cpu, info.non_zero_requested.memory) for info in node_infos],
            dtype=np.int64,
        ).reshape(len(node_infos), 2)
        self.pod_counts: IntArray = np.array([len(info.pods) for info in node_infos], dtype=np.int64)
        self.requested[:, self.columns[PODS]] = self.pod_counts
        self.unschedulable: npt.NDArray[np.bool_] = np.array(
            [info.node.spec.unschedulable for info in node_infos], dtype=np.bool_
        )
        self._labels: dict[str, LabelColumn] = {}
        self._taint_sets: tuple[npt.NDArray[np.int32], tuple[tuple[Taint, ...], ...]] | None = None

    @classmethod
    def of(cls, node_infos: Sequence[NodeInfo]) -> NodeTable:
        return cls(node_infos)

    def __len__(self) -> int:
        return len(self.names)

    def label(self, key: str) -> LabelColumn:
        """The column of a node label, encoded on first use."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn([info.node.labels.get(key) for info in self.node_infos])
        return column

    @property
    def taint_sets(self) -> tuple[npt.NDArray[np.int32], tuple[tuple[Taint, ...], ...]]:
        """Codes of shape (n,) into the distinct tuples of taints, so that each need be looked at only once."""
        if self._taint_sets is None:
            index: dict[tuple[Taint, ...], int] = {}
            codes = np.fromiter(
                (index.setdefault(info.node.spec.taints, len(index)) for info in self.node_infos),
                dtype=np.int32,
                count=len(self.names),
            )
            self._taint_sets = (codes, tuple(index))
        return self._taint_sets

    def _amounts(self, resources: Sequence[Resource]) -> IntArray:
        return np.array(
            [[resource.get(name) for name in self.resources] for resource in resources], dtype=np.int64
        ).reshape(len(resources), len(self.resources))
