"""A configuration that is edited: weights, plugins and arguments of its profiles."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from kschedfw import ExtensionPoint, KschedfwError, Registry, SchedulerConfiguration
from kschedfw.config import PluginCatalog, parse_configuration, written

Listed = list[dict[str, Any]]
"""The enabled plugins of an extension point: each has a `name`, and perhaps a `weight`."""

EDITED = "the edited configuration"
_SCORING = (ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE)


class ConfigurationEditError(KschedfwError):
    """There is no such profile, or no such plugin; or the plugin doesn't score."""


class ConfigurationDocument:
    """A KubeSchedulerConfiguration with every plugin and argument written out, which can be edited.

    Raises:
        ConfigurationError: a Policy asks for something that a KubeSchedulerConfiguration can't say.
    """

    def __init__(self, configuration: SchedulerConfiguration, registry: Registry) -> None:
        self._registry = registry
        self._gates = configuration.gates
        self._catalog = PluginCatalog(registry)
        self._base: Mapping[str, Any] = written(configuration)
        self.content: dict[str, Any] = copy.deepcopy(dict(self._base))

    def configuration(self) -> SchedulerConfiguration:
        """The configuration as it is now.

        Raises:
            ConfigurationError: with everything that is wrong with it.
        """
        return parse_configuration(self.content, EDITED, self._registry, gates=self._gates)

    def set_weight(self, profile: str, plugin: str, weight: int) -> None:
        """Set the weight of a score plugin; with 0 it doesn't score any more."""
        if ExtensionPoint.SCORE not in self._catalog.points(plugin):
            raise ConfigurationEditError(f"plugin {plugin!r} isn't there, or doesn't score")
        if not weight:
            for point in _SCORING:
                self._remove(profile, point, plugin)
            return
        for point in _SCORING:
            if point in self._catalog.points(plugin):
                self._insert(profile, point, plugin)
        for each in self._enabled(profile, ExtensionPoint.SCORE):
            if each["name"] == plugin:
                each["weight"] = weight

    def switch(self, profile: str, plugin: str, *, enabled: bool) -> None:
        """Take a plugin out of all extension points, or into those where it was or, if it is new, that it has."""
        points = self._catalog.points(plugin)
        if not points:
            raise ConfigurationEditError(f"there is no plugin {plugin!r}{self._catalog.hint(plugin)}")
        for point in ExtensionPoint:
            if not enabled:
                self._remove(profile, point, plugin)
            # A plugin that was switched off comes back where it was, which may be fewer points than it has.
            elif self._was_at(profile, point, plugin) or (
                point in points and not self._was_anywhere(profile, plugin)
            ):
                self._insert(profile, point, plugin)

    def set_arguments(self, profile: str, plugin: str, arguments: Mapping[str, Any]) -> None:
        """Replace the arguments of a plugin."""
        listed: list[dict[str, Any]] = self._profile(self.content, profile)["pluginConfig"]
        # In place, since the list is a part of the document.
        listed[:] = [each for each in listed if each["name"] != plugin]
        listed.append({"name": plugin, "args": dict(arguments)})

    def _insert(self, profile: str, point: ExtensionPoint, plugin: str) -> None:
        """Insert the plugin at its place in the original configuration; behind all others if it isn't there."""
        listed = self._enabled(profile, point)
        if any(each["name"] == plugin for each in listed):
            return
        original = self._enabled(profile, point, self._base)
        new = next((dict(each) for each in original if each["name"] == plugin), {"name": plugin})
        order = [each["name"] for each in original]
        rank = order.index(plugin) if plugin in order else len(order)
        before = [each for each in listed if each["name"] in order and order.index(each["name"]) < rank]
        place = listed.index(before[-1]) + 1 if before else 0
        listed.insert(place if plugin in order else len(listed), new)

    def _remove(self, profile: str, point: ExtensionPoint, plugin: str) -> None:
        listed = self._enabled(profile, point)
        # In place, since the list is a part of the document.
        listed[:] = [each for each in listed if each["name"] != plugin]

    def _was_at(self, profile: str, point: ExtensionPoint, plugin: str) -> bool:
        return any(each["name"] == plugin for each in self._enabled(profile, point, self._base))

    def _was_anywhere(self, profile: str, plugin: str) -> bool:
        return any(self._was_at(profile, point, plugin) for point in ExtensionPoint)

    def _enabled(
        self, profile: str, point: ExtensionPoint, content: Mapping[str, Any] | None = None
    ) -> Listed:
        plugins = self._profile(content or self.content, profile)["plugins"]
        # `written` has plugins of points that the API has no list for at multiPoint, and nothing else there.
        listed: Listed = plugins.get(point.value, plugins["multiPoint"])["enabled"]
        return listed

    def _profile(self, content: Mapping[str, Any], name: str) -> dict[str, Any]:
        profiles: list[dict[str, Any]] = content["profiles"]
        for profile in profiles:
            if profile["schedulerName"] == name:
                return profile
        known = ", ".join(profile["schedulerName"] for profile in profiles)
        raise ConfigurationEditError(f"there is no profile {name!r}; there is {known}")
