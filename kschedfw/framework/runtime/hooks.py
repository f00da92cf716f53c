"""Conversion of the hooks of a profile's plugins to plain callables.

A call through pluggy costs many times a bound method's and a cycle makes thousands. So pluggy finds and
validates the hookimpls, in the registry; what runs are the bound methods, in profile order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from types import MethodType
from typing import Any, cast

import attrs
import pluggy

from kschedfw.framework.errors import HOOK_FAILURES, HookError, PluginError, ProfileError
from kschedfw.framework.events import ClusterEvent, PreQueueingHintFunction, QueueingHintFunction
from kschedfw.framework.hook_spec import HookSpec
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.learning.learned import Revision
from kschedfw.framework.learning.learned_plugin import LearnedPlugin
from kschedfw.framework.plugin import PROJECT, AnyPlugin
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kschedfw.framework.runtime.hook_answers import as_events
from kschedfw.framework.runtime.hook_checks import ASKED_METHODS, implemented_hooks
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import PluginFailure, text_of

Hook = Callable[..., Any]
"""A hookimpl that takes all the arguments of its spec, by position."""


def hooks_of(plugin: type[AnyPlugin]) -> tuple[str, ...]:
    """Return the hooks that a plugin class implements, in the order of the hookspecs."""
    implemented = implemented_hooks(plugin)
    return tuple(hook for hook in HOOKS if hook in implemented)


def points_of(plugin: type[AnyPlugin]) -> frozenset[ExtensionPoint]:
    """Return the extension points that a plugin has hooks for."""
    points = (HOOKS[hook].point for hook in hooks_of(plugin))
    return frozenset(point for point in points if point is not None)


def asked_method(plugin: AnyPlugin, name: str) -> Hook:
    """Return a plugin's `sign` or `evidence` as a callable that takes all of its arguments by position."""
    method: Hook = getattr(plugin, name)
    # The class's function is the cache key of `_taken`, since a bound method is a new object at each access.
    taken = _taken(getattr(type(plugin), name, method), name)
    arguments = ASKED_METHODS[name]
    return method if taken == arguments else _adapter(arguments, taken)(method)


@cache
def _taken(function: Hook, name: str) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters
    return tuple(argument for argument in ASKED_METHODS[name] if argument in parameters)


# A dictionary, since cycles look hooks up all the time: its own method is C.
class HookTable(dict[str, tuple[tuple[str, Hook], ...]]):
    """The hooks of a profile: (plugin name, callable) in profile order, by hook name.

    Each callable takes all arguments of its hookspec by position.

    Raises:
        HookError: a hook was put on a plugin's instance instead of its class.
        ProfileError: a point lists a plugin that has no hook for it, or there are several queue sorts.
    """

    def __init__(
        self,
        profile: Profile,
        plugins: Mapping[str, AnyPlugin],
        registry: Registry,
    ) -> None:
        super().__init__()
        for plugin in plugins.values():
            _refuse_own_hooks(plugin)
        self._implemented = {
            name: {hook: _bound(hook, impl, plugin) for hook, impl in registry.hookimpls(name).items()}
            for name, plugin in plugins.items()
        }
        self._guard = registry.guard
        if (guard := registry.guard) is not None:
            self._implemented = {
                name: {hook: guard(hook, name, function) for hook, function in hooks.items()}
                for name, hooks in self._implemented.items()
            }
        self.revision = Revision()
        """The revision of what is known of pure hooks."""
        self.learned: Mapping[str, LearnedPlugin] = {
            name: LearnedPlugin.of(plugin, self._implemented[name], self.revision)
            for name, plugin in plugins.items()
        }
        """The reads of the pure hooks of each plugin, by its name."""
        for name, learned in self.learned.items():
            self._implemented[name] = {**self._implemented[name], **learned.forms}
        for hook, spec in HOOKS.items():
            enabled = profile.plugin_names if spec.point is None else self._at(profile, spec.point)
            self[hook] = tuple(
                (name, self._implemented[name][hook]) for name in enabled if hook in self._implemented[name]
            )
        for hook, title in (("queue_sort", "queue sort"), ("placement_generate", "placement generate")):
            if len(self[hook]) > 1:
                names = ", ".join(name for name, _ in self[hook])
                raise ProfileError(
                    f"profile {profile.scheduler_name!r}: only one {title} plugin can be enabled, not {names}"
                )

    def wrapped(self, wrap: Callable[[HookSpec, str, Hook], Hook]) -> HookTable:
        """Return a table that has `wrap(spec, plugin name, callable)` in place of each callable."""
        table = copy(self)
        for hook, each in self.items():
            table[hook] = tuple((name, wrap(HOOKS[hook], name, function)) for name, function in each)
        return table

    def without(self, *hooks: str) -> HookTable:
        """Return a table without any callable of these hooks."""
        table = copy(self)
        table.update(dict.fromkeys(hooks, ()))
        return table

    def guarded(self, plugin: str, event: ClusterEvent) -> ClusterEvent:
        """Return the event with its hints as the registry's guard wraps them."""
        guard = self._guard
        if guard is None:
            return event
        return attrs.evolve(
            event,
            hint=event.hint and cast("QueueingHintFunction", guard("hint", plugin, event.hint)),
            pre_hint=event.pre_hint
            and cast("PreQueueingHintFunction", guard("pre_hint", plugin, event.pre_hint)),
        )

    def implemented(self, plugin: str) -> frozenset[str]:
        """Return the names of the hooks that a plugin has, wherever the profile enables it."""
        return frozenset(self._implemented[plugin])

    def of(self, plugin: str) -> Mapping[str, Hook]:
        """Return the hooks of a plugin that the profile enables, by name."""
        return {hook: found[plugin] for hook, each in self.items() if plugin in (found := dict(each))}

    def at(self, point: ExtensionPoint) -> tuple[str, ...]:
        """Return the plugins that take part in the point, in order."""
        return tuple(dict.fromkeys(name for hook in _hooks_at(point) for name, _ in self[hook]))

    def _at(self, profile: Profile, point: ExtensionPoint) -> Sequence[str]:
        explicit: tuple[EnabledPlugin, ...] | None = profile.points.get(point)
        listed = profile.multi_point if explicit is None else explicit
        names = [plugin.name for plugin in listed if not plugin.absence]
        if explicit is None:
            return names
        for name in names:
            if not any(hook in self._implemented[name] for hook in _hooks_at(point)):
                raise ProfileError(
                    f"profile {profile.scheduler_name!r}: {point} lists plugin {name!r}, without a hook for it"
                )
        return names


