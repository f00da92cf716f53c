"""Lookup of plugins by name: in-process registrations and the entry-point group `kschedfw`."""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.metadata import Distribution, EntryPoint, version
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import pluggy

from kschedfw.api.distributions import ImportFailedError, entry_points_of, imported, name_and_version
from kschedfw.framework import hookspecs
from kschedfw.framework.errors import HookError, PluginLoadError, PluginNotFoundError
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.plugin import PROJECT, AnyPlugin, Plugin
from kschedfw.framework.runtime.args import args_type_problem
from kschedfw.framework.runtime.hook_checks import MARKER, hook_problems

PluginT = TypeVar("PluginT", bound=type[AnyPlugin])


HookGuard: TypeAlias = Callable[[str, str, Callable[..., object]], Callable[..., object]]

REPLACING = f"{PROJECT}.replace"
"""The entry-point group of plugins that take the place of one of the same name in the group `kschedfw`."""
FALLBACK: Final = f"{PROJECT}.fallback"
"""The entry-point group of plugins that stand in for one of the same name while no distribution offers it."""


class Registry:
    """The plugins that profiles may enable.

    An entry point is imported only when `load` asks for its name, so a broken distribution that no profile enables
    does no harm. `Registry(entry_points=False)` knows only what is registered by hand.

    The hooks of a class are validated when a registry of this process first registers or loads it. If a hook is
    replaced in the class after that, the frameworks of a registry that has the class still call the old one.

    A name belongs to one plugin. Another plugin of this name must say that it replaces the first: an in-process plugin
    by `register(…, replace=True)`, an installed one by its entry point, in the group `kschedfw.replace` instead of
    `kschedfw`. Without that it is an error that names both. A plugin in the group `kschedfw.fallback` is loaded as long
    as no distribution offers its name in the other two.

    A `guard` gets the name of a hook, of a plugin, and the hook itself, and returns what is called in its place by the
    frameworks of this registry. It also gets the hints of subscriptions, as `hint` and `pre_hint`. Without a guard,
    hooks are called as they are.
    """

    def __init__(self, *, entry_points: bool = True, guard: HookGuard | None = None) -> None:
        self.guard = guard
        self._classes: dict[str, type[AnyPlugin]] = {}
        self._hookimpls: dict[str, Mapping[str, pluggy.HookImpl]] = {}
        self._blocked: set[str] = set()
        self._entry_points = _installed() if entry_points else {}
        self._imported: set[str] = set()
        # Kept, since reading a distribution's metadata takes milliseconds.
        self._distributions: dict[str, str | None] = {}

    def register(self, plugin: PluginT, *, replace: bool = False) -> PluginT:
        """Add a plugin class of this process; with `replace`, in place of any other plugin of its name.

        May be used as a class decorator. Registering a class again, or one that its distribution offers anyway,
        changes nothing.

        Raises:
            PluginLoadError: it is no Plugin class, has no name, is blocked, its `args_type` is no attrs class, or there
                is another plugin of its name.
            HookError: one of its hooks doesn't fit the hookspecs.
        """
        _check(plugin, getattr(plugin, "name", None), None)
        name = plugin.name
        if self.is_blocked(name):
            raise PluginLoadError(name, "it is blocked in this registry")
        known = self._classes.get(name)
        if known is plugin:
            return plugin
        if not replace:
            self._refuse_clash(plugin, known)
        self._imported.discard(name)
        self._add(plugin)
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
        """Remove the plugin of this name, and never load or offer it."""
        self._blocked.add(name)
        self._classes.pop(name, None)

    def is_blocked(self, name: str) -> bool:
        return name in self._blocked

    def names(self) -> list[str]:
        """Return the names of all plugins on offer, sorted, without importing any."""
        return sorted((self._classes.keys() | self._entry_points.keys()) - self._blocked)

    def replaced(self, name: str) -> Sequence[str]:
        """Return the distributions (name and version) whose plugin of this name was replaced by another."""
        offers = [offer for offer in self._entry_points.get(name, []) if offer.group != FALLBACK]
        plugin = self._classes.get(name)
        if plugin is not None and name not in self._imported:
            return [_distribution(offer) or "?" for offer in offers if not _is_imported_as(plugin, offer)]
        used = _foremost(offers)
        return [_distribution(offer) or "?" for offer in offers if offer not in used]

    def distribution(self, name: str) -> str | None:
        """Return name and version of the distribution that offers the plugin; None for a registered one."""
        offers = _foremost(self._entry_points.get(name, []))
        registered = name in self._classes and name not in self._imported
        if registered or not offers:
            return None
        if name not in self._distributions:
            self._distributions[name] = _distribution(offers[0])
        return self._distributions[name]

    def load(self, name: str) -> type[AnyPlugin]:
        """Return the plugin class of this name, imported now if it comes from an entry point.

        Raises:
            PluginNotFoundError: there is none, or it is blocked.
            PluginLoadError: its import fails, it is no Plugin class, its own name is another, its `args_type` is no
                attrs class, or several distributions offer the name and none of them replaces the others.
            HookError: one of its hooks doesn't fit the hookspecs.
        """
        if self.is_blocked(name):
            raise PluginNotFoundError(name, "it is blocked in this registry")
        plugin = self._classes.get(name)
        return self._import(name) if plugin is None else plugin

    def hookimpls(self, name: str) -> Mapping[str, pluggy.HookImpl]:
        """Return the hookimpls of the plugin class of this name, by hook.

        Raises:
            PluginNotFoundError, PluginLoadError, HookError: as `load` does.
        """
        self.load(name)
        return self._hookimpls[name]

    def _add(self, plugin: type[AnyPlugin]) -> None:
        self._hookimpls[plugin.name] = _hookimpls(plugin)
        self._classes[plugin.name] = plugin

    def _import(self, name: str) -> type[AnyPlugin]:
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
        try:
            found: Any = imported(offers[0])
        except ImportFailedError as error:
            why = f"{error}{_unmet(offers[0].dist)}"
            raise PluginLoadError(name, why, _distribution(offers[0])) from error.__cause__
        plugin: type[AnyPlugin] = found
        _check(plugin, name, offers[0])
        self._add(plugin)
        self._imported.add(name)
        return plugin

    def _not_found(self, name: str) -> str:
        known = self.names()
        similar = get_close_matches(name, known, n=1)
        hint = f"did you mean {similar[0]!r}?" if similar else f"available are: {', '.join(known) or 'none'}"
        return f"no installed distribution offers it in the entry-point group {PROJECT!r}; {hint}"


