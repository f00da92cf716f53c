"""How many nodes of which groups get the pending pods a place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from functools import partial

import attrs

from kschedfw import Node, Pod, Transaction, WhatIf
from kschedfw.what_if import Placed, Refused
from kschedfw_advisor.counting import smallest_count
from kschedfw_advisor.new_nodes import add_nodes
from kschedfw_advisor.node_groups import NodeGroup
from kschedfw_advisor.settling import settle


@attrs.frozen
class Purchase:
    """New nodes, by group: how many, what they cost, and which pods they get a place."""

    new_nodes: Mapping[str, Collection[str]]
    """Their names, by group."""
    price: Decimal | None
    placed: tuple[Placed, ...] = ()
    refused: tuple[Refused, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        """How many new nodes there are of each group."""
        return {name: len(nodes) for name, nodes in self.new_nodes.items()}

    @property
    def nodes(self) -> int:
        """How many new nodes these are."""
        return sum(map(len, self.new_nodes.values()))


@attrs.frozen
class ScaleUp:
    """The answer: what is best, and what each group does alone.

    `placed_without` are the pods that get a place without a new node, `waiting` the others. `alone` has a purchase for
    each group, by name, and `room` how many nodes each can have more.
    """

    placed_without: tuple[Placed, ...]
    waiting: tuple[Refused, ...]
    best: Purchase
    alone: Mapping[str, Purchase]
    room: Mapping[str, int]


def plan_scale_up(
    what_if: WhatIf, groups: Sequence[NodeGroup], progress: Callable[[str, int, int], None] | None = None
) -> ScaleUp:
    """Find the new nodes that get most of the pending pods a place, at the lowest price or with the fewest nodes.

    Pods that have a place without new nodes get it first; the others are scheduled once the nodes are there, without
    preemption. The plans that are compared are each group alone, and the groups one after the other, each time the one
    that gets a pod a place most cheaply. Of each group as many nodes are taken away again as can be without losing a
    pod. So the answer is one that works, and that works with no node less; there may be a better mixture.
    """
    return _Planner(what_if, groups, progress).plan()


class _Planner:
    def __init__(
        self,
        what_if: WhatIf,
        groups: Sequence[NodeGroup],
        progress: Callable[[str, int, int], None] | None,
    ) -> None:
        self._what_if = what_if
        self._groups = {group.name: group for group in groups}
        self._progress = progress
        self._has_prices = all(group.price is not None for group in groups)
        nodes = what_if.cluster.list(Node)
        sizes = {group.name: group.size(nodes) for group in groups}
        self._room = {group.name: max(0, group.max - sizes[group.name]) for group in groups}
        self._least = {group.name: max(0, group.min - sizes[group.name]) for group in groups}

    def plan(self) -> ScaleUp:
        with self._what_if.transaction() as trial:
            scheduling = None if self._progress is None else partial(self._progress, "scheduling")
            before = settle(self._what_if, trial, self._what_if.pending, progress=scheduling)
            waiting = [each.pod for each in before.refused]
            alone = {}
            for number, name in enumerate(self._groups):
                self._tell(f"group {name}", number, len(self._groups))
                alone[name] = self._alone(trial, name, waiting)
            self._tell("mixtures", len(self._groups), len(self._groups))
            plans = [*alone.values(), self._mixture(trial, waiting, alone)]
            best = min(plans, key=self._order)
            return ScaleUp(
                before.placed, before.refused, self._trimmed(trial, best, waiting), alone, self._room
            )

    def _tell(self, label: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(label, done, total)

    def _order(self, purchase: Purchase) -> tuple[object, ...]:
        cost = purchase.price if self._has_prices else purchase.nodes
        return -len(purchase.placed), cost, purchase.nodes

    def _alone(self, trial: Transaction, name: str, waiting: Sequence[Pod]) -> Purchase:
        return self._fewest(trial, dict(self._least), name, waiting)

    def _fewest(
        self, trial: Transaction, base: Mapping[str, int], name: str, waiting: Sequence[Pod]
    ) -> Purchase:
        """The base with the smallest number of nodes of one group more that does as much as any number."""
        tried: dict[int, Purchase] = {}

        def place(count: int) -> int:
            tried[count] = self._try(trial, {**base, name: base.get(name, 0) + count}, waiting)
            return len(tried[count].placed)

        most = min(self._room[name] - base.get(name, 0), len(waiting))
        if most <= 0:
            return self._try(trial, base, waiting)
        found = tried[smallest_count(place, most)]
        without = self._try(trial, base, waiting)
        return found if len(found.placed) > len(without.placed) else without

    def _try(self, trial: Transaction, counts: Mapping[str, int], waiting: Sequence[Pod]) -> Purchase:
        with trial.transaction() as nested:
            nodes = {
                name: frozenset(node.name for node in self._add(nested, name, count))
                for name, count in counts.items()
                if count
            }
            settled = settle(self._what_if, nested, waiting)
        return Purchase(nodes, self._price(counts), settled.placed, settled.refused)

    def _add(self, nested: Transaction, name: str, count: int) -> Sequence[Node]:
        return add_nodes(nested, self._what_if.cluster, self._groups[name].template, count)

    def _price(self, counts: Mapping[str, int]) -> Decimal | None:
        prices = [(self._groups[name].price, count) for name, count in counts.items() if count]
        if any(price is None for price, _ in prices):
            return None
        return sum((price * count for price, count in prices if price is not None), Decimal(0))

    def _mixture(self, trial: Transaction, waiting: Sequence[Pod], alone: Mapping[str, Purchase]) -> Purchase:
        """The groups one after the other, each time the one whose nodes cost the least for a pod more."""
        now = self._try(trial, self._least, waiting)
        offers = alone
        while now.refused:
            better = [each for each in offers.values() if len(each.placed) > len(now.placed)]
            if not better:
                break
            now = min(better, key=lambda each: self._cost_of_a_pod(each, now))
            offers = {
                name: self._fewest(trial, now.counts, name, waiting) for name in self._groups if now.refused
            }
        return now

    def _cost_of_a_pod(self, purchase: Purchase, now: Purchase) -> Decimal:
        more = len(purchase.placed) - len(now.placed)
        if purchase.price is not None and now.price is not None and self._has_prices:
            return (purchase.price - now.price) / more
        return Decimal(purchase.nodes - now.nodes) / more

    def _trimmed(self, trial: Transaction, purchase: Purchase, waiting: Sequence[Pod]) -> Purchase:
        """The purchase without the nodes that it can do without, the most expensive groups first."""

        def dearness(name: str) -> Decimal:
            return -(self._groups[name].price or Decimal(0))

        for name in sorted(purchase.counts, key=dearness):
            while purchase.counts.get(name, 0) > self._least.get(name, 0):
                fewer = self._try(trial, {**purchase.counts, name: purchase.counts[name] - 1}, waiting)
                if len(fewer.placed) < len(purchase.placed):
                    break
                purchase = fewer
        return purchase
