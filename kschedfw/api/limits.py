"""Limits of input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.quantity import QuantityError, parse_quantity
from kschedfw.api.records import frozen

_MIB: Final = 1 << 20


class LimitError(KschedfwError, ValueError):
    """The error of a limit that has an unknown name, or isn't a whole number from 1 up."""


@frozen
class Limits:
    """Limits of the input, so that no file can take all memory. Usual input is far below them.

    Attributes:
        unpacked: bytes of a decompressed file (`.gz`).
        document: characters of one YAML document, which is held in memory; a list of 50,000 pods has 100 million.
        object: characters of one object; the API server takes no more than 3 MiB.
        pods: pods made from Deployments, Jobs and other workloads, all together.
        problems: errors after which reading ends, such as of objects that are there twice.
    """

    unpacked: int = 1024 * _MIB
    document: int = 256 * _MIB
    object: int = 16 * _MIB
    pods: int = 200_000
    problems: int = 10_000

    @classmethod
    def of(cls, given: Iterable[str]) -> Self:
        """Return the default limits, with some replaced by values given as `NAME=AMOUNT` (`unpacked=4Gi`).

        Raises:
            LimitError: one isn't of that form.
        """
        known = [field.name for field in attrs.fields(cls)]
        changes = {}
        for text in given:
            name, _, amount = text.partition("=")
            if name not in known:
                raise LimitError(f"--limit {text}: expected NAME=AMOUNT, where NAME is {', '.join(known)}")
            try:
                changes[name] = parse_quantity(amount).value()
            except QuantityError:
                changes[name] = 0
            if changes[name] < 1:
                raise LimitError(f"--limit {text}: expected a whole number from 1 up, such as 500000 or 4Gi")
        return cls(**changes)


DEFAULT_LIMITS: Final = Limits()


def how_to_raise(name: str, limit: int) -> str:
    """Return the part of an error message that says how to raise the limit."""
    return (
        f"the limit `{name}` is {limit}; raise it with --limit {name}=N, or in Python with Limits({name}=N)"
    )
