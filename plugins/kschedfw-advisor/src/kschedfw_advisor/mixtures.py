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

_MOST_SOLVED: Final = 1000
"""The nodes of its search tree that HiGHS visits. With a time limit the answer would depend on the machine."""
_ROUNDINGS: Final = (1, 2, 3)
_INFEASIBLE: Final = 2
"""SciPy's status of a problem without a solution."""
_MARGIN: Final = 1e-6
"""The relative difference of costs that counts as none, as HiGHS calculates in floats."""


@attrs.frozen
class Kind:
    """Pods that are alike: their number, the requests of one, and how many of them a node of each group takes."""

    count: int
    requests: Mapping[str, int]
    most: Mapping[str, int]


@attrs.frozen
class Supply:
    """A group: the cost of a node, the bounds for the number of new nodes, and the resources of one for pods."""

    name: str
    cost: float
    least: int
    most: int
    room: Mapping[str, int]


@attrs.frozen
class Mixture:
    """The number of nodes of each group; None if no mixture exists or was found. No mixture costs less than `bound`."""

    counts: Mapping[str, int] | None
    bound: float


def is_installed() -> bool:
    """Tell whether SciPy is there to solve programmes."""
    return find_spec("scipy") is not None


@attrs.frozen
class _Row:
    """A linear constraint: the coefficients by variable, and its least value."""

    coefficients: Mapping[int, float]
    least: float


@attrs.frozen
class _Bin:
    """A packing constraint: the sizes of pods, by variable, whose sum on a node must not exceed the node's room."""

    group: int
    sizes: Mapping[int, float]

    def row(self, spare: float) -> _Row:
        """Return the linear constraint of this bin, with the share `spare` (0 to 1) of each node's room kept free."""
        return _Row(
            {self.group: 1.0 - spare, **{variable: -size for variable, size in self.sizes.items()}}, 0.0
        )


@attrs.frozen
class _Minimum:
    """The least value that HiGHS found, with its variables, or None, and a value that nothing is less than."""

    values: Sequence[float] | None
    bound: float


class Programme:
    """Search for the counts of nodes that may get pods a place.

    Variables are, in this order, the counts of nodes, the pods of each kind on the nodes of each group, and the pods
    of each kind that are left over.
    """

    def __init__(self, kinds: Sequence[Kind], supplies: Sequence[Supply]) -> None:
        self._supplies = supplies
        self._scale = max((each.cost for each in supplies), default=0.0) or 1.0
        # The counts of nodes come first: `cheapest` reads them from the beginning of the values.
        self._bounds: list[tuple[float, float]] = [(each.least, each.most) for each in supplies]
        self._rows: list[_Row] = []
        self._bins: list[_Bin] = []
        placed = {
            (k, g): self._variable(kind.count)
            for k, kind in enumerate(kinds)
            for g, supply in enumerate(supplies)
            if kind.most.get(supply.name)
        }
        self._left = [self._variable(kind.count) for kind in kinds]
        for k, kind in enumerate(kinds):
            own = [variable for (each, _), variable in placed.items() if each == k]
            self._rows.append(_Row(dict.fromkeys((*own, self._left[k]), 1.0), kind.count))
        for (k, g), variable in placed.items():
            self._rows.append(_Row({g: kinds[k].most[supplies[g].name], variable: -1.0}, 0.0))
        for g, supply in enumerate(supplies):
            for resource, room in supply.room.items():
                # Fractions, since `_rounded` asks whether a product is a whole number. Floats couldn't tell.
                sizes = {
                    variable: Fraction(kinds[k].requests.get(resource, 0), room)
                    for (k, each), variable in placed.items()
                    if each == g and 0 < kinds[k].requests.get(resource, 0) <= room
                }
                self._bins += _bins(g, sizes)

    def _variable(self, most: float) -> int:
        self._bounds.append((0.0, most))
        return len(self._bounds) - 1

    def fewest_left_over(self) -> int:
        """Return the least number of pods that any mixture leaves without a place."""
        found = _minimum(dict.fromkeys(self._left, 1.0), self._bounds, self._rows_with_bins())
        # A bound of 2.0000001 means 2.
        return math.ceil(max(0.0, found.bound) - _MARGIN)

    def cheapest(
        self, left_over: int, below: float, failed: Sequence[Mapping[str, int]] = (), spare: float = 0.0
    ) -> Mixture:
        """Return the cheapest mixture that leaves at most `left_over` pods without a place and costs less than `below`.

        Its bound is infinity if there is none. It has more nodes of at least one group than each of the mixtures that
        `failed`, as so few don't do. `spare` is the part of the nodes' room that is left free; the bound doesn't hold
        then.
        """
        # Of nodes that cost nothing as few as possible, too.
        costs = {g: each.cost / self._scale + _MARGIN for g, each in enumerate(self._supplies)}
        rows = [*self._rows_with_bins(spare), _Row(dict.fromkeys(self._left, -1.0), -left_over)]
        if below < math.inf:
            rows.append(
                _Row({g: -each.cost for g, each in enumerate(self._supplies)}, -below * (1 - _MARGIN))
            )
        bounds = list(self._bounds)
        for counts in failed:
            # A variable for each group: 1 if the answer has more nodes of it.
            more: dict[int, float] = {}
            for g, supply in enumerate(self._supplies):
                if (wanted := counts.get(supply.name, 0) + 1) <= supply.most:
                    more[len(bounds)] = 1.0
                    rows.append(_Row({g: 1.0, len(bounds): -wanted}, 0.0))
                    bounds.append((0.0, 1.0))
            rows.append(_Row(more, 1.0))
        found = _minimum(costs, bounds, rows)
        bound = found.bound * self._scale
        if found.values is None:
            return Mixture(None, bound)
        numbers = [round(value) for value in found.values[: len(self._supplies)]]
        counts = {each.name: count for each, count in zip(self._supplies, numbers, strict=True) if count}
        return Mixture(counts, bound)

    def _rows_with_bins(self, spare: float = 0.0) -> list[_Row]:
        return [*self._rows, *(each.row(spare) for each in self._bins)]


