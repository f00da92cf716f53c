"""Label selectors and node selectors: the API objects and how they match.

Semantics: apimachinery `labels.Requirement.Matches`, `metav1.LabelSelectorAsSelector` and component-helpers
`nodeaffinity` (kube-scheduler v1.36).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict, string_map
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Int32

_INT64_DIGITS: Final = 19


class Operator(StrEnum):
    """The comparison of a label with a requirement's values. `GT` and `LT` exist for nodes only."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@frozen
class Requirement:
    """One condition on one label.

    A label that is absent satisfies `NotIn` and `DoesNotExist` and nothing else. `Gt` and `Lt` compare
    integers (label against the single value); a label or value that is no int64 never matches.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
        if value is None or len(self.values) != 1:
            return False
        left, right = parse_int64(value), parse_int64(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator is Operator.GT else left < right


def parse_int64(text: str) -> int | None:
    """Return the integer that Go's `strconv.ParseInt(text, 10, 64)` reads, or None if it refuses the text."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0")
    # Python refuses to read thousands of digits.
    if len(digits) > _INT64_DIGITS:
        return None
    number = int(digits or "0") * (-1 if text[0] == "-" else 1)
    return number if -(1 << 63) <= number < 1 << 63 else None


def parse_canonical_int64(text: str) -> int | None:
    """Return the int64 of a text without plus sign and leading zeros, as tolerations require; else None."""
    number = parse_int64(text)
    return number if str(number) == text else None


@frozen
class Selector:
    """A compiled label selector: all requirements must match; no requirement at all matches everything.

    `nothing` marks the selector of an absent LabelSelector, which matches no object.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        # A generator takes twice as long, and the terms of one pod may ask about thousands of objects.
        for requirement in self.requirements:  # noqa: SIM110
            if not requirement.matches(labels):
                return False
        return True

    @property
    def everything(self) -> bool:
        """True if the selector matches every object."""
        return not self.nothing and not self.requirements

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that the selector reads."""
        return frozenset([requirement.key for requirement in self.requirements])

    def and_labels(self, labels: Mapping[str, str]) -> Selector:
        """Return this selector with `key in (value)` added for every label; Nothing stays Nothing."""
        if self.nothing:
            return self
        return Selector((*self.requirements, *_from_labels(labels)))

    @staticmethod
    def from_labels(labels: Mapping[str, str]) -> Selector:
        """Return a selector that requires every label with its value (`labels.SelectorFromSet`)."""
        return Selector(_from_labels(labels))


def _from_labels(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple([Requirement(key, Operator.IN, (value,)) for key, value in sorted(labels.items())])


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


LABEL_OPERATORS: Final = (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
"""The operators of a LabelSelector; node selectors also have Gt and Lt."""


@frozen
class LabelSelector:
    """meta/v1 LabelSelector: equalities and expressions, all of which must hold."""

    match_labels: FrozenDict[str, str] = attrs.field(default=EMPTY, converter=string_map)
    match_expressions: tuple[Requirement, ...] = ()

    def compile(self) -> Selector:
        labels = self.match_labels
        return Selector(
            (*_from_labels(labels), *self.match_expressions) if labels else self.match_expressions
        )


def as_selector(selector: LabelSelector | None) -> Selector:
    """Return the matcher of an optional LabelSelector: absent matches nothing, empty matches everything."""
    return NOTHING if selector is None else selector.compile()


@frozen
class NodeSelectorTerm:
    """Requirements on a node's labels and fields, all of which must hold; an empty term matches no node.

    `match_fields` knows one field, `metadata.name`, with `In` or `NotIn` and exactly one value.
    """

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if not self.match_expressions and not self.match_fields:
            return False
        return all(expression.matches(labels) for expression in self.match_expressions) and all(
            field.matches({"metadata.name": name}) for field in self.match_fields
        )

    @property
    def only_names(self) -> frozenset[str] | None:
        """The node names that `match_fields` limits this term to; None if there is no such limit."""
        names: frozenset[str] | None = None
        for field in self.match_fields:
            if field.key == "metadata.name" and field.operator is Operator.IN:
                names = frozenset(field.values) if names is None else names & frozenset(field.values)
        return names


@frozen(cache_hash=True)
class NodeSelector:
    """core/v1 NodeSelector: a node matches when any term does."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.node_selector_terms)


@frozen
class PreferredSchedulingTerm:
    """A node selector term with a weight of 1–100 that matching nodes earn."""

    weight: Int32
    preference: NodeSelectorTerm
