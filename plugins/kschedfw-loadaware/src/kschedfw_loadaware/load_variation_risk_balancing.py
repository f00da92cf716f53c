"""The plugin LoadVariationRiskBalancing."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import FieldError, Handle, NodeInfo, NodeTable, Pod, Reads, hookimpl
from kschedfw_loadaware.args import NOT_THERE, SourceArgs
from kschedfw_loadaware.measured_plugin import MeasuredPlugin
from kschedfw_loadaware.report import Load, NodeLoad
from kschedfw_loadaware.rounding import all_rounded, rounded

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_MIB: Final = 1 / 1024 / 1024
_NOTHING: Final = NodeLoad()


@attrs.frozen(kw_only=True)
class LoadVariationRiskBalancingArgs(SourceArgs):
    """Arguments of LoadVariationRiskBalancing: the weight of variation.

    The risk is (mean + margin * deviation ** (1 / sensitivity)) / 2.
    """

    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0

    def validate(self) -> Iterator[FieldError]:
        yield from super().validate()
        for path, value in (
            ("safeVarianceMargin", self.safe_variance_margin),
            ("safeVarianceSensitivity", self.safe_variance_sensitivity),
        ):
            if not 0 <= value < math.inf:
                yield FieldError.invalid(path, value, f"must be a number, at least 0; {NOT_THERE}")


class LoadVariationRiskBalancing(MeasuredPlugin[LoadVariationRiskBalancingArgs]):
    """Prefers nodes with a low and steady load.

    The score is that of CPU or memory, whichever is riskier. If only one of them was measured, its score counts.
    """

    name = "LoadVariationRiskBalancing"
    args_type = LoadVariationRiskBalancingArgs
    # NODE suffices although the load counts, since the report's number is part of the signature.
    reads = Reads.NODE

    def __init__(self, args: LoadVariationRiskBalancingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._margin = args.safe_variance_margin
        sensitivity = args.safe_variance_sensitivity
        # With a sensitivity of 0, only deviations of 100 % count, since smaller ones to an infinite power are 0.
        self._exponent = 1 / sensitivity if sensitivity else math.inf

    def sign(self, pod: Pod) -> Hashable | None:
        amounts = pod.requests.amounts
        return amounts.milli_cpu, amounts.memory, self._collector.latest().number

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        report = self._collector.latest().report
        load = None if report is None else report.nodes.get(node_info.name)
        if load is None:
            return 0
        asked, allocatable = pod.requests.amounts, node_info.allocatable
        safeties = []
        if load.cpu is not None:
            safeties.append(self._safety(load.cpu, float(asked.milli_cpu), float(allocatable.milli_cpu)))
        if load.memory is not None:
            # scheduler-plugins counts memory in MiB. Another unit could change the last bit of a quotient.
            safeties.append(self._safety(load.memory, asked.memory * _MIB, allocatable.memory * _MIB))
        return rounded(min(safeties, default=0.0))

    @hookimpl
    def score_batch(self, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray:
        report = self._collector.latest().report
        if report is None:
            return np.zeros(len(rows), dtype=np.int64)
        names, amounts = nodes.names, pod.requests.amounts
        loads = [report.nodes.get(names[row], _NOTHING) for row in rows.tolist()]
        cpu = self._safeties(
            [load.cpu for load in loads],
            float(amounts.milli_cpu),
            nodes.allocatable[rows, nodes.columns["cpu"]].astype(np.float64),
        )
        memory = self._safeties(
            [load.memory for load in loads],
            amounts.memory * _MIB,
            nodes.allocatable[rows, nodes.columns["memory"]] * _MIB,
        )
        # nan stands for "not measured"; fmin ignores it if the other value is a number.
        return all_rounded(np.nan_to_num(np.fmin(cpu, memory)))

    def _safety(self, load: Load, asked: float, capacity: float) -> float:
        """Return the safety of a resource: 100 minus the risk in percent, from 0 to 100."""
        if capacity <= 0:
            return 0.0
        used = _between(load.mean * capacity / 100, capacity)
        mean = _between((used + asked) / capacity, 1.0)
        deviation = _between(load.deviation * capacity / 100, capacity) / capacity
        deviation = _between(deviation**self._exponent * self._margin, 1.0)
        return (1 - (mean + deviation) / 2) * 100

    def _safeties(self, loads: Sequence[Load | None], asked: float, capacities: FloatArray) -> FloatArray:
        """Return `_safety` for many nodes, and nan where nothing was measured."""
        nothing = np.array([load is None for load in loads], dtype=bool)
        means = np.array([0.0 if load is None else load.mean for load in loads], dtype=np.float64)
        deviations = np.array([0.0 if load is None else load.deviation for load in loads], dtype=np.float64)
        some = np.where(capacities > 0, capacities, 1.0)
        used = _all_between(means * some / 100, some)
        mean = _all_between((used + asked) / some, 1.0)
        deviation = _all_between(deviations * some / 100, some) / some
        if self._exponent != 1:
            # Compute each power in Python, as `_safety` does: NumPy's powers may differ from Python's in the last bit.
            deviation = np.array([each**self._exponent for each in deviation.tolist()], dtype=np.float64)
        deviation = _all_between(deviation * self._margin, 1.0)
        safeties = np.where(capacities > 0, (1 - (mean + deviation) / 2) * 100, 0.0)
        return np.where(nothing, np.nan, safeties)


def _between(number: float, most: float) -> float:
    return max(min(number, most), 0.0)


def _all_between(numbers: FloatArray, most: FloatArray | float) -> FloatArray:
    return np.maximum(np.minimum(numbers, most), 0.0)
