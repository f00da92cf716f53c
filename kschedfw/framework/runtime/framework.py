"""Runs the hooks of one profile (kube-scheduler `frameworkImpl`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from random import Random

from kschedfw.api.pod import Pod
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.errors import HOOK_FAILURES, PluginError, PluginLoadError, ProfileError
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.extender import Extender
from kschedfw.framework.handle import ClusterClient, Handle, check_cluster
from kschedfw.framework.metrics import NO_METRICS, MeasuredPoint, MetricsRecorder, PluginSampling
from kschedfw.framework.narrowing import no_nodes_left
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import ExtensionPoint, Profile
from kschedfw.framework.results import NominatingMode, PostFilterResult, PreFilterResult
from kschedfw.framework.runtime.args import plugin_args
from kschedfw.framework.runtime.evaluation import Evaluation
from kschedfw.framework.runtime.filter_columns import FilterColumns
from kschedfw.framework.runtime.filter_hooks import FilterHooks, checked
from kschedfw.framework.runtime.hooks import Hook, HookTable
from kschedfw.framework.runtime.measuring import Meter, measured
from kschedfw.framework.runtime.memo import ColumnT, Cycle, Memo
from kschedfw.framework.runtime.memo_report import MemoCounters, PluginMemo
from kschedfw.framework.runtime.node_filter import FilterOutcome, NodeFilter
from kschedfw.framework.runtime.pre_bind import PreBindHooks, named
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.runtime.score_columns import ScoreColumns
from kschedfw.framework.runtime.score_hooks import ScoreHooks
from kschedfw.framework.runtime.scores import NodeScores, Totals
from kschedfw.framework.runtime.status_codes import StatusCodes
from kschedfw.framework.status import Code, PluginFailure, Status
from kschedfw.framework.waiting_pods import MAX_PERMIT_TIMEOUT, PodsInPreBind, WaitingPod, WaitingPods

_SUCCESS, _SKIP = Status.success(), Status.skip()

_MOST_STATUSES = 16_384
"""Who puts the node's name into reasons makes a status per node; beyond this all that is remembered is dropped."""


