"""The rules of a KubeSchedulerConfiguration that don't depend on plugins, in the words of kube-scheduler v1.36."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedfw.api.field_errors import FieldError
from kschedfw.api.scalars import INT32
from kschedfw.config.default_profile import REMOVED_IN_V1
from kschedfw.config.extenders import extender_errors
from kschedfw.config.schema import (
    MULTI_POINT,
    POINTS,
    ClientConnection,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    PluginSet,
)
from kschedfw.framework.clock import format_duration

Errors = Iterator[FieldError]

V1 = "kubescheduler.config.k8s.io/v1"
_POSITIVE = "must be greater than zero"
_JITTER = 1.2
"""The number of retry periods that must fit into the renew deadline (client-go's JitterFactor)."""


def settings_errors(configuration: KubeSchedulerConfiguration, api_version: str) -> Errors:
    """Yield the errors of the settings; plugins are checked elsewhere."""
    for error in client_connection_errors(configuration.client_connection):
        yield error.inside("clientConnection")
    for error in leader_election_errors(configuration.leader_election):
        yield error.inside("leaderElection")
    if configuration.parallelism <= 0:
        why = "should be an integer value greater than zero"
        yield FieldError.invalid("parallelism", configuration.parallelism, why)
    # In Go, decoding fails where an integer is wider than its field.
    yield from _int32("parallelism", configuration.parallelism)
    seen: dict[str, int] = {}
    for index, profile in enumerate(configuration.profiles):
        for error in _profile(profile, api_version):
            yield error.inside(f"profiles[{index}]")
        name = profile.scheduler_name or ""
        if name in seen:
            yield FieldError.duplicate(f"profiles[{index}].schedulerName", name)
        seen.setdefault(name, index)
    yield from _common_queue_sort(configuration.profiles)
    yield from _percentage(configuration.percentage_of_nodes_to_score)
    first, longest = configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds
    if first <= 0:
        yield FieldError.invalid("podInitialBackoffSeconds", first, "must be greater than 0")
    if longest < first:
        why = "must be greater than or equal to PodInitialBackoffSeconds"
        yield FieldError.invalid("podMaxBackoffSeconds", longest, why)
    yield from extender_errors(configuration.extenders)
    if configuration.hook_timeout < 0:
        why = "must not be negative"
        yield FieldError.invalid("hookTimeout", format_duration(configuration.hook_timeout), why)
    if configuration.fail_on_hook_timeout and not configuration.hook_timeout:
        yield FieldError.invalid("failOnHookTimeout", True, "needs a hookTimeout")


def _int32(path: str, value: int) -> Errors:
    if value not in INT32:
        yield FieldError.invalid(path, value, "must fit in 32 bits")


def _percentage(value: int | None) -> Errors:
    if value is not None and not 0 <= value <= 100:
        yield FieldError.invalid("percentageOfNodesToScore", value, "not in valid range [0-100]")


def client_connection_errors(connection: ClientConnection) -> Errors:
    """Yield the errors of the connection to the API server."""
    if connection.burst < 0:
        yield FieldError.invalid("burst", connection.burst, "must be non-negative")


def leader_election_errors(election: LeaderElection) -> Errors:
    """Yield the errors of leader election; none if it is off."""
    if not election.leader_elect:
        return
    times = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for path, seconds in times.items():
        if seconds <= 0:
            yield FieldError.invalid(path, format_duration(seconds), _POSITIVE)
    if election.lease_duration <= election.renew_deadline:
        # kube-scheduler's error shows the other value.
        renew = format_duration(election.renew_deadline)
        yield FieldError.invalid("leaseDuration", renew, "must be greater than `RenewDeadline`")
    # kube-scheduler's validation passes this; client-go refuses it when the scheduler starts.
    if 0 < election.renew_deadline <= _JITTER * election.retry_period:
        renew, least = map(format_duration, (election.renew_deadline, _JITTER * election.retry_period))
        why = f"must be greater than retryPeriod*JitterFactor, {least}"
        yield FieldError.invalid("renewDeadline", renew, why)
    for path, name in (
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        # Flags can empty them; in a file, empty means the default.
        if not name:
            yield FieldError.invalid(path, name, f"{path} is required")
    if election.resource_lock != "leases":
        yield FieldError.invalid(
            "resourceLock", election.resource_lock, 'resourceLock value must be "leases"'
        )


def _profile(profile: KubeSchedulerProfile, api_version: str) -> Errors:
    if not profile.scheduler_name:
        yield FieldError.required("schedulerName")
    yield from _percentage(profile.percentage_of_nodes_to_score)
    sets = {str(point): profile.plugins.at(point) for point in POINTS}
    for where, plugins in {MULTI_POINT: profile.plugins.multi_point, **sets}.items():
        for error in _plugin_set(plugins, api_version):
            yield error.inside(f"plugins.{where}")
    seen = set()
    for index, config in enumerate(profile.plugin_config):
        path = f"pluginConfig[{index}]"
        if config.name in seen:
            yield FieldError.duplicate(path, config.name)
        seen.add(config.name)
        if api_version == V1 and config.name in REMOVED_IN_V1:
            yield _removed(path, config.name)


def _plugin_set(plugins: PluginSet, api_version: str) -> Errors:
    seen = set()
    for index, plugin in enumerate(plugins.enabled):
        path = f"enabled[{index}]"
        if api_version == V1 and plugin.name in REMOVED_IN_V1:
            yield _removed(path, plugin.name)
        if plugin.name in seen:
            yield FieldError.duplicate(path, plugin.name)
        seen.add(plugin.name)
        yield from _int32(f"{path}.weight", plugin.weight)
        if plugin.weight < 0:
            yield FieldError.invalid(f"{path}.weight", plugin.weight, "must not be negative")


def _removed(path: str, name: str) -> FieldError:
    why = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{V1}")'
    return FieldError.invalid(path, name, why)


def _common_queue_sort(profiles: Sequence[KubeSchedulerProfile]) -> Errors:
    """Yield errors if profiles differ in their queue sort plugin, since they share one queue."""
    # There is a first one: a document without profiles got one when it was decoded.
    first = profiles[0].plugins.queue_sort
    if (count := len(first.enabled)) > 1:
        path = "profiles[0].plugins.queueSort.Enabled"
        yield FieldError.invalid(path, count, "only one queue sort plugin can be enabled")
    name = first.enabled[0].name if first.enabled else None
    args = next((config.args for config in profiles[0].plugin_config if config.name == name), None)
    for index, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != first:
            shown = _plugin_set_as_shown(profile.plugins.queue_sort)
            path = f"profiles[{index}].plugins.queueSort"
            yield FieldError.invalid(path, shown, "must be the same for all profiles")
        for position, config in enumerate(profile.plugin_config):
            if config.name == name and config.args != args:
                path = f"profiles[{index}].pluginConfig[{position}].args"
                yield FieldError.invalid(path, config.args, "queueSort must be the same for all profiles")


def _plugin_set_as_shown(plugins: PluginSet) -> dict[str, object]:
    """Return the plugin set as kube-scheduler's errors show it, with the names of the Go type's fields."""
    return {
        key: [{"Name": plugin.name, "Weight": plugin.weight} for plugin in listed] or None
        for key, listed in (("Enabled", plugins.enabled), ("Disabled", plugins.disabled))
    }
