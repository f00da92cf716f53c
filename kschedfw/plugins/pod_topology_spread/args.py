"""The arguments of PodTopologySpread and their rules."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import FieldError
from kschedfw.api import TopologySpreadConstraint, UnsatisfiableAction
from kschedfw.api.names import qualified_name_problems
from kschedfw.api.records import frozen

SYSTEM = "System"
LIST = "List"

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(3, HOSTNAME_LABEL, UnsatisfiableAction.SCHEDULE_ANYWAY),
    TopologySpreadConstraint(5, ZONE_LABEL, UnsatisfiableAction.SCHEDULE_ANYWAY),
)


@frozen
class PodTopologySpreadArgs:
    """Constraints for pods that have none of their own (kubescheduler.config.k8s.io PodTopologySpreadArgs).

    `default_constraints` have no label selector: it is deduced from the Services and controllers that the pod
    belongs to. They count only with `defaulting_type` List; System stands for kube-scheduler's own defaults.

    `complete_hints`, which kube-scheduler doesn't have, wakes refused pods by every event that may help them.
    kube-scheduler ignores some of these events, because it tries all pods again after five minutes. In a
    simulation nothing else would wake them.
    """

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM
    complete_hints: bool = attrs.field(
        default=False, metadata={"beyond_kube_scheduler": "for simulations, which have no flush"}
    )

    def validate(self) -> Iterator[FieldError]:
        if self.defaulting_type not in (SYSTEM, LIST):
            yield FieldError.unsupported("defaultingType", self.defaulting_type, (SYSTEM, LIST))
        elif self.defaulting_type == SYSTEM and self.default_constraints:
            yield FieldError.invalid("defaultingType", SYSTEM, "when .defaultConstraints are not empty")
        seen: set[tuple[str, UnsatisfiableAction]] = set()
        for index, constraint in enumerate(self.default_constraints):
            path = f"defaultConstraints[{index}]"
            yield from _constraint_errors(path, constraint)
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                yield FieldError.duplicate(path, f"{{{constraint.topology_key}, {pair[1]}}}")
            seen.add(pair)


def _constraint_errors(path: str, constraint: TopologySpreadConstraint) -> Iterator[FieldError]:
    if constraint.max_skew <= 0:
        yield FieldError.invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield FieldError.required(f"{path}.topologyKey", "can not be empty")
    for text in qualified_name_problems(constraint.topology_key) if constraint.topology_key else ():
        yield FieldError.invalid(f"{path}.topologyKey", constraint.topology_key, text)
    if constraint.label_selector is not None:
        yield FieldError.forbidden(
            f"{path}.labelSelector", "constraint must not define a selector, as they deduced for each pod"
        )
