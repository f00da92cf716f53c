"""The constraints on a pod's nodes: affinity, tolerations, spread constraints (core/v1)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from typing import Final

import attrs

from kschedfw.api.node import Taint, TaintEffect
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Int32
from kschedfw.api.selectors import LabelSelector, NodeSelector, PreferredSchedulingTerm, parse_canonical_int64

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
"""The fields of affinity in manifests."""


class TolerationOperator(StrEnum):
    """The comparison of a toleration with a taint (core/v1 TolerationOperator)."""

    EQUAL = "Equal"
    EXISTS = "Exists"
    GT = "Gt"
    LT = "Lt"

    @cached_property
    def compares_integers(self) -> bool:
        """True if it compares integers (KEP-5471), which needs the gate TaintTolerationComparisonOperators."""
        return self in (TolerationOperator.GT, TolerationOperator.LT)


@frozen
class Toleration:
    """Lets a pod onto nodes with matching taints (core/v1 Toleration).

    An empty key with `Exists` tolerates everything; an empty `effect` matches every effect. `Gt` and `Lt`
    compare the taint's value with the toleration's as integers in canonical form (KEP-5471).
    """

    key: str = ""
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: str = ""
    effect: TaintEffect | None = None
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        if self.effect is not None and self.effect is not taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case TolerationOperator.EXISTS:
                return True
            case TolerationOperator.EQUAL:
                return self.value == taint.value
        taint_value, own_value = parse_canonical_int64(taint.value), parse_canonical_int64(self.value)
        if taint_value is None or own_value is None:
            return False
        return taint_value > own_value if self.operator is TolerationOperator.GT else taint_value < own_value


@frozen(cache_hash=True)
class NodeAffinity:
    """The nodes that a pod requires, and those that it prefers (core/v1 NodeAffinity)."""

    required: NodeSelector | None = attrs.field(default=None, metadata={"json": REQUIRED})
    preferred: tuple[PreferredSchedulingTerm, ...] = attrs.field(default=(), metadata={"json": PREFERRED})


@frozen(cache_hash=True)
class PodAffinityTerm:
    """The pods whose nodes' topology values a pod must, or must not, share (core/v1 PodAffinityTerm).

    Pods count in the namespaces that `namespaces` lists or `namespace_selector` selects; where both are absent, in the
    namespace of the pod that has the term. The loader merges `match_label_keys` and `mismatch_label_keys` into
    `label_selector`.
    """

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


@frozen
class WeightedPodAffinityTerm:
    """A preferred term with its weight (1–100)."""

    weight: Int32
    pod_affinity_term: PodAffinityTerm


@frozen(cache_hash=True)
class PodAffinity:
    """Both core/v1 PodAffinity and PodAntiAffinity."""

    required: tuple[PodAffinityTerm, ...] = attrs.field(default=(), metadata={"json": REQUIRED})
    preferred: tuple[WeightedPodAffinityTerm, ...] = attrs.field(default=(), metadata={"json": PREFERRED})


@frozen
class Affinity:
    """All of a pod's node and pod (anti-)affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None

    @property
    def pod_terms(self) -> Iterator[PodAffinityTerm]:
        """All terms about other pods, those that the pod prefers without their weights."""
        for each in (self.pod_affinity, self.pod_anti_affinity):
            if each is not None:
                yield from each.required
                yield from (weighted.pod_affinity_term for weighted in each.preferred)


class UnsatisfiableAction(StrEnum):
    """The action for a pod that would break a spread constraint (core/v1 UnsatisfiableConstraintAction)."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class NodeInclusionPolicy(StrEnum):
    """Tells whether a spread constraint ignores nodes that the pod's affinity or taints rule out (core/v1)."""

    HONOR = "Honor"
    IGNORE = "Ignore"


@frozen(cache_hash=True)
class TopologySpreadConstraint:
    """The constraint on spreading matching pods over the values of a node label (core/v1 TopologySpreadConstraint)."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: UnsatisfiableAction = attrs.field(metadata={"required": "can not be empty"})
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: NodeInclusionPolicy = NodeInclusionPolicy.HONOR
    node_taints_policy: NodeInclusionPolicy = NodeInclusionPolicy.IGNORE
    match_label_keys: tuple[str, ...] = ()
