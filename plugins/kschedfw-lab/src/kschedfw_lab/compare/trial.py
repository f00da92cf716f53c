"""Simulates a cluster under one configuration, and measures the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import attrs

from kschedfw import Node, Pod, Registry, Snapshot
from kschedfw.api import Named, RefusedPod
from kschedfw.cluster import Cluster
from kschedfw.explain import Explaining
from kschedfw.scheduler import HostSelector, Setup
from kschedfw.simulator import Arrivals, Report, Simulation
from kschedfw_lab.compare.comparison import ComparedRun
from kschedfw_lab.compare.metrics import NodeAllocation, RequestMix, fragmentation, imbalance_within
from kschedfw_lab.compare.own_metrics import FinishedRun, OwnMetric, own_values


def _random() -> HostSelector | None:
    """Return no selector: the seed then decides among the best nodes."""
    return None


@attrs.frozen(kw_only=True)
class Trial:
    """A cluster's objects, and the settings of a simulation that don't belong to a configuration.

    A trial can be run any number of times. Each run has its own copy of the cluster, and the same seed. `selector`
    makes a new HostSelector for each run. `metrics` are the own metrics to measure, by default those of installed
    distributions. The other fields are those of `Simulation`.
    """

    objects: Sequence[Named] = attrs.field(kw_only=False)
    seed: int = 0
    selector: Callable[[], HostSelector | None] = _random
    start_time: datetime | None = None
    attempt_time: float = 0.0
    arrivals: Arrivals | None = None
    registry: Registry | None = None
    parallelism: int = 1
    clock: Callable[[], float] = lambda: 0.0
    refused: Sequence[RefusedPod] = ()
    metrics: Mapping[str, OwnMetric] | None = None

    def run(
        self,
        candidate: Setup,
        *,
        explaining: Explaining | None = None,
        causes: bool = False,
        progress: Callable[[int, int], None] | None = None,
        before: Callable[[Simulation], None] | None = None,
    ) -> ComparedRun:
        """Simulate the cluster under the candidate. `before` is called with the simulation before it runs.

        With `causes`, the decisions say what keeps pods without a place off nodes.

        Raises:
            ProfileError, PluginError: a profile can't run.
            ExtenderConfigError, MissingExtraError: extenders can't run.
            ArrivalsError: a pod's times aren't numbers.
            ExtensionError, ValueError: an own metric has no value (see `own_values`).
        """
        cluster = candidate.cluster_of(self.objects)
        simulation = Simulation(
            cluster,
            candidate,
            registry=self.registry,
            arrivals=self.arrivals,
            seed=self.seed,
            selector=self.selector(),
            start_time=self.start_time,
            attempt_time=self.attempt_time,
            parallelism=self.parallelism,
            clock=self.clock,
            refused=self.refused,
            explaining=explaining,
            causes=causes,
        )
        if before is not None:
            before(simulation)
        return self._measured(candidate.label, simulation.run(progress), cluster)

    def _measured(self, label: str, report: Report, cluster: Cluster) -> ComparedRun:
        workload = RequestMix.of(obj for obj in self.objects if isinstance(obj, Pod))
        snapshot = Snapshot.of(cluster.list(Node), (pod for pod in cluster.list(Pod) if not pod.is_terminal))
        allocations = tuple(map(NodeAllocation.of, snapshot.node_infos))
        return ComparedRun(
            label,
            report,
            imbalance_within(allocations, workload),
            tuple(fragmentation(allocations, workload)),
            allocations,
            own_values(FinishedRun(report, cluster, allocations), self.metrics),
        )
