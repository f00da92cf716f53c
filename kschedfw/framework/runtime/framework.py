"""The engine of one profile, which calls its hooks (kube-scheduler `frameworkImpl`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from kschedfw.api.pod import Pod
from kschedfw.framework.cluster_client import ClusterClient, check_cluster
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes, NodeToStatus
from kschedfw.framework.errors import HOOK_FAILURES, PluginError, PluginLoadError, ProfileError
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.handle import Handle
from kschedfw.framework.learning.learned_plugin import LearnedPlugin
from kschedfw.framework.learning.waking import learned_events
from kschedfw.framework.metrics import MeasuredPoint
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts
from kschedfw.framework.plugin import AnyPlugin, Plugin, is_pure
from kschedfw.framework.profile import ExtensionPoint, Profile
from kschedfw.framework.results import PostFilterResult, PreFilterResult
from kschedfw.framework.runtime.args import plugin_args
from kschedfw.framework.runtime.binding_hooks import BindingHooks
from kschedfw.framework.runtime.calls import Evaluation, first_failure, first_success
from kschedfw.framework.runtime.engine.kept_totals import wanted_amounts
from kschedfw.framework.runtime.engine.outcome import FilterOutcome
from kschedfw.framework.runtime.engine.plan import KeptT
from kschedfw.framework.runtime.engine.planner import Planner
from kschedfw.framework.runtime.engine.steps import PluginMemo
from kschedfw.framework.runtime.engine.totals import NodeScores, Totals
from kschedfw.framework.runtime.engine.turns import TRIAL_HOOKS, PlannedPod, takes_members_alike
from kschedfw.framework.runtime.hook_answers import as_truth
from kschedfw.framework.runtime.hooks import Hook, HookTable, events_of
from kschedfw.framework.runtime.measuring import Meter, measured
from kschedfw.framework.runtime.placement_hooks import PlacementHooks
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status, text_of

AnswerT = TypeVar("AnswerT")

_SUCCESS, _SKIP = Status.success(), Status.skip()


class Framework(BindingHooks, PlacementHooks):
    """One profile's plugins, and a `run_*` method for each extension point: those up to score here.

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
        self.profile = profile
        self.waiting_pods = parts.waiting_pods
        self.handle = Handle(profile.scheduler_name, parts)
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
        self._planner = Planner(plain, self.plugins, profile, self.handle, meter, evaluation)
        self._filters = self._planner.node_by_node
        self._side_by_side = Parallelizer(self.handle.parallelizer.parallelism)
        in_trials = dict.fromkeys(name for hook in TRIAL_HOOKS for name, _ in self._hooks[hook])
        self._in_trials = [self.plugins[name] for name in in_trials]
        self.handle._framework = self

    def _make(self, registry: Registry, name: str) -> AnyPlugin:
        plugin = registry.load(name)
        args = plugin_args(name, plugin.args_type, self.profile.args.get(name), self.handle.feature_gates)
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

    def run_pre_filter_plugins(
        self, state: CycleState, pod: Pod
    ) -> tuple[PreFilterResult | None, Status, frozenset[str]]:
        """Run all pre_filters.

        Return the remaining nodes (None = all), the status, and the plugins that excluded nodes.

        Sets `state.skip_filter_plugins`. UNSCHEDULABLE_AND_UNRESOLVABLE ends the run at once, UNSCHEDULABLE at
        the end, so that the state is complete for preemption.
        """
        return self._planner.pre_filter(state, pod)

    def planned_member(self, pod: Pod, members: int) -> PlannedPod | None:
        """Return the pod as planned for all nodes of trials of its group, which has so many members.

        Return None where hooks must be called for it, with each member that gets a place. A recorder is told of none
        of the hooks that aren't called: a call for every member on every placement takes minutes in a large cluster.
        """
        if not self.handle.nominator.is_empty:
            return None
        if not all(takes_members_alike(plugin, pod) for plugin in self._in_trials):
            return None
        return self._planner.planned_member(pod, members)

    def run_pre_filter_add_pod(
        self, state: CycleState, pod: Pod, to_add: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Update the state as if `to_add` were on the node, by all plugins that aren't skipped."""
        return self._filters.add_pod(state, pod, to_add, node_info)

    def run_pre_filter_remove_pod(
        self, state: CycleState, pod: Pod, to_remove: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Update the state as if `to_remove` were gone from the node, by all plugins that aren't skipped."""
        return self._filters.remove_pod(state, pod, to_remove, node_info)

    def run_filter_plugins(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Return success, or the first refusal in profile order."""
        status = self._filters.run(state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return status

    def run_each_filter_plugin(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Mapping[str, Status]:
        """Return the verdict of each filter that isn't skipped, even after a refusal; for explanations."""
        statuses = self._filters.run_each(state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return statuses

    def refused_by_each_filter(
        self, state: CycleState, pod: Pod, nodes: NodeSelection
    ) -> Mapping[str, NodeCodes]:
        """Return the nodes that each filter refuses, for explanations; see `NodeByNode.refused_by_each`."""
        return self._planner.refused_by_each(state, pod, nodes)

    def add_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> tuple[CycleState, NodeInfo] | None:
        """Return copies of both, with the node's nominated pods of equal or higher priority added.

        Return None if there are no such pods. Return None, too, if a plugin's pre_filter_add_pod fails, which
        refuses the node in any case.
        """
        crowded = self._filters.add_nominated_pods(state, pod, node_info)
        return None if isinstance(crowded, Status) else crowded

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, *, other_pods_only: bool = False
    ) -> Status:
        """Run the filters with and without the node's nominated pods of equal or higher priority; both must pass.

        With `other_pods_only`, call only the filters that read the pods of a node, because the node object has
        passed already.
        """
        filters = self._filters.reading_pods(state) if other_pods_only else self._filters.active(state)
        status = self._filters.run_with_nominated_pods(filters, state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return status

    def wanted_room(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> tuple[int, int, int, int] | None:
        """Return the CPU, memory, ephemeral storage and number of pods that must be free, if nothing else decides.

        Return None where the filters must be asked, since another one refuses the node or may read its pods.
        """
        decides = self._filters.only_room_decides(state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return wanted_amounts(pod.requests) if decides else None

    def filter_nodes(
        self, state: CycleState, pod: Pod, nodes: NodeSelection, wanted: int | None = None
    ) -> FilterOutcome:
        """Filter nodes of the snapshot, in order, until one more than `wanted` have passed (None: all).

        Earlier answers are reused where they hold, and batch forms called where plugins have them.
        """
        wanted = len(nodes) if wanted is None else wanted
        return self._planner.filter(state, pod, nodes, wanted)

    def kept_column(
        self, state: CycleState, pod: Pod, key: Hashable, make: Callable[[], KeptT]
    ) -> KeptT | None:
        """Return a column of values derived from the filters' answers to pods like this one, `key`, and single nodes.

        The column was kept from earlier pods, or is made by `make`; the caller brings it up to date. Return
        None where an answer may depend on anything else, or isn't kept.
        """
        return self._planner.kept_column(state, pod, key, make)

    @measured(MeasuredPoint.POST_FILTER)
    def run_post_filter_plugins(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Call the plugins in order to make room for the pod, until one succeeds or answers that nothing helps."""
        return first_success(self._hooks["post_filter"], state, pod, node_to_status)

    def run_pre_score_plugins(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Prepare scoring of the feasible nodes. Sets `state.skip_score_plugins`."""
        return self._planner.pre_score(state, pod, nodes)

    def run_score_plugins(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeScores | None, Status]:
        """Score, normalise and weigh the nodes. The scores are None unless the status is success."""
        return self._planner.scores(state, pod, nodes)

    def total_scores(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[Totals | None, Status]:
        """Return only the totals of `run_score_plugins`: much faster where plugins' answers are kept."""
        return self._planner.totals(state, pod, nodes)

    @property
    def decided_together(self) -> int:
        """The number of times that nodes were filtered all together, by a plan, and not one after the other."""
        return self._planner.decided_together

    @property
    def learned(self) -> Mapping[str, LearnedPlugin]:
        """Return the records learned from the pure hooks, by plugin."""
        return self._hooks.learned

    def memo_report(self) -> Mapping[str, PluginMemo]:
        """Return the counts of questions and kept answers, by plugin that filters or scores."""
        return self._planner.counts

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
