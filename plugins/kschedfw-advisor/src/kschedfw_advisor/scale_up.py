"""Scale-up: the number of new nodes of each group with which the pending pods get a place."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Final

import attrs

from kschedfw import FrozenDict, Node, Pod, Transaction, WhatIf
from kschedfw.api import PODS, node_allocatable
from kschedfw.explain import Cause
from kschedfw.what_if import Placed, Refused
from kschedfw_advisor.counting import smallest_count
from kschedfw_advisor.mixtures import Kind, Programme, Supply, is_installed
from kschedfw_advisor.new_nodes import add_nodes, daemons_of
from kschedfw_advisor.node_groups import NodeGroup
from kschedfw_advisor.refusal_causes import causes_by_pod
from kschedfw_advisor.settling import settle
from kschedfw_advisor.workloads import likeness

_MOST_MIXTURES: Final = 100
_MOST_PODS: Final = 2_000
"""The number of pods scheduled in a search of mixtures, which limits the number of mixtures that are tried."""
_HALVINGS: Final = 6
"""The number of times that the spare room is halved, beginning with half of all: down to 1.6 %."""


@attrs.frozen
class Purchase:
    """New nodes by group: their number, their cost, and the pods that they get a place."""

    new_nodes: Mapping[str, Collection[str]]
    """The names of the new nodes, by group."""
    price: Decimal | None
    placed: tuple[Placed, ...] = ()
    refused: tuple[Refused, ...] = ()
    causes: Mapping[str, tuple[Cause, ...]] = FrozenDict()
    """The causes that keep refused pods off nodes, by pod; only of the best purchase (`causes_by_pod`)."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the number of new nodes of each group."""
        return {name: len(nodes) for name, nodes in self.new_nodes.items()}

    @property
    def nodes(self) -> int:
        """Return the number of new nodes."""
        return sum(map(len, self.new_nodes.values()))


@attrs.frozen
class ScaleUpSearch:
    """The result of the search of mixtures: every mixture that places as many pods costs at least `bound`.

    Costs are prices, or numbers of nodes where a group has no price.
    """

    cost: float
    bound: float

    @property
    def gap(self) -> float:
        """Return the greatest part of its cost by which the answer could be cheaper, from 0 to 1."""
        return 0.0 if self.bound >= self.cost else (self.cost - self.bound) / self.cost


@attrs.frozen
class ScaleUp:
    """The answer: the best purchase, and the purchase of each group alone.

    `placed_without` are the pods that get a place without a new node, `waiting` the others. `alone` has a purchase for
    each group, by name, as if there were no other one, and `room` how many nodes each can have more. `search` is None
    where mixtures weren't searched: less than two groups help, or the extra `optimal` isn't installed.
    """

    placed_without: tuple[Placed, ...]
    waiting: tuple[Refused, ...]
    best: Purchase
    alone: Mapping[str, Purchase]
    room: Mapping[str, int]
    search: ScaleUpSearch | None = None


