"""The plugin TargetLoadPacking."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from kschedfw import FieldError, FrozenDict, Handle, NodeInfo, NodeTable, Pod, Quantity, Reads, hookimpl
from kschedfw_loadaware.args import NOT_THERE, SourceArgs
from kschedfw_loadaware.measured_plugin import MeasuredPlugin
from kschedfw_loadaware.recent_pods import Recent, RecentPods
from kschedfw_loadaware.rounding import all_rounded, rounded

CPU: Final = "cpu"

IntArray = npt.NDArray[np.int64]

_ONE_CPU: Final = FrozenDict({CPU: Quantity.parse("1000m")})
_NO_CPU: Final = Quantity.parse(0)


@attrs.frozen(kw_only=True)
class TargetLoadPackingArgs(SourceArgs):
    """Arguments of TargetLoadPacking.

    `target_utilization` is a percentage of a node's CPU. `default_requests_multiplier` is the predicted ratio of a
    container's usage to its request. `default_requests` are the predicted usage of a container without request and
    limit. Only their CPU counts, and without CPU they count as 0.
    """

    target_utilization: int = 40
    default_requests: FrozenDict[str, Quantity] = _ONE_CPU
    default_requests_multiplier: str = "1.5"

    def validate(self) -> Iterator[FieldError]:
        yield from super().validate()
        if not 1 <= self.target_utilization <= 100:
            yield FieldError.invalid(
                "targetUtilization", self.target_utilization, f"must be from 1 to 100; {NOT_THERE}"
            )
        try:
            usable = 0 <= float(self.default_requests_multiplier) < math.inf
        except ValueError:
            usable = False
        if not usable:
            yield FieldError.invalid(
                "defaultRequestsMultiplier",
                self.default_requests_multiplier,
                f"must be a number, at least 0; {NOT_THERE}",
            )


class TargetLoadPacking(MeasuredPlugin[TargetLoadPackingArgs]):
    """Fills nodes up to a target CPU utilisation, and spreads pods over nodes beyond it.

    p is the predicted utilisation and t the target, both in percent. The score rises from t at p = 0 to 100 at p = t.
    Just above, it drops to t, and falls to 0 at p = 100. The prediction adds up the node's measured load, this pod, and
    pods that were placed too recently to be measured.
    """

    name = "TargetLoadPacking"
    args_type = TargetLoadPackingArgs
    # PODS suffices although the load counts: recent pods count only on their own node, and the report's number is part
    # of the signature.
    reads = Reads.PODS

    def __init__(self, args: TargetLoadPackingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._target = float(args.target_utilization)
        self._default = args.default_requests.get(CPU, _NO_CPU).milli_value()
        self._multiplier = float(args.default_requests_multiplier)
        self._recent = RecentPods()

    def sign(self, pod: Pod) -> Hashable | None:
        return self._usage(pod), self._collector.latest().number

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        report = self._collector.latest().report
        load = None if report is None else report.nodes.get(node_info.name)
        if report is None or load is None or load.cpu is None or load.cpu.last is None:
            return 0
        capacity = _cpu_capacity(node_info)
        coming = self._usage(pod) + self._recent.missing_usage(node_info, report.end)
        # As in scheduler-plugins, nothing is predicted for a node without a capacity.
        predicted = (
            0.0 if capacity <= 0 else 100 * (max(load.cpu.last, 0.0) / 100 * capacity + coming) / capacity
        )
        target = self._target
        if predicted > 100:
            return 0
        if predicted > target:
            return rounded(target * (100 - predicted) / (100 - target))
        return rounded((100 - target) * predicted / target + target)

    @hookimpl
    def score_batch(self, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray:
        report = self._collector.latest().report
        scores = np.zeros(len(rows), dtype=np.int64)
        if report is None:
            return scores
        load_of, names = report.nodes.get, nodes.names
        measured = [
            (place, row, load.cpu.last)
            for place, row in enumerate(rows.tolist())
            if (load := load_of(names[row])) is not None
            and load.cpu is not None
            and load.cpu.last is not None
        ]
        if not measured:
            return scores
        places, known, means = (np.array(column) for column in zip(*measured, strict=True))
        column = nodes.encoded("TargetLoadPacking/capacity", _cpu_capacity)
        capacities = np.array(column.values, dtype=np.int64)[column.codes[known]]
        infos = nodes.node_infos
        missing = [self._recent.missing_usage(infos[row], report.end) for row in known.tolist()]
        some = np.where(capacities > 0, capacities, 1)
        coming = self._usage(pod) + np.array(missing, dtype=np.int64)
        predicted = 100 * (np.maximum(means, 0.0) / 100 * some + coming) / some
        predicted[capacities <= 0] = 0.0
        target = self._target
        # With a target of 100 the slope beyond it is undefined, but every prediction beyond 100 scores 0 anyway.
        beyond = target * (100 - predicted) / (100 - target) if target < 100 else np.zeros_like(predicted)
        up_to = (100 - target) * predicted / target + target
        rounded_scores = all_rounded(np.where(predicted > target, np.maximum(beyond, 0.0), up_to))
        scores[places] = np.where(predicted > 100, 0, rounded_scores)
        return scores

    @hookimpl
    def reserve(self, pod: Pod, node_name: str) -> None:
        report = self._collector.latest().report
        if report is not None:
            self._recent.forget_measured(report.end)
        self._recent.add(node_name, pod.uid, self._usage(pod), self.handle.clock.now())

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str) -> None:
        self._recent.remove(node_name, pod.uid)

    def save_state(self) -> Recent:
        """Return the recent pods with the times of their placement. Reserving them again would set later times."""
        return self._recent.save()

    def restore_state(self, token: Recent) -> None:
        self._recent.restore(token)

    def _usage(self, pod: Pod) -> int:
        """Return the CPU that the pod is predicted to use, in millicores."""
        overhead = pod.spec.overhead.get(CPU)
        usage = 0 if overhead is None else overhead.milli_value()
        for container in pod.spec.containers:
            limit, request = container.resources.limits.get(CPU), container.resources.requests.get(CPU)
            if limit is not None:
                usage += limit.milli_value()
            elif request is not None:
                usage += rounded(request.milli_value() * self._multiplier)
            else:
                usage += self._default
        return usage


def _cpu_capacity(node_info: NodeInfo) -> int:
    """Return the machine's whole CPU, in millicores.

    The measured load includes what the node reserves for itself, so allocatable CPU would be too little. If a node has
    no capacity, use its allocatable amount: manifests written for simulations may have only that.
    """
    capacity = node_info.node.status.capacity.get(CPU)
    return node_info.allocatable.milli_cpu if capacity is None else capacity.milli_value()
