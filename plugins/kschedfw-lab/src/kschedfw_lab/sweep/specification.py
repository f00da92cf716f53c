"""The specification of a sweep: a YAML file, or the same in Python."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kschedfw.api.reading import UnreadableError, read_only_document, shown
from kschedfw_lab.sweep.constraints import Constraint
from kschedfw_lab.sweep.design import Design, read_design
from kschedfw_lab.sweep.errors import SweepError, inside, similar
from kschedfw_lab.sweep.factors import CLUSTER, SEED, Factor, label_of, read_factor
from kschedfw_lab.sweep.plan import Plan, plan_of
from kschedfw_lab.sweep.prices import Prices, read_prices
from kschedfw_lab.sweep.values import Choices, Range, is_whole

LARGEST: Final = 1 << 20
"""The largest size of a specification, in bytes."""
MOST_FACTORS: Final = 50
MOST_CONSTRAINTS: Final = 50
MOST_POINTS: Final = 10_000

_KEYS: Final = ("factors", "design", "constraints", "cost", "series")


class Sweep:
    """Runs that cross factors: clusters, configurations and changes in them, seeds, times and sizes.

    Args:
        factors: the values of each factor, by its name: a list, a `Range`, or one value. Keys and values are as in the
            YAML file (docs/sweep.md). `cluster` is required; `seed` defaults to 0.
        design: the combinations that are run: `Grid()`, `Paired()` or `Drawn(…)`.
        constraints: expressions between factors, all of which must hold in a run: `nodes < pods`.
        cost: prices of nodes, as the arguments of the plugin CostAware. None means that costs aren't measured.
        series: the number of times at which each run's series are measured, from 2 up; 0 for no series.
        folder: the folder that relative paths refer to.
        source: the name of the specification in errors.

    Raises:
        SweepError: the specification is invalid. The message names the place, its content, and what would be right.
    """

    def __init__(
        self,
        factors: Mapping[str, object],
        *,
        design: Design | str | Mapping[str, object] = "grid",
        constraints: Sequence[str] = (),
        cost: Mapping[str, object] | None = None,
        series: int = 0,
        folder: str | Path = ".",
        source: str = "",
    ) -> None:
        self.source = source
        self.folder = Path(folder)
        with _of(source):
            with inside("factors"):
                self.factors = _factors(factors, Path(folder))
            with inside("design"):
                self.design = read_design(design)
            with inside("constraints"):
                self.constraints = _constraints(constraints, [factor.name for factor in self.factors])
            with inside("cost"):
                self.prices: Prices | None = None if cost is None else read_prices(cost)
            with inside("series"):
                self.points = _points(series)

    @classmethod
    def read(cls, path: str | Path) -> Sweep:
        """Read the sweep from a YAML file. Relative paths in it refer to the file's folder.

        Raises:
            SweepError: the file is no sweep, or a file that it names can't be read.
            OSError: the file can't be read.
        """
        path = Path(path)
        content = content_of(path, _KEYS)
        if not isinstance(factors := content.get("factors"), Mapping):
            raise SweepError(
                f"{path}: factors: expected an object with at least {CLUSTER}, found {shown(factors)}"
            )
        # A key without a value is null in YAML, and means the default.
        optional = {key: content[key] for key in _KEYS[1:] if content.get(key) is not None}
        return cls(factors, folder=path.parent, source=str(path), **optional)

    def plan(self) -> Plan:
        """Return the plan. Every cluster is read and every configuration parsed.

        Raises:
            SweepError: a cluster or a configuration is invalid, or there is nothing to run.
        """
        with _of(self.source):
            return plan_of(
                self.factors, self.design, self.constraints, prices=self.prices, points=self.points
            )

    def to_json(self) -> dict[str, object]:
        """Return the description for results: every factor with its values' labels, the design, the constraints."""
        return {
            "factors": {factor.name: _factor_json(factor) for factor in self.factors},
            "design": self.design.to_json(),
            "constraints": [constraint.text for constraint in self.constraints],
            "cost": None if self.prices is None else self.prices.to_json(),
            "series": self.points,
        }


@contextmanager
def _of(source: str) -> Iterator[None]:
    """Add the file's name to errors in the block."""
    try:
        yield
    except SweepError as error:
        raise error.of(source) from None


def _factor_json(factor: Factor) -> object:
    values = factor.values
    if isinstance(values, Range):
        given = {"from": values.low, "to": values.high, "step": values.step, "points": values.points}
        found: object = {
            **{key: number for key, number in given.items() if number is not None},
            "scale": values.scale,
        }
    else:
        found = [label_of(value) for value in values.listed]
    return {"path": factor.path, "values": found} if factor.path != "" else found


def content_of(path: Path, fields: Collection[str]) -> Mapping[str, Any]:
    """Return the single document of a YAML file. It may only have these fields.

    Raises:
        SweepError: the file is too large, isn't YAML, or has other content.
        OSError: the file can't be read.
    """
    try:
        content, _ = read_only_document(path, LARGEST, noun="specification", part="factors")
    except UnreadableError as error:
        raise SweepError(f"{path}: {error}") from None
    for key in content:
        if key not in fields:
            raise SweepError(f"unknown field; {similar(str(key), fields)}", str(key), str(path))
    return content


def _factors(given: Mapping[str, object], folder: Path) -> tuple[Factor, ...]:
    if len(given) > MOST_FACTORS:
        raise SweepError(f"{len(given)} factors; at most {MOST_FACTORS}")
    if CLUSTER not in given:
        raise SweepError.at(
            CLUSTER, "missing; give a path, or one of manifests, openb, workload and recording"
        )
    factors = []
    for name, values in given.items():
        with inside(name):
            factors.append(read_factor(name, values, folder))
    # Always a factor, so that reports can pair runs by it.
    if SEED not in given:
        factors.append(Factor(SEED, Choices((0,))))
    return tuple(factors)


def _constraints(given: object, factors: Sequence[str]) -> tuple[Constraint, ...]:
    if not isinstance(given, (list, tuple)):
        raise SweepError(f"expected a list of texts, found {shown(given)}")
    if len(given) > MOST_CONSTRAINTS:
        raise SweepError(f"{len(given)} constraints; at most {MOST_CONSTRAINTS}")
    parsed = []
    for index, text in enumerate(given):
        with inside(f"[{index}]"):
            parsed.append(Constraint.parse(text, factors))
    return tuple(parsed)


def _points(given: object) -> int:
    if not (is_whole(given) and (given == 0 or 2 <= given <= MOST_POINTS)):
        raise SweepError(f"expected a number of points from 2 to {MOST_POINTS}, found {shown(given)}")
    return given
