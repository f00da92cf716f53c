"""Calls of a profile's filters for single nodes, with and without their nominated pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.plugin import AmountsRule, AnyPlugin
from kschedfw.framework.runtime.calls import call
from kschedfw.framework.runtime.engine.plugins import FilterPlugin, PluginMemo
from kschedfw.framework.runtime.hooks import HookTable
from kschedfw.framework.status import Code, Status

_SUCCESS = Status.success()
_ABOUT_ROOM = frozenset((AmountsRule.LEAST_ALLOCATED, AmountsRule.MOST_ALLOCATED))
"""The rules of filters that refuse nodes with too little left, and for no other reason."""


class Filters:
    """The filters of a profile, and the hooks that update the state for added and removed pods.

    With `run_all`, all filters are called even after a refusal, and all reasons are given.
    """

    def __init__(
        self,
        hooks: HookTable,
        plugins: Mapping[str, AnyPlugin],
        handle: Handle,
        counts: Mapping[str, PluginMemo],
        *,
        run_all: bool = False,
    ) -> None:
        self.run_all = run_all
        batch = dict(hooks["filter_batch"])
        self.plugins = tuple(
            FilterPlugin(plugins[name], name, hook, batch.get(name), counts[name])
            for name, hook in hooks["filter"]
        )
        self._hooks = hooks
        followers = (*hooks["pre_filter_add_pod"], *hooks["pre_filter_remove_pod"])
        self.pod_followers = frozenset(name for name, _ in followers)
        """The plugins with pre_filter_add_pod or pre_filter_remove_pod."""
        self._handle = handle
        # Both are bounded by the sets of plugins that a pre_filter skips, of which a workload has few.
        self._active: dict[frozenset[str], tuple[FilterPlugin, ...]] = {}
        self._parted: dict[frozenset[str], tuple[tuple[FilterPlugin, ...], tuple[FilterPlugin, ...]]] = {}

    def active(self, state: CycleState) -> tuple[FilterPlugin, ...]:
        """Return the filters that pre_filter didn't skip, in profile order."""
        skipped = state.skip_filter_plugins
        active = self._active.get(skipped)
        if active is None:
            active = tuple(each for each in self.plugins if each.name not in skipped)
            self._active[skipped] = active
        return active

    def reading_pods(self, state: CycleState) -> tuple[FilterPlugin, ...]:
        """Return the active filters whose answer may change with the pods on the node."""
        return self._parts(state)[0]

    def _parts(self, state: CycleState) -> tuple[tuple[FilterPlugin, ...], tuple[FilterPlugin, ...]]:
        """Return the active filters that read pods, and those that read the node object alone."""
        skipped = state.skip_filter_plugins
        parts = self._parted.get(skipped)
        if parts is None:
            active = self.active(state)
            reading = tuple(each for each in active if each.plugin.reads is not Reads.NODE)
            parts = self._parted[skipped] = reading, tuple(each for each in active if each not in reading)
        return parts

    def only_room_decides(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> bool:
        """Tell whether the pod passes every filter but the one that compares the free amounts.

        That must hold whichever pods are on the node.
        """
        # A subclass may refuse for other reasons than its base (`names_rule`), and a plugin with
        # pre_filter_add_pod could change what the filters read while pods are removed.
        reading, others = self._parts(state)
        return (
            len(reading) == 1
            and reading[0].names_rule
            and reading[0].plugin.amounts_rule in _ABOUT_ROOM
            and not pod.requests.demand.scalar_resources
            and self.pod_followers <= state.skip_filter_plugins
            and not self.nominated_pods(pod, node_info.name)
            and first_refusal(others, state, pod, node_info).is_success
        )

    def run(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Return the first refusal or error in profile order, with its plugin; else success.

        With `run_all`, return the first error, or else all refusals in one status.
        """
        if self.run_all:
            return merged(self.run_each(state, pod, node_info).values())
        return first_refusal(self.active(state), state, pod, node_info)

    def run_each(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> dict[str, Status]:
        """Return every filter's own verdict by plugin, even after a refusal."""
        return {each.name: each.ask(state, pod, node_info) for each in self.active(state)}

    def run_with_nominated_pods(
        self, filters: Sequence[FilterPlugin], state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Status:
        """Return the first refusal of the node with and without its nominated pods; else success.

        Both passes are needed: resources and anti-affinity may fail only with those pods, affinity only
        without.
        """
        status = self.refusal_with_nominated_pods(filters, state, pod, node_info)
        return status if not status.is_success else first_refusal(filters, state, pod, node_info)

    def refusal_with_nominated_pods(
        self, filters: Sequence[FilterPlugin], state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Status:
        """Return the first refusal of the node with its nominated pods added; success if it has none."""
        crowded = self.add_nominated_pods(state, pod, node_info)
        if isinstance(crowded, Status):
            return crowded
        return _SUCCESS if crowded is None else first_refusal(filters, crowded[0], pod, crowded[1])

    def add_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> tuple[CycleState, NodeInfo] | Status | None:
        """Return copies of the state and the node, with the node's nominated pods added.

        Return None if there are no such pods, and the failed status if a pre_filter_add_pod fails.
        """
        nominated = self.nominated_pods(pod, node_info.name)
        if not nominated:
            return None
        # Copies, since other threads filter other nodes with the same state, and the snapshot's node stays as
        # it is.
        state, node_info = state.clone(), node_info.clone()
        for pod_info in nominated:
            node_info.add_pod(pod_info)
            status = self.add_pod(state, pod, pod_info, node_info)
            if not status.is_success:
                return status
        return state, node_info

    def nominated_pods(self, pod: Pod, node_name: str) -> Sequence[PodInfo]:
        """Return the pods nominated to the node that `pod` has to leave room for: of equal or higher priority."""
        nominated = self._handle.nominator.nominated_pods_for_node(node_name)
        if not nominated:
            return ()
        # As kube-scheduler's addGENominatedPods. Room that was freed for pods of lower priority may be taken.
        priority, uid = pod.priority, pod.uid
        return [info for info in nominated if info.pod.priority >= priority and info.pod.uid != uid]

    def add_pod(self, state: CycleState, pod: Pod, pod_info: PodInfo, node_info: NodeInfo) -> Status:
        return self._extend("AddPod", "pre_filter_add_pod", state, pod, pod_info, node_info)

    def remove_pod(self, state: CycleState, pod: Pod, pod_info: PodInfo, node_info: NodeInfo) -> Status:
        return self._extend("RemovePod", "pre_filter_remove_pod", state, pod, pod_info, node_info)

    def _extend(
        self,
        operation: str,
        hook_name: str,
        state: CycleState,
        pod: Pod,
        pod_info: PodInfo,
        node_info: NodeInfo,
    ) -> Status:
        for name, hook in self._hooks[hook_name]:
            if name in state.skip_filter_plugins:
                continue
            status = call(hook_name, hook, state, pod, pod_info, node_info)
            if not status.is_success:
                return status.prefixed(f'running {operation} on PreFilter plugin "{name}"', name)
        return _SUCCESS


def first_refusal(
    filters: Sequence[FilterPlugin], state: CycleState, pod: Pod, node_info: NodeInfo
) -> Status:
    """Return the first status of these filters that is no success; else success."""
    for each in filters:
        status = each.ask(state, pod, node_info)
        # `ask` returns this one object for every success, so that no attribute is read for a node that
        # passes.
        if status is not _SUCCESS:
            return status
    return _SUCCESS


def merged(verdicts: Iterable[Status]) -> Status:
    """Return several filters' verdicts on a node as one: the first error, or all reasons with the first plugin.

    The result is unresolvable if one of them is, and has the earliest `retry_at`.
    """
    refusals = []
    for status in verdicts:
        if status.code is Code.ERROR:
            return status
        if not status.is_success:
            refusals.append(status)
    if len(refusals) < 2:
        return refusals[0] if refusals else _SUCCESS
    unresolvable = any(status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for status in refusals)
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else refusals[0].code
    reasons = tuple(reason for status in refusals for reason in status.reasons)
    retry_at = min((each.retry_at for each in refusals if each.retry_at is not None), default=None)
    return Status(code, reasons, plugin=refusals[0].plugin, retry_at=retry_at)
