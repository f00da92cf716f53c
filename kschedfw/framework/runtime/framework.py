"""The engine of one profile, which calls its hooks (kube-scheduler `frameworkImpl`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from kschedfw.api.garbage import without_collections
from kschedfw.api.pod import Pod
from kschedfw.framework.cluster_client import ClusterClient, check_cluster
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.errors import HOOK_FAILURES, PluginError, PluginLoadError, ProfileError
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.handle import Handle
from kschedfw.framework.learning.learned_plugin import LearnedPlugin
from kschedfw.framework.learning.waking import learned_events
from kschedfw.framework.metrics import MeasuredPoint
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts
from kschedfw.framework.plugin import AnyPlugin, Plugin, is_pure
from kschedfw.framework.profile import ExtensionPoint, Profile
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.args import plugin_args
from kschedfw.framework.runtime.binding_hooks import BindingHooks
from kschedfw.framework.runtime.calls import Evaluation, first_failure, first_success
from kschedfw.framework.runtime.hook_answers import as_truth
from kschedfw.framework.runtime.hooks import Hook, HookTable, events_of
from kschedfw.framework.runtime.measuring import Meter, measured
from kschedfw.framework.runtime.placement_hooks import PlacementHooks
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.runtime.search_hooks import SearchHooks
from kschedfw.framework.status import Status, text_of

AnswerT = TypeVar("AnswerT")

_SUCCESS, _SKIP = Status.success(), Status.skip()


class Framework(SearchHooks, BindingHooks, PlacementHooks):
    """One profile's plugins, and a `run_*` method for each extension point.

    Everything a plugin may depend on is in `parts`, which the frameworks of a scheduler share. Returned statuses name
    the plugin that gave them.

    A recorder of metrics receives the durations of extension points, and those of single plugins in cycles whose state
    has `record_plugin_metrics`. pre_enqueue has no state; `parts.plugin_sampling` decides for it.

    `evaluation` chooses between ways to the same decisions. Only the default is fast.

    Raises:
        PluginError: a plugin isn't found, can't be loaded or made, or its hooks don't fit the hookspecs.
        ArgsError: a plugin's arguments are wrong.
        ProfileError: the profile enables plugins that can't work together.
        IncompleteClusterError: the cluster lacks a method of `ClusterClient`.
    """

    def __init__(
        self,
        registry: Registry,
        profile: Profile,
        parts: Parts,
        *,
        evaluation: Evaluation = Evaluation.MEMO,
    ) -> None:
        check_cluster(parts.cluster, ClusterClient, "Framework")
        self.profile, self.parts = profile, parts
        self.waiting_pods = parts.waiting_pods
        self.handle = Handle(profile.scheduler_name, parts)
        # Plugins are imported here, and modules last.
        with without_collections():
            self.plugins: Mapping[str, AnyPlugin] = {
                name: self._make(registry, name) for name in profile.plugin_names
            }
        self._meter = meter = Meter.for_recorder(
            parts.metrics, parts.clock, profile.scheduler_name, parts.plugin_sampling
        )
        plain = HookTable(profile, self.plugins, registry)
        self._hooks = plain if meter is None else meter.counted(plain)
        self.has_score_plugins = bool(self._hooks["score"])
        self._less: tuple[str, Hook] | None = next(iter(self._hooks["queue_sort"]), None)
        self._make_plans(plain, evaluation)
        self._side_by_side = Parallelizer(self.handle.parallelizer.parallelism)
        self.handle._framework = self

    def _make(self, registry: Registry, name: str) -> AnyPlugin:
        plugin = registry.load(name)
        try:
            args = plugin_args(name, plugin.args_type, self.profile.args.get(name), self.handle.feature_gates)
        except PluginLoadError as error:
            error.distribution = registry.distribution(name)
            raise
        try:
            return plugin(args, self.handle)
        except PluginError:
            raise
        except HOOK_FAILURES as error:
            raise PluginLoadError(
                name, f"making it failed: {type(error).__name__}: {error}", registry.distribution(name)
            ) from error

    # What there is

    def plugins_at(self, point: ExtensionPoint) -> tuple[str, ...]:
        """Return the names of the plugins that take part in an extension point, in order."""
        return self._hooks.at(point)

    def hooks_of(self, plugin: str) -> Mapping[str, Hook]:
        """Return the hooks of a plugin that the profile enables, by name. Each takes all its arguments by position."""
        return self._hooks.of(plugin)

    @property
    def has_filter_plugins(self) -> bool:
        return bool(self._hooks["filter"])

    @property
    def has_post_filter_plugins(self) -> bool:
        return bool(self._hooks["post_filter"])

    def events_to_register(self) -> Mapping[str, tuple[ClusterEvent, ...]]:
        """Return the events that may make a plugin's rejected pods schedulable, by plugin that names any.

        For a plugin that names none and refuses pods by a pure pre_filter and filter alone, they follow from what the
        filter reads.

        Raises:
            PluginError: the hook fails, or names an event that never happens.
        """
        find = self.handle.snapshot.find
        learned = {
            name: learned_events(
                self._hooks.of(name),
                each.forms.get("filter_batch"),
                find,
                is_pre_filter_pure=is_pure(self.plugins[name], "pre_filter"),
            )
            for name, each in self.learned.items()
        }
        found = {name: events for name, events in learned.items() if events is not None}
        return {**found, **events_of(self._hooks)}

    # Queue

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        """Return whether `first` is scheduled before `second`, by the profile's queue sort plugin.

        Raises:
            ProfileError: the profile has no queue sort plugin.
            PluginError: the plugin fails.
        """
        if self._less is None:
            raise ProfileError(
                f"profile {self.profile.scheduler_name!r}: a queue sort plugin is needed, none is enabled"
            )
        name, less = self._less
        try:
            answer = less(first, second)
            # The usual answers take no further call: a queue compares pods often.
            return answer if answer is True or answer is False else as_truth("queue_sort", answer)
        except HOOK_FAILURES as error:
            # No order can be told without it, so this is no failure of one pod. SystemExit would leave the queue half
            # sorted.
            raise PluginError(name, f"queue_sort failed: {text_of(error)}") from error

    @measured(MeasuredPoint.PRE_ENQUEUE)
    def run_pre_enqueue_plugins(self, pod: Pod) -> Status:
        """Return whether the pod may become active; the first plugin that objects decides."""
        return first_failure("pre_enqueue", self._hooks["pre_enqueue"], pod)

    # Scheduling cycle

    @measured(MeasuredPoint.POST_FILTER)
    def run_post_filter_plugins(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Call the plugins in order to make room for the pod, until one succeeds or answers that nothing helps."""
        return first_success(self._hooks["post_filter"], state, pod, node_to_status)

    @property
    def learned(self) -> Mapping[str, LearnedPlugin]:
        """Return the records learned from the pure hooks, by plugin."""
        return self._hooks.learned

    # Restore points

    def save_states(self) -> Mapping[str, object]:
        """Return the results of `save_state` by plugin, for plugins that override it.

        Raises:
            PluginError: a plugin fails; so do the other methods of this section.
        """
        return {
            name: _told(plugin, "save_state", plugin.save_state)
            for name, plugin in self.plugins.items()
            if type(plugin).save_state is not Plugin.save_state
        }

    def restore_states(self, tokens: Mapping[str, object]) -> None:
        """Restore the states that the plugins had when `save_states` returned these tokens."""
        for name, token in tokens.items():
            plugin = self.plugins[name]
            _told(plugin, "restore_state", partial(plugin.restore_state, token))

    def forget_attempts(self) -> None:
        """Let the plugins forget the traces of failed attempts."""
        for plugin in self.plugins.values():
            _told(plugin, "forget_attempts", plugin.forget_attempts)

    def close(self) -> None:
        """End the framework's threads and those of the parallelizer."""
        self._side_by_side.close()
        self.handle.parallelizer.close()


def _told(plugin: AnyPlugin, name: str, method: Callable[[], AnswerT]) -> AnswerT:
    try:
        return method()
    except HOOK_FAILURES as error:
        raise PluginError(plugin.name, f"{name} failed: {type(error).__name__}: {error}") from error


def frameworks_of(
    registry: Registry, profiles: Iterable[Profile], parts: Parts, evaluation: Evaluation
) -> dict[str, Framework]:
    """Return the frameworks of these profiles, by scheduler name.

    Raises:
        ProfileError: two have the same scheduler name, and whatever `Framework` raises.
    """
    frameworks: dict[str, Framework] = {}
    for profile in profiles:
        if profile.scheduler_name in frameworks:
            raise ProfileError(
                f"profiles: two have the scheduler name {profile.scheduler_name!r}; give each its own"
            )
        frameworks[profile.scheduler_name] = Framework(registry, profile, parts, evaluation=evaluation)
    return frameworks
