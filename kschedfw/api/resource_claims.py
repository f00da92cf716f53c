"""Claims for devices: requests and allocations (resource.k8s.io/v1).

Semantics: KEP-4381 (structured parameters), KEP-4816 (alternatives), KEP-5018 (admin access), KEP-5075 (consumable
capacity), KEP-4817 (status of devices).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.devices import DeviceSelector, DeviceToleration, OpaqueConfiguration
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import Condition, Named, ObjectMeta
from kschedfw.api.quantity import Quantity, quantities
from kschedfw.api.records import frozen
from kschedfw.api.selectors import NodeSelector

MAX_CLAIM_DEVICES: Final = 32
"""The most devices that a claim can have."""
MAX_RESERVATIONS: Final = 256
"""The most pods that a claim can be reserved for."""
CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim while it has devices."""
EXTENDED_RESOURCE_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""Marks a claim that the scheduler has made for a pod's extended resources."""
POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a ResourceClaim that names the pod's claim for which it was made."""


class DeviceAllocationMode(StrEnum):
    """The rule for the number of devices of a request."""

    EXACT_COUNT = "ExactCount"
    ALL = "All"


@frozen
class CapacityRequirements:
    """The required amounts of a device's capacities."""

    requests: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)


@frozen
class ExactDeviceRequest:
    """Devices of one class (resource.k8s.io/v1 ExactDeviceRequest). The loader fills in mode and count."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: DeviceAllocationMode | None = None
    count: int = 0
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


@frozen
class DeviceSubRequest:
    """One of several alternatives to satisfy a request (resource.k8s.io/v1 DeviceSubRequest)."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: DeviceAllocationMode | None = None
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None

    @property
    def admin_access(self) -> bool:
        """Always false: alternatives have no admin access."""
        return False


@frozen
class DeviceRequest:
    """Either `exactly` these devices, or the first of the alternatives that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


@frozen
class DeviceConstraint:
    """An attribute that devices must have in common, or must not.

    It holds for the named requests, or for all if none is named.
    """

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


@frozen
class DeviceClaimConfiguration:
    """Configuration that the driver gets for the devices of the named requests, or of all if none is named."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


@frozen
class DeviceClaim:
    """The requests of a claim, with constraints and configuration (resource.k8s.io/v1 DeviceClaim)."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


@frozen
class ResourceClaimSpec:
    """The spec of a claim (resource.k8s.io/v1 ResourceClaimSpec)."""

    devices: DeviceClaim = attrs.field(factory=DeviceClaim)


class ConfigSource(StrEnum):
    """The origin of a driver's parameters: a DeviceClass or a claim."""

    FROM_CLASS = "FromClass"
    FROM_CLAIM = "FromClaim"


@frozen
class DeviceAllocationConfiguration:
    """Parameters for the driver of allocated devices, from a class or from the claim."""

    source: ConfigSource
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


@frozen
class DeviceRequestAllocationResult:
    """A device that was allocated for a request; `request` is `name` or `name/alternative`.

    With a `share_id` it is a share of a device, with `consumed_capacity`; others may have shares of the device,
    too.
    """

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str = attrs.field(default="", metadata={"json": "shareID"})
    consumed_capacity: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)


@frozen
class DeviceAllocationResult:
    """The allocated devices, and the configuration that their drivers get."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


@frozen
class AllocationResult:
    """The devices of a claim, and the nodes that can use them; all nodes without a selector (resource.k8s.io/v1)."""

    devices: DeviceAllocationResult = attrs.field(factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


@frozen
class ConsumerReference:
    """A consumer of an allocated claim: nearly always a pod (resource.k8s.io/v1 ResourceClaimConsumerReference)."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


@frozen
class DeviceCondition(Condition):
    """A condition of an allocated device, set by its driver."""


@frozen
class AllocatedDeviceStatus:
    """The status of an allocated device (resource.k8s.io/v1 AllocatedDeviceStatus)."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = attrs.field(default="", metadata={"json": "shareID"})
    conditions: tuple[DeviceCondition, ...] = ()

    def is_true(self, condition: str) -> bool:
        found = self.condition(condition)
        return found is not None and found.status == "True"

    def condition(self, type: str) -> DeviceCondition | None:
        return next((each for each in self.conditions if each.type == type), None)


@frozen
class ResourceClaimStatus:
    """The allocation of a claim, if any, and its consumers (resource.k8s.io/v1 ResourceClaimStatus)."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


@frozen
class ResourceClaim(Named):
    """A pod's, or several pods', request for devices (resource.k8s.io/v1 ResourceClaim)."""

    spec: ResourceClaimSpec = attrs.field(factory=ResourceClaimSpec)
    status: ResourceClaimStatus = attrs.field(factory=ResourceClaimStatus)

    def is_owned_by(self, pod: Named) -> bool:
        """Tell whether the claim was made for this pod."""
        owner = self.metadata.controller
        return self.namespace == pod.namespace and owner is not None and owner.uid == pod.uid

    def is_reserved_for(self, pod: Named) -> bool:
        return any(each.uid == pod.uid for each in self.status.reserved_for)


@frozen
class ResourceClaimTemplateSpec:
    """The metadata and spec of claims made from a template."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: ResourceClaimSpec = attrs.field(factory=ResourceClaimSpec)


@frozen
class ResourceClaimTemplate(Named):
    """A template; each pod that refers to it gets a claim of its own (resource.k8s.io/v1 ResourceClaimTemplate)."""

    spec: ResourceClaimTemplateSpec = attrs.field(factory=ResourceClaimTemplateSpec)
