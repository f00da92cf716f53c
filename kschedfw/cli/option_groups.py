"""Groups of options that give a command one value: the cluster, how it is read, the configuration, the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import click

from kschedfw.api.extensions import ExtensionError, how_to_install
from kschedfw.api.limits import Limits
from kschedfw.api.manifests import Expand, FieldValidation
from kschedfw.api.records import frozen
from kschedfw.cli.configurations import ConfigurationChoice
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.exits import tell
from kschedfw.cli.inputs import Input, InputOptions, ReadingOptions
from kschedfw.cli.live import ABSENT, NO_LIVE_CLUSTER, SOURCES, Given, Live, Source
from kschedfw.cli.options import (
    FILE,
    SelectHost,
    attempt_time_option,
    config_option,
    expand_custom_option,
    field_validation_option,
    format_option,
    gates_option,
    kube_version_option,
    limit_option,
    no_expand_option,
    pods_option,
    provider_option,
    seed_option,
    select_host_option,
    skip_invalid_option,
    start_time_option,
)
from kschedfw.cli.reschedule import reschedule, reschedule_option

Callback: TypeAlias = Callable[..., None]
"""The function of a command, called with the values of its options by name."""


def reading_options(command: Callback) -> Callback:
    """Give a command `--skip-invalid` and the other options about manifests, as its parameter `reading`."""

    @skip_invalid_option
    @field_validation_option
    @limit_option
    @no_expand_option
    @expand_custom_option
    @wraps(command)
    def gathering(
        *,
        skip_invalid: bool,
        field_validation: FieldValidation,
        limit: Sequence[str],
        no_expand: bool,
        expand_custom: bool,
        **others: object,
    ) -> None:
        if no_expand and expand_custom:
            raise UsageError("--no-expand makes no pods, and --expand-custom makes more: give one of them")
        expand = Expand.NOTHING if no_expand else Expand.ALL if expand_custom else Expand.WORKLOADS
        command(reading=ReadingOptions(skip_invalid, field_validation, Limits.of(limit), expand), **others)

    return gathering


def configuration_options(command: Callback) -> Callback:
    """Give a command `--config` and the options that replace or change it, as its parameter `chosen`."""

    @config_option
    @provider_option
    @gates_option
    @kube_version_option
    @wraps(command)
    def gathering(
        *,
        config: Path | None,
        algorithm_provider: str | None,
        feature_gates: Sequence[str],
        kube_version: str | None,
        **others: object,
    ) -> None:
        command(chosen=ConfigurationChoice(config, algorithm_provider, feature_gates, kube_version), **others)

    return gathering


def live_options(command: Callback) -> Callback:
    """Give a command the options of the installed sources, as its parameter `live`.

    Options of known sources that aren't installed are hidden, and are refused with the name of the distribution.
    """
    sources = dict(_installed())
    offered = [option for source in sources.values() for option in source.options]
    absent = _absent(sources)

    @wraps(command)
    def gathering(**arguments: Any) -> None:
        for name, home in absent.items():
            if (text := arguments.pop(name)) is not None:
                raise UsageError(
                    f"--{name} {text}: live clusters are read by the distribution {home}, which isn't installed: "
                    f"{how_to_install(home)}"
                )
        stated = {option.name: arguments.pop(option.parameter) for option in offered}
        given = {name: value for name, value in stated.items() if value is not None}
        command(live=_live(sources, given), **arguments)

    for name in reversed(absent):
        gathering = click.option(f"--{name}", hidden=True)(gathering)
    for option in reversed(offered):
        kind = FILE if option.type is Path else option.type
        shown = click.option(f"--{option.name}", type=kind, metavar=option.metavar, help=option.help)
        gathering = shown(gathering)
    return gathering


def input_options(command: Callback) -> Callback:
    """Give a command all options about the cluster that it reads, as its parameter `given`."""

    @pods_option
    @live_options
    @format_option
    @reading_options
    @wraps(command)
    def gathering(
        *, pods: Sequence[Path], live: Live, format: str, reading: ReadingOptions, **others: object
    ) -> None:
        command(given=InputOptions(pods, live, format, reading), **others)

    return gathering


@frozen
class SimulationOptions:
    """The options of commands that simulate: which pods are freed first, virtual time, and choices between nodes.

    Attributes:
        attempt_time: the virtual seconds that each attempt takes.
    """

    select_host: SelectHost
    freed: Sequence[str]
    start_time: datetime | None
    attempt_time: float
    seed: int

    def free_bound_pods(self, loaded: Input) -> tuple[Input, Mapping[str, str]]:
        """Free the pods of `--reschedule`, as `reschedule` does."""
        return reschedule(loaded, self.freed)


def simulation_options(command: Callback) -> Callback:
    """Give a command `--seed`, `--reschedule` and the other options of simulations, as its parameter `simulated`."""

    @select_host_option
    @reschedule_option
    @start_time_option
    @attempt_time_option
    @seed_option
    @wraps(command)
    def gathering(
        *,
        select_host: SelectHost,
        reschedule: Sequence[str],
        start_time: datetime | None,
        attempt_time: float,
        seed: int,
        **others: object,
    ) -> None:
        simulated = SimulationOptions(select_host, reschedule, start_time, attempt_time, seed)
        command(simulated=simulated, **others)

    return gathering


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
            # A namespace goes with files as well, where the command has a use for it (`InputOptions.read`).
            return attrs.evolve(NO_LIVE_CLUSTER, given=given, ways=_naming(source))
        which = " or ".join(_naming(source))
        raise UsageError(f"{_stated(given)}: goes with a live cluster; say which with {which}")
    return Live(source, name, given)


def _naming(source: Source) -> Sequence[str]:
    """Return the options that name a cluster, as they stand on the command line; the most particular one first."""
    return [f"--{option.name}" for option in reversed(source.options) if option.names_cluster]


def _stated(given: Given) -> str:
    return ", ".join(f"--{name} {value}" for name, value in given.items())
