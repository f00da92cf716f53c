"""Scale-down: nodes that can be removed, and nodes that a cheaper one can replace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Final, TypeAlias

import attrs

from kschedfw import Node, Pod, Transaction, WhatIf
from kschedfw.api import CPU, MEMORY, Finding, node_allocatable
from kschedfw.cluster import belongs_to_its_node
from kschedfw_advisor.budgets import Budgets
from kschedfw_advisor.counting import smallest_count
from kschedfw_advisor.drain_plan import DrainPlan, Move, plan_drain
from kschedfw_advisor.new_nodes import add_nodes, daemons_of
from kschedfw_advisor.node_groups import NodeGroup, node_shapes, price_of

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"

MOST_REPLACED: Final = 50
"""The number of nodes that one new node may replace: a node rarely takes the pods of more."""


_HARMLESS: Final = (Move.MOVES, Move.LOST)
"""Ends of pods that don't forbid a removal. A pod is lost only if it is declared safe to evict (`_held_back`)."""

_Rank: TypeAlias = tuple[Decimal, bool, int]
"""The rank of a removal: its savings, whether it needs no new node, and its number of nodes. Greater is better."""


@attrs.frozen
class Reason:
    """The reason why a node stays: this pod, or the node itself if `pod` is None."""

    pod: Pod | None
    finding: Finding

    @property
    def text(self) -> str:
        """Return the reason in words, without the pod's name."""
        return str(self.finding)

    def __str__(self) -> str:
        return self.text if self.pod is None else f"{self.pod.key}: {self.text}"


@attrs.frozen
class Price:
    """The price of several nodes: `at_least`, the sum of the known prices, and how many nodes have none.

    Nodes without a price cost something, too, so the sum is a bound unless all have one.
    """

    at_least: Decimal
    unpriced: int = 0

    @property
    def exact(self) -> Decimal | None:
        """Return the price; None if that of a node is missing."""
        return None if self.unpriced else self.at_least

    def less(self, amount: Decimal) -> Price:
        """Return the price without an amount that has to be paid for it."""
        return attrs.evolve(self, at_least=self.at_least - amount)


@attrs.frozen
class Removal:
    """Nodes that are drained together and then removed.

    `added` is the node that comes first, of the group `group`; empty if none is needed. `savings` are what the nodes
    cost less what `added` costs.
    """

    drain: DrainPlan
    savings: Price
    group: str = ""
    added: str = ""

    @property
    def saved(self) -> Decimal | None:
        """Return the savings; None where one of the nodes has no price."""
        return self.savings.exact


@attrs.frozen
class ScaleDown:
    """The nodes that can go, one removal after the other, and the nodes that stay, each with the reasons.

    `price` is what all nodes cost before. `has_prices` tells whether any node, or a group, has a price.
    """

    removals: tuple[Removal, ...]
    kept: Mapping[str, tuple[Reason, ...]]
    price: Price
    has_prices: bool = False

    @property
    def cost(self) -> Decimal | None:
        """Return what all nodes cost before; None unless all have prices."""
        return self.price.exact

    @property
    def gone(self) -> int:
        """Return the number of removed nodes."""
        return sum(len(each.drain.nodes) for each in self.removals)

    @property
    def added(self) -> int:
        """Return the number of new nodes that replace them."""
        return sum(bool(each.added) for each in self.removals)

    @property
    def saved(self) -> Decimal | None:
        """Return the savings of all removals; None if prices are missing."""
        return self.savings.exact

    @property
    def savings(self) -> Price:
        """Return the savings of all removals, at least."""
        each = [removal.savings for removal in self.removals]
        return Price(sum((one.at_least for one in each), Decimal(0)), sum(one.unpriced for one in each))


