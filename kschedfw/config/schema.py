"""The fields of KubeSchedulerConfiguration, with types and defaults (kubescheduler.config.k8s.io/v1).

As in kube-scheduler, an empty string or a zero in some fields means that the default applies.
"""

from __future__ import annotations

from typing import Final

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Duration
from kschedfw.config.extenders import ExtenderConfig
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint
from kschedfw.framework.versions import is_since

MULTI_POINT = "multiPoint"
ALL = "*"
"""The name that disables all plugins except those that the point itself enables."""

POINTS: Final = tuple(point for point in ExtensionPoint if point is not ExtensionPoint.PLACEMENT_FEASIBLE)
"""The extension points that a configuration lists plugins for; those of other points are enabled at multiPoint."""

_SINCE_V1_36: Final = {"since": "1.36"}
_SINCE_V1_37: Final = {"since": "1.37"}
_UNSET: Final = {"zero_is_unset": True}
_BEYOND: Final = {"beyond_kube_scheduler": True}


@frozen
class PluginSet:
    """Plugins to enable at an extension point in addition to the default ones, and those to disable."""

    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: tuple[EnabledPlugin, ...] = ()

    @property
    def disabled_names(self) -> frozenset[str]:
        return frozenset(plugin.name for plugin in self.disabled)


@frozen
class Plugins:
    """A plugin set for each extension point, and one for all of them (`multi_point`)."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = attrs.field(default=PluginSet(), metadata=_SINCE_V1_36)
    placement_score: PluginSet = attrs.field(default=PluginSet(), metadata=_SINCE_V1_36)
    pod_group_post_filter: PluginSet = attrs.field(default=PluginSet(), metadata=_SINCE_V1_37)

    def at(self, point: ExtensionPoint) -> PluginSet:
        """Return the point's own plugin set; an empty one for a point that a configuration has no list for."""
        found = getattr(self, point.name.lower()) if point in POINTS else PluginSet()
        assert isinstance(found, PluginSet)
        return found


def points_of_version(version: str) -> tuple[ExtensionPoint, ...]:
    """Return the extension points that a configuration for this version of Kubernetes lists plugins for."""
    fields = attrs.fields_dict(Plugins)
    return tuple(point for point in POINTS if is_in_version(fields[point.name.lower()], version))


def is_in_version(field: attrs.Attribute[object], version: str) -> bool:
    """Tell whether kube-scheduler of this version knows a field of its configuration."""
    since = field.metadata.get("since")
    return since is None or is_since(version, since)


@frozen
class PluginConfig:
    """The arguments of a plugin, unstructured."""

    name: str = ""
    args: FrozenDict[str, object] | None = None


@frozen
class KubeSchedulerProfile:
    """A profile as the document has it, with additions to the default plugins; with only one it needs no name."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


@frozen
class LeaderElection:
    """Leader election between schedulers that run against an API server. Times are in seconds."""

    leader_elect: bool = True
    lease_duration: Duration = attrs.field(default=15.0, metadata=_UNSET)
    renew_deadline: Duration = attrs.field(default=10.0, metadata=_UNSET)
    retry_period: Duration = attrs.field(default=2.0, metadata=_UNSET)
    resource_lock: str = attrs.field(default="leases", metadata=_UNSET)
    resource_name: str = attrs.field(default="kube-scheduler", metadata=_UNSET)
    resource_namespace: str = attrs.field(default="kube-system", metadata=_UNSET)


@frozen
class ClientConnection:
    """The connection to the API server, for a scheduler that runs against one."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = attrs.field(default="application/vnd.kubernetes.protobuf", metadata=_UNSET)
    qps: float = attrs.field(default=50.0, metadata=_UNSET)
    burst: int = attrs.field(default=100, metadata=_UNSET)


@frozen(kw_only=True)
class Settings:
    """The fields of a configuration except its profiles."""

    parallelism: int = 16
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    delay_cache_until_active: bool = False
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    extenders: tuple[ExtenderConfig, ...] = ()
    hook_timeout: Duration = attrs.field(default=0.0, metadata=_BEYOND)
    """Seconds after which `kschedfw run` reports a hook that hasn't returned; 0: never."""
    fail_on_hook_timeout: bool = attrs.field(default=False, metadata=_BEYOND)
    """True: the attempt fails, too."""


@frozen(kw_only=True)
class KubeSchedulerConfiguration(Settings):
    """The configuration document."""

    profiles: tuple[KubeSchedulerProfile, ...] = ()
    feature_gates: FrozenDict[str, bool] = EMPTY
    """kube-scheduler's option `--feature-gates`; its configuration file has none."""
