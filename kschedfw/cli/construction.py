"""Checks that plugins can be made, as a scheduler does when it starts."""

from __future__ import annotations

from collections.abc import Iterator

from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.errors import PluginError
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry


def refused_profile(profile: Profile, registry: Registry, path: str) -> Iterator[FieldError]:
    """The errors with which the profile can't run: those of single plugins, or else of all together."""
    errors = [
        error
        for name in profile.plugin_names
        if (error := _refusal(Profile([EnabledPlugin(name)], args=_args_of(profile, name)), registry))
    ]
    if not errors and (error := _refusal(profile, registry)) is not None:
        errors = [error]
    for error in errors:
        yield FieldError(path, str(error))


def refused_plugin(name: str, registry: Registry) -> PluginError | None:
    """The error of loading the plugin, or of making it with its default arguments if these are valid; None without
    one.
    """
    error = _refusal(Profile([EnabledPlugin(name)]), registry)
    return error if isinstance(error, PluginError) else None


def _args_of(profile: Profile, name: str) -> dict[str, object]:
    return {name: profile.args[name]} if name in profile.args else {}


def _refusal(profile: Profile, registry: Registry) -> KschedfwError | None:
    try:
        framework = Framework(registry, profile, cluster=InMemoryCluster(), parallelizer=Parallelizer(1))
    except KschedfwError as error:
        return error
    try:
        framework.events_to_register()
    except PluginError as error:
        return error
    finally:
        framework.close()
    return None
