"""Arguments and results of the pass over the columns of a node table, which its two forms have in common."""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kschedfw.framework.nodes.arrays import Codes, FloatArray, IntArray

SmallCodes: TypeAlias = npt.NDArray[np.int8]
CpuAndMemory: TypeAlias = tuple[int, int]
Weights: TypeAlias = tuple[int, int, int]
"""The weights of least allocation, balanced allocation and most allocation."""

ANY_AMOUNT: Final = -(1 << 63)
"""The `wanted` amount of a resource that a pod doesn't request: every node has this much free."""

Columns: TypeAlias = tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""The amounts by node, with a row for each resource: free, allocatable, requested, and requested as scores count it.

The last column is how evenly CPU and memory are used now, from 0 to 100, shape (n,).
"""
PassInput: TypeAlias = tuple[tuple[int, int, int, int], IntArray, CpuAndMemory, CpuAndMemory, Weights]
"""The arguments of the pass that differ from pod to pod: `wanted`, `extended`, `scored`, `amounts` and `weights`."""


class Pass(Protocol):
    """The pass over the columns of a node table: `_pass`, which documents the arguments, and `numpy_pass`.

    Attributes:
        PREFERS_KEPT: whether following kept totals takes less than scoring the nodes of a search that ends early.
    """

    PREFERS_KEPT: bool

    @staticmethod
    def totals_of(
        scores: FloatArray,
        columns: Columns,
        asked: PassInput,
        start: int,
        most: int,
        totals: FloatArray,
        /,
    ) -> tuple[int, int]: ...

    @staticmethod
    def total_at(row: int, scores: FloatArray, columns: Columns, asked: PassInput, /) -> float: ...

    @staticmethod
    def refuse(scores: FloatArray, refused: SmallCodes, by: float, found: FloatArray, /) -> None: ...

    @staticmethod
    def refuse_domains(
        scores: FloatArray, codes: Codes, refused: npt.NDArray[Any], by: float, found: FloatArray, /
    ) -> None: ...

    @staticmethod
    def gather(codes: Codes, values: npt.NDArray[Any], adds: bool, found: FloatArray, /) -> None: ...

    @staticmethod
    def add_normalized(
        totals: FloatArray,
        start: int,
        looked_at: int,
        raw: FloatArray,
        is_stretched: bool,
        weight: float,
        found: FloatArray,
        /,
    ) -> bool: ...

    @staticmethod
    def feasible_rows(totals: FloatArray, start: int, looked_at: int, feasible: int, /) -> IntArray: ...

    @staticmethod
    def add_at(totals: FloatArray, rows: IntArray, scores: IntArray, /) -> None: ...

    @staticmethod
    def best_of(totals: FloatArray, start: int, looked_at: int, best: IntArray, /) -> int: ...


def searched(totals: FloatArray, start: int, most: int) -> tuple[int, int]:
    """Return how many feasible nodes a search from `start` finds, at most `most`, and how many nodes it looks at.

    As in `totals_of`, it ends before the surplus node.
    """
    feasible = totals >= 0
    found = np.flatnonzero(np.concatenate((feasible[start:], feasible[:start])) if start else feasible)
    return (len(found), len(totals)) if len(found) <= most else (most, int(found[most]))
