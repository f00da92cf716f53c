"""Why a request isn't answered as it was meant to be."""

from __future__ import annotations

from kschedfw.api.errors import KschedfwError


class RequestError(KschedfwError, ValueError):
    """The request can't be answered as it is; the text says what is wrong with it."""


class EvaluationError(KschedfwError):
    """A plugin failed."""


class AbandonedError(KschedfwError):
    """Nobody waits for the answer any more, so the work has been given up."""
