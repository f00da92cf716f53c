"""Decisions by the plan for a pod's shape, at any number of nodes, in the form of the recorded ones."""

from __future__ import annotations

from typing import Any

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Diagnosis, FitError
from kschedfw.framework.runtime.plans.planner import NoneFeasible
from kschedfw.testing.conformance import devices
from kschedfw.testing.conformance.decide import PodRun
from kschedfw.testing.conformance.scenario import Json


class PlanRun(PodRun):
    """A run that decides by the hooks, and replaces what a plan decides by the plan's own answer."""

    planned = 0
    """The number of decisions by a plan."""

    def _decide(self, pod: Pod) -> Json:
        decision: dict[str, Any] = super()._decide(pod)
        count = len(self.snapshot)
        # A shape has a plan from its second pod on.
        for _ in range(2):
            state = CycleState()
            found = self.framework.best_nodes(state, pod, 0, count) if count else None
        if found is None:
            return decision
        self.planned += 1
        self.state = state
        if isinstance(found, NoneFeasible):
            diagnosis = Diagnosis()
            diagnosis.add_codes(found.refused)
            none_left = self.snapshot.selection[:0]
            return decision | {
                "filter": self._filter(none_left, diagnosis, None),
                "feasible": [],
                "fitError": str(FitError(pod, count, diagnosis)),
                **self._post_filter(state, pod, diagnosis),
            }
        names = self.snapshot.table.names
        best = sorted(names[row] for row in found.rows)
        planned = {
            "best": best,
            "chosen": best[0],
            "singleNode": found.feasible == 1,
            **devices.on_chosen(state, self.snapshot.get(best[0])),
        }
        # As many feasible nodes as the hooks found, or the list of them differs.
        if found.feasible != len(decision["feasible"]):
            planned["feasible"] = found.feasible
        # kube-scheduler doesn't score a single node, while the recordings have its scores all the same.
        return decision | (planned if found.feasible > 1 else {"chosen": best[0]})
