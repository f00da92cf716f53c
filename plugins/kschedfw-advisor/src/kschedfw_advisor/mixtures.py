"""The cheapest mixture of node groups for pods, by an integer programme that HiGHS solves (extra `optimal`).

The programme knows of pods what they request and how many of a kind a node of each group takes. That is less than a
scheduler knows, so a scheduler may need more nodes than the programme says, never fewer: what it says is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Final

import attrs

INSTALL: Final = "pip install 'kschedfw-advisor[optimal]'"

_MOST_SOLVED: Final = 1000
"""So many nodes of its search tree HiGHS looks at. A time limit would give another answer on another machine."""
_ROUNDINGS: Final = (1, 2, 3)
_INFEASIBLE: Final = 2
"""SciPy's status of a problem without a solution."""
_MARGIN: Final = 1e-6
"""The relative difference of costs that counts as none, as HiGHS calculates in floats."""


@attrs.frozen
class Kind:
    """Pods that are alike: how many, what one requests, and how many of them one node of each group takes."""

    count: int
    requests: Mapping[str, int]
    most: Mapping[str, int]


@attrs.frozen
class Supply:
    """A group: what a node costs, how many new ones there are at least and at most, and what pods can use of one."""

    name: str
    cost: float
    least: int
    most: int
    room: Mapping[str, int]


@attrs.frozen
class Mixture:
    """How many nodes of each group; None if there is no mixture or none was found. Nothing costs less than `bound`."""

    counts: Mapping[str, int] | None
    bound: float


def is_installed() -> bool:
    """Whether SciPy is there to solve programmes."""
    return find_spec("scipy") is not None


@attrs.frozen
class _Row:
    """A linear constraint: the coefficients by variable, and its least value."""

    coefficients: Mapping[int, float]
    least: float


@attrs.frozen
class _Bin:
    """The sizes of pods, by variable, of which as many as its room fit on a node of the group."""

    group: int
    sizes: Mapping[int, float]

    def row(self, spare: float) -> _Row:
        """The constraint if this part of the room is left free."""
        return _Row(
            {self.group: 1.0 - spare, **{variable: -size for variable, size in self.sizes.items()}}, 0.0
        )


class Programme:
    """Which counts of nodes may get all pods a place, but for `left_over` of them.

    Variables are, in this order, the counts of nodes, the pods of each kind on the nodes of each group, the pods of
    each kind that are left over, and, for each mixture that was forbidden, which group it must have more of.
    """

    def __init__(self, kinds: Sequence[Kind], supplies: Sequence[Supply], left_over: int) -> None:
        self._supplies = supplies
        self._scale = max((each.cost for each in supplies), default=0.0) or 1.0
        self._bounds: list[tuple[float, float]] = [(each.least, each.most) for each in supplies]
        self._rows: list[_Row] = []
        self._bins: list[_Bin] = []
        placed = {
            (k, g): self._variable(kind.count)
            for k, kind in enumerate(kinds)
            for g, supply in enumerate(supplies)
            if kind.most.get(supply.name)
        }
        left = [self._variable(kind.count) for kind in kinds]
        for k, kind in enumerate(kinds):
            own = [variable for (each, _), variable in placed.items() if each == k]
            self._rows.append(_Row(dict.fromkeys((*own, left[k]), 1.0), kind.count))
        self._rows.append(_Row(dict.fromkeys(left, -1.0), -left_over))
        for (k, g), variable in placed.items():
            self._rows.append(_Row({g: kinds[k].most[supplies[g].name], variable: -1.0}, 0.0))
        for g, supply in enumerate(supplies):
            for resource, room in supply.room.items():
                sizes = {
                    variable: Fraction(kinds[k].requests.get(resource, 0), room)
                    for (k, each), variable in placed.items()
                    if each == g and 0 < kinds[k].requests.get(resource, 0) <= room
                }
                self._bins += _bins(g, sizes)

    def _variable(self, most: float) -> int:
        self._bounds.append((0.0, most))
        return len(self._bounds) - 1

    def forbid(self, counts: Mapping[str, int]) -> None:
        """Demand more nodes than these of at least one group: so few don't get the pods a place."""
        more: dict[int, float] = {}
        for g, supply in enumerate(self._supplies):
            if (wanted := counts.get(supply.name, 0) + 1) <= supply.most:
                more[self._variable(1)] = 1.0
                self._rows.append(_Row({g: 1.0, len(self._bounds) - 1: -wanted}, 0.0))
        self._rows.append(_Row(more, 1.0))

    def cheapest(self, below: float, spare: float = 0.0) -> Mixture:
        """The cheapest mixture that costs less than this, with a bound of infinity if there is none.

        `spare` is the part of the nodes' room that is left free; the bound doesn't hold then.
        """
        import numpy as np
        import scipy.optimize  # type: ignore[import-untyped]  # it has no types
        import scipy.sparse  # type: ignore[import-untyped]

        costs = np.zeros(len(self._bounds))
        # Of nodes that cost nothing as few as possible, too.
        costs[: len(self._supplies)] = [each.cost / self._scale + _MARGIN for each in self._supplies]
        rows = [
            *self._rows,
            *(each.row(spare) for each in self._bins),
            _Row({g: -each.cost for g, each in enumerate(self._supplies)}, -below * (1 - _MARGIN)),
        ]
        entries = [
            (n, variable, value) for n, row in enumerate(rows) for variable, value in row.coefficients.items()
        ]
        numbers, variables, values = zip(*entries, strict=True)
        matrix = scipy.sparse.csr_array((values, (numbers, variables)), shape=(len(rows), len(costs)))
        lower, upper = np.array(self._bounds).T
        solved = scipy.optimize.milp(
            costs,
            integrality=np.ones(len(costs)),
            bounds=scipy.optimize.Bounds(lower, upper),
            constraints=scipy.optimize.LinearConstraint(matrix, [row.least for row in rows], np.inf),
            options={"node_limit": _MOST_SOLVED},
        )
        if solved.status == _INFEASIBLE:
            return Mixture(None, math.inf)
        bound = float(solved.mip_dual_bound or 0) * self._scale
        if solved.x is None:
            return Mixture(None, bound)
        found = [round(float(value)) for value in solved.x[: len(self._supplies)]]
        counts = {each.name: count for each, count in zip(self._supplies, found, strict=True) if count}
        return Mixture(counts, bound)


def _bins(group: int, sizes: Mapping[int, Fraction]) -> Iterator[_Bin]:
    """What pods request of a resource fits on the group's nodes, whose room is 1: as a sum, and rounded.

    A sum takes halves of two pods for a whole one. Fekete and Schepers' functions round sizes such that whatever fits
    in a bin still does: pods of more than half a node need one each, those of more than a third at least half a one.
    """
    if sizes:
        yield _Bin(group, {variable: float(size) for variable, size in sizes.items()})
        for step in _ROUNDINGS:
            yield _Bin(group, {variable: float(_rounded(size, step)) for variable, size in sizes.items()})


def _rounded(size: Fraction, step: int) -> Fraction:
    scaled = size * (step + 1)
    return size if scaled.denominator == 1 else Fraction(math.floor(scaled), step)
