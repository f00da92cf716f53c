"""Whole configurations for a Policy or an algorithm provider: one profile, and defaults for everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kschedfw.api.field_errors import FieldError
from kschedfw.config.catalog import NOT_IN_THIS_VERSION, PluginCatalog
from kschedfw.config.configuration import ConfiguredPlugin, ProfileConfiguration, SchedulerConfiguration
from kschedfw.config.errors import ConfigurationError
from kschedfw.config.expansion import Origin
from kschedfw.config.extenders import ExtenderConfig
from kschedfw.config.feature_gates import DEFAULT_GATES, FeatureGates
from kschedfw.config.providers import provider_profile
from kschedfw.config.traced_profile import TracedProfile
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint
from kschedfw.framework.runtime.args import ArgsError, plugin_args
from kschedfw.framework.runtime.registry import Registry


def provider_configuration(
    name: str, gates: FeatureGates = DEFAULT_GATES, registry: Registry | None = None
) -> SchedulerConfiguration:
    """The configuration for an algorithm provider; plugins that aren't available are left out, with a warning.

    Raises:
        UnknownProviderError: there is none of this name.
    """
    return traced_configuration(
        provider_profile(name, gates),
        PluginCatalog(Registry() if registry is None else registry),
        Origin.PROVIDER,
        source=f"algorithm provider {name}",
    )


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
    """The configuration with this profile; plugins that aren't available are left out, with a warning.

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
                _configured(plugin, point, origin, profile.provenance, catalog)
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
    point: ExtensionPoint,
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
        absence=catalog.absence(plugin.name, point) if is_here else NOT_IN_THIS_VERSION,
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
            made = plugin_args(name, catalog.args_type(name), profile.args.get(name))
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
