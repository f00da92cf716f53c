"""Compiled node selector terms, and the errors in terms that a validating API server would have refused.

kube-scheduler treats a term that doesn't compile as matching no node, even where a literal reading would match:
`NotIn` with a value that can't be a label matches nothing. Semantics: component-helpers `nodeaffinity` and
apimachinery `labels.NewRequirement`.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import attrs
import numpy as np

from kschedfw import ByDomain, FieldError, FrozenDict, IntArray, Node, NodeTable, Pod
from kschedfw.api import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    PreferredSchedulingTerm,
    Requirement,
    requirement_text,
)
from kschedfw.api.names import label_value_problems, qualified_name_problems
from kschedfw.api.records import frozen
from kschedfw.api.selectors import parse_int64
from kschedfw.framework.diagnosis import Evidence, EvidenceValue
from kschedfw.framework.nodes.arrays import Mask
from kschedfw.framework.nodes.encoded_column import NO_VALUE, EncodedColumn

NODE_AFFINITY: Final = "node-affinity"
NODE_AFFINITY_INVALID: Final = "node-affinity-invalid"
"""Codes of evidence."""

_FIELD_OPERATORS = (Operator.IN, Operator.NOT_IN)


def in_any_order(affinity: NodeAffinity | None) -> Hashable:
    """Return a signature of an affinity's terms, the same for any order of terms, requirements and values."""
    if affinity is None:
        return None
    required = () if affinity.required is None else affinity.required.node_selector_terms
    preferred = [(term.weight, *_parts(term.preference)) for term in affinity.preferred]
    return tuple(sorted(map(_parts, required))), tuple(sorted(preferred))


_Requirements = tuple[tuple[str, str, tuple[str, ...]], ...]


def _parts(term: NodeSelectorTerm) -> tuple[_Requirements, _Requirements]:
    return _sorted(term.match_expressions), _sorted(term.match_fields)


def _sorted(requirements: Sequence[Requirement]) -> _Requirements:
    return tuple(sorted((each.key, each.operator.value, tuple(sorted(each.values))) for each in requirements))


@frozen
class RequiredNodeAffinity:
    """The nodes that a pod's `nodeSelector` and required node affinity allow.

    `selector` has the entries of the `nodeSelector`. `terms` is None if the pod has no required node affinity; an empty
    tuple allows no node. Semantics: component-helpers `RequiredNodeAffinity`.
    """

    selector: tuple[Requirement, ...] = ()
    terms: tuple[NodeSelectorTerm, ...] | None = None

    @classmethod
    def of(cls, pod: Pod) -> RequiredNodeAffinity:
        return _required(pod.spec.node_selector, pod.spec.affinity.node_affinity)

    def allows(self, node: Node) -> bool:
        labels = node.labels
        return all(each.matches(labels) for each in self.selector) and (
            self.terms is None or any_matches(self.terms, node)
        )

    def refused_domains(self, nodes: NodeTable) -> Sequence[ByDomain] | None:
        """Return the values of labels and fields that aren't allowed, without columns of which all are.

        None where one term of several must match.
        """
        if self.terms is not None and len(self.terms) != 1:
            return None
        requirements = _with_columns(self.selector, (), nodes)
        for term in self.terms or ():
            requirements += _with_columns(term.match_expressions, term.match_fields, nodes)
        found = []
        for each, column in requirements:
            satisfied = _satisfied(each, column)
            # A look at the few values spares one at all nodes.
            if not satisfied[:NO_VALUE].all() or not (satisfied[NO_VALUE] or column.is_on_all):
                found.append(ByDomain(column, ~satisfied))
        return found

    def mask(self, nodes: NodeTable, rows: IntArray) -> Mask:
        """Return `allows` for many nodes, shape (k,) for `rows` of shape (k,)."""
        selected = _all_satisfied(_with_columns(self.selector, (), nodes), nodes, rows)
        return selected if self.terms is None else selected & any_mask(self.terms, nodes, rows)


# Cached, since all pods of a workload have equal terms.
@functools.lru_cache(maxsize=4096)
def _required(node_selector: FrozenDict[str, str], affinity: NodeAffinity | None) -> RequiredNodeAffinity:
    required = None if affinity is None else affinity.required
    return RequiredNodeAffinity(
        selector=tuple(Requirement(key, Operator.IN, (value,)) for key, value in node_selector.items()),
        terms=None if required is None else usable_terms(required),
    )


