"""Findings: what a command tells of a cluster, as a stable code with parameters and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.records import frozen

Parameter: TypeAlias = "str | int | float | bool | tuple[str, ...] | None"
"""The value of a parameter of a finding."""


def _frozen(parameters: Mapping[str, Parameter]) -> FrozenDict[str, Parameter]:
    return FrozenDict(parameters)


@frozen
class Finding:
    """A fact about pods or other objects, for programs and for people.

    `code` is stable and in kebab-case; `parameters` are the names and numbers in it. `template` is the text with the
    names of parameters in braces, so equal codes and parameters have equal texts.
    """

    code: str
    template: str
    parameters: FrozenDict[str, Parameter] = attrs.field(default=EMPTY, converter=_frozen)

    @classmethod
    def of(cls, code: str, template: str, **parameters: Parameter) -> Finding:
        """Return the finding with these parameters."""
        return cls(code, template, parameters)

    def __str__(self) -> str:
        return self.template.format_map({name: _text(value) for name, value in self.parameters.items()})

    def to_json(self) -> dict[str, object]:
        """Return code, parameters and text in types that `json.dumps` knows."""
        return {"code": self.code, "parameters": dict(self.parameters), "text": str(self)}


def _text(value: Parameter) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
