"""The error of questions that can't be answered."""

from kschedfw.api.errors import KschedfwError


class WhatIfError(KschedfwError):
    """A transaction was asked for something impossible; the text says what, and what would be possible."""
