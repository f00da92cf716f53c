"""A pod's containers, with their resources and ports (core/v1)."""

from __future__ import annotations

from enum import StrEnum

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.quantity import Quantity, quantities
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Int32


class Protocol(StrEnum):
    """The transport protocol of a port."""

    TCP = "TCP"
    UDP = "UDP"
    SCTP = "SCTP"


class RestartPolicy(StrEnum):
    """The rule for restarting containers (core/v1 RestartPolicy)."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


@frozen
class ContainerPort:
    """A port of a container; only a `host_port` (0 means none) takes a port of the node."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = attrs.field(default="", metadata={"json": "hostIP"})
    protocol: Protocol = Protocol.TCP
    name: str = ""


@frozen
class ResourceRequirements:
    """Requests and limits. The loader fills requests that are missing from the limits, as the API server does."""

    requests: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    limits: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)


class RestartRuleAction(StrEnum):
    """The action of a restart rule (core/v1 ContainerRestartRuleAction)."""

    RESTART = "Restart"
    RESTART_ALL_CONTAINERS = "RestartAllContainers"


class ExitCodesOperator(StrEnum):
    """The comparison of an exit code with those of a rule (core/v1 ContainerRestartRuleOnExitCodesOperator)."""

    IN = "In"
    NOT_IN = "NotIn"


@frozen
class ContainerRestartRuleOnExitCodes:
    """The exit codes to which a restart rule applies."""

    operator: ExitCodesOperator
    values: tuple[int, ...] = ()


@frozen
class ContainerRestartRule:
    """A rule for containers that end with certain exit codes (core/v1 ContainerRestartRule)."""

    action: RestartRuleAction
    exit_codes: ContainerRestartRuleOnExitCodes


@frozen
class Container:
    """A container or init container; an init container with restart policy Always is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = attrs.field(factory=ResourceRequirements)
    restart_policy: RestartPolicy | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """True if this init container keeps running beside the main containers."""
        return self.restart_policy is RestartPolicy.ALWAYS


@frozen
class ContainerStateWaiting:
    """Why a container doesn't run yet (core/v1 ContainerStateWaiting)."""

    reason: str = ""
    message: str = ""


@frozen
class ContainerState:
    """The state of a container; only that it waits is read (core/v1 ContainerState)."""

    waiting: ContainerStateWaiting | None = None


@frozen
class ContainerStatus:
    """The resources that the kubelet has allocated to a container, and why it doesn't run (core/v1 ContainerStatus).

    The resources are read during an in-place resize.
    """

    name: str = ""
    state: ContainerState | None = None
    allocated_resources: FrozenDict[str, Quantity] = attrs.field(default=EMPTY, converter=quantities)
    resources: ResourceRequirements | None = None
