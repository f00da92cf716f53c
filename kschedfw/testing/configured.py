"""Whole configurations for tests, loaded or from a file, and the choice among equally good nodes."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

from kschedfw import Profile, Registry, SchedulerConfiguration, default_profile, load_configuration
from kschedfw.framework.extender import Extender
from kschedfw.scheduler.extenders import close_extenders, make_extenders
from kschedfw.scheduler.select import FirstByNameSelector, HostSelector
from kschedfw.scheduler.setup import Setup

Configuration: TypeAlias = SchedulerConfiguration | Path | str
"""A configuration, or the path of its file; relative paths start at the working directory."""


@contextmanager
def set_up(
    configuration: Configuration | None,
    profiles: Sequence[Profile] | None,
    registry: Registry | None,
) -> Iterator[tuple[Setup, Sequence[Extender]]]:
    """Yield the set-up from a configuration or from profiles, of which one is None; close extenders at the end.

    Without either the profile is kube-scheduler's default one.

    Raises:
        ValueError: there are both.
        TypeError: the configuration is neither a SchedulerConfiguration nor a path.
        ConfigurationError: the configuration is refused.
        ExtensionError, MissingExtraError: it has extenders, and their client isn't installed.
        OSError: the file can't be read.
    """
    if configuration is None:
        yield Setup("", (default_profile(),) if profiles is None else tuple(profiles)), ()
        return
    if profiles is not None:
        raise ValueError("give a configuration or profiles, not both: a configuration has its own")
    read = read_configuration(configuration, registry)
    with ExitStack() as stack:
        extenders = make_extenders(read.extenders)
        stack.callback(close_extenders, extenders)
        yield Setup.of("", read), extenders


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
