"""The plugins of a profile at each extension point, in order, and their origin (kube-scheduler's multiPoint rules)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import attrs

from kschedfw.config.catalog import PluginCatalog
from kschedfw.config.default_profile import default_plugins
from kschedfw.config.schema import ALL, MULTI_POINT, Plugins, PluginSet
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.profile import ExtensionPoint


class Origin(StrEnum):
    """The origin of a plugin's entry."""

    DEFAULT = "default"
    MULTI_POINT = "multiPoint"
    EXPLICIT = "explicit"
    POLICY = "Policy"
    PROVIDER = "provider"


@attrs.frozen
class PluginPlacement:
    """A plugin at an extension point. `path` is the place in the profile that names it; empty for a default plugin."""

    name: str
    origin: Origin
    weight: int = 0
    path: str = ""


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
    plugins: Plugins, catalog: PluginCatalog, gates: FeatureGates = DEFAULT_GATES
) -> dict[ExtensionPoint, list[PluginPlacement]]:
    """Return the plugins of every extension point.

    The order is: those that the point itself enables, then multiPoint's, then the default ones.
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
        *(placement for placement in own if placement.name in overridden),
        *(placement for placement in inherited if placement.name not in own_names),
        *(placement for placement in own if placement.name not in overridden),
    ]
