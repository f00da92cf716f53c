"""Whole configurations for tests, loaded or from a file, and the choice among equally good nodes."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

import attrs

from kschedfw import FeatureGates, Profile, Registry, SchedulerConfiguration, load_configuration
from kschedfw.framework.extender import Extender
from kschedfw.framework.gates import DEFAULT_GATES
from kschedfw.scheduler.extenders import close_extenders, make_extenders
from kschedfw.scheduler.select import FirstByNameSelector, HostSelector
from kschedfw.scheduler.setup import profiles_of

Configuration: TypeAlias = SchedulerConfiguration | Path | str
"""A configuration, or the path of its file; relative paths start at the working directory."""


@attrs.frozen
class RunSetup:
    """The settings of a configuration for scheduling; for the fields see `Scheduler`."""

    profiles: Sequence[Profile] | None = None
    extenders: Sequence[Extender] = ()
    percentage_of_nodes_to_score: int = 0
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    feature_gates: FeatureGates = DEFAULT_GATES


@contextmanager
def set_up(
    configuration: Configuration | None,
    profiles: Sequence[Profile] | None,
    registry: Registry | None,
) -> Iterator[RunSetup]:
    """Yield the setup from a configuration or from profiles, of which one is None; close extenders at the end.

    Raises:
        ValueError: there are both.
        TypeError: the configuration is neither a SchedulerConfiguration nor a path.
        ConfigurationError: the configuration is refused.
        ExtensionError, MissingExtraError: it has extenders, and their client isn't installed.
        OSError: the file can't be read.
    """
    if configuration is None:
        yield RunSetup(profiles)
        return
    if profiles is not None:
        raise ValueError("give a configuration or profiles, not both: a configuration has its own")
    read = read_configuration(configuration, registry)
    with ExitStack() as stack:
        extenders = make_extenders(read.extenders)
        stack.callback(close_extenders, extenders)
        yield RunSetup(
            profiles_of(read),
            extenders,
            read.percentage_of_nodes_to_score,
            float(read.pod_initial_backoff_seconds),
            float(read.pod_max_backoff_seconds),
            read.gates,
        )


def tie_breaker(seed: int | None) -> HostSelector | None:
    """Return the selector of tests: None (the scheduler's random one) for a seed, else the first node by name.

    A random choice depends on all choices before it: with it, one more pod in a cluster moves unrelated pods.
    """
    return FirstByNameSelector() if seed is None else None


def read_configuration(configuration: Configuration, registry: Registry | None) -> SchedulerConfiguration:
    """Return the configuration, loaded if it is a path; the registry offers its plugins.

    Raises:
        TypeError: it is neither a configuration nor a path.
        ConfigurationError: it is refused.
        OSError: the file can't be read.
    """
    if isinstance(configuration, SchedulerConfiguration):
        return configuration
    if not isinstance(configuration, str | Path):
        found = type(configuration).__name__
        remedy = "kschedfw.config.parse_configuration makes one of a mapping or a text"
        raise TypeError(
            f"configuration: expected the path of a file or a SchedulerConfiguration, found {found}; {remedy}"
        )
    try:
        return load_configuration(configuration, registry)
    except FileNotFoundError:
        path = Path(configuration)
        where = "" if path.is_absolute() else f" in the working directory, {Path.cwd()}"
        raise FileNotFoundError(errno.ENOENT, f"No such configuration{where}", str(path)) from None
