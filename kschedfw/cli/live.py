"""Live clusters: the sources of clusters beside files (entry-point group `kschedfw.sources`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from kschedfw.api.extensions import Extensions
from kschedfw.api.manifests import Manifests
from kschedfw.api.records import frozen
from kschedfw.cli.output import progress_bar

Given: TypeAlias = Mapping[str, str | Path]
"""The values of a source's options that stand on the command line, by name."""


@frozen
class SourceOption:
    """An option of the commands that ask about a cluster, such as `--context`.

    `names_cluster` tells whether the option alone names a cluster; other options go with one that does.
    """

    name: str
    metavar: str
    help: str
    type: type[str] | type[Path] = str
    names_cluster: bool = True

    @property
    def parameter(self) -> str:
        """The name as that of a parameter in Python."""
        return self.name.replace("-", "_")


@frozen
class SourceCluster:
    """The objects that a source has read, and the kinds that couldn't be read.

    Attributes:
        manifests: the objects; unreadable objects are among its problems.
        name: the cluster's name, for the note `read from NAME`.
        missing: kinds of objects that weren't read, a line each, with the reason.
        namespace: where a pod is looked for whose name has no namespace; None is everywhere.
    """

    manifests: Manifests
    name: str
    missing: Sequence[str] = ()
    namespace: str | None = None


Progress: TypeAlias = Callable[[int, int], None]
"""Called while reading, with how many objects of how many are read, as far as that is known."""

Reader: TypeAlias = Callable[[Given, Progress | None], SourceCluster]


@frozen
class Source:
    """A source of clusters: its options, and the function that reads one.

    An entry point of the group `kschedfw.sources` refers to a Source. Every command that asks about a cluster
    loads it for its options, so its module should import the modules for reading inside `read`.

    Attributes:
        options: the options, in the order of `--help`; at least one names a cluster.
        read: called with the values of the given options, by name, and with the callback of a progress bar, if one is
            shown. It raises a `KschedfwError` where the cluster can't be read.
    """

    options: Sequence[SourceOption]
    read: Reader


SOURCES: Final = Extensions("kschedfw.sources", "source of clusters", Source)

ABSENT: Final = {
    "kubernetes": ("kschedfw-kubernetes", ("kubeconfig", "context", "namespace")),
}
"""Known sources: their distributions, and the options that are refused with its name where it isn't installed."""


@frozen
class Live:
    """The live cluster that the command line names, if any.

    `ways` are the options of the installed sources that name a cluster, for the error about a missing one.
    """

    source: Source | None = None
    name: str = ""
    """The source's, of those that are installed."""
    given: Given = attrs.field(factory=dict)
    ways: Sequence[str] = attrs.field(default=(), eq=False)

    @property
    def is_wanted(self) -> bool:
        """True if a cluster was named."""
        return self.source is not None

    @property
    def namespace(self) -> str | None:
        """The namespace that was named without a cluster: the one of files that is asked about; None for all."""
        return None if self.is_wanted else self.given.get("namespace")  # type: ignore[return-value]  # a text

    @property
    def title(self) -> str:
        """The name of the cluster as the last option gives it (for a path, the file's name).

        Empty without a cluster.
        """
        options = self.source.options if self.source is not None else ()
        named = [self.given[each.name] for each in options if each.names_cluster and each.name in self.given]
        return "".join(each.name if isinstance(each, Path) else each for each in named[-1:])

    def read(self, *, show_progress: bool = True) -> SourceCluster:
        """Read the cluster that the options name.

        Raises:
            KschedfwError: the cluster can't be read.
        """
        assert self.source is not None
        with (
            progress_bar("reading the cluster", enabled=show_progress) as progress,
            SOURCES.calling(self.name),
        ):
            return self.source.read(self.given, progress)


NO_LIVE_CLUSTER = Live()