def _installed() -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = defaultdict(list)
    # Once for all groups: it reads the metadata of all distributions.
    for entry_point in entry_points_of((PROJECT, REPLACING, FALLBACK)):
        found[entry_point.name].append(entry_point)
    return dict(found)


def _foremost(offers: Sequence[EntryPoint]) -> Sequence[EntryPoint]:
    """Return the offers in the group `kschedfw.replace` if there are any; else those in `kschedfw`, else the rest."""
    by_group = (
        [offer for offer in offers if offer.group == group] for group in (REPLACING, PROJECT, FALLBACK)
    )
    return next(filter(None, by_group), ())


def _is_imported_as(plugin: object, offer: EntryPoint) -> bool:
    """Return whether the entry point refers to this very class. If its module isn't imported, it can't."""
    module, _, attribute = offer.value.partition(":")
    found: object = sys.modules.get(module.strip())
    for name in attribute.split("[")[0].strip().split("."):
        found = getattr(found, name, None)
    return found is plugin


def _where(plugin: object) -> str:
    return f"{plugin.__module__}:{plugin.__qualname__}" if isinstance(plugin, type) else repr(plugin)


_REQUIREMENT: Final = re.compile(
    r"\s*(?P<name>[\w.-]+)\s*(\[[^]]*\])?\s*\(?(?P<versions>[^;)]*)\)?\s*(?P<marker>;.*)?"
)
_RELEASE: Final = re.compile(r"\d+(\.\d+)*")
_CLAUSE: Final = re.compile(r"\s*(?P<operator>>=|<=|==|!=|~=|>|<)\s*(?P<version>\d+(\.\d+)*)")


def _unmet(distribution: Distribution | None) -> str:
    """Return the unmet requirements of a distribution, for the error about its plugin; empty if all are met.

    Requirements with a marker (of some systems or extras) are skipped, and versions are compared by their
    numbers alone: for more, `packaging` would have to be installed.
    """
    try:
        lines = () if distribution is None else distribution.requires or ()
    # This is about another error already.
    except Exception:
        return ""
    found = [_REQUIREMENT.fullmatch(line) for line in lines]
    unmet = [
        why for match in found if match is not None and not match["marker"] and (why := _why_unmet(match))
    ]
    return "".join(f"; it requires {why}" for why in unmet)


def _why_unmet(requirement: re.Match[str]) -> str:
    name, versions = requirement["name"], requirement["versions"].strip()
    try:
        installed = version(name)
    # Not installed, or with metadata that can't be read.
    except Exception:
        return f"{name}{versions}, which isn't installed"
    if all(_holds(clause, installed) for clause in map(_CLAUSE.fullmatch, versions.split(","))):
        return ""
    return f"{name}{versions}, and {installed} is installed"


