"""core/v1 Pod, as far as scheduling reads it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import attrs

from kschedfw.api.affinity import Affinity, Toleration, TopologySpreadConstraint
from kschedfw.api.containers import Container, ContainerStatus, ResourceRequirements, RestartPolicy
from kschedfw.api.evolver import evolver
from kschedfw.api.frozendict import EMPTY, FrozenDict, string_map
from kschedfw.api.meta import Condition, Named, ObjectMeta
from kschedfw.api.quantity import Quantity, quantities
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Int32
from kschedfw.api.volumes import Volume

if TYPE_CHECKING:
    from kschedfw.api.requests import PodRequests

DEFAULT_SCHEDULER_NAME = "default-scheduler"


class PodPhase(StrEnum):
    """The phase of a pod (core/v1 PodPhase)."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class PreemptionPolicy(StrEnum):
    """Tells whether a pod may preempt others (core/v1 PreemptionPolicy)."""

    PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
    NEVER = "Never"


@frozen
class PodSchedulingGate:
    """A gate that must be removed before the pod is scheduled (core/v1 PodSchedulingGate)."""

    name: str


@frozen
class PodSchedulingGroup:
    """The group that a pod is scheduled with: a PodGroup in its namespace (core/v1 PodSchedulingGroup)."""

    pod_group_name: str = ""


@frozen
class PodResourceClaim:
    """A claim that a pod uses: an existing one by name, or one that is made from a template (core/v1)."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


@frozen
class PodResourceClaimStatus:
    """The claim that was made for a pod from a template, or None if none was needed (core/v1)."""

    name: str = ""
    resource_claim_name: str | None = None


@frozen
class ContainerExtendedResourceRequest:
    """The request of a pod's special claim that serves a container's extended resource (core/v1)."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


@frozen
class PodExtendedResourceClaimStatus:
    """The special claim for a pod's extended resources (core/v1 PodExtendedResourceClaimStatus)."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


@frozen
class PodSpec:
    """The desired state of a pod (core/v1 PodSpec)."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    node_name: str = ""
    node_selector: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=string_map)
    affinity: Affinity = attrs.field(factory=Affinity)
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: PreemptionPolicy = PreemptionPolicy.PREEMPT_LOWER_PRIORITY
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    restart_policy: RestartPolicy = RestartPolicy.ALWAYS
    active_deadline_seconds: int | None = None
    host_network: bool = False
    host_users: bool | None = None
    runtime_class_name: str = ""
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None


_placed = evolver(PodSpec, "node_name")


@frozen
class PodTemplateSpec:
    """The template of a controller's pods (core/v1 PodTemplateSpec)."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)
    spec: PodSpec = attrs.field(factory=PodSpec)


@frozen
class PodCondition(Condition):
    """A condition of the pod, e.g. PodScheduled, with its reason (core/v1 PodCondition)."""


@frozen
class PodStatus:
    """The observed state of a pod (core/v1 PodStatus)."""

    phase: PodPhase = PodPhase.PENDING
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    resources: ResourceRequirements | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None

    @property
    def tells_of_resources(self) -> bool:
        """True if the status affects the pod's requests, as while a resize is under way."""
        return bool(
            self.container_statuses
            or self.init_container_statuses
            or self.allocated_resources
            or self.resources is not None
        )


HostPort: TypeAlias = tuple[str, str, int]
"""Address, protocol and number of a port of a node."""


@frozen(repr=False)
class Pod(Named):
    """A group of containers that run on the same node (core/v1 Pod).

    Pods are immutable, and equal if their contents are; `attrs.evolve` makes a changed copy.
    """

    spec: PodSpec = attrs.field(factory=PodSpec)
    status: PodStatus = attrs.field(factory=PodStatus)

    @property
    def node_name(self) -> str:
        """The node that the pod is bound to; empty while it is pending."""
        return self.spec.node_name

    def __repr__(self) -> str:
        """Return the pod's key and node, or the node to which it is nominated; `to_manifest` has the contents."""
        if self.node_name:
            return f"<Pod {self.key} on {self.node_name}>"
        nominated = self.status.nominated_node_name
        return f"<Pod {self.key} nominated to {nominated}>" if nominated else f"<Pod {self.key}>"

    @property
    def priority(self) -> int:
        """The pod's priority; 0 where it has none (component-helpers `PodPriority`)."""
        return self.spec.priority or 0

    @cached_property
    def requests(self) -> PodRequests:
        """The resources that the pod takes on a node; computed once, since every cycle reads them for every node."""
        # Imported here, since that module imports this one.
        from kschedfw.api.requests import pod_requests

        return pod_requests(self)

    @cached_property
    def storage(self) -> tuple[Volume, ...]:
        """The volumes that are claims, or storage outside of the node; most pods have none."""
        return tuple([volume for volume in self.spec.volumes if volume.is_storage])

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The ports that the pod takes from its node, containers and sidecars."""
        spec = self.spec
        containers = spec.containers
        if spec.init_containers:
            containers = (*containers, *(each for each in spec.init_containers if each.is_sidecar))
        return tuple(
            [
                (port.host_ip, port.protocol, port.host_port)
                for container in containers
                for port in container.ports
                if port.host_port > 0
            ]
        )

    @property
    def is_terminal(self) -> bool:
        """True if all containers have ended for good, so that the pod takes nothing on its node."""
        return self.status.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)

    @property
    def is_unready(self) -> bool:
        """True if its condition Ready isn't true.

        Without the condition, as in many manifests, a pod counts as ready.
        """
        return any(each.type == "Ready" and each.status != "True" for each in self.status.conditions)

    @property
    def is_terminating(self) -> bool:
        """True if the pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    def bound_to(
        self, node_name: str, *, metadata: ObjectMeta | None = None, status: PodStatus | None = None
    ) -> Pod:
        """Return a copy of the pod that is bound to the node."""
        evolve = _with_storage if self.spec.volumes else _with_parts
        return evolve(self, metadata or self.metadata, _placed(self.spec, node_name), status or self.status)

    def with_metadata(self, metadata: ObjectMeta) -> Pod:
        return _with_parts(self, metadata, self.spec, self.status)

    def with_status(self, status: PodStatus) -> Pod:
        if self.status.tells_of_resources or status.tells_of_resources:
            return attrs.evolve(self, status=status)
        return _with_parts(self, self.metadata, self.spec, status)

    def alike(self, metadata: ObjectMeta, spec: PodSpec, status: PodStatus) -> Pod:
        """Return another pod, whose spec has the same requests and ports as this one's.

        It keeps them as they were computed, unless its status affects its requests.
        """
        if status.tells_of_resources:
            return Pod(metadata, spec, status)
        return _with_parts(self, metadata, spec, status)


# Metadata, the node's name and most statuses change neither requests nor ports, so computed ones are kept.
_with_parts = evolver(Pod, "metadata", "spec", "status", computed=("requests", "host_ports"))
_with_storage = evolver(Pod, "metadata", "spec", "status", computed=("requests", "host_ports", "storage"))
