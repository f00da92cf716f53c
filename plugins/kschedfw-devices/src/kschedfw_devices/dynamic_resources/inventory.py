"""The devices that drivers publish, by pool and by the nodes that reach them.

Only a pool's slices of the latest generation count, all others are stale. All values here are made once per
state of a slice, or of all slices, and shared by all pods and nodes.

Semantics: kube-scheduler v1.36 `structured` (KEP-4381).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from kschedfw import FrozenDict, Node, Quantity
from kschedfw.api import BoundedDict, CounterSet, Device, DeviceAttribute, NodeSelector, ResourceSlice
from kschedfw.plugins import any_matches, usable_terms
from kschedfw_devices import cel
from kschedfw_devices.dynamic_resources.capacity import with_fractions

if TYPE_CHECKING:
    # `cel` is used by its attributes: the compiler of selectors is loaded with the first one.
    from kschedfw_devices.cel import AttributeValue, Budget, DeviceInput
    from kschedfw_devices.dynamic_resources.candidates import Candidates

PoolId: TypeAlias = tuple[str, str]
"""Driver and name."""
DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, name of the pool, name of the device."""

_MOST_SELECTORS: Final = 256
"""The number of lists of selectors whose matches each slice remembers."""


@attrs.define(eq=False)
class SelectorFailure(Exception):
    """The failure of a selector to evaluate for a device. The caller adds the selector's owner.

    `selector` names it in messages, and since v1.37 the device.
    """

    selector: str
    why: str


@attrs.frozen(eq=False, slots=False)
class PublishedDevice:
    """A device with its driver and pool, and its form for selectors."""

    id: DeviceId
    device: Device
    slice: ResourceSlice

    @cached_property
    def input(self) -> DeviceInput:
        """The device in expressions. Raises ValueError for an attribute that claims to be a version and isn't."""
        return _input(self.device, self.id[0])

    def attribute(self, name: str) -> DeviceAttribute | None:
        """Return the attribute by its qualified name; None if the device doesn't have it.

        Attributes in the driver's own domain may be published without domain.
        """
        found = self.device.attributes.get(name)
        if found is None:
            domain, slash, bare = name.partition("/")
            if slash and domain == self.id[0]:
                found = self.device.attributes.get(bare)
        return found

    def is_reached_by(self, node: Node) -> bool:
        """Tell whether the device can be used on the node, if its slice has nodes per device."""
        device = self.device
        return not self.slice.spec.per_device_node_selection or reaches(
            node, device.node_name, device.node_selector, device.all_nodes
        )


class PublishedSlice:
    """One state of a ResourceSlice, with cached matches of selectors.

    With `fractions`, ranges of capacities may have fractions (DRAFractionalCapacityRange). With `advises` (v1.37),
    failures of selectors name the device and give advice.
    """

    def __init__(self, published: ResourceSlice, *, fractions: bool = False, advises: bool = False) -> None:
        self._advises = advises
        spec = published.spec
        self.slice = published
        self.pool: PoolId = spec.driver, spec.pool.name
        self.devices: Sequence[PublishedDevice] = tuple(
            PublishedDevice((*self.pool, each.name), with_fractions(each) if fractions else each, published)
            for each in spec.devices
        )
        self._matches: BoundedDict[tuple[str, ...], list[bool | SelectorFailure | None]] = BoundedDict(
            _MOST_SELECTORS
        )

    @property
    def counter_sets(self) -> Sequence[CounterSet]:
        """The counter sets for devices in other slices of the pool. Up to v1.36 every node sees them."""
        return self.slice.spec.shared_counters

    def matches(self, position: int, expressions: tuple[str, ...], budget: Budget) -> bool:
        """Tell whether all selectors are true for a device; evaluation stops at the first that is false.

        Raises:
            SelectorFailure: a selector before that can't be evaluated.
            OutOfStepsError: the budget is spent; nothing is cached for this device then.
        """
        if not expressions:
            return True
        known = self._matches.get(expressions)
        if known is None:
            known = self._matches[expressions] = [None] * len(self.devices)
        answer = known[position]
        if answer is None:
            # A failure is remembered, too: a selector fails for a device in the same way each time.
            answer = known[position] = _evaluated(
                self.devices[position], expressions, budget, advises=self._advises
            )
            budget.gets_further = True
        if isinstance(answer, SelectorFailure):
            raise answer
        return answer

    def devices_for(self, node: Node) -> Sequence[PublishedDevice]:
        """Return the slice's devices that the node can use, if the slice has nodes per device."""
        if not self.slice.spec.per_device_node_selection:
            return ()
        return [device for device in self.devices if device.is_reached_by(node)]

    def is_reached_by(self, node: Node) -> bool:
        """Tell whether the node can use the whole slice, or any of its devices."""
        spec = self.slice.spec
        if spec.per_device_node_selection:
            return bool(self.devices_for(node))
        return reaches(node, spec.node_name, spec.node_selector, spec.all_nodes)


