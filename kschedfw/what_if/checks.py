"""Checks of the arguments of questions. Their errors name the wrong argument, and say what would be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Final, TypeVar

from kschedfw.api.errors import KschedfwError
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.words import with_article
from kschedfw.framework.profile import Profile


class WhatIfError(KschedfwError):
    """The error of a transaction that was asked for something impossible; says what, and what would be possible."""


class ConcurrentUseError(WhatIfError, RuntimeError):
    """The error of using a WhatIf on a thread while another one uses it, or has a transaction open."""

    def __str__(self) -> str:
        return (
            "this WhatIf is in use on another thread, or a transaction is open there: use one WhatIf per thread, or "
            "hand it over once its transaction has ended"
        )


T = TypeVar("T")

_ONE: Final[Mapping[type, str]] = {
    Named: "an object such as a node or a pod",
    Node: "a node",
    Pod: "a pod",
}
_SEVERAL: Final[Mapping[type, str]] = {
    Named: "objects such as nodes and pods",
    Node: "nodes",
    Pod: "pods",
    Profile: "Profiles",
    str: "names of nodes",
}


def title(obj: Named) -> str:
    """Return the kind and the key of an object, as text."""
    return f"{type(obj).__name__.lower()} {obj.key}"


def found_text(found: object) -> str:
    """Return a description of the wrong argument; if it is almost right, say what is missing."""
    if found is None or isinstance(found, str | int | float):
        return repr(found) if isinstance(found, str) or found is None else type(found).__name__
    if isinstance(found, PurePath):
        return repr(str(found))
    if isinstance(found, Named):
        return title(found)
    name = type(found).__name__
    return f"{with_article(name)} that isn't built: call .build()" if hasattr(found, "build") else name


def expect(kind: type[T], found: object, argument: str, hint: str = "") -> T:
    """Return the argument, which must be of this kind.

    Raises:
        WhatIfError: it is of another kind; the hint says what to do then.
    """
    if isinstance(found, kind):
        return found
    raise WhatIfError(
        f"{argument}: expected {_ONE.get(kind) or with_article(kind.__name__)}, found {found_text(found)}{hint}"
    )


def expect_all(kind: type[T], found: object, argument: str) -> list[T]:
    """Return several of this kind, in their order.

    Raises:
        WhatIfError: one of them is of another kind, or there is one alone.
    """
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise WhatIfError(f"{argument}: expected a list of {_SEVERAL[kind]}, found {found_text(found)}")
    several = list(found)
    for each in several:
        if not isinstance(each, kind):
            raise WhatIfError(f"{argument}: expected {_SEVERAL[kind]}, found {found_text(each)}")
    return several


def expect_count(found: object, argument: str, things: str) -> int:
    """Return a number of these things, from 0 on.

    Raises:
        WhatIfError: the argument is no such number.
    """
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    shown = found if isinstance(found, int | float) else found_text(found)
    raise WhatIfError(f"{argument}: expected a number of {things} from 0 on, found {shown}")
