"""Checks of names in arguments, with similar known names as hints."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from kschedfw.cli.enabled import UsageError

_NAMED = 3
"""How many names are listed in the error about an unknown name."""


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
    """Refuse a name that isn't known, and say which are similar.

    Raises:
        UsageError: there is none of this name.
    """
    names = sorted(set(known))
    if name in names:
        return
    if not names:
        hint = f", and no other {kind} either"
    elif similar := get_close_matches(name, names, n=_NAMED):
        hint = f"; did you mean {' or '.join(similar)}?"
    else:
        nearest = get_close_matches(name, names, n=_NAMED, cutoff=0.0)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        hint = f"; there {'is' if len(names) == 1 else 'are'} {', '.join(nearest)}{more}"
    raise UsageError(f"{kind} {name!r}: there is none of this name{hint}")