Expressions: TypeAlias = tuple[str, ...]
Selectors: TypeAlias = tuple[Expressions, Expressions]
"""The selectors of a class, and those of a request."""

_ADVICE: Final = (
    "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for "
    "optional fields"
)


def _evaluated(
    device: PublishedDevice, expressions: tuple[str, ...], budget: Budget, *, advises: bool = False
) -> bool | SelectorFailure:
    for index, expression in enumerate(expressions):
        selector = cel.compile_selector(expression)
        if selector.compile_error is not None:
            return SelectorFailure(f"selector #{index}", f"CEL compile error: {selector.compile_error}")
        try:
            if not selector.matches(device.input, budget):
                return False
        except (cel.SelectorError, ValueError) as error:
            why, which = f"CEL runtime error: {error}", f"selector #{index}"
            if advises:
                which = f"{which} on device {'/'.join(device.id)}"
                why = f"{why}. {_ADVICE}" if "no such key:" in why else why
            return SelectorFailure(which, why)
    return True


def failing(device: PublishedDevice, expressions: Expressions, budget: Budget) -> tuple[int, str] | None:
    """Return the first selector that a device fails, with the error if it can't be evaluated; None if all match.

    Raises:
        OutOfStepsError: the budget is spent.
    """
    for index, expression in enumerate(expressions):
        answer = _evaluated(device, (expression,), budget)
        if answer is not True:
            return index, answer.why if isinstance(answer, SelectorFailure) else ""
    return None


def reaches(node: Node, node_name: str, selector: NodeSelector | None, all_nodes: bool) -> bool:
    """Tell whether a node name, node selector or "all nodes" includes the node."""
    if node_name:
        return node_name == node.name
    return all_nodes or (selector is not None and any_matches(usable_terms(selector), node))


@attrs.frozen(eq=False)
class Pool:
    """All slices of one generation of a pool, for all nodes."""

    id: PoolId
    slices: Sequence[PublishedSlice]

    def __str__(self) -> str:
        return "/".join(self.id)


@attrs.frozen(eq=False)
class NodePool:
    """A pool as one node sees it: the slices whose devices the node can use, by name.

    An incomplete pool has too few or too many slices, which happens while a driver publishes changes. An
    invalid pool (`is_invalid`) contradicts itself. Neither can be used.
    """

    pool: Pool
    slices: Sequence[PublishedSlice]
    is_incomplete: bool
    is_invalid: bool

    @classmethod
    def of(cls, pool: Pool, seen: Sequence[PublishedSlice], *, is_superseded: bool) -> NodePool | None:
        """Validate a pool by the slices that the node sees, as v1.36 does; by the others only if some are missing.

        Return None if the node only sees slices of an old generation.
        """
        slices = sorted((each for each in seen if not each.counter_sets), key=lambda each: each.slice.name)
        counts = {each.slice.spec.pool.resource_slice_count for each in seen}
        judged: Sequence[PublishedSlice] = seen
        if counts != {len(seen)}:
            if is_superseded:
                return None
            if counts != {len(pool.slices)}:
                return cls(pool, slices, is_incomplete=True, is_invalid=False)
            judged = pool.slices
        names = [device.device.name for each in slices for device in each.devices]
        has_twins = len(set(names)) < len(names)
        is_invalid = has_twins or _lacks_counters([each for each in judged if each.counter_sets], judged)
        return cls(pool, slices, is_incomplete=False, is_invalid=is_invalid)

    @property
    def can_be_used(self) -> bool:
        return not self.is_incomplete and not self.is_invalid

    @property
    def waits_for_binding(self) -> bool:
        """True if any of the pool's devices has to be prepared before the pod is bound."""
        devices = (device.device for each in self.slices for device in each.devices)
        return self.can_be_used and any(each.binding_conditions for each in devices)