def plan_scale_up(
    what_if: WhatIf, groups: Sequence[NodeGroup], progress: Callable[[str, int, int], None] | None = None
) -> ScaleUp:
    """Find the new nodes that get most of the pending pods a place, at the lowest price or with the fewest nodes.

    Pods that have a place without new nodes get it first; the others are scheduled once the nodes are there, without
    preemption. The plans that are compared are each group alone, and the groups one after the other, each time the one
    that gets a pod a place most cheaply; where pods are left, also all groups at once, as gangs may need them. Of each
    group as many nodes are taken away again as can be without losing a pod. So the answer is one that works, and that
    works with no node less.

    With the extra `optimal`, mixtures are then searched by an integer programme: such as may get more pods a place, and
    then cheaper ones. Each is tried out by scheduling, until there is none or enough were tried.
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
        self._daemons = daemons_of(what_if.cluster)
        nodes = what_if.cluster.list(Node)
        sizes = {group.name: group.size(nodes) for group in groups}
        self._room = {group.name: max(0, group.max - sizes[group.name]) for group in groups}
        self._least = {group.name: max(0, group.min - sizes[group.name]) for group in groups}

    def plan(self) -> ScaleUp:
        with self._what_if.transaction() as trial:
            scheduling = None if self._progress is None else partial(self._progress, "scheduling")
            before = settle(self._what_if, trial, self._what_if.pending, progress=scheduling)
            waiting = [each.pod for each in before.refused]
            least = self._try(trial, self._least, waiting)
            offers = {}
            for number, name in enumerate(self._groups):
                self._tell(f"group {name}", number, len(self._groups))
                offers[name] = self._fewest(trial, least, name, waiting)
            self._tell("mixtures", len(self._groups), len(self._groups))
            # What each group adds to the minimum of all is also the first step of the mixture, so it isn't made again.
            plans = [*offers.values(), self._topped_up(trial, least, waiting, offers)]
            alone = {name: self._alone(trial, offer, name, waiting) for name, offer in offers.items()}
            if plans[-1].refused and len(self._groups) > 1:
                plans.append(self._jointly(trial, plans[-1], waiting))
            best = self._trimmed(trial, min(plans, key=self._order), waiting)
            search = None
            helpful = sum(bool(each.placed) for each in offers.values())
            if is_installed() and (helpful > 1 or len(best.counts) > 1):
                best, search = self._searched(trial, waiting, best, plans)
            best = self._with_causes(trial, best, waiting)
            return ScaleUp(before.placed, before.refused, best, alone, self._room, search)

    def _tell(self, label: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(label, done, total)

    def _order(self, purchase: Purchase) -> tuple[object, ...]:
        return -len(purchase.placed), self._cost(purchase), purchase.nodes

    def _cost(self, purchase: Purchase) -> Decimal:
        has_price = self._has_prices and purchase.price is not None
        return purchase.price if has_price and purchase.price is not None else Decimal(purchase.nodes)

    def _fewest(self, trial: Transaction, now: Purchase, name: str, waiting: Sequence[Pod]) -> Purchase:
        """Return the purchase with more nodes of one group: the smallest number that places as many pods as any."""
        tried: dict[int, Purchase] = {}
        there = now.counts.get(name, 0)

        def place(count: int) -> int:
            tried[count] = self._try(trial, {**now.counts, name: there + count}, waiting)
            return len(tried[count].placed)

        # Pods that have a place now may take one of the new nodes, so as many as are refused needn't be enough.
        most = min(self._room[name] - there, len(waiting)) if now.refused else 0
        if most <= 0:
            return now
        found = tried[smallest_count(place, most)]
        return found if len(found.placed) > len(now.placed) else now

    def _alone(self, trial: Transaction, offer: Purchase, name: str, waiting: Sequence[Pod]) -> Purchase:
        """Return what the group does by itself, without the nodes that other groups have at least."""
        if not any(count for other, count in self._least.items() if other != name):
            return offer
        own = self._try(trial, {name: self._least[name]}, waiting)
        return self._fewest(trial, own, name, waiting)

    def _with_causes(self, trial: Transaction, best: Purchase, waiting: Sequence[Pod]) -> Purchase:
        """Return the purchase with the causes that keep the pods that it leaves without a place off nodes."""
        if not best.refused:
            return best
        with trial.transaction() as nested:
            self._add_all(nested, best.counts)
            refused = settle(self._what_if, nested, waiting).refused
            return attrs.evolve(best, causes=causes_by_pod(nested, (each.pod for each in refused)))

    def _try(self, trial: Transaction, counts: Mapping[str, int], waiting: Sequence[Pod]) -> Purchase:
        with trial.transaction() as nested:
            nodes = self._add_all(nested, counts)
            settled = settle(self._what_if, nested, waiting)
        return Purchase(nodes, self._price(counts), settled.placed, settled.refused)

    def _add_all(self, nested: Transaction, counts: Mapping[str, int]) -> Mapping[str, Collection[str]]:
        """Add so many nodes of each group, and return their names by group."""
        # In the order of the groups, however the counts came about: which of equal nodes is drawn depends on it.
        return {
            name: frozenset(node.name for node in self._add(nested, name, counts[name]))
            for name in self._groups
            if counts.get(name)
        }

    def _add(self, nested: Transaction, name: str, count: int) -> Sequence[Node]:
        return add_nodes(nested, self._groups[name].template, count, self._daemons)

    def _price(self, counts: Mapping[str, int]) -> Decimal | None:
        prices = [(self._groups[name].price, count) for name, count in counts.items() if count]
        if any(price is None for price, _ in prices):
            return None
        return sum((price * count for price, count in prices if price is not None), Decimal(0))

    def _topped_up(
        self,
        trial: Transaction,
        now: Purchase,
        waiting: Sequence[Pod],
        offers: Mapping[str, Purchase] | None = None,
    ) -> Purchase:
        """Return the purchase with further groups, added one by one: each time the cheapest group for each pod placed.

        `offers` are what each group does first, if that is known.
        """
        while now.refused:
            if offers is None:
                offers = {name: self._fewest(trial, now, name, waiting) for name in self._groups}
            better = [each for each in offers.values() if len(each.placed) > len(now.placed)]
            if not better:
                break
            now, offers = min(better, key=lambda each: self._cost_of_a_pod(each, now)), None
        return now

    def _jointly(self, trial: Transaction, now: Purchase, waiting: Sequence[Pod]) -> Purchase:
        """Return the purchase with more nodes of all groups at once, if that gets more pods a place.

        A gang may need nodes of several groups, without which none of its pods is placed. Superfluous nodes
        are removed again, those of the most expensive groups first.
        """
        more = len(waiting)
        counts = {name: min(now.counts.get(name, 0) + more, room) for name, room in self._room.items()}
        found = self._try(trial, counts, waiting)
        if len(found.placed) <= len(now.placed):
            return now
        for name in sorted(counts, key=self._dearness):
            tried: dict[int, Purchase] = {}

            # The defaults bind this round's values.
            def place(count: int, name: str = name, tried: dict[int, Purchase] = tried) -> int:
                tried[count] = self._try(trial, {**counts, name: count}, waiting)
                return len(tried[count].placed)

            least = self._least[name]
            if counts[name] <= least:
                continue
            # `smallest_count` answers from 1 on, so the least number, which may be 0, is asked about first.
            enough = least if place(least) >= len(found.placed) else smallest_count(place, counts[name])
            counts[name], found = enough, tried[enough]
        return found

    def _dearness(self, name: str) -> Decimal:
        """Return the sort key that puts the most expensive group first."""
        return -(self._groups[name].price or Decimal(0))

    def _cost_of_a_pod(self, purchase: Purchase, now: Purchase) -> Decimal:
        return (self._cost(purchase) - self._cost(now)) / (len(purchase.placed) - len(now.placed))

    def _trimmed(self, trial: Transaction, purchase: Purchase, waiting: Sequence[Pod]) -> Purchase:
        """Return the purchase without superfluous nodes, those of the most expensive groups removed first."""
        for name in sorted(purchase.counts, key=self._dearness):
            while purchase.counts.get(name, 0) > self._least.get(name, 0):
                fewer = self._try(trial, {**purchase.counts, name: purchase.counts[name] - 1}, waiting)
                if len(fewer.placed) < len(purchase.placed):
                    break
                purchase = fewer
        return purchase

    # --- mixtures ---

    def _searched(
        self, trial: Transaction, waiting: Sequence[Pod], best: Purchase, plans: Sequence[Purchase]
    ) -> tuple[Purchase, ScaleUpSearch]:
        """Return the better one of this purchase and one that an integer programme finds, and the search's result.

        A mixture that the programme takes to suffice may not do, as a scheduler spreads pods rather than packs them.
        Then the next one is tried, which proves the optimum of small cases. Of large ones there are too many: for these
        mixtures with room to spare are tried, and what is missing is added.
        """
        programme = self._programme(trial, waiting, best, plans)
        best = self._with_more_pods(trial, waiting, best, programme)
        bound = 0.0
        failed: list[Mapping[str, int]] = []
        for _ in range(_tries(waiting)):
            if bound >= float(self._cost(best)):
                break
            found = programme.cheapest(len(best.refused), float(self._cost(best)), failed)
            bound = max(bound, found.bound)
            if found.counts is None:
                break
            tried = self._try(trial, found.counts, waiting)
            if len(tried.placed) < len(best.placed):
                failed.append(found.counts)
            best = min(best, tried, key=self._order)
        else:
            # Only if all tries are used up: when the loop is left early, the best is proven, or there is no cheaper
            # mixture.
            best = self._with_room_to_spare(trial, waiting, best, programme)
        best = self._trimmed(trial, best, waiting)
        cost = float(self._cost(best))
        return best, ScaleUpSearch(cost, min(bound, cost))

    def _with_more_pods(
        self, trial: Transaction, waiting: Sequence[Pod], best: Purchase, programme: Programme
    ) -> Purchase:
        """Return the better one of this purchase and one, at any price, that gets more pods a place.

        Mixtures are tried that leave as few pods as any could, then those that leave one more, and so on.
        """
        left = programme.fewest_left_over() if best.refused else 0
        failed: list[Mapping[str, int]] = []
        for _ in range(_tries(waiting)):
            if left >= len(best.refused):
                break
            found = programme.cheapest(left, math.inf, failed)
            if found.counts is None:
                left, failed = left + 1, []
                continue
            tried = self._try(trial, found.counts, waiting)
            if len(tried.refused) > left:
                failed.append(found.counts)
            best = min(best, tried, key=self._order)
        return best

    def _with_room_to_spare(
        self, trial: Transaction, waiting: Sequence[Pod], best: Purchase, programme: Programme
    ) -> Purchase:
        """The best purchase that is found by halving the part of the nodes' room that the programme leaves free."""
        too_little, enough = 0.0, 1.0
        for _ in range(_HALVINGS):
            spare = (too_little + enough) / 2
            found = programme.cheapest(len(best.refused), float(self._cost(best)), spare=spare)
            if found.counts is None:
                enough = spare
                continue
            tried = self._try(trial, found.counts, waiting)
            if len(tried.placed) < len(best.placed):
                too_little = spare
                tried = self._trimmed(trial, self._topped_up(trial, tried, waiting), waiting)
            else:
                enough = spare
            best = min(best, tried, key=self._order)
        return best

    def _programme(
        self, trial: Transaction, waiting: Sequence[Pod], best: Purchase, plans: Sequence[Purchase]
    ) -> Programme:
        """Return the programme for the pods that need a new node."""
        new = {node for nodes in best.new_nodes.values() for node in nodes}
        # Pods that have got a place on the cluster's own nodes need no room on new ones.
        settled = {each.pod.key for each in best.placed if each.node_name not in new}
        alike: dict[Hashable, list[Pod]] = {}
        for pod in waiting:
            if pod.key not in settled:
                alike.setdefault(likeness(pod), []).append(pod)
        # Where a plan has put a pod: a single new node may refuse one that needs others beside it, or take fewer of
        # those that spread over nodes.
        proven = {
            (each.pod.key, name)
            for plan in plans
            for each in plan.placed
            for name, nodes in plan.new_nodes.items()
            if each.node_name in nodes
        }
        takes: list[dict[str, int]] = [{} for _ in alike]
        supplies = []
        for name, group in self._groups.items():
            with trial.transaction() as nested:
                (node,) = self._add(nested, name, 1)
                room = _room(node, nested.pods_on(node.name))
                for counts, pods in zip(takes, alike.values(), strict=True):
                    counts[name] = _taken(nested, node, pods)
                    spec = pods[0].spec
                    needs_others = (
                        spec.topology_spread_constraints or spec.scheduling_group or not counts[name]
                    )
                    if needs_others and any((pod.key, name) in proven for pod in pods):
                        counts[name] = len(pods)
            cost = float(group.price) if self._has_prices and group.price is not None else 1.0
            # More nodes than pods are of no use.
            most = min(self._room[name], self._least[name] + len(waiting))
            supplies.append(Supply(name, cost, self._least[name], most, room))
        kinds = [
            Kind(len(pods), {**dict(pods[0].requests.demand.items()), PODS: 1}, counts)
            for pods, counts in zip(alike.values(), takes, strict=True)
        ]
        return Programme(kinds, supplies)


def _tries(waiting: Sequence[Pod]) -> int:
    """Return the number of mixtures to try."""
    return min(_MOST_MIXTURES, _MOST_PODS // len(waiting))


def _room(node: Node, pods: Sequence[Pod]) -> Mapping[str, int]:
    """Return the node's free amounts beside these pods, by resource."""
    offered = node_allocatable(node)
    used = [pod.requests.demand for pod in pods]
    resources = [name for name, _ in offered.items()]
    return {
        **{name: offered.get(name) - sum(each.get(name) for each in used) for name in resources},
        PODS: offered.get(PODS) - len(pods),
    }


def _taken(trial: Transaction, node: Node, pods: Sequence[Pod]) -> int:
    """Return the number of these pods that the node takes. They are alike and fit on no other node."""
    if len(pods) == 1:
        return int(node.name in trial.can_schedule(pods[0]).nodes)
    with trial.transaction() as nested:
        found = nested.schedule_as_many(pods[0], at_most=len(pods))
    taken = [*(each.node_name for each in found.placed), *(each.node_name for each in found.waiting)]
    return taken.count(node.name)
