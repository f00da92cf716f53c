"""Errors of configurations."""

from __future__ import annotations

from collections.abc import Iterable

from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError, first_of


class ConfigurationError(KschedfwError, ValueError):
    """The error of an invalid configuration; the text has its source and all errors, one per line.

    `warnings` are further messages for its user.
    """

    def __init__(self, source: str, errors: Iterable[FieldError], warnings: Iterable[str] = ()) -> None:
        self.source = source
        self.errors = tuple(errors)
        self.warnings = tuple(warnings)
        super().__init__(source, self.errors)

    def __str__(self) -> str:
        return "\n".join(first_of([f"{self.source}: {error}" for error in self.errors], "problems"))


class ExtenderConfigError(KschedfwError, ValueError):
    """The error of an invalid configuration of extenders; names every invalid field."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "; ".join(first_of([str(error) for error in self.errors], "problems"))
