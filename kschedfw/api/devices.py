"""Devices that drivers offer: classes of them, and the slices in which drivers publish them (resource.k8s.io/v1).

Semantics: KEP-4381 (structured parameters), KEP-4815 (partitionable devices), KEP-5055 (taints), KEP-5075 (consumable
capacity), KEP-5007 (binding conditions), KEP-5004 (extended resources).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.affinity import TolerationOperator
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import Named
from kschedfw.api.quantity import Quantity
from kschedfw.api.records import frozen
from kschedfw.api.selectors import NodeSelector

IMPLICIT_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Followed by a class's name, this is the extended resource for the class's devices."""


@frozen
class CELSelector:
    """A CEL expression over `device` that is true for the devices to select."""

    expression: str = ""


@frozen
class DeviceSelector:
    """Selects devices (resource.k8s.io/v1 DeviceSelector); CEL is the only form of it."""

    cel: CELSelector | None = None

    @property
    def expression(self) -> str:
        return "" if self.cel is None else self.cel.expression


@frozen
class OpaqueConfiguration:
    """Parameters that only the driver interprets."""

    driver: str = ""
    parameters: FrozenDict[str, object] = EMPTY


@frozen
class DeviceClassConfiguration:
    """Configuration that the driver gets for every device of a class (resource.k8s.io/v1)."""

    opaque: OpaqueConfiguration | None = None


@frozen
class DeviceClassSpec:
    """The selectors and configuration of a class (resource.k8s.io/v1 DeviceClassSpec)."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str = ""


@frozen
class DeviceClass(Named):
    """Devices that a request can name together (resource.k8s.io/v1 DeviceClass).

    With an extended resource name, pods get such devices by requesting that resource.
    """

    spec: DeviceClassSpec = attrs.field(factory=DeviceClassSpec)


@frozen
class DeviceAttribute:
    """A property of a device, of exactly one of four types (resource.k8s.io/v1 DeviceAttribute).

    The lists are of the gate DRAListTypeAttributes, which isn't modelled: a valid attribute has none.
    """

    int_value: int | None = attrs.field(default=None, metadata={"json": "int"})
    bool_value: bool | None = attrs.field(default=None, metadata={"json": "bool"})
    string_value: str | None = attrs.field(default=None, metadata={"json": "string"})
    version_value: str | None = attrs.field(default=None, metadata={"json": "version"})
    ints: tuple[int, ...] = ()
    bools: tuple[bool, ...] = ()
    strings: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def values(self) -> Mapping[str, bool | int | str]:
        """The values that are given, by their names in JSON; a valid attribute has one."""
        named = (self.bool_value, self.int_value, self.string_value, self.version_value)
        pairs = zip(("bool", "int", "string", "version"), named, strict=True)
        return {name: value for name, value in pairs if value is not None}


@frozen
class CapacityRange:
    """The amounts of a capacity that can be requested: from `min` in steps to `max`; None means no such limit."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


@frozen
class CapacityPolicy:
    """The policy for requests of a shared device's capacity (resource.k8s.io/v1 CapacityRequestPolicy)."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


@frozen
class DeviceCapacity:
    """An amount that a device has, such as of memory (resource.k8s.io/v1 DeviceCapacity)."""

    value: Quantity
    request_policy: CapacityPolicy | None = None


@frozen
class DeviceCounter:
    """An amount that devices of a pool share, or that one of them takes of it."""

    value: Quantity


@frozen
class CounterSet:
    """Counters that the devices of a pool share, such as the memory of a card that is cut into partitions."""

    name: str = ""
    counters: FrozenDict[str, DeviceCounter] = EMPTY


@frozen
class DeviceCounterConsumption:
    """The counters that a device takes from a counter set while it is allocated."""

    counter_set: str = ""
    counters: FrozenDict[str, DeviceCounter] = EMPTY


class DeviceTaintEffect(StrEnum):
    """The effect of a taint on claims that don't tolerate it; `NONE` only informs."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    NONE = "None"


@frozen
class DeviceTaint:
    """A mark on a device that repels claims without a matching toleration (resource.k8s.io/v1 DeviceTaint)."""

    key: str = ""
    value: str = ""
    effect: DeviceTaintEffect | None = None
    time_added: datetime | None = None


@frozen
class DeviceTaintSelector:
    """The devices that a DeviceTaintRule taints; a part that is None matches all (resource.k8s.io/v1)."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


@frozen
class DeviceTaintRuleSpec:
    """A taint and the devices that get it (resource.k8s.io/v1 DeviceTaintRuleSpec)."""

    taint: DeviceTaint = attrs.field(factory=DeviceTaint)
    device_selector: DeviceTaintSelector | None = None


@frozen
class DeviceTaintRule(Named):
    """Taints all devices that it selects, as if their driver had (resource.k8s.io/v1 DeviceTaintRule).

    Without a selector it taints every device, as in the scheduler's code, though the API's documentation says none.
    """

    spec: DeviceTaintRuleSpec = attrs.field(factory=DeviceTaintRuleSpec)

    def selects(self, driver: str, pool: str, device: str) -> bool:
        """Return whether the device of this driver, pool and name gets the taint."""
        selector = self.spec.device_selector
        return selector is None or (
            selector.driver in (None, driver)
            and selector.pool in (None, pool)
            and selector.device in (None, device)
        )


@frozen
class DeviceToleration:
    """Allows tainted devices for a request (resource.k8s.io/v1 DeviceToleration).

    Empty fields match everything. The loader fills in the operator.
    """

    key: str = ""
    operator: TolerationOperator | None = None
    value: str = ""
    effect: DeviceTaintEffect | None = None
    toleration_seconds: int | None = None

    def tolerates(self, taint: DeviceTaint) -> bool:
        if self.effect is not None and self.effect is not taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator is TolerationOperator.EXISTS or self.value == taint.value


@frozen
class Device:
    """A device of a node, or one that several nodes can reach (resource.k8s.io/v1 Device).

    `node_name`, `node_selector` and `all_nodes` only count if the slice has nodes per device.
    """

    name: str = ""
    attributes: FrozenDict[str, DeviceAttribute] = EMPTY
    capacity: FrozenDict[str, DeviceCapacity] = EMPTY
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


@frozen
class ResourcePool:
    """The pool of a slice. Only slices with the highest generation of their pool are valid."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


@frozen
class ResourceSliceSpec:
    """Devices of one driver and pool, or counters that they share, and which nodes reach them."""

    driver: str = ""
    pool: ResourcePool = attrs.field(factory=ResourcePool)
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool = False
    shared_counters: tuple[CounterSet, ...] = ()


@frozen
class ResourceSlice(Named):
    """Devices that a driver publishes (resource.k8s.io/v1 ResourceSlice)."""

    spec: ResourceSliceSpec = attrs.field(factory=ResourceSliceSpec)


def with_taint_rules(published: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    """Return the slice with the rules' taints on its devices; the same object if they select none of them.

    Semantics: kube-scheduler v1.37 `resourceslice/tracker`.
    """
    spec, changed = published.spec, False
    devices = []
    for device in spec.devices:
        taints = tuple(
            rule.spec.taint for rule in rules if rule.selects(spec.driver, spec.pool.name, device.name)
        )
        changed |= bool(taints)
        devices.append(attrs.evolve(device, taints=(*device.taints, *taints)) if taints else device)
    return attrs.evolve(published, spec=attrs.evolve(spec, devices=tuple(devices))) if changed else published
