"""Options that stand for one parameter of a command: the sources of a cluster, how they are read, the configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import attrs
import typer

from kschedfw.api.extensions import ExtensionError, how_to_install
from kschedfw.api.limits import Limits
from kschedfw.api.manifests import Expand, FieldValidation
from kschedfw.api.records import frozen
from kschedfw.cli.configurations import DEFAULT_CHOICE, ConfigurationChoice
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.exits import tell
from kschedfw.cli.formats import MANIFESTS
from kschedfw.cli.inputs import DEFAULT_READING, Input, ReadingOptions, read_input
from kschedfw.cli.live import ABSENT, NO_LIVE_CLUSTER, SOURCES, Given, Live, Progress, Source, SourceOption
from kschedfw.cli.options import (
    ConfigOption,
    ExpandCustomOption,
    FieldValidationOption,
    FormatOption,
    GatesOption,
    KubeVersionOption,
    LimitOption,
    NoExpandOption,
    PodsOption,
    ProviderOption,
    SkipInvalidOption,
)


def with_input_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command options in place of its parameters `live`, `reading`, `chosen` and `given`, if it has them.

    Typer reads a function's signature: the returned function has a parameter for each option. For `live: Live`
    these are the options of the installed sources; options of known sources that aren't installed are hidden,
    and are refused with the name of the distribution. For `reading: ReadingOptions` they are `--skip-invalid`
    and the other options about manifests. For `chosen: ConfigurationChoice` they are `--config` and the options
    that replace or change it. For `given: ClusterOptions` they are all of these, `--pods` and `--format`.
    """
    options = _options_of(command)

    def expanded(**arguments: object) -> None:
        options.value(arguments)

    # Typer takes names and defaults from the signature, and types from the annotations.
    expanded.__name__, expanded.__doc__ = command.__name__, command.__doc__
    expanded.__annotations__ = {each.name: each.annotation for each in options.parameters}
    expanded.__signature__ = inspect.Signature(options.parameters)  # type: ignore[attr-defined]  # inspect looks for it
    return expanded


@frozen
class ClusterOptions:
    """The options that commands about one cluster and one configuration share, beside the argument CLUSTER."""

    pods: Sequence[Path] = ()
    live: Live = NO_LIVE_CLUSTER
    format: str = MANIFESTS
    chosen: ConfigurationChoice = DEFAULT_CHOICE
    reading: ReadingOptions = DEFAULT_READING

    def read(
        self,
        cluster: Sequence[Path] | None,
        *,
        progress: Progress | None = None,
        show_progress: bool = True,
        namespaces: bool = False,
    ) -> Input:
        """Return what the argument CLUSTER and these options name; see `read_input` for the rest."""
        return read_input(
            self.format,
            cluster or (),
            self.pods,
            self.reading,
            live=self.live,
            progress=progress,
            show_progress=show_progress,
            namespaces=namespaces,
        )


DEFAULT_OPTIONS: Final = ClusterOptions()


@frozen
class _Options:
    """The options in place of one parameter: their parameters, and the function from their values to its value."""

    parameters: Sequence[inspect.Parameter]
    value: Callable[[dict[str, Any]], object]


def _reading(
    skip_invalid: SkipInvalidOption = False,
    field_validation: FieldValidationOption = FieldValidation.STRICT,
    limit: LimitOption = None,
    no_expand: NoExpandOption = False,
    expand_custom: ExpandCustomOption = False,
) -> ReadingOptions:
    if no_expand and expand_custom:
        raise UsageError("--no-expand makes no pods, and --expand-custom makes more: give one of them")
    expand = Expand.NOTHING if no_expand else Expand.ALL if expand_custom else Expand.WORKLOADS
    return ReadingOptions(skip_invalid, field_validation, Limits.of(limit or []), expand)


def _choice(
    config: ConfigOption = None,
    algorithm_provider: ProviderOption = None,
    feature_gates: GatesOption = None,
    kube_version: KubeVersionOption = None,
) -> ConfigurationChoice:
    return ConfigurationChoice(config, algorithm_provider, feature_gates, kube_version)


