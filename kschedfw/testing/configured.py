"""Whole configurations for tests, loaded or from a file, and the choice among equally good nodes."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from kschedfw import Profile, Registry, SchedulerConfiguration, load_configuration
from kschedfw.scheduler.select import FirstByNameSelector, HostSelector

Configuration: TypeAlias = SchedulerConfiguration | Path | str
"""A configuration, or the path of its file; relative paths start at the working directory."""


def given_configuration(
    configuration: Configuration | None, profiles: Sequence[Profile] | None, registry: Registry | None
) -> SchedulerConfiguration | None:
    """Return the configuration, loaded if it is a path; None without one.

    Raises:
        ValueError: there are profiles, too.
        TypeError, ConfigurationError, OSError: as `read_configuration`.
    """
    if configuration is not None and profiles is not None:
        raise ValueError("give a configuration or profiles, not both: a configuration has its own")
    return None if configuration is None else read_configuration(configuration, registry)


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
