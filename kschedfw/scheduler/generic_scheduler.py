"""The scheduling algorithm: from a pod and a snapshot to a node (kube-scheduler `schedulePod`)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis, FitError, NoNodesAvailableError
from kschedfw.framework.extender import EXTENDER_NAME, MAX_EXTENDER_PRIORITY
from kschedfw.framework.framework import Framework, not_left_over
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.results import MAX_NODE_SCORE, IntArray, PreFilterResult
from kschedfw.framework.scores import NodeScores
from kschedfw.framework.snapshot import Snapshot
from kschedfw.framework.status import Code, Status
from kschedfw.scheduler.errors import SchedulingError, SnapshotMismatchError
from kschedfw.scheduler.select import select_host

MIN_FEASIBLE_NODES_TO_FIND = 100
MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND = 5


class SnapshotSource(Protocol):
    """Whoever knows the nodes and pods; `Cache` does."""

    def update_snapshot(self, snapshot: Snapshot) -> None: ...


@attrs.frozen
class ScheduleResult:
    """Where the pod should go, out of how many nodes looked at and how many that would do."""

    suggested_host: str
    evaluated_nodes: int
    feasible_nodes: int


def num_feasible_nodes_to_find(percentage: int, num_all_nodes: int) -> int:
    """How many feasible nodes end the search: all below 100 nodes, else the percentage, but at least 100.

    Percentage 0 adapts to the size: 50 − n/125, at least 5.
    """
    if num_all_nodes < MIN_FEASIBLE_NODES_TO_FIND:
        return num_all_nodes
    if percentage == 0:
        percentage = max(50 - num_all_nodes // 125, MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND)
    return max(num_all_nodes * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)


class GenericScheduler:
    """Finds the best node for a pod with the plugins of a framework.

    It keeps one thing between pods: where in the node order the next search begins, so that all nodes get their
    turn when only a part is searched. The order is rotated, and equal candidates drawn from `random`, in the same
    way whatever the framework's parallelism.
    """

    def __init__(
        self,
        cache: SnapshotSource,
        snapshot: Snapshot,
        *,
        random: Random,
        percentage_of_nodes_to_score: int = 0,
    ) -> None:
        self._cache = cache
        self._snapshot = snapshot
        self._random = random
        self._percentage = percentage_of_nodes_to_score
        self._next_start_node_index = 0

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        """The node to put the pod on.

        Raises:
            NoNodesAvailableError: there is no node at all.
            FitError: no node passes; says why.
            SchedulingError: a plugin or extender failed.
            SnapshotMismatchError: the framework was made with another snapshot than this scheduler.
        """
        if framework.handle.snapshot is not self._snapshot:
            raise SnapshotMismatchError(framework.profile.scheduler_name)
        self._cache.update_snapshot(self._snapshot)
        if not self._snapshot:
            raise NoNodesAvailableError
        feasible, diagnosis = self.find_nodes_that_fit_pod(framework, state, pod)
        if not feasible:
            raise FitError(pod, len(self._snapshot), diagnosis)
        evaluated = len(feasible) + len(diagnosis.node_to_status)
        if len(feasible) == 1:
            return ScheduleResult(feasible[0].name, evaluated, 1)
        totals = self.prioritize_nodes(framework, state, pod, feasible)
        host = feasible[select_host(totals, self._random).index]
        return ScheduleResult(host.name, evaluated, len(feasible))

    def find_nodes_that_fit_pod(
        self, framework: Framework, state: CycleState, pod: Pod
    ) -> tuple[Sequence[NodeInfo], Diagnosis]:
        """The feasible nodes in visiting order, and why others aren't feasible.

        Raises:
            SchedulingError: a plugin or extender failed.
        """
        diagnosis = Diagnosis()
        left_over, status, narrowing = framework.run_pre_filter_plugins(state, pod)
        diagnosis.unschedulable_plugins |= narrowing
        if not status.is_success:
            if not status.is_rejected:
                raise SchedulingError(status)
            diagnosis.node_to_status.absent = status
            diagnosis.pre_filter_message = status.message
            diagnosis.add_plugin_status(status)
            return (), diagnosis
        if pod.status.nominated_node_name:
            # the room made for the pod is most likely still there, and nowhere else
            nominated = self._try_nominated_node(framework, state, pod, diagnosis)
            if nominated:
                return nominated, diagnosis
        nodes = self._candidates(left_over, narrowing, diagnosis)
        passed = self._find_nodes_that_pass_filters(framework, state, pod, nodes, diagnosis)
        feasible = self._find_nodes_that_pass_extenders(framework, pod, passed, diagnosis)
        if len(feasible) != len(passed):
            diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
        return feasible, diagnosis

    def prioritize_nodes(
        self, framework: Framework, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> IntArray:
        """The total score of each node, shape (n,), int64; 1 for all where nothing scores.

        Raises:
            SchedulingError: a plugin failed.
        """
        if not framework.handle.extenders and not framework.has_score_plugins:
            return np.ones(len(nodes), dtype=np.int64)
        totals = self.score_nodes(framework, state, pod, nodes).totals
        rows = {info.name: row for row, info in enumerate(nodes)}
        for extender in framework.handle.extenders:
            if not (extender.is_prioritizer and extender.is_interested(pod)):
                continue
            try:
                priorities = extender.prioritize(pod, nodes)
            except Exception:  # an extender that can't rate leaves it to the others
                continue
            for name, priority in priorities.items():
                if name in rows:
                    totals[rows[name]] += (
                        priority * extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
                    )
        return totals

    @staticmethod
    def score_nodes(
        framework: Framework, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> NodeScores:
        """What each score plugin says of each node.

        Raises:
            SchedulingError: a plugin failed.
        """
        status = framework.run_pre_score_plugins(state, pod, nodes)
        if not status.is_success:
            raise SchedulingError(status)
        scores, status = framework.run_score_plugins(state, pod, nodes)
        if scores is None:
            raise SchedulingError(status)
        return scores

    def _candidates(
        self, left_over: PreFilterResult | None, narrowing: frozenset[str], diagnosis: Diagnosis
    ) -> Sequence[NodeInfo]:
        if left_over is None:
            return self._snapshot.node_infos
        diagnosis.node_to_status.absent = not_left_over(narrowing)
        return [info for info in self._snapshot.node_infos if info.name in left_over.node_names]

    def _try_nominated_node(
        self, framework: Framework, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> Sequence[NodeInfo]:
        name = pod.status.nominated_node_name
        if name not in self._snapshot:
            return ()
        node = [self._snapshot.get(name)]
        feasible, error = self._search(framework, state, pod, node, 0, diagnosis)
        if error is not None:
            return ()
        try:
            return self._find_nodes_that_pass_extenders(framework, pod, feasible, diagnosis)
        except SchedulingError:
            return ()

    def _find_nodes_that_pass_filters(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        nodes: Sequence[NodeInfo],
        diagnosis: Diagnosis,
    ) -> Sequence[NodeInfo]:
        feasible, error = self._search(framework, state, pod, nodes, self._next_start_node_index, diagnosis)
        # an error, too, moves the start on, so that it can't keep other nodes from being looked at
        processed = len(feasible) + len(diagnosis.node_to_status)
        self._next_start_node_index = (self._next_start_node_index + processed) % len(self._snapshot)
        if error is not None:
            raise SchedulingError(error)
        return feasible

    def _search(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        nodes: Sequence[NodeInfo],
        start: int,
        diagnosis: Diagnosis,
    ) -> tuple[Sequence[NodeInfo], Status | None]:
        """Filter nodes from `start` on, round the end, until enough have passed or an error comes up."""
        if not nodes:
            return (), None
        start %= len(nodes)
        order = [*nodes[start:], *nodes[:start]]
        wanted = self._num_nodes_to_find(framework, len(order))
        if not framework.has_filter_plugins:
            return order[:wanted], None
        passed = 0

        def enough(status: Status) -> bool:
            # As in the original, what ends the search is the first surplus node, so that refusals up to
            # there are known and count as evaluated.
            nonlocal passed
            passed += status.is_success
            return passed > wanted or status.code is Code.ERROR

        statuses = framework.node_filter(state, pod, order).check_until(enough)
        feasible: list[NodeInfo] = []
        for info, status in zip(order, statuses, strict=False):
            if status.is_success:
                feasible.append(info)
            elif status.code is Code.ERROR:
                return feasible, status
            else:
                diagnosis.node_to_status.set(info.name, status)
                diagnosis.add_plugin_status(status)
        return feasible[:wanted], None

    def _num_nodes_to_find(self, framework: Framework, num_nodes: int) -> int:
        filters_or_scores = framework.has_score_plugins or any(
            extender.is_filter or extender.is_prioritizer for extender in framework.handle.extenders
        )
        if not filters_or_scores:
            return 1
        own = framework.profile.percentage_of_nodes_to_score
        return num_feasible_nodes_to_find(self._percentage if own is None else own, num_nodes)

    def _find_nodes_that_pass_extenders(
        self, framework: Framework, pod: Pod, feasible: Sequence[NodeInfo], diagnosis: Diagnosis
    ) -> Sequence[NodeInfo]:
        for extender in framework.handle.extenders:
            if not feasible:
                break
            if not (extender.is_filter and extender.is_interested(pod)):
                continue
            try:
                result = extender.filter(pod, feasible)
            except Exception as error:  # whatever an extender raises is its failure, not ours
                if extender.is_ignorable:
                    continue
                raise SchedulingError(Status.from_error(error)) from error
            for name, message in result.failed_and_unresolvable.items():
                diagnosis.node_to_status.set(name, Status.unresolvable(message))
            for name, message in result.failed.items():
                if name not in result.failed_and_unresolvable:
                    diagnosis.node_to_status.set(name, Status.unschedulable(message))
            feasible = result.feasible
        return feasible
