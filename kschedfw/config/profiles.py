"""Construction of a document's profiles: their plugins at each extension point, in order, with arguments.

The plugins follow kube-scheduler's rules of multiPoint.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from kschedfw.api.field_errors import FieldError, shown
from kschedfw.api.records import frozen
from kschedfw.config.catalog import PluginCatalog
from kschedfw.config.configuration import ConfiguredPlugin, Origin, ProfileConfiguration
from kschedfw.config.default_profile import default_plugins
from kschedfw.config.schema import (
    ALL,
    MULTI_POINT,
    POINTS,
    KubeSchedulerProfile,
    PluginConfig,
    Plugins,
    PluginSet,
)
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.args import ArgsError

GROUP = "kubescheduler.config.k8s.io"


@frozen
class PluginPlacement:
    """A plugin at an extension point. `path` is the place in the profile that names it; empty for a default plugin."""

    name: str
    origin: Origin
    weight: int = 0
    path: str = ""


Placed = Mapping[ExtensionPoint, Sequence[PluginPlacement]]


@frozen
class BuiltProfile:
    """A profile and its errors, whose paths begin at the profile; with errors, it can't be used."""

    profile: ProfileConfiguration
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def build_profile(
    written: KubeSchedulerProfile, catalog: PluginCatalog, api_version: str, gates: FeatureGates
) -> BuiltProfile:
    """Expand a profile's plugins and structure their arguments; collects all errors."""
    name = written.scheduler_name or ""
    mentions = _mentions(written.plugins)
    placed = expand(written.plugins, catalog, gates)
    errors = [*_unknown(mentions, catalog, name), *_broken_defaults(written.plugins, catalog, name, gates)]
    errors += _misplaced(written.plugins, catalog)
    enabled = {placement.name for listed in placed.values() for placement in listed} | mentions.keys()
    # A plugin that can't be loaded is at no point; that a point lacks one would only follow from that.
    if all(map(catalog.is_known, enabled)):
        errors += _indispensable(placed, name)
    args, wrong = _args(written.plugin_config, enabled, catalog, api_version, gates)
    profile = ProfileConfiguration(
        scheduler_name=name,
        plugins={
            point: tuple(_configured(placement, point, catalog) for placement in listed)
            for point, listed in placed.items()
        },
        args=args,
        percentage_of_nodes_to_score=written.percentage_of_nodes_to_score,
    )
    return BuiltProfile(profile, (*errors, *wrong), tuple(_useless(written, enabled, catalog)))


def _useless(written: KubeSchedulerProfile, enabled: Container[str], catalog: PluginCatalog) -> Iterator[str]:
    """Yield warnings about entries with unknown plugin names that kube-scheduler accepts; they have no effect."""
    for where in (MULTI_POINT, *POINTS):
        for index, plugin in enumerate(_listed(written.plugins, where).disabled):
            if plugin.name != ALL and not catalog.exists(plugin.name):
                path = f"plugins.{where}.disabled[{index}]"
                why = f"there is no plugin {shown(plugin.name)}, so nothing is disabled"
                yield f"{path}: {why}{catalog.hint(plugin.name)}"
    for index, config in enumerate(written.plugin_config):
        if config.name not in enabled and not catalog.is_known(config.name):
            why = f"plugin {shown(config.name)} is neither enabled nor installed; its args are passed over"
            yield f"pluginConfig[{index}]: {why}{catalog.hint(config.name)}"


_WEIGHTED = (ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE)


def _configured(
    placement: PluginPlacement, point: ExtensionPoint, catalog: PluginCatalog
) -> ConfiguredPlugin:
    return ConfiguredPlugin(
        placement.name,
        placement.origin,
        # kube-scheduler reads 0, Go's value of a field that isn't there, as 1.
        weight=(placement.weight or 1) if point in _WEIGHTED else 0,
        distribution=catalog.distribution(placement.name),
    )


# --- Which plugins ---


def _mentions(plugins: Plugins) -> dict[str, list[tuple[str, PluginPlacement]]]:
    """Return every plugin that the profile itself enables, with the places where it does."""
    found: dict[str, list[tuple[str, PluginPlacement]]] = {}
    for where in (MULTI_POINT, *POINTS):
        for placement in named(_listed(plugins, where), where):
            found.setdefault(placement.name, []).append((str(where), placement))
    return found


def _listed(plugins: Plugins, where: str) -> PluginSet:
    return plugins.multi_point if where == MULTI_POINT else plugins.at(ExtensionPoint(where))


def _unknown(
    mentions: Mapping[str, list[tuple[str, PluginPlacement]]], catalog: PluginCatalog, profile: str
) -> Iterator[FieldError]:
    for name, places in mentions.items():
        if (problem := catalog.problem(name)) is not None:
            points = ", ".join(dict.fromkeys(where for where, _ in places))
            why = f'{problem} (profile "{profile}" wants it at {points})'
            yield FieldError.invalid(places[0][1].path, name, why)


def _broken_defaults(
    plugins: Plugins, catalog: PluginCatalog, profile: str, gates: FeatureGates
) -> Iterator[FieldError]:
    """Yield errors of default plugins that are installed and can't be used, such as a broken replacement."""
    for placement in multi_point(plugins.multi_point, gates):
        # Plugins that the profile names are checked with its mentions; a default one that isn't installed is left
        # out.
        if placement.origin is not Origin.DEFAULT or not catalog.exists(placement.name):
            continue
        if (problem := catalog.problem(placement.name)) is not None:
            why = f'{problem} (profile "{profile}" has it by default)'
            yield FieldError.invalid("plugins.multiPoint", placement.name, why)


