"""Label selectors as text, as kubectl's `--selector` takes them (apimachinery `labels.Parse`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kschedfw.api.errors import KschedfwError
from kschedfw.api.names import label_value_problems, qualified_name_problems
from kschedfw.api.selectors import Operator, Requirement, Selector

LONGEST: Final = 4_000
"""The greatest length of a text, in characters."""

_PARENTHESES_OR_COMMA = re.compile(r"\([^()]*\)|,")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUALITY = re.compile(r"(?P<key>[^\s=!]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s=!]*)")
_EXISTENCE = re.compile(r"(?P<no>!?)\s*(?P<key>[^\s=!()]+)")


class SelectorSyntaxError(KschedfwError, ValueError):
    """The error of a text that isn't a label selector."""


def parse_selector(text: str) -> Selector:
    """Return the selector of a text such as `app=web,tier!=cache,zone in (a, b),gpu,!spot`; all of it must hold.

    Raises:
        SelectorSyntaxError: it isn't one, is empty, or is longer than `LONGEST` characters; names the wrong part.
    """
    if len(text) > LONGEST:
        raise SelectorSyntaxError(f"a label selector of {len(text):,} characters; at most {LONGEST:,}")
    return Selector(tuple(_requirement(part.strip(), text) for part in _parts(text)))


def _parts(text: str) -> Iterator[str]:
    """Yield the parts between commas, except commas in parentheses."""
    start = 0
    for found in _PARENTHESES_OR_COMMA.finditer(text):
        if found[0] == ",":
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]


def _requirement(part: str, text: str) -> Requirement:
    if match := _SET.fullmatch(part):
        operator = Operator.IN if match["operator"] == "in" else Operator.NOT_IN
        values = tuple(value.strip() for value in match["values"].split(","))
    elif match := _EQUALITY.fullmatch(part):
        operator = Operator.NOT_IN if match["operator"] == "!=" else Operator.IN
        values = (match["value"],)
    elif match := _EXISTENCE.fullmatch(part):
        operator, values = (Operator.DOES_NOT_EXIST if match["no"] else Operator.EXISTS), ()
    else:
        raise SelectorSyntaxError(
            f"{text!r} is no label selector: {part!r} is none of KEY=VALUE, KEY!=VALUE, KEY in (A, B), "
            "KEY notin (A, B), KEY, !KEY"
        )
    problems = [*qualified_name_problems(match["key"])]
    problems += [problem for value in values for problem in label_value_problems(value)]
    if problems:
        raise SelectorSyntaxError(f"{text!r} is no label selector: {part!r}: {problems[0]}")
    return Requirement(match["key"], operator, values)


def selector_text(selector: Selector) -> str:
    """Return the selector in the syntax of `parse_selector`, or words if it selects everything or nothing."""
    if selector.nothing:
        return "nothing"
    return ",".join(map(requirement_text, selector.requirements)) or "everything"


def requirement_text(requirement: Requirement) -> str:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case Operator.EXISTS:
            return key
        case Operator.DOES_NOT_EXIST:
            return f"!{key}"
        case Operator.GT | Operator.LT:
            return f"{key}{'>' if requirement.operator is Operator.GT else '<'}{','.join(values)}"
        case Operator.IN if len(values) == 1:
            return f"{key}={values[0]}"
        case Operator.NOT_IN if len(values) == 1:
            return f"{key}!={values[0]}"
        case operator:
            return f"{key} {'in' if operator is Operator.IN else 'notin'} ({','.join(values)})"