def _lacks_counters(seen: Sequence[PublishedSlice], judged: Sequence[PublishedSlice]) -> bool:
    """Tell whether a device consumes counters that visible slices lack, or some counter set occurs twice."""
    sets = [each for slice_ in seen for each in slice_.counter_sets]
    there = {(each.name, counter) for each in sets for counter in each.counters} | {
        (each.name, "") for each in sets
    }
    consumed = {
        (consumption.counter_set, counter)
        for slice_ in judged
        for device in slice_.devices
        for consumption in device.device.consumes_counters
        for counter in ("", *consumption.counters)
    }
    return len({each.name for each in sets}) < len(sets) or not consumed <= there


@attrs.frozen(eq=False, slots=False)
class ReachablePools:
    """The pools that a node can use, in the order of the search. Nodes with the same pools share one reach.

    `number` counts the reaches of an inventory, from 0. `node` is one of its nodes, and stands for all of them.
    """

    number: int
    node: Node
    pools: Sequence[NodePool]
    candidates: dict[tuple[Selectors, FrozenDict[str, Quantity]], Candidates] = attrs.field(
        factory=dict, init=False
    )
    """See `candidates_of`."""

    @cached_property
    def device_count(self) -> int:
        """The number of devices in the pools, usable or not."""
        return sum(len(slice_.devices) for pool in self.pools for slice_ in pool.slices)

    @cached_property
    def pool_of(self) -> Mapping[PoolId, Pool]:
        return {each.pool.id: each.pool for each in self.pools}

    @cached_property
    def is_invalid(self) -> bool:
        """True if any of the pools is invalid."""
        return any(each.is_invalid for each in self.pools)


@attrs.frozen(eq=False)
class _SharedSlices:
    """The slices that are for the same nodes, by a selector or all of them."""

    selector: NodeSelector | None
    all_nodes: bool
    slices: Sequence[PublishedSlice]


