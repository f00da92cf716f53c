"""A simulation that stops at each decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from kschedfw import (
    CycleState,
    FitError,
    Framework,
    GenericScheduler,
    IntArray,
    NodeTable,
    NoNodesAvailableError,
    Pod,
    ScheduleResult,
    SchedulingError,
    Totals,
)
from kschedfw.scheduler import Algorithm, Attempt
from kschedfw.simulator import Simulation
from kschedfw_lab.environment.reward import Transition

MakeSimulation = Callable[[Callable[[GenericScheduler], Algorithm]], Simulation]
"""Makes a simulation with the given algorithm as its scheduling algorithm."""


class OpenDecision:
    """The pending decision on a pod that fits on at least one node. Rows are those of `table`."""

    def __init__(self, attempt: Attempt, generic: GenericScheduler) -> None:
        """Filter the nodes for the attempt's pod.

        Raises FitError, NoNodesAvailableError or SchedulingError: no node is feasible.
        """
        self.attempt = attempt
        self._generic = generic
        self.feasible, self._evaluated = generic.find(attempt.framework, attempt.state, attempt.pod)

    @property
    def pod(self) -> Pod:
        return self.attempt.pod

    @property
    def table(self) -> NodeTable:
        return self.feasible.table

    @property
    def rows(self) -> IntArray:
        """The rows of the feasible nodes, in the order in which the scheduler visits them, shape (k,), k > 0."""
        return self.feasible.rows

    # Cached, since a choice among equals draws: asking twice must not draw twice.
    @cached_property
    def best_row(self) -> int:
        """The row that the scheduler would choose. A choice among equals draws from its random generator.

        Raises:
            SchedulingError: a plugin failed.
        """
        # As kube-scheduler, which doesn't score a node without a rival.
        if len(self.feasible) == 1:
            return int(self.rows[0])
        attempt = self.attempt
        return int(
            self.rows[self._generic.choose(attempt.framework, attempt.state, attempt.pod, self.feasible)]
        )

    def row_by_weights(self, weights: Mapping[str, int]) -> int:
        """Return the row that the scheduler would choose with these weights of its score plugins.

        0 leaves a plugin out.

        Raises:
            SchedulingError: a plugin failed.
        """
        if len(self.feasible) == 1:
            return int(self.rows[0])
        attempt = self.attempt
        scores = self._generic.score_nodes(attempt.framework, attempt.state, attempt.pod, self.feasible)
        totals = np.zeros(len(self.feasible), dtype=np.int64)
        for name, each in scores.by_plugin.items():
            totals += weights[name] * each.normalized
        return int(self.rows[self._generic.select(Totals(totals), self.feasible)])

    def result(self, row: int) -> ScheduleResult:
        return ScheduleResult(self.table.names[row], self._evaluated, len(self.feasible))


class _Prompted:
    """An algorithm whose answer is set before it is asked."""

    def __init__(self, generic: GenericScheduler) -> None:
        self.generic = generic
        self.answer: ScheduleResult | Exception | None = None

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:  # noqa: ARG002  # see Algorithm
        answer, self.answer = self.answer, None
        assert answer is not None, f"nothing was decided about {pod.key}"
        if isinstance(answer, Exception):
            raise answer
        return answer


class Episode:
    """A simulation that stops at every pod for which a node is feasible.

    An attempt without a feasible node leaves nothing to decide. The scheduler makes it, with preemption if the profile
    has it, and goes on to the next attempt.
    """

    def __init__(self, make_simulation: MakeSimulation) -> None:
        self.simulation = make_simulation(self._prompted_by)
        self.decision: OpenDecision | None = None
        """The next decision; None at the end."""
        self._advance()

    def _prompted_by(self, generic: GenericScheduler) -> Algorithm:
        self._algorithm = _Prompted(generic)
        return self._algorithm

    def decide(self, choice: int | SchedulingError) -> Transition:
        """Place the pod on the node in this row, or let the attempt fail. Then go on to the next decision."""
        decision, simulation, ledger = self.decision, self.simulation, self.simulation.ledger
        assert decision is not None, "the episode has ended"
        bound, victims, attempts, time = (
            ledger.bound,
            ledger.victims,
            ledger.attempts,
            simulation.virtual_time,
        )
        self._algorithm.answer = decision.result(choice) if isinstance(choice, int) else choice
        simulation.scheduler.make_attempt(decision.attempt)
        self._advance()
        return Transition(
            pod=decision.pod,
            node=decision.table.names[choice] if isinstance(choice, int) else "",
            bound=ledger.bound - bound,
            victims=ledger.victims - victims,
            refused=ledger.attempts - attempts - 1,
            seconds=simulation.virtual_time - time,
            table=decision.table,
            ended=self.decision is None,
        )

    def _advance(self) -> None:
        self.decision = None
        while (attempt := self.simulation.next_attempt()) is not None:
            try:
                self.decision = OpenDecision(attempt, self._algorithm.generic)
            except (NoNodesAvailableError, FitError, SchedulingError) as error:
                self._algorithm.answer = error
                self.simulation.scheduler.make_attempt(attempt)
            else:
                return
