"""Free room on nodes over time: the part of it that typical pods can't use, and the costs of nodes in use."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Final

import attrs

from kschedfw import Node, Pod, Resource
from kschedfw.api import PODS, PRICE, Named, node_allocatable
from kschedfw_replay.recording.blocks import RecordingError

NANO: Final = 1_000_000_000
PriceOf = Callable[[Node], int | None]
"""The hourly price of a node in billionths of a currency; None if it has none."""

_MOST_SHAPES: Final = 10_000
"""The most distinct requests that are counted: a recording in which each pod differs would take all memory."""
_TYPICAL: Final = 20
# In an hour of churn, 93,209 amounts took 28 MiB and were found again for 29 % of the changes. A thousand are for 8 %,
# and working one out takes 6.6 µs.
_MOST_REMEMBERED: Final = 1_000
_HIGHEST: Final = Decimal(1_000_000)
_USE: Final = ("nodes", "price", "all")


def annotated_price(node: Node) -> int | None:
    """Return the price in the annotation `kschedfw/price`, which `scale-up` and `scale-down` read, too.

    Raises:
        RecordingError: the annotation is no price.
    """
    text = node.annotations.get(PRICE)
    if text is None:
        return None
    try:
        price = Decimal(text)
    except ArithmeticError:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 <= price <= _HIGHEST:
        raise RecordingError(
            f"node {node.name}: metadata.annotations[{PRICE}]: {text!r} is no price; expected a decimal number from 0 "
            f"to {_HIGHEST}"
        )
    return int(price * NANO)


class Area:
    """Amounts by name, added up over time.

    The sums are of ±amount·t, so that a change costs what it changes: the area until T is the sum of ±amount·(T − t).
    """

    def __init__(self) -> None:
        self._amounts: Counter[str] = Counter()
        self._moments: defaultdict[str, float] = defaultdict(float)

    def change(self, at: float, amounts: Iterable[tuple[str, int]], sign: int) -> None:
        """Add amounts from a time on; with the sign -1, take them off."""
        for name, amount in amounts:
            if amount:
                self.add(at, name, sign * amount)

    def add(self, at: float, name: str, amount: int) -> None:
        """Add one amount, which may be negative, from a time on."""
        self._amounts[name] += amount
        self._moments[name] += amount * at

    def until(self, ends: float) -> Mapping[str, float]:
        """Return amount × time by name, from 0 until a time; the amounts themselves if that time is 0."""
        if not ends:
            return dict(self._amounts)
        return {name: amount * ends - self._moments[name] for name, amount in self._amounts.items()}


class Typical:
    """The commonest requests of the pods that arrived without a node, with the number of pods that made each."""

    def __init__(self) -> None:
        self._counts: Counter[Resource] = Counter()

    def take(self, pod: Pod) -> None:
        amounts = pod.requests.amounts
        if amounts in self._counts or len(self._counts) < _MOST_SHAPES:
            self._counts[amounts] += 1

    @property
    def requests(self) -> tuple[tuple[Resource, int], ...]:
        """The 20 commonest requests with their counts; of equally common ones, those that came first."""
        return tuple(self._counts.most_common(_TYPICAL))


_Amounts = tuple[int, ...]
"""Amounts of resources, in the order of `Room._names`."""


@attrs.define(eq=False)
class _Held:
    """The amounts of one node. It exists also for a node that is missing while pods name it.

    Attributes:
        allocatable: the node's allocatable amounts, the number of pods last; None while the node is missing.
        requested: the sums of its pods' requests, the number of pods last.
        free: the free amounts that the area `Room._free` counts now for this node.
        unusable: the unusable amounts that `Room._unusable` counts now.
        price: the node's hourly price, in billionths.
        workload: the number of its pods that belong neither to a DaemonSet nor to the node itself.
        used: the amounts that `Room._used` counts now: 1 if the node is in use, its price if in use, its price.
    """

    allocatable: _Amounts | None
    requested: list[int]
    free: _Amounts
    unusable: _Amounts
    price: int = 0
    workload: int = 0
    used: _Amounts = (0, 0, 0)


class Room:
    """Adds up free amounts, unusable amounts and costs of nodes over time. Its size grows with the number of nodes."""

    def __init__(
        self,
        begins: float,
        typical: tuple[tuple[Resource, int], ...],
        price_of: PriceOf = annotated_price,
    ) -> None:
        self._begins, self._price_of = begins, price_of
        asked = {name for request, _ in typical for name, amount in request.items() if amount > 0}
        self._names = (*sorted(asked), PODS)
        self._requests = [
            (tuple((place, request.get(name)) for place, name in enumerate(self._names[:-1])), count)
            for request, count in typical
        ]
        self._asking = {
            name: sum(count for request, count in typical if request.get(name) > 0) for name in sorted(asked)
        }
        self._largest = (*(max(request.get(name) for request, _ in typical) for name in sorted(asked)), 1)
        """The largest request of each resource: a node with this much free has room for every typical pod."""
        self._nothing: _Amounts = (0,) * len(asked)
        self._nodes: dict[str, _Held] = {}
        self._unusable_of: dict[_Amounts, _Amounts] = {}
        """Results of `_unusable_in`, by the free amounts."""
        self._free, self._unusable, self._used = Area(), Area(), Area()
        self._has_unpriced = False

    def take(self, at: float, old: Named | None, new: Named | None) -> None:
        """Count the change of an object; `old` is None if it was added, `new` if it was deleted."""
        if isinstance(old, Pod) or isinstance(new, Pod):
            before = old if isinstance(old, Pod) and old.node_name else None
            after = new if isinstance(new, Pod) and new.node_name else None
            if before is not None and after is not None and before.requests.amounts == after.requests.amounts:
                return
            if before is not None:
                self._pod(at, before, -1)
            if after is not None:
                self._pod(at, after, 1)
        elif isinstance(old, Node) or isinstance(new, Node):
            node = new if isinstance(new, Node) else old
            assert isinstance(node, Node)
            held = self._held(node.name)
            if new is None:
                held.allocatable, held.price = None, 0
            else:
                allocatable, price = node_allocatable(node), self._price_of(node)
                held.allocatable = tuple([allocatable.get(name) for name in self._names])
                held.price = price or 0
                self._has_unpriced |= price is None
            self._count(at, held)
            self._use(at, held)
            if new is None and not held.requested[-1]:
                del self._nodes[node.name]

    def fragmentation(self, ends: float) -> Mapping[str, float]:
        """Return the share of free amounts that typical pods couldn't use, 0–1 by resource, until a time."""
        seconds = ends - self._begins
        free, unusable = self._free.until(seconds), self._unusable.until(seconds)
        return {
            name: round(unusable.get(name, 0.0) / asking / free[name], 6)
            for name, asking in self._asking.items()
            if free.get(name, 0.0) > 0
        }

    def node_hours(self, ends: float) -> float:
        """Return the hours in which nodes had a pod of a workload, summed over the nodes, until a time."""
        return round(self._used.until(ends - self._begins).get("nodes", 0.0) / 3600, 6)

    def costs(self, ends: float) -> tuple[float, float] | None:
        """Return the cost of the nodes in use, and that of all nodes, until a time; None if a node has no price."""
        if self._has_unpriced:
            return None
        areas = self._used.until(ends - self._begins)
        in_use, every = (areas.get(name, 0.0) / 3600 / NANO for name in ("price", "all"))
        return round(in_use, 6), round(every, 6)

    def _held(self, name: str) -> _Held:
        if (held := self._nodes.get(name)) is None:
            held = _Held(None, [0] * len(self._names), self._nothing, self._nothing)
            self._nodes[name] = held
        return held

    def _pod(self, at: float, pod: Pod, sign: int) -> None:
        held, amounts = self._held(pod.node_name), pod.requests.amounts
        requested = held.requested
        for place, name in enumerate(self._names[:-1]):
            requested[place] += sign * amounts.get(name)
        requested[-1] += sign
        owner = pod.metadata.controller
        if owner is None or owner.kind not in ("DaemonSet", "Node"):
            held.workload += sign
            # The first pod that came, or the last one that went.
            if held.workload == (sign > 0):
                self._use(at, held)
        self._count(at, held)
        if held.allocatable is None and not requested[-1]:
            del self._nodes[pod.node_name]

    def _count(self, at: float, held: _Held) -> None:
        """Bring the areas of free and of unusable amounts up to date with a node."""
        free = unusable = self._nothing
        if held.allocatable is not None:
            left = [has - taken for has, taken in zip(held.allocatable, held.requested, strict=True)]
            # The list is made only for nodes that are overcommitted: this is done twice for every pod.
            free = tuple(left) if min(left) >= 0 else tuple([max(0, amount) for amount in left])
            unusable = self._unusable_in(free)
            free = free[:-1]
        _move(self._free, at - self._begins, self._names, held.free, free)
        if unusable != held.unusable:
            _move(self._unusable, at - self._begins, self._names, held.unusable, unusable)
        held.free, held.unusable = free, unusable

    def _use(self, at: float, held: _Held) -> None:
        """Bring the area of nodes in use up to date with a node."""
        is_used = held.allocatable is not None and held.workload > 0
        used = int(is_used), held.price * is_used, held.price
        _move(self._used, at - self._begins, _USE, held.used, used)
        held.used = used

    def _unusable_in(self, free: _Amounts) -> _Amounts:
        """Return free amounts × the number of typical pods that request the resource and don't fit.

        The last of `free` is the number of pods.
        """
        # On most nodes every typical pod fits.
        if all(map(operator.ge, free, self._largest)):
            return self._nothing
        if (unusable := self._unusable_of.get(free)) is None:
            if len(self._unusable_of) >= _MOST_REMEMBERED:
                self._unusable_of.clear()
            unusable = tuple(map(operator.mul, free, self._refusals(free)))
            self._unusable_of[free] = unusable
        return unusable

    def _refusals(self, free: _Amounts) -> _Amounts:
        """Return the number of typical pods that don't fit into the free amounts, by the resource they request."""
        refused = [0] * (len(self._names) - 1)
        for request, count in self._requests:
            if free[-1] < 1 or any(amount > free[place] for place, amount in request):
                for place, amount in request:
                    refused[place] += count if amount > 0 else 0
        return tuple(refused)


def _move(area: Area, at: float, names: Iterable[str], before: _Amounts, after: _Amounts) -> None:
    """Replace amounts in the area from a time on. Surplus names are ignored."""
    for name, old, new in zip(names, before, after, strict=False):
        if old != new:
            area.add(at, name, new - old)