def _holds(clause: re.Match[str] | None, installed: str) -> bool:
    """Return whether a version satisfies a clause such as `>=2.1`. Unreadable clauses (`==2.*`) count as satisfied."""
    known = _RELEASE.match(installed)
    if clause is None or known is None:
        return True
    has, wanted = (tuple(map(int, text.split("."))) for text in (known[0], clause["version"]))
    series = wanted[:-1]
    length = max(len(has), len(wanted))
    has, wanted = (numbers + (0,) * (length - len(numbers)) for numbers in (has, wanted))
    match clause["operator"]:
        case ">=":
            return has >= wanted
        case "<=":
            return has <= wanted
        case "==":
            return has == wanted
        case "!=":
            return has != wanted
        case "~=":
            return has >= wanted and has[: len(series)] == series
        case ">":
            return has > wanted
    return has < wanted


def _offer(entry_point: EntryPoint) -> str:
    return f"{entry_point.value} of {_distribution(entry_point) or '?'}"


def _distribution(entry_point: EntryPoint | None) -> str | None:
    dist = None if entry_point is None else entry_point.dist
    return None if dist is None else _name_and_version(dist)


# One distribution offers many plugins, and each look parses its metadata.
_name_and_version = lru_cache(maxsize=64)(name_and_version)


# Checking the hooks of twenty classes takes 15 ms, half of making a scheduler, and all registries load the same ones.
_PROBLEMS: Final[WeakKeyDictionary[type[AnyPlugin], Sequence[str]]] = WeakKeyDictionary()


def _hook_problems(plugin: type[AnyPlugin]) -> Sequence[str]:
    """Return the problems of a class's hooks, as they were when a registry of this process first met the class."""
    if (known := _PROBLEMS.get(plugin)) is None:
        known = _PROBLEMS[plugin] = tuple(hook_problems(plugin))
    return known


class _Manager(pluggy.PluginManager):
    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        # Attributes without the marker are no hooks. pluggy's own look takes ten times as long, and before 1.7 it
        # evaluates properties, which need an initialised plugin. It is left to tell what else can't be called.
        attribute = getattr(type(plugin), name, None)
        options: pluggy.HookimplOpts | None = getattr(attribute, MARKER, None)
        if options is None or inspect.isfunction(attribute):
            return options
        return super().parse_hookimpl_opts(plugin, name)


# One for all registries: to read the hookspecs takes 2 ms, and all registries load the same classes.
@cache
def _manager() -> _Manager:
    manager = _Manager(PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


_PARSING: Final = Lock()
"""Held while a class is in the manager."""


_KEPT: Final = f"_{PROJECT}_hookimpls"
"""The attribute in which a class keeps its parsed hooks, which refer to it, so that both are forgotten together."""


def _hookimpls(plugin: type[AnyPlugin]) -> Mapping[str, pluggy.HookImpl]:
    """Return the hookimpls that a plugin class has now, by hook."""
    # pluggy looks at every attribute of a plugin, which was half of making a scheduler.
    now = [each for hook in HOOKS if hasattr(each := getattr(plugin, hook, None), MARKER)]
    kept: tuple[list[object], Mapping[str, pluggy.HookImpl]] | None = vars(plugin).get(_KEPT)
    if kept is None or kept[0] != now:
        kept = now, _parsed(plugin)
        setattr(plugin, _KEPT, kept)
    return kept[1]


def _parsed(plugin: type[AnyPlugin]) -> Mapping[str, pluggy.HookImpl]:
    # pluggy takes objects, and finds out by what a method is bound to that `self` is no argument of the hook. An
    # instance that isn't initialised will do. Nobody calls these hooks: every framework makes instances of its own.
    instance, manager = object.__new__(plugin), _manager()
    with _PARSING:
        manager.register(instance, plugin.name)
        found = {
            caller.name: impl
            for caller in manager.get_hookcallers(instance) or ()
            # An optional hook of another version has no spec here.
            if caller.has_spec()
            for impl in caller.get_hookimpls()
            if impl.plugin is instance
        }
        manager.unregister(instance)
    return found


def _check(plugin: object, name: object, offer: EntryPoint | None) -> None:
    """Raise PluginLoadError or HookError if this is no plugin class of that name with hooks that fit."""
    shown = name if isinstance(name, str) and name else repr(plugin)
    own_name = getattr(plugin, "name", None)
    if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
        problem = f"{plugin!r} is not a subclass of kschedfw.Plugin"
    elif not isinstance(own_name, str) or not own_name:
        problem = f"{plugin.__qualname__} has no name; set name = {plugin.__name__!r}"
    elif own_name != name:
        problem = f"the entry point is called {name!r} but the plugin {own_name!r}; they must be equal"
    elif problems := _hook_problems(plugin):
        raise HookError(shown, "; ".join(problems), _distribution(offer))
    elif (why := args_type_problem(plugin.args_type)) is not None:
        problem = why
    else:
        return
    raise PluginLoadError(shown, problem, _distribution(offer))
