"""Finds plugins by name: in-process registrations and the entry-point group `kschedfw`."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections import defaultdict
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

import pluggy

from kschedfw.framework.errors import PluginLoadError, PluginNotFoundError
from kschedfw.framework.plugin import PROJECT, AnyPlugin, Plugin

PluginT = TypeVar("PluginT", bound=type[AnyPlugin])


REPLACING = f"{PROJECT}.replace"
"""The entry-point group of plugins that take the place of one of the same name in the group `kschedfw`."""


class Registry:
    """The plugins that profiles may enable.

    An entry point is imported only when `load` asks for its name, so a broken distribution that no profile
    enables harms nobody. `Registry(entry_points=False)` knows only what is registered by hand.

    A name belongs to one plugin. Who offers another one of this name has to say that it takes the other's place: an
    in-process plugin by `register(…, replace=True)`, an installed one by its entry point, in the group
    `kschedfw.replace` instead of `kschedfw`. Without that it is an error that names both.
    """

    def __init__(self, *, entry_points: bool = True) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._entry_points = _installed() if entry_points else {}
        self._imported: set[str] = set()
        self._distributions: dict[
            str, str | None
        ] = {}  # reading a distribution's metadata takes milliseconds

    def register(self, plugin: PluginT, *, replace: bool = False) -> PluginT:
        """Offer a plugin class from this process; with `replace`, in the place of any other plugin of its name.

        May be used as a class decorator. Registering a class again, or one that its distribution offers anyway,
        changes nothing.

        Raises:
            PluginLoadError: it is no Plugin class, has no name, is blocked, or there is another plugin of its name.
        """
        _check(plugin, getattr(plugin, "name", None), None)
        name = plugin.name
        if self._manager.is_blocked(name):
            raise PluginLoadError(name, "it is blocked in this registry")
        known = self._manager.get_plugin(name)
        if known is plugin:
            return plugin
        if not replace:
            self._refuse_clash(plugin, known)
        if known is not None:
            self._manager.unregister(known)
        self._imported.discard(name)
        self._manager.register(plugin, name)
        return plugin

    def _refuse_clash(self, plugin: type[AnyPlugin], known: object | None) -> None:
        """Raise PluginLoadError if there is another plugin of this name, registered or installed."""
        offers = _foremost(self._entry_points.get(plugin.name, []))
        others = [_offer(offer) for offer in offers if not _is_imported_as(plugin, offer)]
        if known is not None and plugin.name not in self._imported:
            others = [f"{_where(known)}, which is registered"]
        if not others:
            return
        raise PluginLoadError(
            plugin.name,
            f"{_where(plugin)} has the name of {' and '.join(others)}; give it another name, or have it take the "
            f"other's place: register({plugin.__name__}, replace=True)",
        )

    def block(self, name: str) -> None:
        """Never load or offer the plugin of this name, nor keep one that was registered."""
        self._manager.set_blocked(name)

    def names(self) -> list[str]:
        """All plugins on offer, sorted; nothing is imported."""
        registered = {name for name, plugin in self._manager.list_name_plugin() if plugin is not None}
        return sorted(
            name for name in registered | set(self._entry_points) if not self._manager.is_blocked(name)
        )

    def replaced(self, name: str) -> Sequence[str]:
        """The distributions (name and version) whose plugin of this name isn't used: another took its place."""
        offers = self._entry_points.get(name, [])
        if self._manager.has_plugin(name) and name not in self._imported:
            plugin = self._manager.get_plugin(name)
            return [_distribution(offer) or "?" for offer in offers if not _is_imported_as(plugin, offer)]
        used = _foremost(offers)
        return [_distribution(offer) or "?" for offer in offers if offer not in used]

    def distribution(self, name: str) -> str | None:
        """Name and version of the distribution whose entry point offers the plugin; None for a registration."""
        offers = _foremost(self._entry_points.get(name, []))
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
                distributions offer the name and none of them replaces the others.
        """
        if self._manager.is_blocked(name):
            raise PluginNotFoundError(name, "it is blocked in this registry")
        if not self._manager.has_plugin(name):
            self._import(name)
        plugin = self._manager.get_plugin(name)
        assert isinstance(plugin, type)
        return plugin

    def _import(self, name: str) -> None:
        offers = _foremost(self._entry_points.get(name, []))
        if not offers:
            raise PluginNotFoundError(name, self._not_found(name))
        if len(offers) > 1:
            both = " and ".join(sorted(map(_offer, offers)))
            raise PluginLoadError(
                name,
                f"{both} have the same name; uninstall all but one, or have one take the others' place: by its entry "
                f"point in the group {REPLACING!r}, or by Registry.register(…, replace=True)",
            )
        distribution = _distribution(offers[0])
        try:
            plugin = offers[0].load()
        except Exception as error:
            raise PluginLoadError(
                name,
                f"loading {offers[0].value} failed: {type(error).__name__}: {error}{_place_of(error)}",
                distribution,
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
    for group in (PROJECT, REPLACING):
        for entry_point in entry_points(group=group):
            found[entry_point.name].append(entry_point)
    return dict(found)


def _foremost(offers: Sequence[EntryPoint]) -> Sequence[EntryPoint]:
    """Those that take the others' place, if there are any."""
    return [offer for offer in offers if offer.group == REPLACING] or offers


def _is_imported_as(plugin: object, offer: EntryPoint) -> bool:
    """Whether the entry point is for this very class, as far as its module is imported; if not, it can't be."""
    found: object = sys.modules.get(offer.module)
    for name in offer.attr.split("."):
        found = getattr(found, name, None)
    return found is plugin


def _where(plugin: object) -> str:
    return f"{plugin.__module__}:{plugin.__qualname__}" if isinstance(plugin, type) else repr(plugin)


def _place_of(error: Exception) -> str:
    """Where it was raised, as a SyntaxError says it of itself; empty where no module of the plugin's was reached."""
    machinery = ("<", *importlib.__path__)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)[1:]
        if not frame.filename.startswith(machinery)
    ]
    if isinstance(error, SyntaxError) or not frames:
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _offer(entry_point: EntryPoint) -> str:
    return f"{entry_point.value} of {_distribution(entry_point) or '?'}"


def _distribution(entry_point: EntryPoint) -> str | None:
    return None if entry_point.dist is None else _name_and_version(entry_point.dist)


@lru_cache(maxsize=64)  # one distribution offers many plugins, and each look parses its metadata
def _name_and_version(distribution: Distribution) -> str:
    return f"{distribution.name} {distribution.version}"


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
