"""Rules for labels, selectors, affinity terms, tolerations and spread constraints (core/v1 validation)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kschedfw.api.affinity import (
    PREFERRED,
    REQUIRED,
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TolerationOperator,
    TopologySpreadConstraint,
    UnsatisfiableAction,
)
from kschedfw.api.field_errors import FieldError
from kschedfw.api.names import (
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)
from kschedfw.api.node import TaintEffect
from kschedfw.api.selectors import (
    LABEL_OPERATORS,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
    parse_canonical_int64,
    parse_int64,
)

Errors = Iterator[FieldError]

_SETS: Final = (Operator.IN, Operator.NOT_IN)
_EXISTENCE: Final = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_NO_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_VALUES: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_NOT_POSITIVE: Final = "must be greater than zero"
_NO_KEY: Final = "can not be empty"


def text_errors(text: str, path: str, problems: Callable[[str], Sequence[str]]) -> Errors:
    """Yield an error of the text at the path for each of its problems; see `kschedfw.api.names`."""
    for why in problems(text):
        yield FieldError.invalid(path, text, why)


def qualified_name(key: str, path: str) -> Errors:
    return text_errors(key, path, qualified_name_problems)


def labels(given: Mapping[str, str], path: str) -> Errors:
    for key, value in given.items():
        yield from qualified_name(key, path)
        yield from text_errors(value, path, label_value_problems)


def not_a_label_operator(path: str, operator: str) -> FieldError:
    supported = ", ".join(f'"{each}"' for each in LABEL_OPERATORS)
    return FieldError.invalid(
        path, operator, f"not a valid selector operator; label selectors support {supported}"
    )


def label_selector(selector: LabelSelector | None, path: str) -> Errors:
    if selector is None:
        return
    yield from labels(selector.match_labels, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.match_expressions):
        at = f"{path}.matchExpressions[{index}]"
        yield from qualified_name(requirement.key, f"{at}.key")
        if requirement.operator in _SETS and not requirement.values:
            yield FieldError.required(f"{at}.values", _NO_VALUES)
        elif requirement.operator in _EXISTENCE and requirement.values:
            yield FieldError.forbidden(f"{at}.values", _VALUES)
        elif requirement.operator in (Operator.GT, Operator.LT):
            yield not_a_label_operator(f"{at}.operator", requirement.operator)
        for place, value in enumerate(requirement.values):
            yield from text_errors(value, f"{at}.values[{place}]", label_value_problems)


def node_selector(selector: NodeSelector, path: str) -> Errors:
    if not selector.node_selector_terms:
        yield FieldError.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        yield from node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]")


def node_selector_term(term: NodeSelectorTerm, path: str) -> Errors:
    for index, requirement in enumerate(term.match_expressions):
        yield from _node_label(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.match_fields):
        yield from _node_field(requirement, f"{path}.matchFields[{index}]")


def _node_label(requirement: Requirement, path: str) -> Errors:
    yield from qualified_name(requirement.key, f"{path}.key")
    values, at = requirement.values, f"{path}.values"
    if requirement.operator in _SETS:
        if not values:
            yield FieldError.required(at, _NO_VALUES)
    elif requirement.operator in _EXISTENCE:
        if values:
            yield FieldError.forbidden(at, _VALUES)
    elif len(values) != 1:
        yield FieldError.required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")
    elif parse_int64(values[0]) is None:
        yield FieldError.invalid(
            f"{at}[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer"
        )


def _node_field(requirement: Requirement, path: str) -> Errors:
    if requirement.operator not in _SETS:
        yield FieldError.invalid(f"{path}.operator", requirement.operator, "not a valid selector operator")
    elif len(requirement.values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield FieldError.required(f"{path}.values", why)
    if requirement.key != "metadata.name":
        yield FieldError.invalid(f"{path}.key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values):
        yield from text_errors(value, f"{path}.values[{index}]", subdomain_problems)


def affinity(given: Affinity, path: str) -> Errors:
    nodes = given.node_affinity
    if nodes is not None:
        at = f"{path}.nodeAffinity"
        if nodes.required is not None:
            yield from node_selector(nodes.required, f"{at}.{REQUIRED}")
        for index, each in enumerate(nodes.preferred):
            place = f"{at}.{PREFERRED}[{index}]"
            yield from _weight(each.weight, place)
            yield from node_selector_term(each.preference, f"{place}.preference")
    yield from _pod_affinity(given.pod_affinity, f"{path}.podAffinity")
    yield from _pod_affinity(given.pod_anti_affinity, f"{path}.podAntiAffinity")


def _pod_affinity(given: PodAffinity | None, path: str) -> Errors:
    if given is None:
        return
    for index, term in enumerate(given.required):
        yield from _affinity_term(term, f"{path}.{REQUIRED}[{index}]")
    for index, each in enumerate(given.preferred):
        place = f"{path}.{PREFERRED}[{index}]"
        yield from _weight(each.weight, place)
        yield from _affinity_term(each.pod_affinity_term, f"{place}.podAffinityTerm")


def _weight(weight: int, path: str) -> Errors:
    if not 1 <= weight <= 100:
        yield FieldError.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _affinity_term(term: PodAffinityTerm, path: str) -> Errors:
    yield from label_selector(term.label_selector, f"{path}.labelSelector")
    yield from label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    for index, name in enumerate(term.namespaces):
        yield from text_errors(name, f"{path}.namespaces[{index}]", label_problems)
    has_selector = term.label_selector is not None
    yield from _label_keys(term.match_label_keys, has_selector, f"{path}.matchLabelKeys")
    yield from _label_keys(term.mismatch_label_keys, has_selector, f"{path}.mismatchLabelKeys")
    for index, key in enumerate(term.match_label_keys):
        if key in term.mismatch_label_keys:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield FieldError.invalid(f"{path}.matchLabelKeys[{index}]", key, why)
    yield from _topology_key(term.topology_key, path)


def _label_keys(keys: tuple[str, ...], has_selector: bool, path: str) -> Errors:
    if keys and not has_selector:
        yield FieldError.forbidden(path, "must not be specified when labelSelector is not set")
    for index, key in enumerate(keys):
        yield from qualified_name(key, f"{path}[{index}]")


def _topology_key(key: str, path: str) -> Errors:
    if not key:
        yield FieldError.required(f"{path}.topologyKey", _NO_KEY)
    else:
        yield from qualified_name(key, f"{path}.topologyKey")


def spread_constraints(given: Iterable[TopologySpreadConstraint], path: str) -> Errors:
    seen: set[tuple[str, UnsatisfiableAction]] = set()
    for index, constraint in enumerate(given):
        at = f"{path}[{index}]"
        if constraint.max_skew <= 0:
            yield FieldError.invalid(f"{at}.maxSkew", constraint.max_skew, _NOT_POSITIVE)
        # Kubernetes doesn't ask that it is a label's key, as it does in terms of affinity.
        if not constraint.topology_key:
            yield FieldError.required(f"{at}.topologyKey", _NO_KEY)
        action, domains = constraint.when_unsatisfiable, constraint.min_domains
        if domains is not None:
            if domains <= 0:
                yield FieldError.invalid(f"{at}.minDomains", domains, _NOT_POSITIVE)
            if action is not UnsatisfiableAction.DO_NOT_SCHEDULE:
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield FieldError.invalid(f"{at}.minDomains", domains, why)
        if (pair := (constraint.topology_key, action)) in seen:
            yield FieldError.duplicate(
                f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}"
            )
        seen.add(pair)
        yield from label_selector(constraint.label_selector, f"{at}.labelSelector")
        has_selector = constraint.label_selector is not None
        yield from _label_keys(constraint.match_label_keys, has_selector, f"{at}.matchLabelKeys")


def tolerations(given: Iterable[Toleration], path: str) -> Errors:
    for index, toleration in enumerate(given):
        at, kind = f"{path}[{index}]", toleration.operator
        if toleration.key:
            yield from qualified_name(toleration.key, f"{at}.key")
        elif kind is not TolerationOperator.EXISTS:
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield FieldError.invalid(f"{at}.operator", kind, why)
        if toleration.toleration_seconds is not None and toleration.effect is not TaintEffect.NO_EXECUTE:
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield FieldError.invalid(f"{at}.effect", toleration.effect or "", why)
        # With these two, a wrong value is an error at the path of the operator, as in Kubernetes.
        if kind is TolerationOperator.EXISTS:
            if toleration.value:
                yield FieldError.invalid(
                    f"{at}.operator", toleration.value, "value must be empty when `operator` is 'Exists'"
                )
        elif kind is TolerationOperator.EQUAL:
            yield from text_errors(toleration.value, f"{at}.operator", label_value_problems)
        elif parse_canonical_int64(toleration.value) is None:
            why = "must be a valid decimal integer in canonical form"
            yield FieldError.invalid(f"{at}.value", toleration.value, why)
