"""Errors in answering requests."""

from __future__ import annotations

from kschedfw import KschedfwError


class RequestError(KschedfwError, ValueError):
    """The request is invalid. The message says why."""


class EvaluationError(KschedfwError):
    """A plugin failed."""


class AbandonedError(KschedfwError):
    """The client no longer waits for the answer, so the work was stopped."""
