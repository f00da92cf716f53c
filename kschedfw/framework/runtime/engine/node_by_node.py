"""The filters and scores of a profile, asked about single nodes in their order: the meaning of their answers.

Semantics: kube-scheduler `findNodesThatPassFilters`, `RunFilterPluginsWithNominatedPods` and `prioritizeNodes`. A
filter's answer counts only for nodes that all filters before it let pass, and a failure ends the search at its node.
Nothing is kept. Plans give the same decisions, for all nodes at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, NoReturn

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeCodes
from kschedfw.framework.handle import Handle
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.metrics import Operation
from kschedfw.framework.nodes.arrays import Codes, IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import FilterOutcome, NodeScores, PluginScores, Totals
from kschedfw.framework.plugin import AmountsRule
from kschedfw.framework.runtime.calls import call
from kschedfw.framework.runtime.engine.errors import NotTogetherError, ScoreError, check_range
from kschedfw.framework.runtime.engine.steps import Step
from kschedfw.framework.runtime.hooks import HookTable
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.status import Code, Status
from kschedfw.framework.status_codes import ERROR, PASS, StatusCodes

_SUCCESS = Status.success()
_NO_FAILURES: Final[Mapping[str, BaseException]] = {}
_ABOUT_ROOM = frozenset((AmountsRule.LEAST_ALLOCATED, AmountsRule.MOST_ALLOCATED))
"""The rules of filters that refuse nodes with too little left, and for no other reason."""


class NodeByNode:
    """The filters and scores of a profile, and the hooks that update the state for added and removed pods.

    With `run_all`, all filters are called even after a refusal, and all reasons are given.
    """

    def __init__(
        self,
        steps: Mapping[str, Step],
        hooks: HookTable,
        handle: Handle,
        meter: Meter | None,
        *,
        run_all: bool,
    ) -> None:
        self.run_all = run_all
        self._meter = meter
        self.filters = tuple(steps[name] for name, _ in hooks["filter"])
        self.scoring = tuple(steps[name] for name, _ in hooks["score"])
        """The steps with a score."""
        self._hooks = hooks
        followers = (*hooks["pre_filter_add_pod"], *hooks["pre_filter_remove_pod"])
        self.pod_followers = frozenset(name for name, _ in followers)
        """The plugins with pre_filter_add_pod or pre_filter_remove_pod."""
        self._handle = handle
        # Both are bounded by the sets of plugins that a pre_filter skips, of which a workload has few.
        self._active: dict[frozenset[str], tuple[Step, ...]] = {}
        self._parted: dict[frozenset[str], tuple[tuple[Step, ...], tuple[Step, ...]]] = {}

    def active(self, state: CycleState) -> tuple[Step, ...]:
        """Return the filters that pre_filter didn't skip, in profile order."""
        skipped = state.skip_filter_plugins
        active = self._active.get(skipped)
        if active is None:
            active = tuple(each for each in self.filters if each.name not in skipped)
            self._active[skipped] = active
        return active

    def search(
        self,
        state: CycleState,
        pod: Pod,
        codes: StatusCodes,
        nodes: NodeSelection,
        wanted: int,
        failures: Mapping[str, BaseException] = _NO_FAILURES,
    ) -> FilterOutcome:
        """Filter the nodes in their order until one more than `wanted` have passed, or a plugin fails.

        The first surplus node ends the search, as in kube-scheduler, so refusals up to there are known. `failures` of
        batch forms, by plugin, count as answers of the plugin about every node.
        """
        filters = [
            attrs.evolve(each, filter=partial(_raise, failures[each.name])) if each.name in failures else each
            for each in self.active(state)
        ]
        answers = self.ask_in_order(filters, state, pod, nodes, wanted)
        end, error = len(answers), None
        if answers and not (answers[-1].is_success or answers[-1].is_rejected):
            end, error = end - 1, answers[-1]
        found = np.array([codes.code_of(status) for status in answers[:end]], dtype=np.int32)
        passing = np.flatnonzero(found == PASS)
        if len(passing) > wanted:
            # The surplus node isn't part of the outcome; refusals before it are.
            end -= 1
            found, passing = found[:end], passing[:wanted]
        feasible = nodes if len(passing) == len(nodes) else NodeSelection(nodes.table, nodes.rows[passing])
        refused = NodeCodes.none(nodes.table)
        if end > len(passing):
            refused = NodeCodes(nodes.part(0, end), found, codes.statuses, count=end - len(passing))
        return FilterOutcome(len(passing), end, feasible, refused, error)

    def ask_in_order(
        self,
        filters: Sequence[Step],
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        wanted: int,
        *,
        alone: bool = False,
    ) -> Sequence[Status]:
        """Return the first refusal of each node, or success, until more than `wanted` pass or a plugin fails.

        Nodes are asked about with and without their nominated pods, if they aren't to be looked at `alone`.
        """
        has_nominated = not (alone or self._handle.nominator.is_empty)
        rows, infos = nodes.rows.tolist(), nodes.table.node_infos
        passed = 0

        def check(index: int) -> Status:
            info = infos[rows[index]]
            if has_nominated:
                status = self.refusal_with_nominated_pods(filters, state, pod, info)
                if not status.is_success:
                    return status
            if self.run_all:
                return merged([each.ask_filter(state, pod, info) for each in filters])
            return first_refusal(filters, state, pod, info)

        def is_enough(status: Status) -> bool:
            nonlocal passed
            # Called for one node at a time and in their order, whatever the threads do (`Parallelizer.map_until`), so
            # a plain counter will do.
            passed += status.is_success
            return passed > wanted or not (status.is_success or status.is_rejected)

        meter, parallelizer = self._meter, self._handle.parallelizer
        working = nullcontext() if meter is None else meter.working(Operation.FILTER, parallelizer, len(rows))
        with working:
            return parallelizer.map_until(len(rows), check, is_enough)

    def refused_by_each(
        self, state: CycleState, pod: Pod, codes: StatusCodes, nodes: NodeSelection
    ) -> dict[str, NodeCodes]:
        """Return the nodes that each filter refuses, even after a refusal by another, by plugin.

        Filters that refuse none are left out, and nominated pods aren't added to the nodes.
        """
        found: dict[str, NodeCodes] = {}
        for each in self.active(state):
            try:
                verdicts = each.verdicts(state, pod, nodes.table, nodes.rows)
            except NotTogetherError:
                verdicts = None  # asked about single nodes, the plugin fails at some of them only
            if verdicts is None:
                its: Codes = np.array(
                    [codes.code_of(each.ask_filter(state, pod, info)) for info in nodes], dtype=np.int32
                )
            else:
                its = codes.of_verdicts(verdicts, each.name)
            refused = NodeCodes(nodes, np.where(its == ERROR, PASS, its), codes.statuses)
            if refused.count:
                found[each.name] = refused
        return found

    def reading_pods(self, state: CycleState) -> tuple[Step, ...]:
        """Return the active filters whose answer may change with the pods on the node."""
        return self._parts(state)[0]

    def _parts(self, state: CycleState) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
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
        # A plugin with pre_filter_add_pod could change what the filters read while pods are removed.
        reading, others = self._parts(state)
        return (
            len(reading) == 1
            and reading[0].rule in _ABOUT_ROOM
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
            return merged(list(self.run_each(state, pod, node_info).values()))
        return first_refusal(self.active(state), state, pod, node_info)

    def run_each(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> dict[str, Status]:
        """Return every filter's own verdict by plugin, even after a refusal."""
        return {each.name: each.ask_filter(state, pod, node_info) for each in self.active(state)}

    def run_with_nominated_pods(
        self, filters: Sequence[Step], state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Status:
        """Return the first refusal of the node with and without its nominated pods; else success.

        Both passes are needed: resources and anti-affinity may fail only with those pods, affinity only
        without.
        """
        status = self.refusal_with_nominated_pods(filters, state, pod, node_info)
        return status if not status.is_success else first_refusal(filters, state, pod, node_info)

    def refusal_with_nominated_pods(
        self, filters: Sequence[Step], state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Status:
        """Return the first refusal of the node with its nominated pods added; success if it has none."""
        crowded = self.add_nominated_pods(state, pod, node_info)
        if isinstance(crowded, Status):
            return crowded
        return _SUCCESS if crowded is None else first_refusal(filters, crowded[0], pod, crowded[1])

    def refusal_beside_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, alone: Status
    ) -> Status:
        """Return the first refusal of the node with its nominated pods added, or else `alone`.

        `alone` is the first refusal without these pods, or a success. What the filters that read no pods answer is
        known from it, so that they aren't asked again.
        """
        crowded = self.add_nominated_pods(state, pod, node_info)
        if crowded is None:
            return alone
        if isinstance(crowded, Status):
            return crowded
        reading = self.reading_pods(state)
        if alone.is_success:
            status = first_refusal(reading, crowded[0], pod, crowded[1])
            return alone if status.is_success else status
        for each in self.active(state):
            is_last = each.name == alone.plugin
            if each in reading:
                status = each.ask_filter(crowded[0], pod, crowded[1])
                if not status.is_success:
                    return status
                if is_last:
                    break
            elif is_last:
                return alone
        # The filter that refuses the node lets it pass beside these pods, and those after it haven't been asked.
        status = first_refusal(self.active(state), crowded[0], pod, crowded[1])
        return alone if status.is_success else status

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
        # kube-scheduler's addGENominatedPods: room that was freed for pods of lower priority may be taken.
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
                status = HOOKS[hook_name].explained(status)
                return status.prefixed(f'running {operation} on PreFilter plugin "{name}"', name)
        return _SUCCESS

    def scores(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeScores | None, Status]:
        """Return every plugin's raw and normalised scores; None with an ERROR if a plugin fails."""
        try:
            raw = self.raw_scores(state, pod, nodes)
            return self.normalized_scores(state, pod, nodes, raw), _SUCCESS
        except ScoreError as error:
            return None, error.status

    def raw_scores(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, IntArray]:
        """Return the scores by each plugin that isn't skipped, shape (k,), before they are normalised.

        Raises:
            ScoreError: a plugin failed.
        """
        active = [each for each in self.scoring if each.name not in state.skip_score_plugins]
        # Copies, since a plugin may return the same array each time.
        return {each.name: self.raw(each, state, pod, nodes).copy() for each in active}

    def normalized_scores(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], raw: Mapping[str, IntArray]
    ) -> NodeScores:
        """Return the scores of nodes whose raw scores are given.

        Raises:
            ScoreError: a plugin failed.
        """
        active = [each for each in self.scoring if each.name in raw]
        # Copies, since `normalize_score` may change its argument.
        normalized = {each.name: each.normalized(state, pod, nodes, raw[each.name].copy()) for each in active}
        for name, scores in normalized.items():
            check_range(name, scores)
        by_plugin = {
            each.name: PluginScores(each.weight, raw[each.name], normalized[each.name]) for each in active
        }
        names = nodes.names if isinstance(nodes, NodeSelection) else tuple(info.name for info in nodes)
        return NodeScores(names, by_plugin)

    def totals(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> tuple[Totals | None, Status]:
        """Return only the totals of `scores`."""
        scores, status = self.scores(state, pod, nodes)
        return None if scores is None else Totals(scores.totals), status

    def raw(self, each: Step, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> IntArray:
        """Return one plugin's scores of the nodes, shape (k,), by its batch form if it has one. Not to be changed."""
        together = each.scores_on(state, pod, nodes) if isinstance(nodes, NodeSelection) else None
        return self.one_by_one(each, state, pod, nodes) if together is None else together

    def one_by_one(self, each: Step, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> IntArray:
        """Return the scores of the scalar form, shape (k,)."""
        infos = list(nodes)
        meter, parallelizer = self._meter, self._handle.parallelizer
        working = nullcontext() if meter is None else meter.working(Operation.SCORE, parallelizer, len(infos))
        with working:
            scores = parallelizer.map(len(infos), lambda index: each.ask_score(state, pod, infos[index]))
        return np.array(scores, dtype=np.int64)


def _raise(error: BaseException, *arguments: object) -> NoReturn:  # noqa: ARG001  # those of a filter
    raise error


def first_refusal(filters: Sequence[Step], state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
    """Return the first status of these filters that is no success; else success."""
    for each in filters:
        status = each.ask_filter(state, pod, node_info)
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
