"""A Policy document: predicates, priorities, extenders (kube-scheduler `config.Policy`)."""

from __future__ import annotations

import attrs

from kschedfw.config.extenders import ExtenderConfig


@attrs.frozen
class ServiceAffinity:
    """Pods of a service go onto nodes with equal values of these labels."""

    labels: tuple[str, ...] = ()


@attrs.frozen
class LabelsPresence:
    """Nodes must have all these labels, or, without `presence`, none of them."""

    labels: tuple[str, ...] = ()
    presence: bool = False


@attrs.frozen
class PredicateArgument:
    """What makes a predicate of one's own; exactly one of these."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


@attrs.frozen
class PredicatePolicy:
    """A predicate by its name; with an `argument` the name is free."""

    name: str = ""
    argument: PredicateArgument | None = None


@attrs.frozen
class ServiceAntiAffinity:
    """Pods of a service are spread over the values of this label."""

    label: str = ""


@attrs.frozen
class LabelPreference:
    """Nodes with this label are better, or, without `presence`, those that haven't got it."""

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
    """What makes a priority of one's own; exactly one of these."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


@attrs.frozen
class PriorityPolicy:
    """A priority by its name, and what its scores are multiplied with; with an `argument` the name is free."""

    name: str = ""
    weight: int = 0
    argument: PriorityArgument | None = None


@attrs.frozen
class Policy:
    """What to filter and score by.

    No predicates (None) means the defaults, while an empty list leaves only the mandatory ones; the same goes for
    priorities, of which none is mandatory. A `hard_pod_affinity_symmetric_weight` of 0 is an unset one.
    """

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[ExtenderConfig, ...] = ()
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False
