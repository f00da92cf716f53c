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
from kschedfw.framework.plugin import PER_SIGNATURE, PROJECT, AnyPlugin
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kschedfw.framework.runtime.hook_signatures import SPECS, hook_problems

Hook = Callable[..., Any]
"""A hookimpl that takes all the arguments of its spec, by position."""

POINT_OF_HOOK: Mapping[str, ExtensionPoint] = {
    "pre_enqueue": ExtensionPoint.PRE_ENQUEUE,
    "queue_sort": ExtensionPoint.QUEUE_SORT,
    "pre_filter": ExtensionPoint.PRE_FILTER,
    "pre_filter_add_pod": ExtensionPoint.PRE_FILTER,
    "pre_filter_remove_pod": ExtensionPoint.PRE_FILTER,
    "filter": ExtensionPoint.FILTER,
    "filter_batch": ExtensionPoint.FILTER,
    "post_filter": ExtensionPoint.POST_FILTER,
    "pre_score": ExtensionPoint.PRE_SCORE,
    "score": ExtensionPoint.SCORE,
    "score_batch": ExtensionPoint.SCORE,
    "normalize_score": ExtensionPoint.SCORE,
    "reserve": ExtensionPoint.RESERVE,
    "unreserve": ExtensionPoint.RESERVE,
    "permit": ExtensionPoint.PERMIT,
    "pre_bind_pre_flight": ExtensionPoint.PRE_BIND,
    "pre_bind": ExtensionPoint.PRE_BIND,
    "bind": ExtensionPoint.BIND,
    "post_bind": ExtensionPoint.POST_BIND,
}
"""Enabling a plugin at the point enables these hooks of it; `events_to_register` belongs to the plugin as a whole."""

_REQUIRES = {
    "filter_batch": "filter",
    "score_batch": "score",
    "normalize_score": "score",
    "pre_filter_add_pod": "pre_filter",
    "pre_filter_remove_pod": "pre_filter",
    "pre_bind_pre_flight": "pre_bind",
}


def points_of(plugin: type[AnyPlugin]) -> frozenset[ExtensionPoint]:
    """The extension points that a plugin has hooks for."""
    return frozenset(
        point
        for hook, point in POINT_OF_HOOK.items()
        if hasattr(getattr(plugin, hook, None), f"{PROJECT}_impl")
    )


def is_per_signature(plugin: AnyPlugin, hook: str) -> bool:
    """Whether the plugin's implementation of a hook is marked `per_signature`."""
    return bool(getattr(getattr(plugin, hook, None), PER_SIGNATURE, False))


class HookTable:
    """The hooks of a profile: per hook name, (plugin name, callable) in profile order.

    Raises:
        HookError: a hookimpl is misspelt, takes an unknown argument, or lacks the hook it goes with.
        ProfileError: a point lists a plugin that has no hook for it, or there are several queue sorts.
    """

    def __init__(
        self, profile: Profile, plugins: Mapping[str, AnyPlugin], sources: Mapping[str, str | None]
    ) -> None:
        self._implemented = {name: _hookimpls(plugin, sources.get(name)) for name, plugin in plugins.items()}
        self._by_hook: dict[str, tuple[tuple[str, Hook], ...]] = {}
        for hook, point in POINT_OF_HOOK.items():
            self._by_hook[hook] = tuple(
                (name, self._implemented[name][hook])
                for name in self._at(profile, point)
                if hook in self._implemented[name]
            )
        self._by_hook["events_to_register"] = tuple(
            (name, hooks["events_to_register"])
            for name, hooks in self._implemented.items()
            if "events_to_register" in hooks
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
        hooks = (hook for hook, its_point in POINT_OF_HOOK.items() if its_point is point)
        return tuple(dict.fromkeys(name for hook in hooks for name, _ in self[hook]))

    def _at(self, profile: Profile, point: ExtensionPoint) -> Sequence[str]:
        hooks = {hook for hook, its_point in POINT_OF_HOOK.items() if its_point is point}
        explicit: tuple[EnabledPlugin, ...] | None = profile.points.get(point)
        if explicit is None:
            return [plugin.name for plugin in profile.multi_point]
        for plugin in explicit:
            if not hooks & self._implemented[plugin.name].keys():
                raise ProfileError(
                    f"profile {profile.scheduler_name!r}: {point} lists plugin {plugin.name!r}, without a hook for it"
                )
        return [plugin.name for plugin in explicit]


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
    defined = tuple([getattr(cls, hook, None) for hook in SPECS])
    known: _Checked | None = vars(cls).get(_CHECKED)
    if SPECS.keys() & getattr(plugin, "__dict__", {}).keys():  # hooks of this instance alone
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
            if optional := [name for name in impl.kwargnames if name in SPECS[caller.name]]:
                # pluggy would never pass them, and so neither do we
                names = ", ".join(optional)
                problem = f"its hook {caller.name!r} gives {names} a default; hooks' arguments have none"
                raise HookError(name, problem, distribution)
            found[caller.name] = _Implementation.of(impl)
    for hook in SPECS:
        if hook not in found and callable(inspect.getattr_static(plugin, hook, None)):
            raise HookError(name, f"its method {hook!r} is not marked @hookimpl", distribution)
    for hook, needed in _REQUIRES.items():
        if hook in found and needed not in found:
            raise HookError(
                name, f"it has the hook {hook!r} but not {needed!r}, which it goes with", distribution
            )
    return found


def _positional(hook: str, function: Hook, taken: tuple[str, ...]) -> Hook:
    """The hookimpl as a callable that takes the spec's arguments, all of them, in the spec's order."""
    return function if taken == SPECS[hook] else _adapter(hook, taken)(function)


@cache  # there are only so many hooks and arguments
def _adapter(hook: str, taken: tuple[str, ...]) -> Callable[[Hook], Hook]:
    # Built as source since this runs once per node and plugin: picking arguments at run time from *args costs
    # several times the call itself. Both lists come from hookspecs, never from outside.
    adapter: Callable[[Hook], Hook] = eval(
        f"lambda function: lambda {', '.join(SPECS[hook])}: function({', '.join(taken)})"
    )
    return adapter
