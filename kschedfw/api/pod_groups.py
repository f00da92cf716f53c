"""Groups of pods that are scheduled together (scheduling.k8s.io PodGroup, v1alpha2, v1alpha3 and v1beta1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import attrs

from kschedfw.api.field_errors import FieldError, FieldErrors
from kschedfw.api.meta import Condition, Named
from kschedfw.api.pod import Pod, PreemptionPolicy
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Int32, read_enumeration

POD_GROUP_SCHEDULED = "PodGroupScheduled"
"""The type of the condition that the scheduler writes, up to v1.36."""

POD_GROUP_INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""The type of the condition that the scheduler writes since v1.37."""


class DisruptionMode(StrEnum):
    """Tells whether members of the group may be evicted one by one (scheduling.k8s.io DisruptionMode)."""

    POD = "Pod"
    POD_GROUP = "PodGroup"


DisruptionModeOrUnion: TypeAlias = Annotated[DisruptionMode, "or a union"]
"""In v1alpha2 the text `Pod` or `PodGroup`; since then an object with the one field `single` or `all`."""

_UNION: Final = {"single": DisruptionMode.POD, "all": DisruptionMode.POD_GROUP}


def read_disruption_mode(value: object, type_: object) -> DisruptionMode:
    """Return the mode of a text or an object, for cattrs.

    Raises:
        FieldErrors: it is neither.
    """
    if isinstance(value, Mapping):
        given = [name for name in _UNION if value.get(name) is not None]
        if len(given) != 1:
            raise FieldErrors(
                [FieldError.invalid("", dict(value), "must have exactly one of `single` and `all`")]
            )
        return _UNION[given[0]]
    mode = read_enumeration(value, DisruptionMode)
    assert isinstance(mode, DisruptionMode), type_
    return mode


@frozen
class BasicSchedulingPolicy:
    """Each member may run without the others (scheduling.k8s.io BasicSchedulingPolicy)."""


@frozen
class GangSchedulingPolicy:
    """Members run only if at least `min_count` of them can (scheduling.k8s.io GangSchedulingPolicy)."""

    min_count: Int32 = 0


@frozen
class PodGroupSchedulingPolicy:
    """Exactly one of the two policies is set (scheduling.k8s.io PodGroupSchedulingPolicy)."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


@frozen
class TopologyConstraint:
    """All members run on nodes with the same value of the label `key` (scheduling.k8s.io TopologyConstraint)."""

    key: str = ""


@frozen
class PodGroupSchedulingConstraints:
    """At most one topology constraint (scheduling.k8s.io PodGroupSchedulingConstraints)."""

    topology: tuple[TopologyConstraint, ...] = ()


@frozen
class PodGroupResourceClaim:
    """A claim for devices that the group's members share (scheduling.k8s.io PodGroupResourceClaim)."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


@frozen
class PodGroupSpec:
    """The desired state of a group; immutable in the API (scheduling.k8s.io PodGroupSpec).

    The parent and the claims are without effect here, as in a cluster whose gates CompositePodGroup and
    DRAWorkloadResourceClaims are off.
    """

    parent_composite_pod_group_name: str = ""
    scheduling_policy: PodGroupSchedulingPolicy = attrs.field(factory=PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: DisruptionModeOrUnion = DisruptionMode.POD
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: PreemptionPolicy = PreemptionPolicy.PREEMPT_LOWER_PRIORITY


@frozen
class PodGroupCondition(Condition):
    """A condition of the group (meta/v1 Condition). `last_transition_time` is when its status last changed."""

    observed_generation: int = 0
    last_transition_time: datetime | None = None


@frozen
class PodGroupStatus:
    """The observed state of a group (scheduling.k8s.io PodGroupStatus)."""

    conditions: tuple[PodGroupCondition, ...] = ()


@frozen
class PodGroup(Named):
    """A group of pods that are scheduled together; its members name it in `spec.schedulingGroup`."""

    spec: PodGroupSpec = attrs.field(factory=PodGroupSpec)
    status: PodGroupStatus = attrs.field(factory=PodGroupStatus)

    @property
    def min_count(self) -> int | None:
        """The number of members that a gang needs; None for a basic group."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def priority(self) -> int:
        """The group's priority; 0 if it has none."""
        return self.spec.priority or 0

    @property
    def topology_key(self) -> str:
        """The node label whose value all members share; empty without such a constraint."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    def with_condition(self, condition: PodGroupCondition) -> PodGroup:
        """Return a copy with the condition in place of the one of its type."""
        others = tuple(each for each in self.status.conditions if each.type != condition.type)
        return attrs.evolve(self, status=PodGroupStatus((*others, condition)))


def group_key(pod: Pod) -> str:
    """Return the key (`namespace/name`) of the pod's group; empty if it is in none."""
    group = pod.spec.scheduling_group
    return f"{pod.namespace}/{group.pod_group_name}" if group is not None and group.pod_group_name else ""


def pod_group_errors(group: PodGroup) -> Iterator[FieldError]:
    """Yield what the API server refuses in a group."""
    policy = group.spec.scheduling_policy
    if (policy.basic is None) == (policy.gang is None):
        why = "exactly one of `basic` and `gang` is required"
        yield FieldError.required("spec.schedulingPolicy", why)
    if policy.gang is not None and policy.gang.min_count < 1:
        yield FieldError.invalid(
            "spec.schedulingPolicy.gang.minCount",
            policy.gang.min_count,
            "must be greater than or equal to 1",
        )
    constraints = group.spec.scheduling_constraints
    if constraints is None:
        return
    if len(constraints.topology) > 1:
        path = "spec.schedulingConstraints.topology"
        yield FieldError(path, f"Too many: {len(constraints.topology)}: must have at most 1 item")
    for index, each in enumerate(constraints.topology):
        if not each.key:
            yield FieldError.required(f"spec.schedulingConstraints.topology[{index}].key", "")
