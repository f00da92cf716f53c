"""The configuration of a traced profile: one profile, and defaults for everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kschedfw import ArgsError, EnabledPlugin, ExtensionPoint
from kschedfw.api import FieldError
from kschedfw.config import (
    ConfigurationError,
    ConfiguredPlugin,
    ExtenderConfig,
    Origin,
    PluginCatalog,
    ProfileConfiguration,
    SchedulerConfiguration,
)
from kschedfw_legacy.traced_profile import TracedProfile

NOT_IN_THIS_VERSION: Final = "not in this version"


def traced_configuration(
    profile: TracedProfile,
    catalog: PluginCatalog,
    origin: Origin,
    *,
    source: str,
    api_version: str = "",
    extenders: tuple[ExtenderConfig, ...] = (),
    warnings: tuple[str, ...] = (),
) -> SchedulerConfiguration:
    """Return the configuration with this profile. Unavailable plugins are left out, with a warning.

    Raises:
        ConfigurationError: plugins refuse their arguments.
    """
    args, errors = _args(profile, catalog)
    if errors:
        raise ConfigurationError(source, errors)
    configured = ProfileConfiguration(
        scheduler_name=profile.scheduler_name,
        plugins={
            point: tuple(
                _configured(plugin, origin, profile.provenance, catalog)
                for plugin in profile.points.get(point, ())
            )
            for point in ExtensionPoint
        },
        args=args,
        run_all_filters=profile.run_all_filters,
    )
    return SchedulerConfiguration(
        source=source,
        api_version=api_version,
        profiles=(configured,),
        extenders=extenders,
        warnings=(*warnings, *_warnings(profile, catalog)),
    )


def _configured(
    plugin: EnabledPlugin,
    origin: Origin,
    provenance: Mapping[str, tuple[str, ...]],
    catalog: PluginCatalog,
) -> ConfiguredPlugin:
    is_here = _is_here(plugin.name, catalog)
    return ConfiguredPlugin(
        plugin.name,
        origin,
        plugin.weight,
        distribution=catalog.distribution(plugin.name) if is_here else None,
        absence="" if is_here else NOT_IN_THIS_VERSION,
        asked_by=provenance.get(plugin.name, ()),
    )


def _is_here(name: str, catalog: PluginCatalog) -> bool:
    return catalog.is_known(name)


def _args(profile: TracedProfile, catalog: PluginCatalog) -> tuple[Mapping[str, object], list[FieldError]]:
    args: dict[str, object] = {}
    errors: list[FieldError] = []
    for name in profile.plugin_names:
        if not _is_here(name, catalog):
            continue
        try:
            made = catalog.args(name, profile.args.get(name))
        except ArgsError as error:
            errors += [problem.inside(name) for problem in error.errors]
        else:
            if made is not None:
                args[name] = made
    return args, errors


def _warnings(profile: TracedProfile, catalog: PluginCatalog) -> Iterator[str]:
    for name, asked in profile.provenance.items():
        if not _is_here(name, catalog):
            yield f"plugin {name!r} ({', '.join(asked)}) is left out: {NOT_IN_THIS_VERSION}"
