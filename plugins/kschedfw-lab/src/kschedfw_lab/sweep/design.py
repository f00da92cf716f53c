"""Designs: the rules which combinations of the factors' values are run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Final, Literal, Protocol, TypeAlias, cast

import attrs

from kschedfw.api.reading import shown
from kschedfw_lab.sweep.errors import SweepError, inside, similar
from kschedfw_lab.sweep.factors import SEED, Factor

Point: TypeAlias = Mapping[str, object]
"""A value of every factor, by factor name."""

DrawMethod: TypeAlias = Literal["random", "latin-hypercube"]

MOST_RUNS: Final = 100_000
"""The most runs of a sweep."""


class Design(Protocol):
    """Chooses points. The same factors and the same design give the same points in the same order."""

    def points(self, factors: Sequence[Factor]) -> Iterator[Point]:
        """Yield the points, before constraints are applied.

        Raises:
            SweepError: the design can't be made of these factors, or has too many points.
        """
        ...

    def to_json(self) -> dict[str, object]: ...


@attrs.frozen
class Grid:
    """All combinations of the factors' values. The last factor changes fastest."""

    def points(self, factors: Sequence[Factor]) -> Iterator[Point]:
        return _with_crossed(factors, [{}], factors)

    def to_json(self) -> dict[str, object]:
        return {"method": "grid"}


@attrs.frozen
class Paired:
    """Combinations chosen by hand: the first values of all factors together, then the second ones, and so on.

    Every factor has as many values as the others, or only one. Each combination is run with every value of the
    `crossed` factors.
    """

    crossed: tuple[str, ...] = (SEED,)

    def points(self, factors: Sequence[Factor]) -> Iterator[Point]:
        crossed, paired = _split(factors, self.crossed)
        counts = {factor.name: count for factor in paired if (count := _count(factor)) > 1}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise SweepError.at("design", f"paired factors have equally many values, or one: {told}")
        points = [
            {factor.name: factor.values.listed[index % _count(factor)] for factor in paired}
            for index in range(max(counts.values(), default=1))
        ]
        return _with_crossed(factors, points, crossed)

    def to_json(self) -> dict[str, object]:
        return {"method": "paired", "crossed": list(self.crossed)}


@attrs.frozen
class Drawn:
    """Points that are drawn, each combined with every value of the `crossed` factors.

    By default every drawn point is run with every seed, so that configurations can be compared seed by seed. A factor's
    values depend only on the design's seed and the factor's name, so another factor doesn't change them.

    Attributes:
        samples: the number of points.
        seed: the seed of the design, not of the simulations.
        crossed: the names of factors of which every value is run with each point.
        method: `random` draws each value independently. In a Latin hypercube (McKay, Beckman and Conover, 1979) each
            factor's range is divided into as many equal parts as there are points, and every part is used once.
    """

    samples: int
    seed: int = 0
    crossed: tuple[str, ...] = (SEED,)
    method: DrawMethod = "random"

    def points(self, factors: Sequence[Factor]) -> Iterator[Point]:
        crossed, drawn = _split(factors, self.crossed)
        shares = {factor.name: self._shares(factor) for factor in drawn}
        points = [
            {factor.name: factor.values.at(shares[factor.name][index]) for factor in drawn}
            for index in range(self.samples)
        ]
        return _with_crossed(factors, points, crossed)

    def _shares(self, factor: Factor) -> Sequence[float]:
        """Return the position of each drawn value in the factor's range, from 0 to below 1."""
        # A text as the seed: Random hashes it equally in every process.
        random = Random(f"{self.seed} {factor.name}")
        if self.method == "random":
            return [random.random() for _ in range(self.samples)]
        parts = list(range(self.samples))
        random.shuffle(parts)
        return [(part + random.random()) / self.samples for part in parts]

    def to_json(self) -> dict[str, object]:
        return {
            "method": self.method,
            "samples": self.samples,
            "seed": self.seed,
            "crossed": list(self.crossed),
        }


def _split(factors: Sequence[Factor], crossed: Collection[str]) -> tuple[Sequence[Factor], Sequence[Factor]]:
    """Return the factors that are crossed with the points, and the others."""
    known = [factor.name for factor in factors]
    for name in crossed:
        if name not in known:
            raise SweepError.at("design.crossed", f"there is no factor {name!r}; {similar(name, known)}")
    return (
        [factor for factor in factors if factor.name in crossed],
        [factor for factor in factors if factor.name not in crossed],
    )


def _with_crossed(
    factors: Sequence[Factor], points: Sequence[Point], crossed: Sequence[Factor]
) -> Iterator[Point]:
    """Yield each point with every combination of the crossed factors' values."""
    # Checked before any point is made, since the product may be of any size.
    if (count := len(points) * math.prod(map(_count, crossed))) > MOST_RUNS:
        raise SweepError.at("design", f"{count:,} combinations of values; at most {MOST_RUNS:,}")
    names = [factor.name for factor in crossed]
    for point in points:
        for values in itertools.product(*(factor.values.listed for factor in crossed)):
            found = {**point, **dict(zip(names, values, strict=True))}
            # In the order of the factors, which is that of the columns.
            yield {factor.name: found[factor.name] for factor in factors}


def _count(factor: Factor) -> int:
    with inside(f"factors.{factor.name}"):
        return len(factor.values.listed)


_DRAWN: Final = ("samples", "seed", "crossed")
_METHODS: Final[Mapping[str, Sequence[str]]] = {
    "grid": (),
    "paired": ("crossed",),
    "random": _DRAWN,
    "latin-hypercube": _DRAWN,
}


def read_design(given: object) -> Design:
    """Return the design in a specification: a method's name, or a mapping with `method`.

    Raises:
        SweepError: the value is no design. The caller adds the word `design`.
    """
    if isinstance(given, (Grid, Paired, Drawn)):
        return given
    content = {"method": given} if isinstance(given, str) else given
    if not isinstance(content, Mapping) or not isinstance(content.get("method"), str):
        raise SweepError(f"expected one of {', '.join(_METHODS)}, found {shown(given)}")
    method = content["method"]
    if method not in _METHODS:
        raise SweepError.at("method", f"there is no design {method!r}; {similar(method, _METHODS)}")
    known = ("method", *_METHODS[method])
    for key in content:
        if key not in known:
            raise SweepError.at(str(key), f"unknown field of the design {method}; {similar(str(key), known)}")
    if method == "grid":
        return Grid()
    crossed = content.get("crossed", [SEED])
    if not isinstance(crossed, (list, tuple)) or not all(isinstance(name, str) for name in crossed):
        raise SweepError.at("crossed", f"expected a list of factors, found {shown(crossed)}")
    if method == "paired":
        return Paired(tuple(crossed))
    samples, seed = content.get("samples"), content.get("seed", 0)
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= MOST_RUNS:
        raise SweepError.at(
            "samples", f"expected a whole number from 1 to {MOST_RUNS}, found {shown(samples)}"
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SweepError.at("seed", f"expected a whole number from 0 up, found {shown(seed)}")
    return Drawn(samples, seed, tuple(crossed), cast("DrawMethod", method))