def _minimum(
    costs: Mapping[int, float], bounds: Sequence[tuple[float, float]], rows: Sequence[_Row]
) -> _Minimum:
    """The minimum of the costs over integers within these bounds; its bound is infinity if there is none."""
    import numpy as np
    import scipy.optimize  # type: ignore[import-untyped]  # it has no types
    import scipy.sparse  # type: ignore[import-untyped]

    weights = np.zeros(len(bounds))
    weights[list(costs)] = list(costs.values())
    entries = [
        (n, variable, value) for n, row in enumerate(rows) for variable, value in row.coefficients.items()
    ]
    numbers, variables, values = zip(*entries, strict=True)
    matrix = scipy.sparse.csr_array((values, (numbers, variables)), shape=(len(rows), len(bounds)))
    lower, upper = np.array(bounds).T
    solved = scipy.optimize.milp(
        weights,
        integrality=np.ones(len(bounds)),
        bounds=scipy.optimize.Bounds(lower, upper),
        constraints=scipy.optimize.LinearConstraint(matrix, [row.least for row in rows], np.inf),
        options={"node_limit": _MOST_SOLVED},
    )
    if solved.status == _INFEASIBLE:
        return _Minimum(None, math.inf)
    return _Minimum(solved.x, float(solved.mip_dual_bound or 0))


def _bins(group: int, sizes: Mapping[int, Fraction]) -> Iterator[_Bin]:
    """Yield constraints that pods' requests of a resource fit on the group's nodes, with room 1: as a sum, and rounded.

    By the sum alone, three pods of two thirds of a node would fit on two nodes. So sizes are rounded up, too, by Fekete
    and Schepers' functions, which keep every real packing: a pod of more than half a node needs a whole node, a pod of
    more than a third at least half a node.
    """
    if sizes:
        yield _Bin(group, {variable: float(size) for variable, size in sizes.items()})
        for step in _ROUNDINGS:
            yield _Bin(group, {variable: float(_rounded(size, step)) for variable, size in sizes.items()})


def _rounded(size: Fraction, step: int) -> Fraction:
    scaled = size * (step + 1)
    return size if scaled.denominator == 1 else Fraction(math.floor(scaled), step)
