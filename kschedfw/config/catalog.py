"""What a configuration has to know of plugins: where they can take part, their arguments, where they come from."""

from __future__ import annotations

from difflib import get_close_matches

from kschedfw.config.in_tree import ABSENT, WITHOUT_HOOK
from kschedfw.framework.errors import PluginError, PluginNotFoundError
from kschedfw.framework.hooks import points_of
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.registry import Registry

NOWHERE: frozenset[ExtensionPoint] = frozenset()

NOT_IN_THIS_VERSION = "not in this version"
NOTHING_TO_DO = "nothing to do here"


class PluginCatalog:
    """The plugins that configurations may name: what the registry offers, and what kube-scheduler has beyond that."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._offered = frozenset(registry.names())

    def problem(self, name: str) -> str | None:
        """Why the plugin can't be used, if so; one that is absent only from this version isn't a problem."""
        if self.is_absent(name):
            return None
        try:
            self._registry.load(name)
        except PluginNotFoundError:
            return f'plugin "{name}" does not exist: no installed distribution offers it{self.hint(name)}'
        except PluginError as error:
            return str(error)
        return None

    def exists(self, name: str) -> bool:
        """Whether there is a plugin of this name, whether or not it can be used."""
        return name in self._offered or name in ABSENT

    def hint(self, name: str) -> str:
        """Which plugin may be meant by a name that no plugin has; empty if none is similar."""
        similar = get_close_matches(name, self._offered | ABSENT.keys(), n=1, cutoff=0.8)
        return f"; did you mean {similar[0]}?" if similar else ""

    def is_absent(self, name: str) -> bool:
        """Whether kube-scheduler has the plugin, and this version of kschedfw doesn't."""
        return name in ABSENT and name not in self._offered

    def is_known(self, name: str) -> bool:
        return self.problem(name) is None

    def points(self, name: str) -> frozenset[ExtensionPoint]:
        """Where the plugin can be enabled; nowhere if it isn't known."""
        if self.is_absent(name):
            return ABSENT[name].points
        plugin = self._load(name)
        return NOWHERE if plugin is None else points_of(plugin) | WITHOUT_HOOK.get(name, NOWHERE)

    def absence(self, name: str, point: ExtensionPoint) -> str:
        """Why a plugin that can be enabled there does nothing there; empty where it does something."""
        if self.is_absent(name):
            return NOT_IN_THIS_VERSION
        plugin = self._load(name)
        return NOTHING_TO_DO if plugin is None or point not in points_of(plugin) else ""

    def args_type(self, name: str) -> type[object] | None:
        if self.is_absent(name):
            return ABSENT[name].args_type
        plugin = self._load(name)
        return None if plugin is None else plugin.args_type

    def distribution(self, name: str) -> str | None:
        """Name and version of the distribution that the plugin comes from; None for one of this process."""
        return None if self.is_absent(name) else self._registry.distribution(name)

    def _load(self, name: str) -> type[AnyPlugin] | None:
        try:
            return self._registry.load(name)
        except PluginError:
            return None
