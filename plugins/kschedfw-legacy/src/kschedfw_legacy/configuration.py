"""The configuration of a profile made from a Policy or an algorithm provider, with defaults for everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from kschedfw import ArgsError, EnabledPlugin, ExtensionPoint, Profile
from kschedfw.api import FieldError
from kschedfw.config import ConfigurationError, ExtenderConfig, PluginCatalog, SchedulerConfiguration
from kschedfw_legacy.provenance import provenance

NOT_IN_THIS_VERSION: Final = "not in this version"


def configuration_of(
    profile: Profile,
    catalog: PluginCatalog,
    *,
    source: str,
    api_version: str = "",
    extenders: tuple[ExtenderConfig, ...] = (),
    warnings: tuple[str, ...] = (),
) -> SchedulerConfiguration:
    """Return the configuration with this profile. Unavailable plugins don't run, and are told with a warning.

    Raises:
        ConfigurationError: plugins refuse their arguments.
    """
    args, errors = _args(profile, catalog)
    if errors:
        raise ConfigurationError(source, errors)
    configured = attrs.evolve(
        profile,
        points={
            point: tuple(_looked_up(plugin, catalog) for plugin in profile.points.get(point, ()))
            for point in ExtensionPoint
        },
        args=args,
    )
    return SchedulerConfiguration(
        source=source,
        api_version=api_version,
        profiles=(configured,),
        extenders=extenders,
        warnings=(*warnings, *_warnings(profile, catalog)),
    )


def _looked_up(plugin: EnabledPlugin, catalog: PluginCatalog) -> EnabledPlugin:
    if catalog.is_known(plugin.name):
        return attrs.evolve(plugin, distribution=catalog.distribution(plugin.name))
    return attrs.evolve(plugin, absence=NOT_IN_THIS_VERSION)


def _args(profile: Profile, catalog: PluginCatalog) -> tuple[Mapping[str, object], list[FieldError]]:
    args: dict[str, object] = {}
    errors: list[FieldError] = []
    for name in profile.plugin_names:
        if not catalog.is_known(name):
            continue
        try:
            made = catalog.args(name, profile.args.get(name))
        except ArgsError as error:
            errors += [problem.inside(name) for problem in error.errors]
        else:
            if made is not None:
                args[name] = made
    return args, errors


def _warnings(profile: Profile, catalog: PluginCatalog) -> Iterator[str]:
    for name, asked in provenance(profile).items():
        if not catalog.is_known(name):
            yield f"plugin {name!r} ({', '.join(asked)}) is left out: {NOT_IN_THIS_VERSION}"
