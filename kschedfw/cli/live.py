"""Live clusters: what the command line reads a cluster from, beside files (entry-point group `kschedfw.sources`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import attrs
import typer

from kschedfw.api.extensions import ExtensionError, Extensions
from kschedfw.api.manifests import Manifests
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.exits import tell
from kschedfw.cli.output import progress_bar

Given: TypeAlias = Mapping[str, str | Path]
"""The values of a source's options that stand on the command line, by name."""


@attrs.frozen
class SourceOption:
    """An option of the commands that ask about a cluster, such as `--context`.

    `names_cluster` says whether giving the option alone says which cluster is meant; the other options go with one that
    does.
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


@attrs.frozen
class SourceCluster:
    """The objects that a source has read, and what couldn't be read.

    Attributes:
        manifests: the objects; those that can't be read are among its problems.
        name: where they are from, for the note `read from NAME`.
        missing: kinds of objects that weren't read, a line each, which says why.
        namespace: where a pod is looked for whose name has no namespace; None is everywhere.
    """

    manifests: Manifests
    name: str
    missing: Sequence[str] = ()
    namespace: str | None = None


Progress: TypeAlias = Callable[[int, int], None]
"""Called while reading, with how many objects of how many are read, as far as that is known."""

Reader: TypeAlias = Callable[[Given, Progress | None], SourceCluster]


@attrs.frozen
class Source:
    """A place from which commands read clusters: its options, and the function that reads one.

    An entry point of the group `kschedfw.sources` refers to a Source. Every command that asks about a cluster loads it
    for its options, so its module should import what reading takes inside `read`.

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


@attrs.frozen
class Live:
    """The live cluster that the command line names, if any."""

    source: Source | None = None
    given: Given = attrs.field(factory=dict)

    @property
    def is_wanted(self) -> bool:
        """Whether a cluster was named."""
        return self.source is not None

    @property
    def title(self) -> str:
        """The name of the cluster as the last option gives it, of a path the file's name; empty without a cluster."""
        options = self.source.options if self.source is not None else ()
        named = [self.given[each.name] for each in options if each.names_cluster and each.name in self.given]
        return "".join(each.name if isinstance(each, Path) else each for each in named[-1:])

    def read(self, *, show_progress: bool = True) -> SourceCluster:
        """Read the cluster that is wanted.

        Raises:
            KschedfwError: the cluster can't be read.
        """
        assert self.source is not None
        with progress_bar("reading the cluster", enabled=show_progress) as progress:
            return self.source.read(self.given, progress)


NO_LIVE_CLUSTER = Live()


def with_sources(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the installed sources in place of its parameter `live: Live`.

    Typer reads a function's signature: the one that is returned has a parameter for each option. Options of known
    sources that aren't installed are there, too, hidden, and are refused with the name of the distribution.
    """
    signature = inspect.signature(command, eval_str=True)
    sources = dict(_installed())
    offered = [option for source in sources.values() for option in source.options]
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name == "live":
            parameters += map(_parameter, offered)
            parameters += [_hidden(name) for name in _absent(sources)]
        else:
            parameters.append(parameter)

    def expanded(**arguments: object) -> None:
        given = {option.name: arguments.pop(option.parameter) for option in offered}
        for name, home in _absent(sources).items():
            if (value := arguments.pop(name)) is not None:
                raise UsageError(
                    f"--{name} {value}: live clusters are read by the distribution {home}, which isn't installed: "
                    f"pip install {home}"
                )
        stated = {name: value for name, value in given.items() if isinstance(value, (str, Path))}
        command(**arguments, live=_live(sources, stated))

    expanded.__name__, expanded.__doc__ = command.__name__, command.__doc__
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    expanded.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return expanded


def _installed() -> Iterator[tuple[str, Source]]:
    """The sources that can be loaded; one that can't is told, and harms no command."""
    for name in SOURCES.names():
        try:
            yield name, SOURCES.load(name)
        except ExtensionError as error:
            tell([f"warning: {error}"])


def _absent(sources: Mapping[str, Source]) -> dict[str, str]:
    """The distributions of options whose sources aren't installed."""
    taken = {option.name for source in sources.values() for option in source.options}
    return {
        name: home
        for source, (home, names) in ABSENT.items()
        if source not in sources
        for name in names
        if name not in taken
    }


def _parameter(option: SourceOption) -> inspect.Parameter:
    shown = typer.Option(f"--{option.name}", metavar=option.metavar, help=option.help)
    return inspect.Parameter(
        option.parameter,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[option.type | None, shown],
    )


def _hidden(name: str) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[str | None, typer.Option(f"--{name}", hidden=True)],
    )


def _live(sources: Mapping[str, Source], given: Given) -> Live:
    """The cluster that the given options name.

    Raises:
        UsageError: options of two sources are given, or only some that go with a cluster.
    """
    asked = [
        (name, source) for name, source in sources.items() if any(o.name in given for o in source.options)
    ]
    if not asked:
        return NO_LIVE_CLUSTER
    if len(asked) > 1:
        raise UsageError(
            f"{_stated(given)}: a cluster is read from one source, not from {' and '.join(n for n, _ in asked)}"
        )
    ((_, source),) = asked
    naming = [option.name for option in source.options if option.names_cluster]
    if not any(name in given for name in naming):
        which = " or ".join(f"--{name}" for name in reversed(naming))
        raise UsageError(f"{_stated(given)}: goes with a live cluster; say which with {which}")
    return Live(source, given)


def _stated(given: Given) -> str:
    return ", ".join(f"--{name} {value}" for name, value in given.items())
