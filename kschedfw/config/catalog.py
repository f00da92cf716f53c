"""The properties of plugins that loading a configuration needs: extension points, arguments, distributions."""

from __future__ import annotations

from difflib import get_close_matches

from kschedfw.framework.errors import PluginError, PluginNotFoundError
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.args import check_fields, plugin_args
from kschedfw.framework.runtime.hooks import points_of
from kschedfw.framework.runtime.registry import Registry

NOWHERE: frozenset[ExtensionPoint] = frozenset()


class PluginCatalog:
    """The plugins that configurations may name: those that `registry` offers."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        # Read once: every name of a configuration is looked for here.
        self._offered = frozenset(registry.names())

    def problem(self, name: str) -> str | None:
        """Return why the plugin can't be used; None if it can."""
        if self.registry.is_blocked(name):
            return f'plugin "{name}" is blocked in this registry'
        try:
            args_type = self.registry.load(name).args_type
            if args_type is not None:
                check_fields(name, args_type)
        except PluginNotFoundError:
            return f'plugin "{name}" does not exist: no installed distribution offers it{self.hint(name)}'
        except PluginError as error:
            error.distribution = error.distribution or self.distribution(name)
            return str(error)
        return None

    def exists(self, name: str) -> bool:
        """Tell whether there is a plugin of this name, usable or not."""
        return name in self._offered

    def hint(self, name: str) -> str:
        """Return a hint with the most similar plugin name, for an unknown name; empty if none is similar."""
        similar = get_close_matches(name, self._offered, n=1, cutoff=0.8)
        return f"; did you mean {similar[0]}?" if similar else ""

    def is_known(self, name: str) -> bool:
        return self.problem(name) is None

    def points(self, name: str) -> frozenset[ExtensionPoint]:
        """Return the points at which the plugin can be enabled; none if it isn't known."""
        plugin = self._load(name)
        return NOWHERE if plugin is None else points_of(plugin)

    def args(self, name: str, given: object, gates: FeatureGates = DEFAULT_GATES) -> object:
        """Return the plugin's arguments as an instance of its arguments class; None if it has no arguments.

        Some arguments are only allowed with a feature gate.

        Raises:
            ArgsError: the plugin refuses what is given.
            PluginError: the plugin fails to validate it.
        """
        try:
            return plugin_args(name, self.args_type(name), given, gates)
        except PluginError as error:
            error.distribution = self.distribution(name)
            raise

    def args_type(self, name: str) -> type[object] | None:
        plugin = self._load(name)
        return None if plugin is None else plugin.args_type

    def distribution(self, name: str) -> str | None:
        """Return name and version of the plugin's distribution; None if it was registered in this process."""
        return self.registry.distribution(name)

    def _load(self, name: str) -> type[AnyPlugin] | None:
        try:
            return self.registry.load(name)
        except PluginError:
            return None