def plan_scale_down(
    what_if: WhatIf,
    groups: Sequence[NodeGroup] = (),
    *,
    delete_emptydir_data: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> ScaleDown:
    """Find nodes that can be removed, such that each of their pods finds another place, without preemption.

    Nodes are removed as long as one can go, each time as many at once as are found. Where nodes have prices, a new node
    may come first that costs less than the nodes whose pods it takes: of the `groups`, or, without any, like those of
    the cluster. Each time the removal is chosen that saves the most. All of it is done in `what_if`, with every pod
    scheduled again, and stays done. A larger set may exist, but no single node of those that stay could go, too.

    Raises:
        NodeGroupError: the price in a node's annotation is none.
    """
    return _Planner(what_if, groups, delete_emptydir_data, progress).plan()


class _Planner:
    def __init__(
        self,
        what_if: WhatIf,
        groups: Sequence[NodeGroup],
        delete_emptydir_data: bool,
        progress: Callable[[str, int, int], None] | None,
    ) -> None:
        self._what_if = what_if
        self._groups = groups
        self._progress = progress
        self._held_back = partial(_held_back, delete_emptydir_data=delete_emptydir_data)
        self._daemons = daemons_of(what_if.cluster)
        self._budgets = Budgets(what_if.cluster)
        self._nodes = {node.name: node for node in what_if.nodes}
        self._prices = {name: price_of(node, groups) for name, node in self._nodes.items()}
        self._new_nodes: Counter[str] = Counter()

    def plan(self) -> ScaleDown:
        removals: list[Removal] = []
        while (removal := self._next()) is not None:
            removals.append(removal)
        with self._what_if.transaction() as trial:
            kept = {name: self._reasons(trial, name) for name in self._left()}
        prices = (*self._prices.values(), *(group.price for group in self._groups))
        has_prices = any(price is not None for price in prices)
        return ScaleDown(tuple(removals), kept, self._price(list(self._nodes)), has_prices)

    def _left(self) -> list[str]:
        """Return the original nodes that haven't been removed."""
        return [name for name in self._nodes if self._what_if.cluster.get(Node, name) is not None]

    def _price(self, names: Sequence[str]) -> Price:
        """Return the total price of the nodes."""
        prices = [price for name in names if (price := self._prices[name]) is not None]
        return Price(sum(prices, Decimal(0)), len(names) - len(prices))

    def _tell(self, label: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(label, done, total)

    # --- removing ---

    def _next(self) -> Removal | None:
        """Remove the set of nodes that saves the most, and return it; None if no node can go.

        A new node is added before, if the removals that it allows save more than it costs.
        """
        best: tuple[_Rank, NodeGroup | None, Sequence[str]] | None = None
        offers = self._offers()
        for number, group in enumerate((None, *offers)):
            self._tell("trying new nodes", number, len(offers))
            with self._what_if.transaction() as trial:
                removal = self._attempt(trial, group)
            if removal is not None:
                worth, count = self._worth(removal.drain.nodes)
                rank = worth - _cost(group), group is None, count
                if best is None or rank > best[0]:
                    best = rank, group, removal.drain.nodes
        if best is None:
            return None
        _, group, names = best
        with self._what_if.transaction() as trial:
            # Done again with the known set, since the trials were undone to compare them.
            removal = self._attempt(trial, group, names)
            trial.commit()
        if group is not None:
            self._new_nodes[group.name] += 1
        return removal

    def _attempt(
        self, trial: Transaction, group: NodeGroup | None, names: Sequence[str] = ()
    ) -> Removal | None:
        """Add a node of the group, if one is given, and remove the nodes; by default the largest set that is found.

        None if no node can go, or if those that can cost no more than the new one.
        """
        # Without a new node any node may go. With one, the dearest are tried, since it has to pay.
        if group is None:
            return self._remove(trial, names or self._largest_set(trial, self._left()))
        (node,) = add_nodes(trial, group.template, 1, self._daemons)
        removal = self._remove(trial, names or self._largest_set(trial, self._dearest(trial)))
        if removal is None or removal.saved is None or removal.saved <= _cost(group):
            return None
        savings = removal.savings.less(_cost(group))
        return attrs.evolve(removal, savings=savings, group=group.name, added=node.name)

    def _remove(self, trial: Transaction, names: Sequence[str]) -> Removal | None:
        """Drain the nodes and delete them; None, and no change, if that can't be done without harm."""
        if not names:
            return None
        with trial.transaction() as nested:
            drain = self._drain(nested, names)
            if drain.blocked or any(step.move not in _HARMLESS for step in drain.steps):
                return None
            nested.delete(*drain.staying, *drain.ending, *(self._nodes[name] for name in names))
            nested.commit()
        return Removal(drain, self._price(names))

    def _drain(self, trial: Transaction, names: Sequence[str]) -> DrainPlan:
        # Preemption could violate a budget, and none is needed where every pod finds a place without.
        return plan_drain(
            self._what_if, trial, names, budgets=self._budgets, held_back=self._held_back, preempt=False
        )

    def _can_go(self, trial: Transaction, names: Sequence[str]) -> bool:
        with trial.transaction() as nested:
            return self._remove(nested, names) is not None

    def _largest_set(self, trial: Transaction, names: Sequence[str]) -> Sequence[str]:
        """Return nodes that can be removed together: the more valuable set of two orders of trying."""
        removable = [name for name in names if not self._objections(trial, name)]
        share = {name: self._share(trial, name) for name in removable}
        alone = []
        for number, name in enumerate(removable):
            self._tell("emptying nodes", number, len(removable))
            if self._can_go(trial, [name]):
                alone.append(name)
        # A node that can't go by itself can't go with others.
        emptiest = sorted(alone, key=share.__getitem__)
        dearest = sorted(emptiest, key=lambda name: -(self._prices[name] or 0))
        orders = [emptiest] if emptiest == dearest else [emptiest, dearest]
        return max((self._set_in_order(trial, order) for order in orders), key=self._worth)

    def _worth(self, names: Sequence[str]) -> tuple[Decimal, int]:
        return sum((self._prices[name] or Decimal(0) for name in names), Decimal(0)), len(names)

    def _set_in_order(self, trial: Transaction, order: Sequence[str]) -> Sequence[str]:
        """Return nodes that can be removed at once: the longest prefix of the order, and then of what else can go.

        It is assumed that a prefix can't go where a shorter one can't. That saves all but a few attempts.
        """
        spare = list(self._within_bounds(order))
        first = self._longest_beginning(trial, [], spare)
        more = []
        with trial.transaction() as nested:
            self._remove(nested, first)
            for name in order:
                if name not in first and [*self._within_bounds([name])] and self._remove(nested, [name]):
                    more.append(name)
        return self._longest_beginning(trial, first, more)

    def _longest_beginning(
        self, trial: Transaction, base: Sequence[str], order: Sequence[str]
    ) -> Sequence[str]:
        def fails(count: int) -> bool:
            # One more than there are counts as a failure, so that the answer may be all of them.
            return count > len(order) or not self._can_go(trial, [*base, *order[:count]])

        return [*base, *order[: smallest_count(fails, len(order) + 1) - 1]]

    def _within_bounds(self, order: Sequence[str]) -> Iterator[str]:
        """Return the nodes that can be removed, one after the other, before a group has its least size."""
        # Groups are counted as the cluster is now: earlier removals and new nodes are done.
        nodes = self._what_if.nodes
        spare = {group.name: group.size(nodes) - group.min for group in self._groups}
        for name in order:
            own = [group.name for group in self._groups if group.has(self._nodes[name])]
            if all(spare[group] > 0 for group in own):
                spare.update((group, spare[group] - 1) for group in own)
                yield name

    # --- new nodes ---

    def _offers(self) -> Sequence[NodeGroup]:
        """Return the groups that have a price and room for another node."""
        nodes = self._what_if.nodes
        shapes = node_shapes(self._nodes.values())
        groups = self._groups or [attrs.evolve(each, price=self._prices[each.name]) for each in shapes]
        return [group for group in groups if group.price is not None and self._size(group, nodes) < group.max]

    def _size(self, group: NodeGroup, nodes: Sequence[Node]) -> int:
        # The selector doesn't find new nodes whose template lacks its labels.
        unseen = 0 if group.has(group.template) else self._new_nodes[group.name]
        return group.size(nodes) + unseen

    def _dearest(self, trial: Transaction) -> Sequence[str]:
        priced = [name for name in self._left() if self._prices[name] is not None]
        priced.sort(key=lambda name: (-(self._prices[name] or 0), self._share(trial, name)))
        return priced[:MOST_REPLACED]

    # --- what stays ---

    def _share(self, trial: Transaction, name: str) -> float:
        """Return the share of CPU or of memory, whichever is greater, that the node's pods request, without daemons."""
        room = node_allocatable(self._nodes[name])
        pods = [pod.requests.demand for pod in trial.pods_on(name) if not belongs_to_its_node(pod)]
        return max(
            sum(each.get(resource) for each in pods) / (room.get(resource) or 1) for resource in (CPU, MEMORY)
        )

    def _objections(self, trial: Transaction, name: str) -> Sequence[Reason]:
        """Return the reasons why the node must not be drained, even if its pods find places."""
        node = self._nodes[name]
        reasons = [Reason(None, found) for found in self._of_node(node)]
        for pod in trial.pods_on(name):
            if belongs_to_its_node(pod) or pod.is_terminating:
                continue
            if (found := self._held_back(pod)) is not None:
                reasons.append(Reason(pod, found))
        return reasons

    def _of_node(self, node: Node) -> Iterator[Finding]:
        if node.annotations.get(SCALE_DOWN_DISABLED) == "true":
            yield _annotated(SCALE_DOWN_DISABLED, "true")
        if CONTROL_PLANE in node.labels or any(taint.key == CONTROL_PLANE for taint in node.spec.taints):
            yield Finding.of("control-plane", "it is of the control plane")

    def _reasons(self, trial: Transaction, name: str) -> tuple[Reason, ...]:
        """Return the reasons why the node stays, for the report."""
        if reasons := self._objections(trial, name):
            return tuple(reasons)
        if not [*self._within_bounds([name])]:
            least = tuple(
                f"{group.name} has its min of {group.min}"
                for group in self._groups
                if group.has(self._nodes[name])
            )
            found = Finding.of("group-minimum", "its group must not shrink: {groups}", groups=least)
            return (Reason(None, found),)
        with trial.transaction() as nested:
            drain = self._drain(nested, [name])
        blocked = (Reason(each.pod, each.finding) for each in drain.blocked)
        troubled = (Reason(each.pod, each.finding) for each in drain.steps if each.move not in _HARMLESS)
        return *blocked, *troubled


def _cost(group: NodeGroup | None) -> Decimal:
    return Decimal(0) if group is None or group.price is None else group.price


def _annotated(annotation: str, value: str) -> Finding:
    text = "its annotation {annotation} is {value}"
    return Finding.of("annotation", text, annotation=annotation, value=value)


def _held_back(pod: Pod, *, delete_emptydir_data: bool) -> Finding | None:
    """Return why cluster-autoscaler wouldn't evict the pod to save a node; None if it would."""
    safe = pod.annotations.get(SAFE_TO_EVICT)
    if safe == "true":
        return None
    if safe == "false":
        return _annotated(SAFE_TO_EVICT, "false")
    if pod.metadata.controller is None:
        return Finding.of("no-controller", "has no controller: nothing would make it anew")
    spared = pod.annotations.get(SAFE_VOLUMES, "").split(",")
    local = tuple(
        f"{volume.name} ({'hostPath' if volume.host_path is not None else 'emptyDir'})"
        for volume in pod.spec.volumes
        if volume.name not in spared
        and (
            volume.host_path is not None
            or (
                volume.empty_dir is not None
                and volume.empty_dir.medium != "Memory"
                and not delete_emptydir_data
            )
        )
    )
    text = "has data on its node, in volumes {volumes}"
    return Finding.of("local-data", text, volumes=local) if local else None
