"""The scheduling algorithm: from a pod and a snapshot to a node (kube-scheduler `schedulePod`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from random import Random
from typing import Protocol

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis, FitError, NoNodesAvailableError
from kschedfw.framework.extender import EXTENDER_NAME
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.outcome import FilterOutcome, NodeScores, Totals
from kschedfw.framework.results import PreFilterResult, not_left_over
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Code
from kschedfw.scheduler.batching import Batch, Batching, Scored
from kschedfw.scheduler.decision_observer import DecisionObserver
from kschedfw.scheduler.errors import ConcurrentCycleError, SchedulingError, SnapshotMismatchError
from kschedfw.scheduler.extenders import pass_extenders, with_extenders
from kschedfw.scheduler.select import HostSelector, ReservoirSelector, num_feasible_nodes_to_find


class SnapshotSource(Protocol):
    """A source of snapshots of nodes and pods, such as `Cache`."""

    def update_snapshot(self, snapshot: Snapshot, pod: Pod | None = None) -> None:
        """Update the snapshot, for the cycle of that pod."""
        ...


@frozen
class ScheduleResult:
    """The suggested node, the number of nodes evaluated, and the number of feasible nodes."""

    suggested_host: str
    evaluated_nodes: int
    feasible_nodes: int


class GenericScheduler:
    """The algorithm that finds the best node for a pod with the plugins of a framework.

    Between pods it only keeps where in the node order the next search begins, so that all nodes are looked at
    in turn when each search covers a part. The order is rotated, and equal candidates drawn from `random`, in
    the same way whatever the framework's parallelism.

    Cycles are one after another: `schedule`, and then `Cache.assume_pod` before the next one begins. They may
    be called from any thread.
    """

    def __init__(
        self,
        cache: SnapshotSource,
        snapshot: Snapshot,
        *,
        random: Random,
        percentage_of_nodes_to_score: int = 0,
        selector: HostSelector | None = None,
        exhaustive: bool = False,
        batching: Batching | None = None,
    ) -> None:
        """Make an algorithm. With `exhaustive`, each search looks at all nodes from the first on, nominated or not.

        With `batching`, searches are reused for pods in numbered cycles (`CycleState.scheduling_cycle`).
        """
        self._cache = cache
        self._snapshot = snapshot
        self.random = random
        self.selector = ReservoirSelector(random) if selector is None else selector
        self._percentage = percentage_of_nodes_to_score
        self.is_exhaustive = exhaustive
        self.next_start_node_index = 0
        """Where in the order of nodes the next search begins, taken modulo the number of nodes."""
        self._scheduling = threading.Lock()
        self._observer: DecisionObserver | None = None
        self._batching = batching
        self._batch: Batch | None = None
        """The batch of the pod that is being scheduled, if it takes part."""

    def schedule(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        *,
        observer: DecisionObserver | None = None,
    ) -> ScheduleResult:
        """Return the node to put the pod on. An `observer` is called at each step of the decision.

        Raises:
            NoNodesAvailableError: the cluster has no node.
            FitError: no node passes; has the reasons.
            SchedulingError: a plugin or extender failed.
            SnapshotMismatchError: the framework was made with another snapshot than this scheduler.
            ConcurrentCycleError: a call is under way, in another thread or further up the stack.
        """
        self._begin(pod, observer)
        try:
            self._look(framework, pod)
            if self._batching is not None:
                self._batch = self._batching.begin(framework, state, pod)
            return self._schedule(framework, state, pod)
        finally:
            self._end()

    def schedule_within(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        *,
        observer: DecisionObserver | None = None,
    ) -> ScheduleResult:
        """Return the best of these nodes of the present snapshot, which isn't updated: for trials that change it.

        Raises what `schedule` does.
        """
        self._begin(pod, observer)
        try:
            if not nodes:
                raise NoNodesAvailableError
            return self._schedule(framework, state, pod, nodes)
        finally:
            self._end()

    def _begin(self, pod: Pod, observer: DecisionObserver | None) -> None:
        """Raise ConcurrentCycleError if another decision is under way; else block others until `_end`."""
        # Not an RLock: a plugin that schedules another pod in one of its hooks is refused, too.
        if not self._scheduling.acquire(blocking=False):
            raise ConcurrentCycleError(
                f"pod {pod.key} can't be scheduled while another pod is: cycles are one after another, schedule and "
                "then assume_pod; let one thread do it, or hold a lock for both"
            )
        self._observer = observer

    def _end(self) -> None:
        self._observer = self._batch = None
        self._scheduling.release()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Undo the block's draws and moves of the start: later decisions are as they would have been without it."""
        undo = self.remember()
        try:
            yield
        finally:
            undo()

    def remember(self) -> Callable[[], None]:
        """Return a function that undoes the draws and moves of the start from now on."""
        # The selector is copied, since it may count (`RoundRobinSelector`).
        before = self.random.getstate(), self.next_start_node_index, copy(self.selector)

        def undo() -> None:
            state, self.next_start_node_index, self.selector = before
            self.random.setstate(state)

        return undo

    def _schedule(
        self, framework: Framework, state: CycleState, pod: Pod, within: NodeSelection | None = None
    ) -> ScheduleResult:
        found, diagnosis = self._find_nodes_that_fit_pod(framework, state, pod, within)
        if self._observer is not None or not found.count:
            self._check_found(pod, found, diagnosis, within)
        # As kube-scheduler: one node needs no scores, and takes no number from `random`.
        feasible, batch, scored = found.feasible, self._batch, None
        if found.count == 1:
            host = feasible[0].name
        else:
            totals, raw = self._scored(framework, state, pod, feasible)
            chosen = self.selector.select(totals, feasible)
            row = totals.best_rows(feasible)[chosen]
            host = feasible.table.node_infos[row].node.metadata.name
            if batch is not None and batch.signature is not None:
                scored = Scored(feasible, totals, chosen, raw)
        if batch is not None:
            batch.end(pod, host, found.count, scored)
        return ScheduleResult(host, found.processed, found.count)

    def find(self, framework: Framework, state: CycleState, pod: Pod) -> tuple[NodeSelection, int]:
        """Return the feasible nodes, at least one, and the number of nodes looked at: the first half of `schedule`.

        For callers that choose among the nodes themselves. Raises what `schedule` does, without the check of
        overlapping cycles.
        """
        self._look(framework, pod)
        found, diagnosis = self._find_nodes_that_fit_pod(framework, state, pod, None)
        self._check_found(pod, found, diagnosis, None)
        return found.feasible, found.processed

    def _look(self, framework: Framework, pod: Pod) -> None:
        """Update the snapshot for the pod's cycle."""
        if framework.parts.snapshot is not self._snapshot:
            raise SnapshotMismatchError(framework.profile.scheduler_name)
        self._cache.update_snapshot(self._snapshot, pod)
        if not self._snapshot.node_infos:
            raise NoNodesAvailableError

    def _check_found(
        self, pod: Pod, found: FilterOutcome, diagnosis: Diagnosis, within: NodeSelection | None
    ) -> None:
        """Raise FitError unless a node is feasible."""
        if self._observer is not None:
            self._observer.nodes_found(found.feasible, diagnosis)
        if not found.count:
            raise FitError(pod, len(self._snapshot if within is None else within), diagnosis)

    def choose(self, framework: Framework, state: CycleState, pod: Pod, feasible: NodeSelection) -> int:
        """Return the position of the best of several feasible nodes: the second half of `schedule`.

        Raises:
            SchedulingError: a plugin failed.
        """
        totals, _ = self._scored(framework, state, pod, feasible)
        return self.select(totals, feasible)

    def _scored(
        self, framework: Framework, state: CycleState, pod: Pod, feasible: NodeSelection
    ) -> tuple[Totals, Mapping[str, IntArray] | None]:
        """Return the totals, and each plugin's raw scores if the batch keeps them."""
        raw = None
        # Asking each plugin takes longer than asking for totals.
        if self._batch is not None and self._batch.keeps_scores:
            scores = self.score_nodes(framework, state, pod, feasible)
            totals, raw = Totals(scores.totals), {name: its.raw for name, its in scores.by_plugin.items()}
        else:
            totals = self.prioritize_nodes(framework, state, pod, feasible)
        if self._observer is not None:
            self._observer.nodes_scored(feasible, totals)
        return totals, raw

    def select(self, totals: Totals, feasible: NodeSelection) -> int:
        """Return the position of a node with the highest total, as the selector picks one."""
        return int(totals.best[self.selector.select(totals, feasible)])

    def find_nodes_that_fit_pod(
        self, framework: Framework, state: CycleState, pod: Pod, within: NodeSelection | None = None
    ) -> tuple[NodeSelection, Diagnosis]:
        """Return the feasible nodes (of those in `within`, or of all) in visiting order, and the others' reasons.

        Raises:
            SchedulingError: a plugin or extender failed.
        """
        found, diagnosis = self._find_nodes_that_fit_pod(framework, state, pod, within)
        if diagnosis.node_to_status.codes is None:
            diagnosis.add_codes(found.refused)
        return found.feasible, diagnosis

    def _find_nodes_that_fit_pod(
        self, framework: Framework, state: CycleState, pod: Pod, within: NodeSelection | None
    ) -> tuple[FilterOutcome, Diagnosis]:
        """Return the feasible nodes, and the others' reasons, which are only complete if somebody needs them."""
        diagnosis = Diagnosis()
        left_over, status, narrowing = framework.run_pre_filter_plugins(state, pod)
        if narrowing:
            diagnosis.unschedulable_plugins.update(narrowing)
        if status.code is not Code.SUCCESS:
            if not status.is_rejected:
                raise SchedulingError(status)
            # One status for all nodes, without an entry for each.
            diagnosis.node_to_status.absent = status
            diagnosis.pre_filter_message = status.message
            diagnosis.add_plugin_status(status)
            none = NodeSelection(self._snapshot.table, np.empty(0, dtype=np.int64))
            return FilterOutcome.of(none), diagnosis
        # Preemption has made room on the nominated node: most likely it passes, and no other node does.
        first = pod.status.nominated_node_name
        hint = None if self._batch is None else self._batch.take_hint(state, pod, self.selector)
        if hint is not None and not first:
            first = hint.node
            if self._observer is not None:
                self._observer.node_hinted(hint)
        if first and not self.is_exhaustive:
            alone = self._try_alone(first, framework, state, pod, diagnosis, within)
            if alone is not None:
                return alone, diagnosis
        nodes = self._candidates(left_over, narrowing, diagnosis, within)
        if self._observer is not None:
            start = self.next_start_node_index % len(nodes) if len(nodes) else 0
            self._observer.node_candidates(nodes, start, narrowing)
        found = self._find_nodes_that_pass_filters(framework, state, pod, nodes, diagnosis)
        extenders = framework.parts.extenders
        if not extenders:
            return found, diagnosis
        feasible = pass_extenders(extenders, pod, found.feasible, diagnosis)
        if len(feasible) == found.count:
            return found, diagnosis
        diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
        return FilterOutcome.of(feasible, len(feasible) + len(diagnosis.node_to_status)), diagnosis

    def prioritize_nodes(
        self, framework: Framework, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> Totals:
        """Return the total score of each node; 1 for all where nothing scores.

        Raises:
            SchedulingError: a plugin failed.
        """
        extenders = framework.parts.extenders
        if not extenders and not framework.has_score_plugins:
            return Totals(np.ones(len(nodes), dtype=np.int64))
        status = framework.run_pre_score_plugins(state, pod, nodes)
        if status.code is not Code.SUCCESS:
            raise SchedulingError(status)
        totals, status = framework.total_scores(state, pod, nodes)
        if totals is None:
            raise SchedulingError(status)
        if extenders and any(extender.is_prioritizer for extender in extenders):
            return Totals(with_extenders(extenders, pod, nodes, totals.values.copy()))
        return totals

    @staticmethod
    def score_nodes(
        framework: Framework, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> NodeScores:
        """Return the scores of all nodes by each score plugin.

        Raises:
            SchedulingError: a plugin failed.
        """
        status = framework.run_pre_score_plugins(state, pod, nodes)
        if status.code is not Code.SUCCESS:
            raise SchedulingError(status)
        scores, status = framework.run_score_plugins(state, pod, nodes)
        if scores is None:
            raise SchedulingError(status)
        return scores

    def _candidates(
        self,
        left_over: PreFilterResult | None,
        narrowing: frozenset[str],
        diagnosis: Diagnosis,
        within: NodeSelection | None,
    ) -> NodeSelection:
        """Return the nodes to look at, from the start index on."""
        table = self._snapshot.table
        everywhere = within is None or within.is_whole_table
        if left_over is None:
            if everywhere:
                start = self.next_start_node_index % len(table.node_infos)
                return NodeSelection.whole(table, start) if start else self._snapshot.selection
            assert within is not None
            rows = within.rows.tolist()
        else:
            diagnosis.node_to_status.absent = not_left_over(narrowing)
            # pre_filter gives a set of names. In the table's order the search is reproducible.
            rows = sorted(table.rows[name] for name in left_over.node_names if name in table.rows)
            if within is not None and not everywhere:
                allowed = set(within.rows.tolist())
                rows = [row for row in rows if row in allowed]
        # As kube-scheduler: the index counts all nodes of the cluster, and is taken modulo the nodes at hand.
        start = self.next_start_node_index % len(rows) if rows else 0
        return NodeSelection(table, np.array([*rows[start:], *rows[:start]], dtype=np.int64))

    def _try_alone(
        self,
        node_name: str,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        diagnosis: Diagnosis,
        within: NodeSelection | None,
    ) -> FilterOutcome | None:
        table = self._snapshot.table
        row = table.rows.get(node_name)
        if row is None or (within is not None and row not in within.rows):
            return None
        node = NodeSelection(table, np.array([row], dtype=np.int64))
        found = framework.filter_nodes(state, pod, node, 1)
        if self._observer is not None:
            self._observer.nodes_filtered(node, 1, found)
        diagnosis.add_codes(found.refused)
        # A plugin's failure on this one node doesn't fail the attempt: all nodes are searched next.
        if found.error is not None:
            return None
        try:
            feasible = pass_extenders(framework.parts.extenders, pod, found.feasible, diagnosis)
        # An extender's failure doesn't fail the attempt, either.
        except SchedulingError:
            return None
        if not len(feasible):
            return None
        return FilterOutcome.of(feasible, len(feasible) + len(diagnosis.node_to_status))

    def _find_nodes_that_pass_filters(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        diagnosis: Diagnosis,
    ) -> FilterOutcome:
        wanted = self.nodes_to_find(framework, len(nodes))
        found = framework.filter_nodes(state, pod, nodes, wanted)
        if self._observer is not None:
            self._observer.nodes_filtered(nodes, wanted, found)
        processed = found.processed
        # Nobody asks why some nodes were refused while others pass.
        if (
            not found.count
            or self._observer is not None
            or found.error is not None
            or framework.parts.extenders
        ):
            diagnosis.add_codes(found.refused)
        elif diagnosis.node_to_status.codes is not None:
            # A nominated node that was refused alone before counts as well: in kube-scheduler, too, its status is
            # one of these.
            diagnosis.add_codes(found.refused)
            processed = found.count + len(diagnosis.node_to_status)
            found = FilterOutcome.of(found.feasible, processed)
        # An error, too, moves the start on, so that it can't keep other nodes from being looked at.
        if not self.is_exhaustive:
            self.next_start_node_index = (self.next_start_node_index + processed) % len(
                nodes.table.node_infos
            )
        if found.error is not None:
            raise SchedulingError(found.error)
        return found

    def nodes_to_find(self, framework: Framework, nodes: int) -> int:
        """Return the number of feasible nodes that ends a search of so many nodes.

        The profile's own percentage comes before that of the scheduler.
        """
        if self.is_exhaustive:
            return nodes
        # Nothing prefers one feasible node to another without scores and extenders, so the first one is as good as any.
        if not framework.has_score_plugins and not any(
            extender.is_filter or extender.is_prioritizer for extender in framework.parts.extenders
        ):
            return 1
        own = framework.profile.percentage_of_nodes_to_score
        return num_feasible_nodes_to_find(self._percentage if own is None else own, nodes)
