"""An effective configuration: defaults filled in, plugins expanded, arguments structured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from kschedfw.api.records import frozen
from kschedfw.config.schema import Settings
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint, Profile


class Origin(StrEnum):
    """The origin of a plugin's entry."""

    DEFAULT = "default"
    MULTI_POINT = "multiPoint"
    EXPLICIT = "explicit"
    POLICY = "Policy"
    PROVIDER = "provider"


@frozen
class ConfiguredPlugin:
    """A plugin at an extension point, and why it is there.

    `weight` is 0 except at the score point. `distribution` is the distribution that the plugin comes from, if
    any. `absence` is the reason if the plugin doesn't run at this point here, though in kube-scheduler it does.
    `asked_by` has the predicates and priorities that the plugin implements, or the algorithm provider that
    enables it.
    """

    name: str
    origin: Origin
    weight: int = 0
    distribution: str | None = None
    absence: str = ""
    asked_by: tuple[str, ...] = ()


@frozen
class ProfileConfiguration:
    """A profile's plugins per extension point, in order, and their arguments.

    `args` has an instance of the arguments class for each enabled plugin that has one, and for the in-tree plugins for
    which the configuration has arguments.
    """

    scheduler_name: str
    plugins: Mapping[ExtensionPoint, Sequence[ConfiguredPlugin]]
    args: Mapping[str, object]
    percentage_of_nodes_to_score: int | None = None
    run_all_filters: bool = False

    @property
    def absent_by_name(self) -> tuple[str, ...]:
        """Plugins that the configuration enables by name and that don't run in this version."""
        every = [plugin for listed in self.plugins.values() for plugin in listed]
        here = {plugin.name for plugin in every if not plugin.absence}
        named = (plugin.name for plugin in every if plugin.origin is not Origin.DEFAULT)
        return tuple(dict.fromkeys(name for name in named if name not in here))

    def profile(self) -> Profile:
        """Return the profile to run, without plugins that aren't available."""
        points = {
            point: tuple(EnabledPlugin(plugin.name, plugin.weight) for plugin in listed if not plugin.absence)
            for point, listed in self.plugins.items()
        }
        enabled = {plugin.name for listed in points.values() for plugin in listed}
        return Profile(
            points=points,
            args={name: args for name, args in self.args.items() if name in enabled},
            scheduler_name=self.scheduler_name,
            percentage_of_nodes_to_score=self.percentage_of_nodes_to_score,
            run_all_filters=self.run_all_filters,
        )


@frozen(kw_only=True)
class SchedulerConfiguration(Settings):
    """A whole configuration. `source` is its file or another description of its origin; `warnings` are for its user.

    `api_version` is empty if it wasn't made from a document.
    """

    source: str
    api_version: str
    profiles: tuple[ProfileConfiguration, ...]
    warnings: tuple[str, ...] = ()
    gates: FeatureGates = DEFAULT_GATES
