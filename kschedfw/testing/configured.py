"""Whole configurations for tests, loaded or from a file, and the choice among equally good nodes."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from kschedfw import Profile, Registry, SchedulerConfiguration, load_configuration
from kschedfw.api.spelling import did_you_mean
from kschedfw.framework.errors import ProfileError
from kschedfw.scheduler.select import FirstByNameSelector, HostSelector
from kschedfw.scheduler.setup import profiles_of

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


def wrong_args(args: object, registry: Registry, plugins: Sequence[str]) -> str:
    """Return what is wrong with arguments that aren't those of plugins that the registry offers; empty if all are.

    A configuration may have arguments of other plugins, as in kube-scheduler. In a test of the `plugins` they are a
    mistake.
    """
    known = registry.names()
    if not isinstance(args, Mapping):
        return f"args: expected a mapping from names of plugins, found {type(args).__name__}"
    for name in args:
        if name in known:
            continue
        if registry.is_blocked(name):
            return f"args: plugin {name!r} is blocked in this registry"
        example = plugins[0] if plugins else known[0]
        return (
            f"args: no plugin has the name {name!r}{did_you_mean(str(name), known)}; arguments are given by their "
            f"plugin's name: args={{{example!r}: …}}"
        )
    return ""


def profile_of(configuration: SchedulerConfiguration, name: str | None) -> Profile:
    """Return the profile of that scheduler name, or the first one. Raise ProfileError if there is none."""
    profiles = {profile.scheduler_name: profile for profile in profiles_of(configuration)}
    chosen = next(iter(profiles.values())) if name is None else profiles.get(name)
    if chosen is None:
        raise ProfileError(f"no profile is named {name!r}; there is {', '.join(profiles)}")
    return chosen


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
