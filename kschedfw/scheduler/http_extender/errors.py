"""What can go wrong with an extender at work; its configuration has `kschedfw.config.errors`."""

from __future__ import annotations

from kschedfw.api.errors import KschedfwError
from kschedfw.config.extenders import without_password


class ExtenderError(KschedfwError):
    """A call to an extender failed.

    Attributes:
        extender: the extender's name, which is its URL prefix (without a password).
        verb: the verb that was called, as it stands in the URL.
        url: where it was sent (without a password).
        cause: what went wrong; the extender's own text where it reported an error.
    """

    def __init__(self, extender: str, verb: str, url: str, cause: str) -> None:
        self.extender, self.url = without_password(extender), without_password(url)
        self.verb, self.cause = verb, cause
        super().__init__(self.extender, self.verb, self.url, self.cause)

    def __str__(self) -> str:
        return f'extender "{self.extender}": {self.verb} at {self.url} failed: {self.cause}'
