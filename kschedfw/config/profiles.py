"""Profiles of a document: their plugins at each extension point, in order, with arguments.

The plugins follow kube-scheduler's rules of multiPoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import attrs

from kschedfw.api.field_errors import FieldError, shown
from kschedfw.config.catalog import PluginCatalog
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
from kschedfw.framework.errors import PluginError
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint, Origin, Profile
from kschedfw.framework.runtime.args import ArgsError
from kschedfw.framework.versions.v1_37 import GROUP_POST_FILTER

GROUP = "kubescheduler.config.k8s.io"

Expanded = Mapping[ExtensionPoint, Sequence[EnabledPlugin]]


def read_profile(
    written: KubeSchedulerProfile, catalog: PluginCatalog, api_version: str, gates: FeatureGates
) -> tuple[Callable[[], Profile], Sequence[FieldError]]:
    """Return a maker of the profile, and the errors of its plugins and arguments; paths begin at the profile.

    The maker may only be called if there are no errors in the whole document: a `Profile` refuses duplicates and
    numbers out of range, which validation reports with their paths.
    """
    name = written.scheduler_name or ""
    mentions = _mentions(written.plugins)
    expanded = expand(written.plugins, catalog, gates)
    errors = [*_unknown(mentions, catalog, name), *_broken_defaults(written.plugins, catalog, name, gates)]
    errors += _misplaced(written.plugins, catalog)
    enabled = {plugin.name for listed in expanded.values() for plugin in listed} | mentions.keys()
    # A plugin that can't be loaded is at no point; that a point lacks one would only follow from that.
    if all(map(catalog.is_known, enabled)):
        errors += _indispensable(expanded, name)
    args, wrong = _args(written.plugin_config, enabled, catalog, api_version, gates)
    maker = partial(
        Profile,
        points={
            point: tuple(_at_its_point(plugin, point, catalog) for plugin in listed)
            for point, listed in expanded.items()
        },
        args=args,
        scheduler_name=name,
        percentage_of_nodes_to_score=written.percentage_of_nodes_to_score,
    )
    return maker, [*errors, *wrong]


def useless_entries(written: KubeSchedulerProfile, catalog: PluginCatalog) -> Iterator[str]:
    """Yield warnings about entries with unknown plugin names that kube-scheduler accepts; they have no effect."""
    for where in (MULTI_POINT, *POINTS):
        for index, plugin in enumerate(_listed(written.plugins, where).disabled):
            if plugin.name != ALL and not catalog.exists(plugin.name):
                path = f"plugins.{where}.disabled[{index}]"
                why = f"there is no plugin {shown(plugin.name)}, so nothing is disabled"
                yield f"{path}: {why}{catalog.hint(plugin.name)}"
    mentioned = _mentions(written.plugins)
    for index, config in enumerate(written.plugin_config):
        if config.name not in mentioned and not catalog.is_known(config.name):
            why = f"plugin {shown(config.name)} is neither enabled nor installed; its args are passed over"
            yield f"pluginConfig[{index}]: {why}{catalog.hint(config.name)}"


_WEIGHTED = (ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE)


def _at_its_point(plugin: EnabledPlugin, point: ExtensionPoint, catalog: PluginCatalog) -> EnabledPlugin:
    # kube-scheduler reads 0, Go's value of a field that isn't there, as 1.
    weight = (plugin.weight or 1) if point in _WEIGHTED else 0
    return attrs.evolve(plugin, weight=weight, distribution=catalog.distribution(plugin.name))


# --- Which plugins ---


def _mentions(plugins: Plugins) -> dict[str, list[tuple[str, str]]]:
    """Return every plugin that the profile itself enables, with the points and the paths where it does."""
    found: dict[str, list[tuple[str, str]]] = {}
    for where in (MULTI_POINT, *POINTS):
        for path, name in _paths(_listed(plugins, where), where):
            found.setdefault(name, []).append((str(where), path))
    return found


def _listed(plugins: Plugins, where: str) -> PluginSet:
    return plugins.multi_point if where == MULTI_POINT else plugins.at(ExtensionPoint(where))


def _paths(plugins: PluginSet, where: str) -> Iterator[tuple[str, str]]:
    """Yield the path in the profile and the name of each plugin that a plugin set enables."""
    for index, plugin in enumerate(plugins.enabled):
        yield f"plugins.{where}.enabled[{index}]", plugin.name


def _unknown(
    mentions: Mapping[str, Sequence[tuple[str, str]]], catalog: PluginCatalog, profile: str
) -> Iterator[FieldError]:
    for name, places in mentions.items():
        if (problem := catalog.problem(name)) is not None:
            points = ", ".join(dict.fromkeys(where for where, _ in places))
            why = f'{problem} (profile "{profile}" wants it at {points})'
            yield FieldError.invalid(places[0][1], name, why)


def _broken_defaults(
    plugins: Plugins, catalog: PluginCatalog, profile: str, gates: FeatureGates
) -> Iterator[FieldError]:
    """Yield errors of default plugins that are installed and can't be used, such as a broken replacement."""
    for plugin in multi_point(plugins.multi_point, gates):
        # Plugins that the profile names are checked with its mentions; a default one that isn't installed is left
        # out.
        if plugin.origin is not Origin.DEFAULT or not catalog.exists(plugin.name):
            continue
        if (problem := catalog.problem(plugin.name)) is not None:
            why = f'{problem} (profile "{profile}" has it by default)'
            yield FieldError.invalid("plugins.multiPoint", plugin.name, why)


