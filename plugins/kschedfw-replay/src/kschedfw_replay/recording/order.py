"""The order in which an API server stored changes. Its watches, one per kind, report them in another order."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from typing import Final, TypeVar

from kschedfw.cluster import WatchEvent

_T = TypeVar("_T")

_MOST_OVERTAKEN: Final = 100
"""The number of changes that a late one may be moved ahead of: a first list isn't in the order of versions."""


def version_of(event: WatchEvent) -> int:
    """The resource version of the change; 0 if it has none.

    Kubernetes compares versions only within a kind. All kinds that are followed here are in one etcd, which counts the
    changes of all; where a server keeps a kind elsewhere, the order becomes that of arrival at the worst.
    """
    version = event.object.metadata.resource_version
    # Decimal, as KEP-5504 promises since v1.35. Versions of other forms keep the order of arrival.
    return int(version) if version.isdecimal() else 0


def insert_by_version(changes: MutableSequence[_T], new: _T, version: Callable[[_T], int]) -> int:
    """Insert a change before the latest ones that were stored after it. Return its index."""
    own, index = version(new), len(changes)
    if own:
        first = max(0, index - _MOST_OVERTAKEN)
        while index > first and version(changes[index - 1]) > own:
            index -= 1
    changes.insert(index, new)
    return index
