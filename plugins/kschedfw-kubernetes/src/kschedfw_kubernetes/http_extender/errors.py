"""Errors of calls to extenders. Errors of their configuration are in `kschedfw.config.errors`."""

from __future__ import annotations

from typing import Final

from kschedfw import KschedfwError
from kschedfw.api.reading import printable
from kschedfw.config import without_password

_LONGEST: Final = 1024


def as_told(text: str) -> str:
    """Return an extender's text, shortened and without control characters, for logs, conditions and events."""
    return printable(text, _LONGEST)


class ExtenderError(KschedfwError):
    """A call to an extender failed.

    Attributes:
        extender: the extender's name, which is its URL prefix (without a password).
        verb: the verb that was called, as it stands in the URL.
        url: the URL of the request (without a password).
        cause: the error; the extender's own text if it reported one. It is one line of at most 1024
            characters, in which control characters are spelled out.
    """

    def __init__(self, extender: str, verb: str, url: str, cause: str) -> None:
        self.extender, self.url = without_password(extender), without_password(url)
        self.verb, self.cause = verb, as_told(cause)
        super().__init__(self.extender, self.verb, self.url, self.cause)

    def __str__(self) -> str:
        return f'extender "{self.extender}": {self.verb} at {self.url} failed: {self.cause}'