def _given(
    pods: PodsOption = None,
    live: Live = NO_LIVE_CLUSTER,
    format: FormatOption = MANIFESTS,
    chosen: ConfigurationChoice = DEFAULT_CHOICE,
    reading: ReadingOptions = DEFAULT_READING,
) -> ClusterOptions:
    return ClusterOptions(pods or (), live, format, chosen, reading)


def _options_of(function: Callable[..., object]) -> _Options:
    """Return the parameters of a function, with a group's options in place of its name, and the function of these."""
    # Annotations are texts in modules that begin as this one does; Typer needs the objects.
    signature = inspect.signature(function, eval_str=True)
    groups = {name: _GROUPS[name]() for name in signature.parameters if name in _GROUPS}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters += groups[name].parameters if name in groups else [parameter]

    def value(arguments: dict[str, Any]) -> object:
        for name, group in groups.items():
            arguments[name] = group.value({each.name: arguments.pop(each.name) for each in group.parameters})
        return function(**arguments)

    return _Options(parameters, value)


def _live_options() -> _Options:
    sources = dict(_installed())
    offered = [option for source in sources.values() for option in source.options]

    def value(given: dict[str, Any]) -> Live:
        for name, home in _absent(sources).items():
            if (text := given[name]) is not None:
                raise UsageError(
                    f"--{name} {text}: live clusters are read by the distribution {home}, which isn't installed: "
                    f"{how_to_install(home)}"
                )
        stated = {option.name: given[option.parameter] for option in offered}
        return _live(sources, {name: text for name, text in stated.items() if text is not None})

    return _Options([*map(_shown, offered), *map(_hidden, _absent(sources))], value)


_GROUPS: Final[Mapping[str, Callable[[], _Options]]] = {
    "live": _live_options,
    "reading": partial(_options_of, _reading),
    "chosen": partial(_options_of, _choice),
    "given": partial(_options_of, _given),
}


def _installed() -> Iterator[tuple[str, Source]]:
    """Yield the sources that can be loaded; a broken one only prints a warning."""
    for name in SOURCES.names():
        try:
            yield name, SOURCES.load(name)
        except ExtensionError as error:
            tell([f"warning: {error}"])


def _absent(sources: Mapping[str, Source]) -> dict[str, str]:
    """Return the distributions of options whose sources aren't installed."""
    taken = {option.name for source in sources.values() for option in source.options}
    return {
        name: home
        for source, (home, names) in ABSENT.items()
        if source not in sources
        for name in names
        if name not in taken
    }


def _shown(option: SourceOption) -> inspect.Parameter:
    shown = typer.Option(f"--{option.name}", metavar=option.metavar, help=option.help)
    return _parameter(option.parameter, Annotated[option.type | None, shown])


def _hidden(name: str) -> inspect.Parameter:
    return _parameter(name, Annotated[str | None, typer.Option(f"--{name}", hidden=True)])


def _parameter(name: str, annotation: object) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def _live(sources: Mapping[str, Source], given: Given) -> Live:
    """Return the cluster that the given options name.

    Raises:
        UsageError: options of two sources are given, or only some that go with a cluster.
    """
    asked = [
        (name, source) for name, source in sources.items() if any(o.name in given for o in source.options)
    ]
    if not asked:
        return attrs.evolve(
            NO_LIVE_CLUSTER, ways=[way for source in sources.values() for way in _naming(source)]
        )
    if len(asked) > 1:
        raise UsageError(
            f"{_stated(given)}: a cluster is read from one source, not from {' and '.join(n for n, _ in asked)}"
        )
    ((name, source),) = asked
    if not any(option.names_cluster and option.name in given for option in source.options):
        if [*given] == ["namespace"]:
            # It goes with files as well, where the command has a use for it (`read_input`).
            return attrs.evolve(NO_LIVE_CLUSTER, given=given, ways=_naming(source))
        which = " or ".join(_naming(source))
        raise UsageError(f"{_stated(given)}: goes with a live cluster; say which with {which}")
    return Live(source, name, given)


def _naming(source: Source) -> Sequence[str]:
    """Return the options that name a cluster, as they stand on the command line; the most particular one first."""
    return [f"--{option.name}" for option in reversed(source.options) if option.names_cluster]


def _stated(given: Given) -> str:
    return ", ".join(f"--{name} {value}" for name, value in given.items())
