"""Validates a Policy: reports the errors of kube-scheduler v1.20, and names that the feature gates exclude."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

import attrs

from kschedfw.api import FieldError
from kschedfw.config import FeatureGates, conflict_errors
from kschedfw_legacy.gates import EVEN_PODS_SPREAD, RESOURCE_LIMITS
from kschedfw_legacy.policy.model import Policy, PredicateArgument, PriorityArgument, PriorityPolicy
from kschedfw_legacy.policy.tables import (
    EQUAL,
    EVEN_PODS,
    EVEN_PODS_PRIORITY,
    PREDICATE_ALIASES,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ALIASES,
    RESOURCE_LIMITS_PRIORITY,
)

_TOO_HEAVY = ((1 << 63) - 1) // 10
"""The lowest weight that is refused, since a sum of scores of 0–10 could overflow with it."""

_MOST_SYMMETRIC_WEIGHT = 100


def policy_errors(policy: Policy) -> Iterator[FieldError]:
    """Yield the errors of the policy that don't depend on feature gates."""
    known = (*PREDICATES, *PREDICATE_ALIASES)
    for index, predicate in enumerate(policy.predicates or ()):
        path = f"predicates[{index}]"
        yield from _argument_errors(path, predicate.argument, "predicate")
        if predicate.argument is None and predicate.name not in known:
            yield _not_found(path, "predicate", predicate.name, known)
    known = (*PRIORITIES, *PRIORITY_ALIASES, EQUAL)
    for index, priority in enumerate(policy.priorities or ()):
        path = f"priorities[{index}]"
        if not 0 < priority.weight < _TOO_HEAVY:
            why = f"priority {priority.name} should have a positive weight applied to it or it has overflown"
            yield FieldError.invalid(f"{path}.weight", priority.weight, why)
        yield from _argument_errors(path, priority.argument, "priority")
        if priority.argument is None and priority.name not in known:
            yield _not_found(path, "priority", priority.name, known)
    yield from _custom_priority_errors(policy.priorities or ())
    for index, extender in enumerate(policy.extenders):
        for error in extender.validate_rules():
            yield error.inside(f"extenders[{index}]")
    yield from conflict_errors(policy.extenders)
    weight = policy.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= _MOST_SYMMETRIC_WEIGHT:
        why = f"must be in the range 1-{_MOST_SYMMETRIC_WEIGHT}, or 0 for the default"
        yield FieldError.invalid("hardPodAffinitySymmetricWeight", weight, why)


def gated_errors(policy: Policy, gates: FeatureGates) -> Iterator[FieldError]:
    """Yield errors for names that don't exist with these feature gates."""
    gate_of = {
        EVEN_PODS: EVEN_PODS_SPREAD,
        EVEN_PODS_PRIORITY: EVEN_PODS_SPREAD,
        RESOURCE_LIMITS_PRIORITY: RESOURCE_LIMITS,
    }
    listed = (
        *(("predicates", index, each.name) for index, each in enumerate(policy.predicates or ())),
        *(("priorities", index, each.name) for index, each in enumerate(policy.priorities or ())),
    )
    for field, index, name in listed:
        gate = gate_of.get(name)
        if gate is not None and not gates.enabled(gate):
            yield FieldError.invalid(f"{field}[{index}].name", name, f"needs the feature gate {gate}")


def _argument_errors(
    path: str, argument: PredicateArgument | PriorityArgument | None, kind: str
) -> Iterator[FieldError]:
    if argument is None:
        return
    given = sum(getattr(argument, field.name) is not None for field in attrs.fields(type(argument)))
    if given != 1:
        yield FieldError(f"{path}.argument", f"exactly 1 {kind} argument is required, not {given}")


def _not_found(path: str, kind: str, name: str, known: Collection[str]) -> FieldError:
    similar = get_close_matches(name, known, n=1, cutoff=0.8)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return FieldError.invalid(f"{path}.name", name, f"{kind} type not found{hint}")


def _custom_priority_errors(priorities: Sequence[PriorityPolicy]) -> Iterator[FieldError]:
    """Yield errors for custom priorities of one kind with different weights.

    One plugin with one weight serves all of them.
    """
    first: dict[str, PriorityPolicy] = {}
    for index, priority in enumerate(priorities):
        match priority.argument:
            case PriorityArgument(label_preference=preference) if preference is not None:
                kind = "labelPreference"
            case PriorityArgument(service_anti_affinity=preference) if preference is not None:
                kind = "serviceAntiAffinity"
            case PriorityArgument(requested_to_capacity_ratio_arguments=ratio) if ratio is not None:
                kind = "requestedToCapacityRatioArguments"
            case _:
                continue
        earlier = first.setdefault(kind, priority)
        if earlier is priority:
            continue
        if kind == "requestedToCapacityRatioArguments":
            why = f"only one priority can have it, and {earlier.name} has"
            yield FieldError(f"priorities[{index}].argument.{kind}", why)
        elif earlier.weight != priority.weight:
            why = f"every {kind} must have the same weight, and {earlier.name} has {earlier.weight}"
            yield FieldError.invalid(f"priorities[{index}].weight", priority.weight, why)
