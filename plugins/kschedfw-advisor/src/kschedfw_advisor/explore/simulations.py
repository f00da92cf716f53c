"""Simulations of the cluster on the workbench, for the page's view of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

import msgspec
from kschedfw_lab.pages import ReplayView, replay

from kschedfw import InMemoryCluster, Node
from kschedfw.cluster import free_pods
from kschedfw.scheduler import FirstByNameSelector, Setup
from kschedfw.simulator import Arrivals, Report, Simulation, Timeline
from kschedfw_advisor.explore.changes import ChangeError
from kschedfw_advisor.explore.workbench import Workbench

KEPT: Final = "with the kept changes"
ORIGINAL: Final = "as it was at the start"
MOST_RUNS: Final = 2

_Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for simulations: the labels of those to run, and how pods come and go, as for `kschedfw simulate`."""

    runs: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MOST_RUNS)]
    reschedule: bool = False
    own_times: bool = False
    arrival_rate: _Positive | None = None
    mean_duration: _Positive | None = None


class Simulations:
    """Simulations of the original cluster under its configuration and under other candidates, and of the cluster with
    the kept changes under the changed configuration.
    """

    def __init__(self, bench: Workbench, others: Sequence[Setup], seed: int) -> None:
        self._bench = bench
        self._others = {each.label: each for each in others}
        self._seed = seed

    @property
    def labels(self) -> Sequence[str]:
        return (KEPT, ORIGINAL, *self._others)

    def run(self, asked: Asked, is_over: Callable[[], bool]) -> ReplayView:
        """Run them, one after another; each ends early when `is_over` is true.

        Raises:
            ChangeError: there is no such configuration.
            KschedfwError: a simulation can't be made.
        """
        nodes: Sequence[Node] = ()
        runs = []
        for label in dict.fromkeys(asked.runs):
            cluster, timeline, report = self._simulated(label, asked, is_over)
            # Runs may have different nodes: kept changes may add or delete some.
            nodes = tuple({node.name: node for node in (*nodes, *cluster.list(Node))}.values())
            runs.append((label, timeline, report))
        return replay(nodes, runs)

    def _simulated(
        self, label: str, asked: Asked, is_over: Callable[[], bool]
    ) -> tuple[InMemoryCluster, Timeline, Report]:
        changes = self._bench.kept if label == KEPT else ()
        candidate = self._candidate(label)
        cluster = candidate.cluster_of(self._bench.objects(changes))
        if asked.reschedule:
            free_pods(cluster, lambda _: True)
        timeline = Timeline()
        simulation = Simulation(
            cluster,
            candidate,
            registry=self._bench.registry,
            arrivals=_arrivals(asked),
            seed=self._seed,
            selector=FirstByNameSelector(),
            parallelism=1,
            timeline=timeline,
        )
        return cluster, timeline, simulation.run(until=is_over)

    def _candidate(self, label: str) -> Setup:
        if label in self._others:
            return self._others[label]
        if label in (KEPT, ORIGINAL):
            changes = self._bench.kept if label == KEPT else ()
            return Setup.of(label, self._bench.configuration(changes))
        raise ChangeError(f"there is no configuration {label!r}; there is {', '.join(self.labels)}")


def _arrivals(asked: Asked) -> Arrivals | None:
    if not asked.own_times and asked.arrival_rate is None and asked.mean_duration is None:
        return None
    return Arrivals(asked.arrival_rate, asked.mean_duration)