def events_of(hooks: HookTable) -> Mapping[str, tuple[ClusterEvent, ...]]:
    """Return the answers to `events_to_register`, by plugin that has the hook.

    Raises:
        PluginError: the hook fails, or names an event that never happens.
    """
    events: dict[str, tuple[ClusterEvent, ...]] = {}
    for name, hook in hooks["events_to_register"]:
        try:
            registered = as_events("events_to_register", hook())
            events[name] = tuple([hooks.guarded(name, each) for each in registered])
        except PluginFailure as error:
            raise PluginError(name, str(error)) from error
        except HOOK_FAILURES as error:
            raise PluginError(name, f"events_to_register failed: {text_of(error)}") from error
    return events


def _hooks_at(point: ExtensionPoint) -> Sequence[str]:
    return [hook for hook, spec in HOOKS.items() if spec.point is point]


def _refuse_own_hooks(plugin: AnyPlugin) -> None:
    """Raise HookError if the instance has a hook of its own, which the registry can't know of."""
    members: dict[str, object] = getattr(plugin, "__dict__", {})
    for hook in HOOKS.keys() & members.keys():
        if hasattr(members[hook], f"{PROJECT}_impl"):
            problem = f"its hook {hook!r} is set on the instance; hooks are methods of the class"
            raise HookError(plugin.name, problem)


def _bound(hook: str, impl: pluggy.HookImpl, plugin: AnyPlugin) -> Hook:
    """Return a hookimpl of the plugin's class as a callable that takes all arguments of its hookspec by position."""
    function: Hook = impl.function
    # Bound to the registry's instance, which isn't initialised. Class methods and static methods stay as they
    # are.
    if isinstance(function, MethodType) and function.__self__ is impl.plugin:
        function = MethodType(function.__func__, plugin)
    taken, arguments = tuple(impl.argnames), HOOKS[hook].arguments
    return function if taken == arguments else _adapter(arguments, taken)(function)


# Unbounded, since hooks and their arguments are few.
@cache
def _adapter(arguments: tuple[str, ...], taken: tuple[str, ...]) -> Callable[[Hook], Hook]:
    # Built as source since this runs once per node and plugin: picking arguments at run time from *args costs
    # several times the call itself. Both lists come from hookspecs, never from outside.
    adapter: Callable[[Hook], Hook] = eval(
        f"lambda function: lambda {', '.join(arguments)}: function({', '.join(taken)})"
    )
    return adapter