def _misplaced(plugins: Plugins, catalog: PluginCatalog) -> Iterator[FieldError]:
    for point in POINTS:
        for placement in named(plugins.at(point), point):
            points = catalog.points(placement.name)
            if catalog.is_known(placement.name) and point not in points:
                has = ", ".join(each for each in POINTS if each in points) or "none"
                why = f'plugin "{placement.name}" does not extend {point}; its extension points: {has}'
                yield FieldError.invalid(placement.path, placement.name, why)


def _indispensable(placed: Placed, profile: str) -> Iterator[FieldError]:
    sorts = placed[ExtensionPoint.QUEUE_SORT]
    of = f'for profile with scheduler name "{profile}"'
    if not sorts:
        yield FieldError.required("plugins.queueSort", f"at least one queue sort plugin is needed {of}")
    if len(sorts) > 1:
        names = ", ".join(placement.name for placement in sorts)
        why = f"only one queue sort plugin required {of}, but got {len(sorts)}"
        yield FieldError.invalid("plugins.queueSort", names, why)
    if not placed[ExtensionPoint.BIND]:
        yield FieldError.required("plugins.bind", f"at least one bind plugin is needed {of}")


def named(plugins: PluginSet, where: str) -> list[PluginPlacement]:
    """Return the plugins that a plugin set enables, in order; `where` is an extension point or multiPoint."""
    origin = Origin.MULTI_POINT if where == MULTI_POINT else Origin.EXPLICIT
    return [
        PluginPlacement(plugin.name, origin, plugin.weight, f"plugins.{where}.enabled[{index}]")
        for index, plugin in enumerate(plugins.enabled)
    ]


def multi_point(plugins: PluginSet, gates: FeatureGates) -> list[PluginPlacement]:
    """Return the default plugins with these gates, with the profile's changes in place, then its other plugins."""
    own = {placement.name: placement for placement in named(plugins, MULTI_POINT)}
    disabled = plugins.disabled_names
    merged: list[PluginPlacement] = []
    for default in () if ALL in disabled else default_plugins(gates):
        if default.name not in disabled:
            merged.append(
                own.get(default.name) or PluginPlacement(default.name, Origin.DEFAULT, default.weight),
            )
    in_place = {placement.path for placement in merged}
    # A plugin that is named twice stays twice: that is reported as an error later.
    return merged + [each for each in named(plugins, MULTI_POINT) if each.path not in in_place]


def expand(
    plugins: Plugins, catalog: PluginCatalog, gates: FeatureGates
) -> dict[ExtensionPoint, list[PluginPlacement]]:
    """Return the plugins of every extension point.

    The order is: those that both the point and multiPoint name, then multiPoint's, of which the default ones are
    first, then the others that the point names.
    """
    everywhere = multi_point(plugins.multi_point, gates)
    points = {placement.name: catalog.points(placement.name) for placement in everywhere}
    return {
        point: _at_point(
            plugins.at(point),
            named(plugins.at(point), point),
            [placement for placement in everywhere if point in points[placement.name]],
        )
        for point in ExtensionPoint
    }


def _at_point(
    plugins: PluginSet, own: list[PluginPlacement], everywhere: Iterable[PluginPlacement]
) -> list[PluginPlacement]:
    disabled = plugins.disabled_names
    if ALL in disabled:
        return own
    inherited = [placement for placement in everywhere if placement.name not in disabled]
    own_names = {placement.name for placement in own}
    overridden = {placement.name for placement in inherited} & own_names
    return [
        # kube-scheduler's order (expandMultiPointPlugins): a plugin that the point and multiPoint name comes first,
        # at the weight of the point; further plugins of the point come last.
        *(placement for placement in own if placement.name in overridden),
        *(placement for placement in inherited if placement.name not in own_names),
        *(placement for placement in own if placement.name not in overridden),
    ]


# --- Arguments ---


def _args(
    configs: Sequence[PluginConfig],
    enabled: set[str],
    catalog: PluginCatalog,
    api_version: str,
    gates: FeatureGates,
) -> tuple[dict[str, object], list[FieldError]]:
    """Return the arguments of known plugins: first the given ones, then the defaults of the other plugins."""
    args: dict[str, object] = {}
    errors: list[FieldError] = []
    given = {config.name for config in configs}
    for index, config in enumerate(configs):
        if not catalog.is_known(config.name):
            continue
        path = f"pluginConfig[{index}]"
        if (mistaken := _mistaken_type(path, config, api_version)) is not None:
            errors.append(mistaken)
            continue
        try:
            structured = catalog.args(config.name, config.args, gates)
        except ArgsError as error:
            errors += [problem.inside(f"{path}.args") for problem in error.errors]
        else:
            if structured is not None:
                args[config.name] = structured
    # Sorted, since a set's order differs from run to run.
    for name in sorted(enabled - given):
        try:
            if (default := catalog.args(name, None, gates)) is not None:
                args[name] = default
        except ArgsError as error:
            errors.append(FieldError.required("pluginConfig", f"plugin {error}"))
    return args, errors


def _mistaken_type(path: str, config: PluginConfig, api_version: str) -> FieldError | None:
    """Return an error if the arguments have `kind` or `apiVersion` and these aren't the plugin's."""
    if config.args is None:
        return None
    kind, version = config.args.get("kind"), config.args.get("apiVersion")
    expected = f"{config.name}Args"
    if kind not in (None, "", expected):
        what = f"args for plugin {config.name} were not of type {expected}.{GROUP}, got {kind}.{GROUP}"
        return FieldError(path, what)
    if isinstance(version, str) and version.startswith(f"{GROUP}/") and version != api_version:
        return FieldError.invalid(
            f"{path}.args.apiVersion", version, f'must be "{api_version}", as the document'
        )
    return None
