"""The room that is left on nodes, over time: how much of it a usual pod can't use, and what the nodes in use cost."""

from __future__ import annotations

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
"""How many distinct requests are counted, so that a recording in which each pod differs doesn't take all memory."""
_TYPICAL: Final = 20
_MOST_REMEMBERED: Final = 100_000
_HIGHEST: Final = Decimal(1_000_000)


def annotated_price(node: Node) -> int | None:
    """Return the price in the annotation `kschedfw/price`, which `scale-up` and `scale-down` read, too.

    Raises:
        RecordingError: it is no price.
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
        """Add amounts from a time on, or take them off."""
        for name, amount in amounts:
            if amount:
                self._amounts[name] += sign * amount
                self._moments[name] += sign * amount * at

    def until(self, ends: float) -> Mapping[str, float]:
        """The areas; where no time has passed, the amounts themselves."""
        if not ends:
            return dict(self._amounts)
        return {name: amount * ends - self._moments[name] for name, amount in self._amounts.items()}


class Typical:
    """The commonest requests of the pods that came without a node, and how often each was made."""

    def __init__(self) -> None:
        self._counts: Counter[Resource] = Counter()

    def take(self, pod: Pod) -> None:
        amounts = pod.requests.amounts
        if amounts in self._counts or len(self._counts) < _MOST_SHAPES:
            self._counts[amounts] += 1

    @property
    def requests(self) -> tuple[tuple[Resource, int], ...]:
        """The 20 commonest, those that came first if there are more."""
        return tuple(self._counts.most_common(_TYPICAL))


@attrs.define(eq=False)
class _Held:
    """What is on a node, which may not be there yet.

    Attributes:
        node: the node; None as long as it isn't there.
        requested: the sum of its pods' requests, by the place of the resource; the last is the number of pods.
        workload: how many of its pods aren't a DaemonSet's or the node's own.
        counted: what of it is in the areas.
    """

    node: Node | None
    requested: list[int]
    workload: int = 0
    counted: tuple[tuple[tuple[str, int], ...], ...] = ((), (), ())


class Room:
    """Adds up what is free on nodes, what of that is unusable, and what nodes in use cost. Sized as the nodes."""

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
        self._nodes: dict[str, _Held] = {}
        self._refused: dict[tuple[int, ...], tuple[int, ...]] = {}
        """How many typical pods that request a resource don't fit into what is free, by what is free."""
        self._free, self._unusable, self._used = Area(), Area(), Area()
        self._unpriced = 0

    def take(self, at: float, old: Named | None, new: Named | None) -> None:
        """Follow a change of an object; None stands for its absence."""
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
            held.node = None if new is None else node
            self._count(at, held)
            if new is None and not held.requested[-1]:
                del self._nodes[node.name]

    def fragmentation(self, ends: float) -> Mapping[str, float]:
        """The share of what was free that a typical pod couldn't use, by resource, until a time."""
        seconds = ends - self._begins
        free, unusable = self._free.until(seconds), self._unusable.until(seconds)
        return {
            name: round(unusable.get(name, 0.0) / asking / free[name], 6)
            for name, asking in self._asking.items()
            if free.get(name, 0.0) > 0
        }

    def node_hours(self, ends: float) -> float:
        """How long nodes had a pod of a workload, all together, in hours."""
        return round(self._used.until(ends - self._begins).get("nodes", 0.0) / 3600, 6)

    def costs(self, ends: float) -> tuple[float, float] | None:
        """What the nodes in use cost, and what all nodes did, until a time; None unless all have a price."""
        if self._unpriced:
            return None
        areas = self._used.until(ends - self._begins)
        in_use, every = (areas.get(name, 0.0) / 3600 / NANO for name in ("price", "all"))
        return round(in_use, 6), round(every, 6)

    def _held(self, name: str) -> _Held:
        if (held := self._nodes.get(name)) is None:
            held = self._nodes[name] = _Held(None, [0] * len(self._names))
        return held

    def _pod(self, at: float, pod: Pod, sign: int) -> None:
        held, amounts = self._held(pod.node_name), pod.requests.amounts
        requested = held.requested
        for place, name in enumerate(self._names[:-1]):
            requested[place] += sign * amounts.get(name)
        requested[-1] += sign
        owner = next((each for each in pod.metadata.owner_references if each.controller), None)
        if owner is None or owner.kind not in ("DaemonSet", "Node"):
            held.workload += sign
        self._count(at, held)
        if held.node is None and not requested[-1]:
            del self._nodes[pod.node_name]

    def _count(self, at: float, held: _Held) -> None:
        """Bring the areas up to date with a node."""
        counted = ((), (), ()) if held.node is None else self._amounts(held.node, held)
        since = at - self._begins
        for area, before, after in zip(
            (self._free, self._unusable, self._used), held.counted, counted, strict=True
        ):
            if before != after:
                area.change(since, before, -1)
                area.change(since, after, 1)
        held.counted = counted

    def _amounts(self, node: Node, held: _Held) -> tuple[tuple[tuple[str, int], ...], ...]:
        """What is free on a node, what of it is unusable times the pods that ask for it, and its use."""
        allocatable = node_allocatable(node)
        free = tuple(
            [
                max(0, allocatable.get(name) - amount)
                for name, amount in zip(self._names, held.requested, strict=True)
            ]
        )
        if (refused := self._refused.get(free)) is None:
            if len(self._refused) >= _MOST_REMEMBERED:
                self._refused.clear()
            refused = self._refused[free] = self._refusals(free)
        names = self._names[:-1]
        price = self._price_of(node)
        if price is None:
            self._unpriced += 1
        is_used = held.workload > 0
        used = (("nodes", int(is_used)), ("price", (price or 0) * is_used), ("all", price or 0))
        return (
            tuple(zip(names, free, strict=False)),
            tuple([(name, free[place] * refused[place]) for place, name in enumerate(names)]),
            used,
        )

    def _refusals(self, free: tuple[int, ...]) -> tuple[int, ...]:
        refused = [0] * (len(self._names) - 1)
        for request, count in self._requests:
            if free[-1] < 1 or any(amount > free[place] for place, amount in request):
                for place, amount in request:
                    refused[place] += count if amount > 0 else 0
        return tuple(refused)
