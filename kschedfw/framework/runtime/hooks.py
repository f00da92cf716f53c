"""Checks a profile's plugins against the hookspecs and turns their hooks into plain callables.

A pluggy call costs many times a bound method's and a cycle makes thousands, so pluggy does what it is best at,
validation, once; what runs are the bound methods themselves, in profile order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from types import MethodType
from typing import Any, Final

import attrs
import pluggy
from pluggy import PluginValidationError

from kschedfw.framework import hookspecs
from kschedfw.framework.errors import HookError, ProfileError
from kschedfw.framework.hook_spec import HookSpec
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.plugin import PER_SIGNATURE, PROJECT, AnyPlugin
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kschedfw.framework.runtime.hook_signatures import hook_problems

Hook = Callable[..., Any]
"""A hookimpl that takes all the arguments of its spec, by position."""


def hooks_of(plugin: type[AnyPlugin]) -> tuple[str, ...]:
    """The hooks that a plugin class implements by methods of their names, in the order of the hookspecs."""
    return tuple(hook for hook in HOOKS if hasattr(getattr(plugin, hook, None), f"{PROJECT}_impl"))


def points_of(plugin: type[AnyPlugin]) -> frozenset[ExtensionPoint]:
    """The extension points that a plugin has hooks for."""
    points = (HOOKS[hook].point for hook in hooks_of(plugin))
    return frozenset(point for point in points if point is not None)


def is_per_signature(plugin: AnyPlugin, hook: str) -> bool:
    """Whether the plugin's implementation of a hook is marked `per_signature`."""
    return bool(getattr(getattr(plugin, hook, None), PER_SIGNATURE, False))


class HookTable:
    """The hooks of a profile: per hook name, (plugin name, callable) in profile order.

    `sources` are the distributions of plugins by name, for error messages. With `wrap`, the table has what
    `wrap(spec, plugin name, callable)` returns in place of each callable.

    Raises:
        HookError: a hookimpl is misspelt, takes an unknown argument, or lacks the hook it goes with.
        ProfileError: a point lists a plugin that has no hook for it, or there are several queue sorts.
    """

    def __init__(
        self,
        profile: Profile,
        plugins: Mapping[str, AnyPlugin],
        sources: Mapping[str, str | None],
        wrap: Callable[[HookSpec, str, Hook], Hook] | None = None,
    ) -> None:
        self._implemented = {name: _hookimpls(plugin, sources.get(name)) for name, plugin in plugins.items()}
        self._by_hook: dict[str, tuple[tuple[str, Hook], ...]] = {}
        for hook, spec in HOOKS.items():
            enabled = profile.plugin_names if spec.point is None else self._at(profile, spec.point)
            found = [
                (name, self._implemented[name][hook]) for name in enabled if hook in self._implemented[name]
            ]
            self._by_hook[hook] = tuple(
                (name, function if wrap is None else wrap(spec, name, function)) for name, function in found
            )
        if len(self["queue_sort"]) > 1:
            names = ", ".join(name for name, _ in self["queue_sort"])
            raise ProfileError(
                f"profile {profile.scheduler_name!r}: only one queue sort plugin can be enabled, not {names}"
            )

    def __getitem__(self, hook: str) -> tuple[tuple[str, Hook], ...]:
        return self._by_hook[hook]

    def at(self, point: ExtensionPoint) -> tuple[str, ...]:
        """The plugins that take part in the point, in order."""
        return tuple(dict.fromkeys(name for hook in _hooks_at(point) for name, _ in self[hook]))

    def _at(self, profile: Profile, point: ExtensionPoint) -> Sequence[str]:
        explicit: tuple[EnabledPlugin, ...] | None = profile.points.get(point)
        if explicit is None:
            return [plugin.name for plugin in profile.multi_point]
        for plugin in explicit:
            if not _hooks_at(point) & self._implemented[plugin.name].keys():
                raise ProfileError(
                    f"profile {profile.scheduler_name!r}: {point} lists plugin {plugin.name!r}, without a hook for it"
                )
        return [plugin.name for plugin in explicit]


def _hooks_at(point: ExtensionPoint) -> frozenset[str]:
    return frozenset(hook for hook, spec in HOOKS.items() if spec.point is point)