def any_matches(terms: Sequence[NodeSelectorTerm], node: Node) -> bool:
    labels, name = node.labels, node.name
    return any(term.matches(labels, name) for term in terms)


def any_mask(terms: Sequence[NodeSelectorTerm], nodes: NodeTable, rows: IntArray) -> Mask:
    """Return `any_matches` for many nodes, shape (k,)."""
    if not terms:
        return np.zeros(len(rows), dtype=np.bool_)
    return functools.reduce(np.logical_or, [term_mask(term, nodes, rows) for term in terms])


def term_mask(term: NodeSelectorTerm, nodes: NodeTable, rows: IntArray) -> Mask:
    """Return the nodes that a term matches as a mask, shape (k,), by the rules of its `matches`."""
    if is_empty(term):
        return np.zeros(len(rows), dtype=np.bool_)
    return _all_satisfied(_with_columns(term.match_expressions, term.match_fields, nodes), nodes, rows)


_OnColumns: TypeAlias = list[tuple[Requirement, EncodedColumn[str | None]]]
"""Requirements, each with the column that it is about."""


def _with_columns(
    expressions: Sequence[Requirement], fields: Sequence[Requirement], nodes: NodeTable
) -> _OnColumns:
    return [
        *((each, nodes.label(each.key)) for each in expressions),
        *((each, _field(nodes, each.key)) for each in fields),
    ]


def _all_satisfied(requirements: _OnColumns, nodes: NodeTable, rows: IntArray) -> Mask:
    """Return the nodes that satisfy all requirements as a mask, shape (k,)."""
    satisfied = np.ones(len(rows), dtype=np.bool_)
    for each, column in requirements:
        satisfied &= _satisfied(each, column).take(nodes.take(column.codes, rows))
    return satisfied


def _field(nodes: NodeTable, key: str) -> EncodedColumn[str | None]:
    """Return a field of nodes as a column. `metadata.name` is the only field with values."""
    if key == "metadata.name":
        return nodes.encoded("name", lambda info: info.name)
    return nodes.encoded("no such field", lambda _: None)


def _satisfied(requirement: Requirement, column: EncodedColumn[str | None]) -> Mask:
    """Return whether each value of the column satisfies the requirement; the last entry is for nodes without value."""
    operator = requirement.operator
    satisfied = np.zeros(column.size + 1, dtype=np.bool_)
    if operator in (Operator.GT, Operator.LT):
        for code, value in enumerate(column.values):
            satisfied[code] = value is not None and requirement.matches({requirement.key: value})
        return satisfied
    if operator in (Operator.IN, Operator.NOT_IN):
        # By code, since a column such as the hostname's has as many values as there are nodes.
        for value in requirement.values:
            satisfied[column.code_of(value)] = True
    else:
        satisfied[:] = True
    # Set above, too, where a value is on no node: this is the code of such values.
    satisfied[NO_VALUE] = False
    return satisfied if operator in (Operator.IN, Operator.EXISTS) else ~satisfied


@functools.lru_cache(maxsize=4096)
def usable_terms(selector: NodeSelector) -> tuple[NodeSelectorTerm, ...]:
    """Return the terms that can match a node: neither empty nor malformed.

    Cached, since the pods of one controller have equal selectors.
    """
    return tuple(
        term for term in selector.node_selector_terms if not is_empty(term) and not any(term_errors(term, ""))
    )


def is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def selector_errors(selector: NodeSelector, path: str) -> Iterator[FieldError]:
    """Yield the errors that keep terms of a node selector from being compiled.

    Empty terms are valid and match nothing.
    """
    for index, term in enumerate(selector.node_selector_terms):
        yield from term_errors(term, f"{path}.nodeSelectorTerms[{index}]")


def preferred_errors(terms: Sequence[PreferredSchedulingTerm], path: str) -> Iterator[FieldError]:
    """Yield the errors in preferred terms, as `selector_errors`. Terms of weight 0 are skipped."""
    for index, term in enumerate(terms):
        if term.weight:
            yield from term_errors(term.preference, f"{path}[{index}]")


