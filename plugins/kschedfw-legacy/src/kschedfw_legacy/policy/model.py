"""A Policy document: predicates, priorities, extenders (kube-scheduler `config.Policy`)."""

from __future__ import annotations

import attrs

from kschedfw.config import ExtenderConfig


@attrs.frozen
class ServiceAffinity:
    """Pods of a service must be on nodes with equal values of these labels."""

    labels: tuple[str, ...] = ()


@attrs.frozen
class LabelsPresence:
    """Nodes must have all these labels, or, without `presence`, none of them."""

    labels: tuple[str, ...] = ()
    presence: bool = False


@attrs.frozen
class PredicateArgument:
    """The argument of a custom predicate; exactly one field is set."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


@attrs.frozen
class PredicatePolicy:
    """A predicate by its name. With an `argument` it is a custom predicate, which may have any name."""

    name: str = ""
    argument: PredicateArgument | None = None


@attrs.frozen
class ServiceAntiAffinity:
    """Pods of a service are spread over the values of this label."""

    label: str = ""


@attrs.frozen
class LabelPreference:
    """Nodes with this label are preferred; without `presence`, nodes without it."""

    label: str = ""
    presence: bool = False


@attrs.frozen
class ShapePoint:
    utilization: int = 0
    score: int = 0


@attrs.frozen
class ResourceWeight:
    name: str = ""
    weight: int = 0


@attrs.frozen
class RequestedToCapacityRatioArguments:
    """A score (0–10) by utilization (0–100), over weighted resources."""

    shape: tuple[ShapePoint, ...] = ()
    resources: tuple[ResourceWeight, ...] = ()


@attrs.frozen
class PriorityArgument:
    """The argument of a custom priority; exactly one field is set."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


@attrs.frozen
class PriorityPolicy:
    """A priority by its name, with its weight. With an `argument` it is a custom priority, which may have any name."""

    name: str = ""
    weight: int = 0
    argument: PriorityArgument | None = None


@attrs.frozen
class Policy:
    """The predicates, priorities and extenders of a scheduler.

    None for `predicates` means the defaults. An empty list leaves only the mandatory predicates. The same holds for
    priorities, none of which is mandatory. 0 for `hard_pod_affinity_symmetric_weight` means that it isn't set.
    """

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[ExtenderConfig, ...] = ()
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False
