"""Versions of Kubernetes, and the record of a rule that one of them changed."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Final

from kschedfw.api.records import frozen

VERSIONS: Final = ("1.34", "1.35", "1.36", "1.37")
"""The versions that kschedfw decides as, the oldest first."""

REFERENCE: Final = "1.36"
"""The version whose decisions were recorded; it holds unless the caller names another version."""


class Basis(StrEnum):
    """The evidence for a rule."""

    RECORDED = "recorded"
    """Decisions of a running kube-scheduler were compared."""
    READ = "read"
    """Only source text, KEPs or pull requests were read."""


# A FeatureGates compares a thousand versions, of which about 40 differ.
@lru_cache(maxsize=256)
def version_number(version: str) -> tuple[int, ...]:
    """Return a version as numbers, by which versions are ordered."""
    return tuple(map(int, version.split(".")))


def is_since(version: str, since: str) -> bool:
    """Return whether a version is `since` or a later one; versions are compared as numbers."""
    return version_number(version) >= version_number(since)


@frozen
class Rule:
    """A rule of scheduling that a version of Kubernetes changed, and that no feature gate switches.

    Args:
        name: a name in the style of feature gates; no gate has it.
        since: the version from which on the rule holds.
        area: the plugin, or the part of the scheduler, that the rule belongs to.
        before: the behaviour until then.
        after: the behaviour since then.
        source: where the rule can be read: KEPs, pull requests or files of Kubernetes.
        basis: whether decisions under the rule were recorded or only its source was read.
        decides: whether decisions depend on the rule; if not, only metrics do.
    """

    name: str
    since: str
    area: str
    before: str
    after: str
    source: str
    basis: Basis = Basis.READ
    decides: bool = True


@frozen
class VersionChange:
    """A gate or a rule that is different in two versions.

    Args:
        name: the gate's or the rule's name.
        version: the later one of the two versions.
        text: what is different.
        source: the KEP, pull request or file that it comes from; empty if none is known.
    """

    name: str
    version: str
    text: str
    source: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.source})" if self.source else self.name
