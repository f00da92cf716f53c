"""One run of the evaluation: schedules the trace's pods one by one and measures the GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import attrs

from kschedfw import InMemoryCluster, KschedfwError, Pod
from kschedfw.simulator import Failures
from kschedfw_gpushare.fragmentation import FragmentationGauge
from kschedfw_gpushare.openb.contenders import SCHEDULER, MakeScheduler
from kschedfw_gpushare.openb.trace import Trace, asked_by, tuned
from kschedfw_gpushare.plugin import GpuShare

Curve = Mapping[int, float]
"""Shares from 0 to 1, by the percentage of the cluster's GPUs that the arrived pods request.

A value is the mean over all arrivals that round to its percentage.
"""


class FailedRunError(KschedfwError):
    """Plugins failed during a run, so that it has no result. `failures` counts the errors."""

    def __init__(self, failures: Failures) -> None:
        super().__init__(f"a plugin {next(failures.lines())}")
        self.failures = failures


@attrs.frozen
class Run:
    """The result of a run with one seed. The fragmentation curves are empty if GpuShare isn't in the profile.

    Attributes:
        pods: the number of pods that arrived.
        placed: the number of pods that were placed.
        allocated: the allocated share of all GPUs.
        fragmented: the share of all GPUs that is idle and unusable to the workload.
        fragmented_idle: the unusable share of idle GPUs.
    """

    pods: int
    placed: int
    allocated: Curve
    fragmented: Curve
    fragmented_idle: Curve


def replay(trace: Trace, make_scheduler: MakeScheduler, seed: int) -> Run:
    """Schedule the trace once.

    The pods are shuffled, and copies are appended. Each pod is scheduled when it arrives. No pod leaves, and a pod that
    fits nowhere is dropped. The nodes are shuffled, too, since their order decides between equally good nodes
    (`fillInOrder`).

    Raises:
        KschedfwError: the scheduler can't be made.
        FailedRunError: plugins failed.
    """
    random = Random(seed)
    pods, capacity = tuned(trace, random), trace.capacity
    cluster = InMemoryCluster(random.sample(trace.nodes, len(trace.nodes)))
    scheduler = make_scheduler(cluster, random)
    books = scheduler.frameworks[SCHEDULER].plugins.get("GpuShare")
    gauge: FragmentationGauge | None = None
    arrived = used = placed = 0
    allocated, fragmented, fragmented_idle = _Means(), _Means(), _Means()
    with Failures() as failures:
        for pod in pods:
            asked = asked_by(pod)
            arrived += asked
            stored = cluster.add(pod)
            scheduler.schedule_one()
            present = cluster.get(Pod, stored.key)
            if present is not None and present.node_name:
                used += asked
                placed += 1
            else:
                cluster.delete(stored)
            percent = round(100 * arrived / capacity)
            allocated.add(percent, used / capacity)
            if isinstance(books, GpuShare):
                # `schedule_one` updates the snapshot before it places the pod, so the gauge wouldn't see the pod.
                scheduler.cache.update_snapshot(scheduler.snapshot)
                gauge = gauge or books.gauge(scheduler.snapshot.table)
                of_all, of_idle = gauge.shares()
                fragmented.add(percent, of_all)
                fragmented_idle.add(percent, of_idle)
        scheduler.close()
    if failures.count:
        raise FailedRunError(failures)
    return Run(len(pods), placed, allocated.curve(), fragmented.curve(), fragmented_idle.curve())


class _Means:
    """Accumulates means by percentage."""

    def __init__(self) -> None:
        self._sums: dict[int, float] = {}
        self._counts: dict[int, int] = {}

    def add(self, percent: int, share: float) -> None:
        self._sums[percent] = self._sums.get(percent, 0.0) + share
        self._counts[percent] = self._counts.get(percent, 0) + 1

    def curve(self) -> Curve:
        return {percent: total / self._counts[percent] for percent, total in self._sums.items()}