class Inventory:
    """All ResourceSlices, in one state of the cluster.

    With `counters_by_node` (v1.37) slices with counters are for the nodes that they name; else for all.
    """

    def __init__(self, slices: Sequence[PublishedSlice], *, counters_by_node: bool = False) -> None:
        generations: dict[PoolId, dict[int, list[PublishedSlice]]] = defaultdict(lambda: defaultdict(list))
        self._local: dict[str, list[PublishedSlice]] = defaultdict(list)
        self._by_device: list[PublishedSlice] = []
        shared: dict[tuple[NodeSelector | None, bool], list[PublishedSlice]] = defaultdict(list)
        self._counters: dict[PoolId, list[PublishedSlice]] = defaultdict(list)
        for each in slices:
            spec = each.slice.spec
            generations[each.pool][spec.pool.generation].append(each)
            if each.counter_sets and not counters_by_node:
                self._counters[each.pool].append(each)
            elif spec.node_name:
                self._local[spec.node_name].append(each)
            elif spec.per_device_node_selection:
                self._by_device.append(each)
            else:
                shared[spec.node_selector, spec.all_nodes].append(each)
        self._groups = [_SharedSlices(*nodes, slices) for nodes, slices in shared.items()]
        self._pools: Mapping[PoolId, Mapping[int, Pool]] = {
            id_: {generation: Pool(id_, members) for generation, members in of_pool.items()}
            for id_, of_pool in generations.items()
        }
        everywhere = (self._pool_of(id_, ()) for id_ in self._counters)
        # A pool for all nodes without usable devices can't help a search; it can only make one fail.
        self._in_the_way = [each for each in everywhere if each is not None and not each.can_be_used]
        self._on_node: dict[str, tuple[Node, ReachablePools]] = {}
        self._reaches: dict[tuple[object, ...], ReachablePools] = {}
        self._by_number: list[ReachablePools] = []
        self._numbering = threading.Lock()
        self._reaching: dict[PoolId, list[int]] = defaultdict(list)

    def slices_on(self, node: Node) -> Iterator[PublishedSlice]:
        """Yield every slice that the node can use as a whole or in part, including stale ones."""
        yield from self._slices_of(node)
        for group in self._groups:
            if reaches(node, "", group.selector, group.all_nodes):
                yield from group.slices

    def _slices_of(self, node: Node) -> Iterator[PublishedSlice]:
        """Yield the slices that name the node, or have nodes per device."""
        for each in (*self._local.get(node.name, ()), *self._by_device):
            if each.is_reached_by(node):
                yield each

    def on(self, node: Node) -> ReachablePools:
        """Return the pools and devices that the node can use."""
        known = self._on_node.get(node.name)
        # An update of a node is another object, so identity tells whether its labels may have changed.
        if known is None or known[0] is not node:
            known = self._on_node[node.name] = node, self._find(node)
        return known[1]

    def reaching(self, pool: PoolId) -> Sequence[int]:
        """Return the numbers of the reaches with devices of the pool, among those made so far."""
        return self._reaching.get(pool, ())

    @property
    def size(self) -> int:
        """The number of distinct reaches made so far."""
        return len(self._by_number)

    def reach(self, number: int) -> ReachablePools:
        return self._by_number[number]

    def _find(self, node: Node) -> ReachablePools:
        own = tuple(self._slices_of(node))
        shared = tuple(group for group in self._groups if reaches(node, "", group.selector, group.all_nodes))
        # Slices hash by identity. Where each device has nodes of its own, the devices in reach must be the same, too.
        key = (*own, *shared, *(device.id for each in own for device in each.devices_for(node)))
        # Filters are called from several threads, and kept answers are found by a reach's number: no two may get one.
        with self._numbering:
            known = self._reaches.get(key)
            if known is None:
                slices = (*own, *(each for group in shared for each in group.slices))
                known = self._reaches[key] = ReachablePools(
                    len(self._by_number), node, self._pools_of(slices)
                )
                self._by_number.append(known)
                for id_ in {each.pool for each in slices}:
                    self._reaching[id_].append(known.number)
        return known

    def _pools_of(self, reached: Sequence[PublishedSlice]) -> Sequence[NodePool]:
        by_pool: dict[PoolId, list[PublishedSlice]] = defaultdict(list)
        for each in reached:
            by_pool[each.pool].append(each)
        seen = (self._pool_of(id_, slices) for id_, slices in by_pool.items())
        found = [each for each in seen if each is not None]
        found += [each for each in self._in_the_way if each.pool.id not in by_pool]
        # Pools of which no device has to be prepared come first, as in v1.36.
        found.sort(key=lambda each: (each.waits_for_binding, each.pool.id))
        return found

    def _pool_of(self, id_: PoolId, reached: Sequence[PublishedSlice]) -> NodePool | None:
        """Return a pool for nodes that reach these of its slices, and see those with counters."""
        seen = [*reached, *self._counters.get(id_, ())]
        generations = self._pools[id_]
        # Which generation is the latest is judged by the slices for this node alone, as in v1.36.
        latest = max(each.slice.spec.pool.generation for each in seen)
        current = [each for each in seen if each.slice.spec.pool.generation == latest]
        return NodePool.of(generations[latest], current, is_superseded=latest < max(generations))


def _input(device: Device, driver: str) -> DeviceInput:
    return cel.DeviceInput(
        driver,
        {name: _value(attribute) for name, attribute in device.attributes.items()},
        {name: capacity.value for name, capacity in device.capacity.items()},
        device.allow_multiple_allocations,
    )


def _value(attribute: DeviceAttribute) -> AttributeValue:
    for value in (attribute.bool_value, attribute.int_value, attribute.string_value):
        if value is not None:
            return value
    return cel.Version.parse(attribute.version_value or "")