class Framework:
    """One profile's plugins, and a `run_*` method for each extension point.

    Everything a plugin may depend on is passed in here. Without a `snapshot` the framework makes an empty one;
    a scheduler shares its own, and its `waiting_pods` and `pods_in_pre_bind`. Statuses that come back carry the plugin
    that gave them.

    A `metrics` recorder is told how long extension points take, and single plugins in those cycles whose state
    says `record_plugin_metrics`. pre_enqueue has no state; `plugin_sampling` draws for it.

    `evaluation` chooses between ways to the same decisions, of which only the default is fast.

    Raises:
        PluginError: a plugin isn't found, can't be loaded or made, or its hooks don't fit the hookspecs.
        ArgsError: a plugin's arguments are wrong.
        ProfileError: the profile enables what can't work together.
        IncompleteClusterError: the cluster lacks a method of `ClusterClient`.
    """

    def __init__(
        self,
        registry: Registry,
        profile: Profile,
        *,
        cluster: ClusterClient,
        snapshot: Snapshot | None = None,
        nominator: Nominator | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        parallelizer: Parallelizer | None = None,
        extenders: Sequence[Extender] = (),
        metrics: MetricsRecorder | None = None,
        plugin_sampling: PluginSampling | None = None,
        evaluation: Evaluation = Evaluation.MEMO,
        waiting_pods: WaitingPods | None = None,
        pods_in_pre_bind: PodsInPreBind | None = None,
    ) -> None:
        check_cluster(cluster, ClusterClient, "Framework")
        self.profile = profile
        self.waiting_pods = WaitingPods() if waiting_pods is None else waiting_pods
        self.handle = Handle(
            profile_name=profile.scheduler_name,
            snapshot=Snapshot() if snapshot is None else snapshot,
            cluster=cluster,
            nominator=Nominator() if nominator is None else nominator,
            waiting_pods=self.waiting_pods,
            clock=SystemClock() if clock is None else clock,
            random=Random(0) if random is None else random,  # ties aren't secrets
            parallelizer=Parallelizer() if parallelizer is None else parallelizer,
            extenders=tuple(extenders),
            metrics=NO_METRICS if metrics is None else metrics,
            pods_in_pre_bind=PodsInPreBind() if pods_in_pre_bind is None else pods_in_pre_bind,
        )
        self.plugins: Mapping[str, AnyPlugin] = {
            name: self._make(registry, name) for name in profile.plugin_names
        }
        self._meter = meter = Meter.for_recorder(
            self.handle.metrics, self.handle.clock, profile.scheduler_name, plugin_sampling
        )
        wrap = None if meter is None else meter.measured_hook
        self._hooks = HookTable(profile, self.plugins, registry, wrap)
        self._has_score_plugins = bool(self._hooks["score"])
        self._less: Hook | None = next((hook for _, hook in self._hooks["queue_sort"]), None)
        parallelizer, batch = self.handle.parallelizer, evaluation is not Evaluation.SCALAR
        self._status_codes = StatusCodes()
        self._memo_counters = counters = MemoCounters()
        run_all = profile.run_all_filters
        self._filter = FilterHooks(self._hooks, self.plugins, self.handle, counters, run_all=run_all)
        columns = FilterColumns(parallelizer, self._status_codes) if batch else None
        self._node_filter = NodeFilter(self._filter, columns, self._status_codes, self.handle, meter)
        self._score = ScoreHooks(
            self._hooks, self.plugins, profile, ScoreColumns(parallelizer, meter, batch=batch), counters
        )
        # Threads of their own, as pre_binds may block for minutes and filters must not wait for them.
        self._pre_bind = PreBindHooks(self._hooks, Parallelizer(parallelizer.parallelism))
        # Counted from here on are the plugins that filter or score.
        asked = [self.plugins[name] for name in counters.by_plugin]
        self._memo = Memo(asked, counters) if evaluation is Evaluation.MEMO else None
        self._cycle: Cycle | None = None
        self.handle._framework = self

    def _make(self, registry: Registry, name: str) -> AnyPlugin:
        plugin = registry.load(name)
        args = plugin_args(name, plugin.args_type, self.profile.args.get(name))
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
        """The plugins that take part in an extension point, in order."""
        return self._hooks.at(point)

    def hooks_of(self, plugin: str) -> Mapping[str, Hook]:
        """A plugin's hooks by name, those that the profile enables; each takes all its arguments by position."""
        return self._hooks.of(plugin)

    @property
    def has_filter_plugins(self) -> bool:
        return bool(self._hooks["filter"])

    @property
    def has_post_filter_plugins(self) -> bool:
        return bool(self._hooks["post_filter"])

    @property
    def has_score_plugins(self) -> bool:
        return self._has_score_plugins

    def events_to_register(self) -> Mapping[str, tuple[ClusterEvent, ...]]:
        """Per plugin that names any, the events that may make its rejected pods schedulable.

        Raises:
            PluginError: the hook fails, or names an event that never happens.
        """
        events: dict[str, tuple[ClusterEvent, ...]] = {}
        for name, hook in self._hooks["events_to_register"]:
            try:
                events[name] = tuple(hook())
                never = [event.label for event in events[name] if not event.can_happen]
            except HOOK_FAILURES as error:
                raise PluginError(
                    name, f"events_to_register failed: {type(error).__name__}: {error}"
                ) from error
            if never:
                raise PluginError(
                    name,
                    f"events_to_register names {', '.join(never)}, which never happens; what does is in "
                    "docs/writing-plugins.md#coming-back",
                )
        return events

    # Queue

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        """Whether `first` is scheduled before `second`, by the profile's queue sort plugin.

        Raises:
            ProfileError: the profile has none.
        """
        if self._less is None:
            raise ProfileError(
                f"profile {self.profile.scheduler_name!r}: a queue sort plugin is needed, none is enabled"
            )
        try:
            return bool(self._less(first, second))
        except SystemExit as error:  # no reason to leave a queue half sorted
            raise PluginFailure(f"queue sort plugin ended by {error!r}") from error

    @measured(MeasuredPoint.PRE_ENQUEUE)
    def run_pre_enqueue_plugins(self, pod: Pod) -> Status:
        """Whether the pod may become active; the first plugin that objects decides."""
        return self._first_failure("pre_enqueue", pod)

    # Scheduling cycle

    @measured(MeasuredPoint.PRE_FILTER)
    def run_pre_filter_plugins(
        self, state: CycleState, pod: Pod
    ) -> tuple[PreFilterResult | None, Status, frozenset[str]]:
        """Run all pre_filters; gives the nodes left over (None = all), the status, and the plugins that narrowed them.

        Sets `state.skip_filter_plugins`. UNSCHEDULABLE_AND_UNRESOLVABLE ends it at once, UNSCHEDULABLE at
        the end, so that the state is complete for preemption.
        """
        skipped: set[str] = set()
        narrowing: set[str] = set()
        result: PreFilterResult | None = None
        rejection = _SUCCESS
        nodes = self.handle.snapshot.node_infos
        try:
            for name, hook in self._hooks["pre_filter"]:
                try:
                    answer = hook(state, pod, nodes)
                except HOOK_FAILURES as error:
                    answer = Status.from_error(error)
                if answer is None:
                    continue
                if answer is _SKIP:
                    skipped.add(name)
                    continue
                if isinstance(answer, PreFilterResult):
                    narrowing.add(name)
                    result = answer.intersect(result)
                    if not result.node_names:
                        return result, no_nodes_left(narrowing), frozenset(narrowing)
                    continue
                status = checked(answer, name, "pre_filter")
                match status.code:
                    case Code.SKIP:
                        skipped.add(name)
                    case Code.SUCCESS:
                        pass
                    case Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                        return None, status.with_plugin(name), frozenset()
                    case Code.UNSCHEDULABLE:
                        rejection = status.with_plugin(name)
                    case _:
                        return None, status.prefixed(f'running PreFilter plugin "{name}"', name), frozenset()
            return result, rejection, frozenset(narrowing)
        finally:
            state.skip_filter_plugins = frozenset(skipped)

    def run_pre_filter_add_pod(
        self, state: CycleState, pod: Pod, to_add: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Bring the state up to date as if `to_add` were on the node; skipped plugins are left alone."""
        return self._filter.add_pod(state, pod, to_add, node_info)

    def run_pre_filter_remove_pod(
        self, state: CycleState, pod: Pod, to_remove: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Bring the state up to date as if `to_remove` were gone from the node."""
        return self._filter.remove_pod(state, pod, to_remove, node_info)

    def run_filter_plugins(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Success, or the first refusal in profile order."""
        status = self._filter.run(state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return status

    def run_each_filter_plugin(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Mapping[str, Status]:
        """What each filter that isn't skipped says of the node, whatever the others say; for explanations."""
        statuses = self._filter.run_each(state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return statuses

    def beside_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> tuple[CycleState, NodeInfo] | None:
        """Copies of both as if the node's nominated pods of equal or higher priority were there; None without any.

        So it is, too, where a plugin doesn't cope with these pods, which refuses the node in any case.
        """
        beside = self._filter.beside_nominated_pods(state, pod, node_info)
        return None if isinstance(beside, Status) else beside

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, *, other_pods_only: bool = False
    ) -> Status:
        """Like run_filter_plugins, with and without the nominated pods of equal or higher priority.

        With `other_pods_only`, the node itself has passed already: only what pods may have changed is asked for.
        """
        filters = self._filter.reading_pods(state) if other_pods_only else self._filter.active(state)
        status = self._filter.run_with_nominated_pods(filters, state, pod, node_info)
        if self._meter is not None:
            self._meter.nodes_asked()
        return status

    def filter_nodes(
        self, state: CycleState, pod: Pod, nodes: NodeSelection, wanted: int | None = None
    ) -> FilterOutcome:
        """The same question for nodes of the snapshot, in order, until one more than `wanted` passed (None: all).

        The plugins' batch forms are used where they have one, and answers that they gave before where those hold.
        """
        wanted = len(nodes) if wanted is None else wanted
        return self._node_filter.search(self._cycle_of(state, pod), nodes, wanted)

    def kept_column(
        self, state: CycleState, pod: Pod, key: Hashable, make: Callable[[], ColumnT]
    ) -> ColumnT | None:
        """A column for what follows from the filters' answers to pods like this one, `key` and the single node.

        It is made by `make` or left from pods before; the caller brings it up to date. None where an answer may depend
        on anything else, or isn't kept.
        """
        pods = self._cycle_of(state, pod).pods
        filters = self._filter.active(state)
        if self._memo is None or not self._filter.are_local(state, pods.answers):
            return None
        return pods.column((filters, key), make)

    @measured(MeasuredPoint.POST_FILTER)
    def run_post_filter_plugins(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Ask each plugin to make room until one succeeds, or says that it's no use."""
        result: PostFilterResult | None = None
        reasons: list[str] = []
        rejector = ""
        for name, hook in self._hooks["post_filter"]:
            try:
                own_result, status = _pair(hook(state, pod, node_to_status), name)
            except HOOK_FAILURES as error:
                own_result, status = None, Status.from_error(error)
            if status.is_success:
                return own_result, status
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return own_result, status.with_plugin(name)
            if not status.is_rejected:
                return None, Status.from_error(status.as_error()).with_plugin(name)
            if own_result is not None and own_result.mode is not NominatingMode.NOOP:
                result = own_result
            reasons.extend(status.reasons)
            rejector = rejector or name
        return result, Status.unschedulable(*reasons).with_plugin(rejector)

    @measured(MeasuredPoint.PRE_SCORE)
    def run_pre_score_plugins(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Prepare scoring of the feasible nodes; sets `state.skip_score_plugins`."""
        return self._score.pre_score(state, pod, nodes)

    @measured(MeasuredPoint.SCORE)
    def run_score_plugins(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeScores | None, Status]:
        """Score, normalise and weigh; the scores are None unless the status is success."""
        selection = NodeSelection.of(self.handle.snapshot.table, nodes)
        return self._score.score(nodes if selection is None else selection, self._cycle_of(state, pod))

    @measured(MeasuredPoint.SCORE)
    def total_scores(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[Totals | None, Status]:
        """The totals alone: much faster where plugins' answers are kept."""
        selection = NodeSelection.of(self.handle.snapshot.table, nodes)
        return self._score.totals(nodes if selection is None else selection, self._cycle_of(state, pod))

    def memo_report(self) -> Mapping[str, PluginMemo]:
        """By plugin that filters or scores, how much was asked, and what of it could be kept."""
        return self._memo_counters.by_plugin

    def _cycle_of(self, state: CycleState, pod: Pod) -> Cycle:
        """What is known of pods like this one, looked up once in the cycle that `state` stands for."""
        cycle = self._cycle
        if cycle is None or cycle.state is not state or cycle.pod is not pod:
            self._cycle = cycle = self._new_cycle(state, pod)
        return cycle

    def _new_cycle(self, state: CycleState, pod: Pod) -> Cycle:
        if len(self._status_codes) > _MOST_STATUSES:
            self._status_codes.clear()
            if self._memo is not None:
                self._memo.clear()
        if self._memo is None:
            return Cycle(state, pod)
        return self._memo.cycle(state, pod, self.handle.snapshot.table)

    @measured(MeasuredPoint.RESERVE)
    def run_reserve_plugins_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Let plugins take what the pod needs; on anything but success the caller unreserves."""
        return self._first_failure("reserve", state, pod, node_name)

    @measured(MeasuredPoint.UNRESERVE)
    def run_reserve_plugins_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> Sequence[Status]:
        """Undo reserve, in reverse order; every plugin is called, and failures are returned, not raised."""
        return self._call_all("unreserve", reversed(self._hooks["unreserve"]), state, pod, node_name)

    @measured(MeasuredPoint.PERMIT)
    def run_permit_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Success, a refusal, or WAIT, in which case the pod is in `waiting_pods` now."""
        timeouts: dict[str, float] = {}
        for name, hook in self._hooks["permit"]:
            try:
                status = checked(hook(state, pod, node_name), name, "permit")
            except HOOK_FAILURES as error:
                status = Status.from_error(error)
            if status.is_success:
                continue
            if status.is_rejected:
                return status.with_plugin(name)
            if not status.is_wait:
                return status.prefixed(f'running Permit plugin "{name}"', name)
            timeouts[name] = MAX_PERMIT_TIMEOUT if status.timeout is None else status.timeout
        if not timeouts:
            return _SUCCESS
        self.waiting_pods.add(WaitingPod(pod, timeouts, self.handle.clock))
        return Status(
            Code.WAIT, (f'one or more plugins asked to wait and no plugin rejected pod "{pod.name}"',)
        )

    # Binding cycle

    def wait_on_permit(self, pod: Pod) -> Status:
        """Block until a waiting pod is allowed, rejected or timed out; success at once where it doesn't wait.

        A wait that a preemption ended is an ERROR.
        """
        waiting = self.waiting_pods.get(pod.uid)
        if waiting is None:
            return _SUCCESS
        try:
            status = waiting.wait()
        finally:
            self.waiting_pods.remove(pod.uid)
        self.handle.metrics.permit_wait(status.code, self.handle.clock.monotonic() - waiting.started)
        if status.is_success or status.is_rejected:
            return status
        return status.prefixed("waiting on permit for pod", status.plugin)

    @measured(MeasuredPoint.PRE_BIND_PRE_FLIGHT)
    def run_pre_bind_pre_flights(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Success if a plugin has something to do in pre_bind, SKIP if none has; an ERROR if one fails.

        Plugins that skip aren't called by `run_pre_bind_plugins` with the same state; without this call, all are.
        """
        return self._pre_bind.pre_flight(state, pod, node_name)

    @measured(MeasuredPoint.PRE_BIND)
    def run_pre_bind_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """The first failure in profile order, or success; those that allow it run together."""
        return self._pre_bind.run(state, pod, node_name)

    @measured(MeasuredPoint.BIND)
    def run_bind_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """The answer of the first plugin that doesn't skip; SKIP where all do or there is none."""
        for name, hook in self._hooks["bind"]:
            try:
                status = checked(hook(state, pod, node_name), name, "bind")
            except HOOK_FAILURES as error:
                status = Status.from_error(error)
            if status.is_skip:
                continue
            return status if status.is_success else named(status, "bind", name)
        return Status.skip()

    @measured(MeasuredPoint.POST_BIND)
    def run_post_bind_plugins(self, state: CycleState, pod: Pod, node_name: str) -> Sequence[Status]:
        """Tell everyone; every plugin is called, and failures are returned, not raised."""
        return self._call_all("post_bind", self._hooks["post_bind"], state, pod, node_name)

    def close(self) -> None:
        """End the framework's threads and those of the parallelizer."""
        self._pre_bind.close()
        self.handle.parallelizer.close()

    def _first_failure(self, hook: str, *arguments: object) -> Status:
        for name, function in self._hooks[hook]:
            try:
                status = checked(function(*arguments), name, hook)
            except HOOK_FAILURES as error:
                status = Status.from_error(error)
            if not status.is_success:
                return named(status, hook, name)
        return _SUCCESS

    def _call_all(
        self, hook: str, functions: Iterable[tuple[str, Hook]], *arguments: object
    ) -> Sequence[Status]:
        failures = []
        for name, function in functions:
            try:
                function(*arguments)
            except HOOK_FAILURES as error:
                failures.append(named(Status.from_error(error), hook, name))
        return failures


def _pair(answer: object, plugin: str) -> tuple[PostFilterResult | None, Status]:
    match answer:
        case (None | PostFilterResult() as result, status):
            return result, checked(status, plugin, "post_filter")
    expected = "a pair of a PostFilterResult or None and a Status or None"
    return None, Status.from_error(f"post_filter must return {expected}, not {answer!r}")