class _Manager(pluggy.PluginManager):
    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        # pluggy before 1.7 evaluates properties to see if they are hooks; some can't be before the framework is made.
        if isinstance(inspect.getattr_static(plugin, name, None), property | cached_property):
            return None
        return super().parse_hookimpl_opts(plugin, name)


@attrs.frozen
class _Implementation:
    """A hookimpl in a plugin's class, and the arguments that it takes beside `self`, if it takes that."""

    function: Hook
    taken: tuple[str, ...]
    is_method: bool

    @classmethod
    def of(cls, impl: pluggy.HookImpl) -> _Implementation:
        function, taken = impl.function, tuple(impl.argnames)
        if isinstance(function, MethodType) and function.__self__ is impl.plugin:
            return cls(function.__func__, taken, is_method=True)
        return cls(function, taken, is_method=False)

    def bound_to(self, plugin: AnyPlugin) -> Hook:
        return MethodType(self.function, plugin) if self.is_method else self.function


@attrs.frozen
class _Checked:
    """What was found in a plugin's class while its hooks were `defined` like this."""

    defined: tuple[object, ...]
    found: Mapping[str, _Implementation]


_CHECKED: Final = "_kschedfw_checked"
"""Where a class keeps that: looking for hooks takes a while, and finds the same in every instance of a class.

A table of classes would keep them for ever: their hooks may refer to them.
"""


def _hookimpls(plugin: AnyPlugin, distribution: str | None) -> dict[str, Hook]:
    cls = type(plugin)
    # A class can be changed: tests replace hooks of it for a while.
    defined = tuple([getattr(cls, hook, None) for hook in HOOKS])
    known: _Checked | None = vars(cls).get(_CHECKED)
    if HOOKS.keys() & getattr(plugin, "__dict__", {}).keys():  # hooks of this instance alone
        found = _check(plugin, distribution)
    elif known is not None and known.defined == defined:
        found = known.found
    else:
        found = _check(plugin, distribution)
        setattr(cls, _CHECKED, _Checked(defined, found))
    return {hook: _positional(hook, impl.bound_to(plugin), impl.taken) for hook, impl in found.items()}


def _check(plugin: AnyPlugin, distribution: str | None) -> Mapping[str, _Implementation]:
    name = plugin.name
    if problems := list(hook_problems(type(plugin))):
        raise HookError(name, "; ".join(problems), distribution)
    manager = _Manager(PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, name)
        manager.check_pending()
    except PluginValidationError as error:
        raise HookError(name, str(error), distribution) from error
    found: dict[str, _Implementation] = {}
    for caller in manager.get_hookcallers(plugin) or ():
        if not caller.has_spec():
            continue  # an optional hook, of another version than this one
        for impl in caller.get_hookimpls():
            if impl.wrapper or impl.hookwrapper:
                problem = f"its hook {caller.name!r} is a wrapper; hooks of other plugins can't be wrapped"
                raise HookError(name, problem, distribution)
            if optional := [name for name in impl.kwargnames if name in HOOKS[caller.name].arguments]:
                # pluggy would never pass them, and so neither do we
                names = ", ".join(optional)
                problem = f"its hook {caller.name!r} gives {names} a default; hooks' arguments have none"
                raise HookError(name, problem, distribution)
            found[caller.name] = _Implementation.of(impl)
    for hook in HOOKS:
        if hook not in found and callable(inspect.getattr_static(plugin, hook, None)):
            raise HookError(name, f"its method {hook!r} is not marked @hookimpl", distribution)
    for hook in found:
        needed = HOOKS[hook].goes_with
        if needed is not None and needed not in found:
            problem = f"it has the hook {hook!r} but not {needed!r}, which it goes with"
            raise HookError(name, problem, distribution)
    return found


def _positional(hook: str, function: Hook, taken: tuple[str, ...]) -> Hook:
    """The hookimpl as a callable that takes the spec's arguments, all of them, in the spec's order."""
    return function if taken == HOOKS[hook].arguments else _adapter(hook, taken)(function)


@cache  # there are only so many hooks and arguments
def _adapter(hook: str, taken: tuple[str, ...]) -> Callable[[Hook], Hook]:
    # Built as source since this runs once per node and plugin: picking arguments at run time from *args costs
    # several times the call itself. Both lists come from hookspecs, never from outside.
    adapter: Callable[[Hook], Hook] = eval(
        f"lambda function: lambda {', '.join(HOOKS[hook].arguments)}: function({', '.join(taken)})"
    )
    return adapter
