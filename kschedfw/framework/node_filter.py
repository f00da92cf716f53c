"""The filters of one pod, prepared once and then asked node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.handle import Handle
from kschedfw.framework.hooks import Hook
from kschedfw.framework.measuring import Hooks, Meter
from kschedfw.framework.metrics import Operation
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.pod_info import PodInfo
from kschedfw.framework.results import Verdicts
from kschedfw.framework.status import Status

_SUCCESS = Status.success()


def checked(answer: object, plugin: str, hook: str) -> Status:
    """What a hook returned, as a Status; anything that is neither None nor a Status is an ERROR."""
    if answer is None:
        return _SUCCESS
    if isinstance(answer, Status):
        return answer
    return Status.from_error(f"{hook} must return None or a Status, not {answer!r}").with_plugin(plugin)


class FilterHooks:
    """Runs the filter hooks of a profile on single nodes."""

    def __init__(self, hooks: Hooks, handle: Handle, meter: Meter | None = None) -> None:
        self._filters = hooks["filter"]
        self._batch = dict(hooks["filter_batch"])
        self._add_pod = hooks["pre_filter_add_pod"]
        self._remove_pod = hooks["pre_filter_remove_pod"]
        self._handle = handle
        self._meter = meter
        self._active: dict[frozenset[str], tuple[tuple[str, Hook], ...]] = {}

    def active(self, state: CycleState) -> tuple[tuple[str, Hook], ...]:
        """The filters that pre_filter didn't skip, in profile order."""
        skipped = state.skip_filter_plugins
        active = self._active.get(skipped)
        if active is None:
            active = tuple((name, hook) for name, hook in self._filters if name not in skipped)
            self._active[skipped] = active
        return active

    def run(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """The first refusal or error in profile order, with its plugin; else success."""
        for name, hook in self.active(state):
            try:
                answer = hook(state, pod, node_info)
            except Exception as error:
                return refusal(Status.from_error(error), name)
            if answer is not None:
                status = checked(answer, name, "filter")
                if not status.is_success:
                    return refusal(status, name)
        return _SUCCESS

    def run_each(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> dict[str, Status]:
        """Every filter's own verdict, also behind an earlier refusal."""
        verdicts = {}
        for name, hook in self.active(state):
            try:
                status = checked(hook(state, pod, node_info), name, "filter")
            except Exception as error:
                status = Status.from_error(error)
            verdicts[name] = status if status.is_success else refusal(status, name)
        return verdicts

    def run_with_nominated_pods(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Like `run`, but the node must also pass as if its nominated pods of equal or higher priority were there.

        Both passes are needed: resources and anti-affinity may fail only with those pods, affinity only without.
        """
        nominated = [
            info
            for info in self._handle.nominator.nominated_pods_for_node(node_info.name)
            if info.pod.priority >= pod.priority and info.pod.uid != pod.uid
        ]
        if nominated:
            state_with, info_with = state.clone(), node_info.clone()
            for pod_info in nominated:
                info_with.add_pod(pod_info)
                status = self.add_pod(state_with, pod, pod_info, info_with)
                if not status.is_success:
                    return status
            status = self.run(state_with, pod, info_with)
            if not status.is_success:
                return status
        return self.run(state, pod, node_info)

    def has_nominated_pods(self, node_info: NodeInfo) -> bool:
        return bool(self._handle.nominator.nominated_pods_for_node(node_info.name))

    def add_pod(self, state: CycleState, pod: Pod, pod_info: PodInfo, node_info: NodeInfo) -> Status:
        return self._extend("AddPod", self._add_pod, state, pod, pod_info, node_info)

    def remove_pod(self, state: CycleState, pod: Pod, pod_info: PodInfo, node_info: NodeInfo) -> Status:
        return self._extend("RemovePod", self._remove_pod, state, pod, pod_info, node_info)

    def _extend(
        self,
        operation: str,
        hooks: tuple[tuple[str, Hook], ...],
        state: CycleState,
        pod: Pod,
        pod_info: PodInfo,
        node_info: NodeInfo,
    ) -> Status:
        for name, hook in hooks:
            if name in state.skip_filter_plugins:
                continue
            try:
                status = checked(hook(state, pod, pod_info, node_info), name, operation)
            except Exception as error:
                status = Status.from_error(error)
            if not status.is_success:
                return status.prefixed(f'running {operation} on PreFilter plugin "{name}"', name)
        return _SUCCESS

    def prepare(self, state: CycleState, pod: Pod, node_infos: Sequence[NodeInfo]) -> NodeFilter:
        """Ask the batch forms about all these nodes of the snapshot, so that `check` has less to call."""
        started = 0.0 if self._meter is None else self._meter.now()
        active = self.active(state)
        verdicts: dict[str, Verdicts] = {}
        failure: Status | None = None
        batched = [name for name, _ in active if name in self._batch]
        if batched and node_infos:
            table = self._handle.snapshot.table
            rows = np.array([table.rows[info.name] for info in node_infos], dtype=np.int64)
            order = np.argsort(rows)
            for name in batched:
                try:
                    answer = self._batch[name](state, pod, table, rows[order])
                except Exception as error:
                    failure = refusal(Status.from_error(error), name)
                    break
                if (problem := _problem(answer, len(rows))) is not None:
                    failure = refusal(Status.from_error(problem), name)
                    break
                if answer is not None:
                    codes = np.empty(len(rows), dtype=np.int64)
                    codes[order] = answer.codes
                    verdicts[name] = Verdicts(codes, answer.statuses)
        return NodeFilter(self, state, pod, node_infos, verdicts, failure, started)

    def search(self, node_filter: NodeFilter, enough: Callable[[Status], bool]) -> list[Status]:
        """The filter's verdicts up to the first that is enough; measured from its preparation on."""
        parallelizer, count, meter = self._handle.parallelizer, len(node_filter), self._meter
        if meter is None:
            return parallelizer.map_until(count, node_filter.check, enough)
        with meter.working(Operation.FILTER, parallelizer, count):
            statuses = parallelizer.map_until(count, node_filter.check, enough)
        meter.filtered(node_filter.started, statuses)
        return statuses


class NodeFilter:
    """The filters of one pod in one cycle, over a fixed list of nodes. `check` may be called concurrently."""

    def __init__(
        self,
        hooks: FilterHooks,
        state: CycleState,
        pod: Pod,
        node_infos: Sequence[NodeInfo],
        verdicts: dict[str, Verdicts],
        failure: Status | None,
        started: float = 0.0,
    ) -> None:
        self.started = started
        self._hooks = hooks
        self._state = state
        self._pod = pod
        self._node_infos = node_infos
        self._verdicts = verdicts
        self._failure = failure

    def __len__(self) -> int:
        return len(self._node_infos)

    def check_until(self, enough: Callable[[Status], bool]) -> list[Status]:
        """The verdicts on the nodes in order, up to the first for which `enough` says True; in parallel.

        This is what extension point Filter is measured by, once for a cycle.
        """
        return self._hooks.search(self, enough)

    def check(self, index: int) -> Status:
        """The verdict on node `index` of the list, nominated pods included."""
        node_info = self._node_infos[index]
        if self._failure is not None:
            return self._failure
        if not self._verdicts or self._hooks.has_nominated_pods(node_info):
            return self._hooks.run_with_nominated_pods(self._state, self._pod, node_info)
        return self._check_with_verdicts(index, node_info)

    def _check_with_verdicts(self, index: int, node_info: NodeInfo) -> Status:
        for name, hook in self._hooks.active(self._state):
            verdicts = self._verdicts.get(name)
            try:
                answer = hook(self._state, self._pod, node_info) if verdicts is None else verdicts.of(index)
            except Exception as error:
                answer = Status.from_error(error)
            if answer is not None:
                status = checked(answer, name, "filter")
                if not status.is_success:
                    return refusal(status, name)
        return _SUCCESS


def _problem(answer: object, count: int) -> str | None:
    """What is wrong with an answer of filter_batch, if anything."""
    if answer is None:
        return None
    if not isinstance(answer, Verdicts):
        return f"filter_batch must return None or Verdicts, not {answer!r}"
    codes = np.asarray(answer.codes)
    if codes.dtype.kind not in "iu" or codes.shape != (count,):
        return f"the verdicts' codes must be integers of shape ({count},), not {codes.dtype} of shape {codes.shape}"
    outside = (codes < 0) | (codes >= len(answer.statuses))
    if outside.any():
        return f"the verdicts have a code {codes[outside][0]} but {len(answer.statuses)} statuses"
    return None


def refusal(status: Status, plugin: str) -> Status:
    """A filter's answer with its plugin named; a code that filters may not give becomes an ERROR."""
    if status.is_rejected:
        return status.with_plugin(plugin)
    return status.prefixed(f'running "{plugin}" filter plugin', plugin)
