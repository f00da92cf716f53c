"""The two forms of the pass over the columns of a node table, and the choice between them."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kschedfw.framework.nodes.arrays import FloatArray, IntArray

Codes: TypeAlias = npt.NDArray[np.int32]
SmallCodes: TypeAlias = npt.NDArray[np.int8]
Amounts: TypeAlias = tuple[int, int]
Weights: TypeAlias = tuple[int, int, int]
"""The weights of least allocation, balanced allocation and most allocation."""

ANY_AMOUNT: Final = -(1 << 63)
"""The `wanted` amount of a resource that a pod doesn't request: every node has this much free."""

_LARGE: Final = 256
"""The number of nodes from which on Numba, whose loading takes half a second, is loaded early."""
_PODS_IN_LARGE: Final = 32
"""The number of pods that are placed with NumPy in a large cluster, so that questions about a few load nothing."""
_PODS_IN_SMALL: Final = 10_000
"""The number of pods in a smaller one, where the compiled pass spares 50 µs a pod."""


class Pass(Protocol):
    """The pass over the columns of a node table: `_pass`, which documents the arguments, and `numpy_pass`."""

    @staticmethod
    def totals_of(
        scores: FloatArray,
        free: IntArray,
        allocatable: FloatArray,
        requested: FloatArray,
        non_zero: FloatArray,
        wanted: tuple[int, int, int, int],
        extended: IntArray,
        scored: Amounts,
        amounts: Amounts,
        weights: Weights,
        start: int,
        most: int,
        totals: FloatArray,
        /,
    ) -> tuple[int, int]: ...

    @staticmethod
    def total_at(
        row: int,
        scores: FloatArray,
        free: IntArray,
        allocatable: FloatArray,
        requested: FloatArray,
        non_zero: FloatArray,
        wanted: tuple[int, int, int, int],
        extended: IntArray,
        scored: Amounts,
        amounts: Amounts,
        weights: Weights,
        /,
    ) -> float: ...

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
    def passing(totals: FloatArray, /) -> int: ...

    @staticmethod
    def best_of(totals: FloatArray, start: int, looked_at: int, best: IntArray, /) -> int: ...


class PassInUse:
    """The pass that a profile's plans are run with: NumPy's until enough pods have come that loading Numba pays.

    Both forms compute the same numbers, so the choice changes no decision.
    """

    def __init__(self) -> None:
        self._pods = 0

    def for_nodes(self, nodes: int) -> Pass:
        """Return the form for the next pod, which looks at so many nodes."""
        # Another framework, or the user's own code, may have loaded Numba already.
        if "numba" not in sys.modules:
            self._pods += 1
            if self._pods <= (_PODS_IN_LARGE if nodes >= _LARGE else _PODS_IN_SMALL):
                return with_numpy()
        return compiled_pass() or with_numpy()


@cache
def compiled_pass() -> Pass | None:
    """Return the compiled form; None without Numba."""
    try:
        from kschedfw.framework.runtime.plans import _pass  # Numba takes a while to load, and may be missing
    except ImportError:
        return None
    return cast("Pass", _pass)


@cache
def with_numpy() -> Pass:
    from kschedfw.framework.runtime.plans import numpy_pass  # it imports this module

    return cast("Pass", numpy_pass)
