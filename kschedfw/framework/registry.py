"""Finds plugins by name: in-process registrations and the entry-point group `kschedfw`."""

from __future__ import annotations

from collections import defaultdict
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

import pluggy

from kschedfw.framework.errors import PluginLoadError, PluginNotFoundError
from kschedfw.framework.plugin import PROJECT, AnyPlugin, Plugin

PluginT = TypeVar("PluginT", bound=type[AnyPlugin])


class Registry:
    """The plugins that profiles may enable.

    An entry point is imported only when `load` asks for its name, so a broken distribution that no profile
    enables harms nobody. `Registry(entry_points=False)` knows only what is registered by hand.
    """

    def __init__(self, *, entry_points: bool = True) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._entry_points = _installed() if entry_points else {}
        self._imported: set[str] = set()
        self._distributions: dict[
            str, str | None
        ] = {}  # reading a distribution's metadata takes milliseconds

    def register(self, plugin: PluginT) -> PluginT:
        """Offer a plugin class from this process; it takes precedence over an entry point that wasn't loaded yet.

        May be used as a class decorator.

        Raises:
            PluginLoadError: it is no Plugin class, has no name, or its name is registered already.
        """
        _check(plugin, getattr(plugin, "name", None), None)
        try:
            registered = self._manager.register(plugin, plugin.name)
        except ValueError:
            raise PluginLoadError(plugin.name, "a plugin of this name is registered already") from None
        if registered is None:
            raise PluginLoadError(plugin.name, "it is blocked in this registry")
        return plugin

    def block(self, name: str) -> None:
        """Never load or offer the plugin of this name, nor keep one that was registered."""
        self._manager.set_blocked(name)

    def names(self) -> list[str]:
        """All plugins on offer, sorted; nothing is imported."""
        registered = {name for name, plugin in self._manager.list_name_plugin() if plugin is not None}
        return sorted(
            name for name in registered | set(self._entry_points) if not self._manager.is_blocked(name)
        )

    def distribution(self, name: str) -> str | None:
        """Name and version of the distribution whose entry point offers the plugin; None for a registration."""
        offers = self._entry_points.get(name, [])
        registered = self._manager.has_plugin(name) and name not in self._imported
        if registered or not offers:
            return None
        if name not in self._distributions:
            self._distributions[name] = _distribution(offers[0])
        return self._distributions[name]

    def load(self, name: str) -> type[AnyPlugin]:
        """The plugin class of this name, imported now if it comes from an entry point.

        Raises:
            PluginNotFoundError: there is none, or it is blocked.
            PluginLoadError: its import fails, it is no Plugin class, its own name is another, or several
                distributions offer the name.
        """
        if self._manager.is_blocked(name):
            raise PluginNotFoundError(name, "it is blocked in this registry")
        if not self._manager.has_plugin(name):
            self._import(name)
        plugin = self._manager.get_plugin(name)
        assert isinstance(plugin, type)
        return plugin

    def _import(self, name: str) -> None:
        offers = self._entry_points.get(name, [])
        if not offers:
            raise PluginNotFoundError(name, self._not_found(name))
        distribution = _distribution(offers[0])
        if len(offers) > 1:
            several = ", ".join(sorted(_distribution(offer) or "?" for offer in offers))
            raise PluginLoadError(
                name, f"several distributions offer a plugin of this name: {several}; uninstall all but one"
            )
        try:
            plugin = offers[0].load()
        except Exception as error:
            raise PluginLoadError(
                name, f"loading {offers[0].value} failed: {type(error).__name__}: {error}", distribution
            ) from error
        _check(plugin, name, distribution)
        self._manager.register(plugin, name)
        self._imported.add(name)

    def _not_found(self, name: str) -> str:
        known = self.names()
        similar = get_close_matches(name, known, n=1)
        hint = f"did you mean {similar[0]!r}?" if similar else f"available are: {', '.join(known) or 'none'}"
        return f"no installed distribution offers it in the entry-point group {PROJECT!r}; {hint}"


def _installed() -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = defaultdict(list)
    for entry_point in entry_points(group=PROJECT):
        found[entry_point.name].append(entry_point)
    return dict(found)


def _distribution(entry_point: EntryPoint) -> str | None:
    dist = entry_point.dist
    return None if dist is None else f"{dist.name} {dist.version}"


def _check(plugin: object, name: object, distribution: str | None) -> None:
    shown = name if isinstance(name, str) and name else repr(plugin)
    if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
        raise PluginLoadError(shown, f"{plugin!r} is not a subclass of kschedfw.Plugin", distribution)
    own_name = getattr(plugin, "name", None)
    if not isinstance(own_name, str) or not own_name:
        raise PluginLoadError(
            shown, f"{plugin.__qualname__} has no name; set name = {plugin.__name__!r}", distribution
        )
    if own_name != name:
        raise PluginLoadError(
            shown,
            f"the entry point is called {name!r} but the plugin {own_name!r}; they must be equal",
            distribution,
        )