def _misplaced(plugins: Plugins, catalog: PluginCatalog) -> Iterator[FieldError]:
    for point in POINTS:
        for path, name in _paths(plugins.at(point), point):
            points = catalog.points(name)
            if catalog.is_known(name) and point not in points:
                has = ", ".join(each for each in POINTS if each in points) or "none"
                why = f'plugin "{name}" does not extend {point}; its extension points: {has}'
                yield FieldError.invalid(path, name, why)


def _indispensable(expanded: Expanded, profile: str) -> Iterator[FieldError]:
    sorts = expanded[ExtensionPoint.QUEUE_SORT]
    of = f'for profile with scheduler name "{profile}"'
    if not sorts:
        yield FieldError.required("plugins.queueSort", f"at least one queue sort plugin is needed {of}")
    if len(sorts) > 1:
        names = ", ".join(plugin.name for plugin in sorts)
        why = f"only one queue sort plugin required {of}, but got {len(sorts)}"
        yield FieldError.invalid("plugins.queueSort", names, why)
    if not expanded[ExtensionPoint.BIND]:
        yield FieldError.required("plugins.bind", f"at least one bind plugin is needed {of}")


def named(plugins: PluginSet, where: str) -> list[EnabledPlugin]:
    """Return the plugins that a plugin set enables, in order; `where` is an extension point or multiPoint."""
    origin = Origin.MULTI_POINT if where == MULTI_POINT else Origin.EXPLICIT
    return [attrs.evolve(plugin, origin=origin) for plugin in plugins.enabled]


def multi_point(plugins: PluginSet, gates: FeatureGates) -> list[EnabledPlugin]:
    """Return the default plugins with these gates, with the profile's changes in place, then its other plugins."""
    own = named(plugins, MULTI_POINT)
    by_name = {plugin.name: plugin for plugin in own}
    disabled = plugins.disabled_names
    merged = [
        by_name.get(default.name, default)
        for default in (() if ALL in disabled else default_plugins(gates))
        if default.name not in disabled
    ]
    # By identity: a plugin that is named twice stays twice, which is reported as an error later.
    in_place = set(map(id, merged))
    return merged + [plugin for plugin in own if id(plugin) not in in_place]


def expand(
    plugins: Plugins, catalog: PluginCatalog, gates: FeatureGates
) -> dict[ExtensionPoint, list[EnabledPlugin]]:
    """Return the plugins of every extension point.

    The order is: those that both the point and multiPoint name, then multiPoint's, of which the default ones are
    first, then the others that the point names.
    """
    everywhere = multi_point(plugins.multi_point, gates)
    # Before, no plugin was asked about a group, so none is listed.
    known = set(ExtensionPoint)
    if not gates.follows(GROUP_POST_FILTER):
        known.remove(ExtensionPoint.POD_GROUP_POST_FILTER)
    points = {plugin.name: catalog.points(plugin.name) for plugin in everywhere}
    return {
        point: _at_point(
            plugins.at(point),
            named(plugins.at(point), point),
            [plugin for plugin in everywhere if point in points[plugin.name] & known],
        )
        for point in ExtensionPoint
    }


def _at_point(
    plugins: PluginSet, own: list[EnabledPlugin], everywhere: Iterable[EnabledPlugin]
) -> list[EnabledPlugin]:
    disabled = plugins.disabled_names
    if ALL in disabled:
        return own
    inherited = [plugin for plugin in everywhere if plugin.name not in disabled]
    own_names = {plugin.name for plugin in own}
    overridden = {plugin.name for plugin in inherited} & own_names
    return [
        # kube-scheduler's order (expandMultiPointPlugins): a plugin that the point and multiPoint name comes first,
        # at the weight of the point; further plugins of the point come last.
        *(plugin for plugin in own if plugin.name in overridden),
        *(plugin for plugin in inherited if plugin.name not in own_names),
        *(plugin for plugin in own if plugin.name not in overridden),
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
        except PluginError as error:
            errors.append(FieldError(f"{path}.args", str(error)))
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
        except PluginError as error:
            errors.append(FieldError("pluginConfig", str(error)))
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