def term_errors(term: NodeSelectorTerm, path: str) -> Iterator[FieldError]:
    for index, expression in enumerate(term.match_expressions):
        for error in _expression_errors(expression):
            yield attrs.evolve(error, path=f"{path}.matchExpressions[{index}].{error.path}")
    for index, field in enumerate(term.match_fields):
        for error in _field_errors(field):
            yield attrs.evolve(error, path=f"{path}.matchFields[{index}].{error.path}")


def _expression_errors(requirement: Requirement) -> Iterator[FieldError]:
    values = requirement.values
    if problems := qualified_name_problems(requirement.key):
        yield FieldError.invalid("key", requirement.key, "; ".join(problems))
    match requirement.operator:
        case Operator.IN | Operator.NOT_IN:
            if not values:
                yield _invalid_values(values, "for 'in', 'notin' operators, values set can't be empty")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if values:
                yield _invalid_values(values, "values set must be empty for exists and does not exist")
        case Operator.GT | Operator.LT:
            if len(values) != 1:
                yield _invalid_values(values, "for 'Gt', 'Lt' operators, exactly one value is required")
            for index, value in enumerate(values):
                if parse_int64(value) is None:
                    why = "for 'Gt', 'Lt' operators, the value must be an integer"
                    yield FieldError.invalid(f"values[{index}]", value, why)
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            path = f"values[{index}][{requirement.key}]"
            yield FieldError.invalid(path, value, "; ".join(problems))


def _field_errors(requirement: Requirement) -> Iterator[FieldError]:
    if requirement.operator not in _FIELD_OPERATORS:
        supported = tuple(operator.value for operator in _FIELD_OPERATORS)
        yield FieldError.unsupported("operator", requirement.operator, supported)
    elif len(requirement.values) != 1:
        yield _invalid_values(requirement.values, "must have one element")


def _invalid_values(values: tuple[str, ...], why: str) -> FieldError:
    return FieldError.invalid("values", values or None, why)


def unmatched_terms(terms: Sequence[NodeSelectorTerm], node: Node, where: str) -> Iterator[Evidence]:
    """Yield evidence of the requirements that the node fails, for each term. Only one of the terms has to match."""
    if not terms:
        yield Evidence(
            f"{where} without a term", "matches no node", values={"term": where}, code=NODE_AFFINITY_INVALID
        )
    for index, term in enumerate(terms):
        name = where if len(terms) == 1 else f"{where} term {index + 1} of {len(terms)}"
        problem = _problem_of(term)
        if problem is not None:
            yield Evidence(
                f"{name} matches no node",
                problem,
                values={"term": name, "problem": problem},
                code=NODE_AFFINITY_INVALID,
            )
            continue
        for requirements, given in (
            (term.match_expressions, node.labels),
            (term.match_fields, {"metadata.name": node.name}),
        ):
            for requirement in requirements:
                if not requirement.matches(given):
                    yield unmatched(name, requirement, given)


# Asked for each node with the same few terms.
@functools.lru_cache(maxsize=1024)
def _problem_of(term: NodeSelectorTerm) -> str | None:
    """Return why the term matches no node at all; None if it may match some."""
    return "empty" if is_empty(term) else next(map(str, term_errors(term, "")), None)


def unmatched(term: str, requirement: Requirement, given: Mapping[str, str]) -> Evidence:
    """Return evidence that a node fails a requirement; `given` are the labels or fields that were looked at."""
    return _unmatched(term, requirement, given.get(requirement.key))


# Thousands of nodes have the same few values, or no such label.
@functools.lru_cache(maxsize=1024)
def _unmatched(term: str, requirement: Requirement, had: str | None) -> Evidence:
    return _not_had(
        f"{term}: {requirement_text(requirement)}",
        requirement.key,
        had,
        NODE_AFFINITY,
        term=term,
        operator=requirement.operator.value,
        wanted=", ".join(requirement.values),
    )


def not_had(asked: str, key: str, given: Mapping[str, str], code: str, **values: EvidenceValue) -> Evidence:
    """Return evidence that a node lacks what `asked` names; `had` in its values is the label, None for none."""
    return _not_had(asked, key, given.get(key), code, **values)


@functools.lru_cache(maxsize=1024)
def _not_had(asked: str, key: str, had: str | None, code: str, **values: EvidenceValue) -> Evidence:
    found = f"no label {key}" if had is None else f"{key}={had}"
    return Evidence(asked, found, values={**values, "key": key, "had": had}, code=code)
