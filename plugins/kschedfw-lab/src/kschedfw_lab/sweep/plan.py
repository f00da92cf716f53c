"""The plan of a sweep: its runs, checked as far as possible before any of them runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

import attrs

from kschedfw import InMemoryCluster, KschedfwError, Node
from kschedfw.simulator import Arrivals
from kschedfw_lab.compare.own_metrics import METRICS
from kschedfw_lab.sweep.configurations import DEFAULT_CONFIGURATION, Configuration, runnable
from kschedfw_lab.sweep.constraints import Cell, Constraint
from kschedfw_lab.sweep.design import Design, Point
from kschedfw_lab.sweep.draws import Draw
from kschedfw_lab.sweep.errors import SweepError, inside, one_line
from kschedfw_lab.sweep.factors import CLUSTER, CONFIGURATION, SEED, Factor, label_of
from kschedfw_lab.sweep.inputs import ClusterSource, Size, left_out_of, objects_of
from kschedfw_lab.sweep.prices import Prices
from kschedfw_lab.sweep.runs import Run

OWN_DISTRIBUTION: Final = "kschedfw"


@attrs.frozen
class Plan:
    """The runs of a sweep in their order, and the names of the factors.

    `excluded` is how many points of the design the constraints have excluded, `repeated` how many were there already.
    `warnings` are about configurations, each with its source, and about clusters of which no run has all pods.
    """

    factors: tuple[str, ...]
    runs: tuple[Run, ...]
    excluded: int = 0
    repeated: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """16 hexadecimal digits of the hash of all runs' keys."""
        return hashlib.sha256(" ".join(run.key for run in self.runs).encode()).hexdigest()[:16]

    @property
    def distributions(self) -> tuple[str, ...]:
        """The distributions, with versions, that any run needs."""
        return tuple(sorted({each for run in self.runs for each in run.distributions}))


def plan_of(
    factors: Sequence[Factor],
    design: Design,
    constraints: Sequence[Constraint],
    *,
    prices: Prices | None,
    points: int,
) -> Plan:
    """Return the runs at the design's points for which the constraints hold.

    Every cluster is read and every configuration is parsed, so that errors in them are found now.

    Raises:
        SweepError: no run is left; or a cluster, a configuration or a combination of settings is invalid.
    """
    planner = _Planner(prices, points)
    by_name = {factor.name: factor for factor in factors}
    runs: dict[str, Run] = {}
    excluded = repeated = 0
    for point in design.points(factors):
        cell = {name: label_of(value) for name, value in point.items()}
        with inside("constraints"):
            holds = all(constraint.holds(cell) for constraint in constraints)
        if not holds:
            excluded += 1
            continue
        run = planner.run(by_name, point, cell)
        repeated += run.key in runs
        runs.setdefault(run.key, run)
    if not runs:
        raise SweepError.at("constraints", f"they exclude every point of the design; {excluded:,} in all")
    return Plan(tuple(by_name), tuple(runs.values()), excluded, repeated, tuple(planner.warnings))


class _Planner:
    """Makes runs from points. Checks each cluster and each configuration once."""

    def __init__(self, prices: Prices | None, points: int) -> None:
        self._prices = prices
        self._points = points
        self._sources: dict[ClusterSource, ClusterSource] = {}
        self._sized: set[tuple[ClusterSource, Size]] = set()
        self.warnings: dict[str, None] = {}
        self._own = f"{OWN_DISTRIBUTION} {version(OWN_DISTRIBUTION)}"

    def run(self, factors: Mapping[str, Factor], point: Point, cell: Cell) -> Run:
        configuration = self._configuration(factors, point)
        size = Size(*(_whole(point.get(name)) for name in ("nodes", "pods", "initialPods")))
        cluster = point[CLUSTER]
        assert isinstance(cluster, ClusterSource)
        seed = point[SEED]
        assert isinstance(seed, int)
        return Run(
            values=cell,
            cluster=self._checked(cluster, size),
            size=size,
            configuration=configuration,
            seed=seed,
            arrivals=_arrivals(point, by_default=cluster.recording is not None),
            attempt_time=_number(point.get("attemptTime")) or 0.0,
            prices=self._prices,
            points=self._points,
            draw=Draw(str(draw)) if (draw := point.get("draw")) else None,
            distributions=tuple(
                sorted({self._own, *runnable(configuration).distributions, *METRICS.distributions()})
            ),
        ).keyed()

    def _configuration(self, factors: Mapping[str, Factor], point: Point) -> Configuration:
        given = point.get(CONFIGURATION, DEFAULT_CONFIGURATION)
        assert isinstance(given, Configuration)
        changes = [
            change for name, value in point.items() if (change := factors[name].change(value)) is not None
        ]
        changed = given.changed(changes)
        self.warnings.update(dict.fromkeys(runnable(changed).warnings))
        return changed

    def _checked(self, given: ClusterSource, size: Size) -> ClusterSource:
        """Return the cluster with its digest, after checking that it has this size and no object twice."""
        if given not in self._sources:
            self._sources[given] = given.digested()
        source = self._sources[given]
        if (source, size) not in self._sized:
            try:
                objects = objects_of(source, size)
                cluster = InMemoryCluster(objects)
            except KschedfwError as error:
                raise SweepError.at(f"factors.{CLUSTER}", one_line(error)) from None
            if self._prices is not None:
                _check_prices(self._prices, cluster)
            for line in left_out_of(source):
                self.warnings[f"{source.label}: warning: {line}"] = None
            self._sized.add((source, size))
        return source


def _check_prices(prices: Prices, cluster: InMemoryCluster) -> None:
    for node in cluster.list(Node):
        with inside("cost"):
            prices.of(node)


def _arrivals(point: Point, *, by_default: bool) -> Arrivals | None:
    rate, duration = _number(point.get("arrivalRate")), _number(point.get("meanDuration"))
    ignore = point.get("ignoreOwnTimes") is True
    if point.get("arrivals") is False and (rate or duration or ignore):
        raise SweepError.at(
            "factors.arrivals", "false doesn't go with arrivalRate, meanDuration or ignoreOwnTimes"
        )
    if not (point.get("arrivals", by_default) or rate or duration or ignore):
        return None
    try:
        return Arrivals(rate, duration, own_times=not ignore)
    except KschedfwError as error:
        raise SweepError.at("factors.ignoreOwnTimes", one_line(error)) from None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
