"""The scheduling algorithm, with an eye on every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from random import Random

from kschedfw.api.pod import Pod
from kschedfw.explain.explanation import Explanation
from kschedfw.explain.notes import Notes, ProfileOrder, gated
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis, FitError, NoNodesAvailableError
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.results import PreFilterResult
from kschedfw.framework.runtime.filtering import FilterOutcome
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.totals import Totals
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.generic_scheduler import GenericScheduler, ScheduleResult, SnapshotSource
from kschedfw.scheduler.select import HostSelector


class ExplainingScheduler(GenericScheduler):
    """Decides as `GenericScheduler` does, and can say why.

    While a decision is made it only holds on to what comes by anyway, and asks for the scores by plugin, which are
    summed up otherwise. `explanation` makes something of it, after the attempt has ended, when it is known
    what preemption did and whether the pod got to its node; and before the next one begins, since until then the
    snapshot stays as it is. `explain` says what would be decided on a pod now, and changes nothing.

    Pods that aren't `wanted` are decided on, and that's all. With `beyond`, plugins are asked more than decisions need:
    all filters about all nodes, and for scores though a single node is feasible.
    """

    def __init__(
        self,
        cache: SnapshotSource,
        snapshot: Snapshot,
        *,
        random: Random,
        percentage_of_nodes_to_score: int = 0,
        selector: HostSelector | None = None,
        wanted: Callable[[Pod], bool] = lambda _: True,
        beyond: bool = False,
    ) -> None:
        super().__init__(
            cache,
            snapshot,
            random=random,
            percentage_of_nodes_to_score=percentage_of_nodes_to_score,
            selector=selector,
        )
        self._wanted = wanted
        self._beyond = beyond
        self._notes: Notes | None = None
        self._attempts: Counter[str] = Counter()
        self._orders: dict[Framework, ProfileOrder] = {}

    def explanation(self) -> Explanation | None:
        """Why the latest attempt came out as it did; None if there was none, or it was asked for already."""
        notes, self._notes = self._notes, None
        return None if notes is None else notes.explanation()

    def explain(self, framework: Framework, pod: Pod) -> Explanation:
        """What would be decided on the pod if it were its turn, and what preemption would do.

        Nobody is told, and the next decisions are the same as without having asked.
        """
        gate = framework.run_pre_enqueue_plugins(pod)
        if not gate.is_success:
            return gated(framework, pod, gate)
        chance = framework.handle.random
        before = chance.getstate(), self._next_start_node_index, copy(self._selector), self._notes
        notes = self._notes = Notes(
            framework, CycleState(), pod, self._order_of(framework), is_decision_only=True
        )
        try:
            self._noted(notes)
        except FitError as error:
            notes.plan_preemption(error)
        except (NoNodesAvailableError, SchedulingError):
            pass  # it's in the notes
        finally:
            random_state, self._next_start_node_index, self._selector, self._notes = before
            chance.setstate(random_state)
        return notes.explanation()

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        if not self._wanted(pod):
            self._notes = None
            return super().schedule(framework, state, pod)
        self._attempts[pod.uid] += 1
        self._notes = Notes(framework, state, pod, self._order_of(framework), self._attempts[pod.uid])
        return self._noted(self._notes)

    def _order_of(self, framework: Framework) -> ProfileOrder:
        order = self._orders.get(framework)
        if order is None:
            order = self._orders[framework] = ProfileOrder(framework)
        return order

    def _noted(self, notes: Notes) -> ScheduleResult:
        try:
            result = super().schedule(notes.framework, notes.state, notes.pod)
        except Exception as error:
            notes.error = error
            raise
        else:
            notes.host = result.suggested_host
            return result
        finally:
            if self._beyond:
                notes.go_beyond(self.score_nodes)

    def find_nodes_that_fit_pod(
        self, framework: Framework, state: CycleState, pod: Pod
    ) -> tuple[NodeSelection, Diagnosis]:
        feasible, diagnosis = super().find_nodes_that_fit_pod(framework, state, pod)
        if self._notes is not None:
            self._notes.feasible, self._notes.diagnosis = feasible, diagnosis
        return feasible, diagnosis

    def prioritize_nodes(
        self, framework: Framework, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> Totals:
        totals = super().prioritize_nodes(framework, state, pod, nodes)
        if self._notes is not None:
            self._notes.totals = totals.values.copy()
            self._notes.scores, _ = framework.run_score_plugins(state, pod, nodes)
        return totals

    def _candidates(
        self, left_over: PreFilterResult | None, narrowing: frozenset[str], diagnosis: Diagnosis
    ) -> NodeSelection:
        nodes = super()._candidates(left_over, narrowing, diagnosis)
        if self._notes is not None:
            self._notes.narrowing = narrowing
            self._notes.is_narrowed = left_over is not None
            self._notes.candidates = nodes
            self._notes.start = self._next_start_node_index % len(nodes) if len(nodes) else 0
        return nodes

    def _search(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        nodes: NodeSelection,
        diagnosis: Diagnosis,
    ) -> FilterOutcome:
        found = super()._search(framework, state, pod, nodes, diagnosis)
        if self._notes is not None:
            self._notes.searched = nodes
            self._notes.found = found
            self._notes.wanted = self._num_nodes_to_find(framework, len(nodes))
        return found
