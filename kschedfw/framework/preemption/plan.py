"""What preemption would do for a pod."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kschedfw.framework.cycle_state import StateKey
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.preemption.candidates import Candidate
from kschedfw.framework.preemption.dry_run import no_candidates
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.status import Status


@attrs.frozen(eq=False)
class PreemptionPlan:
    """The outcome of looking for room, and everything that led to it. Nothing has been done yet.

    * SUCCESS: `chosen` is there, and `result` nominates its node.
    * UNSCHEDULABLE: no room can be made. A `result` then takes back the pod's earlier nomination; without one that
      stays as it is, since the pod still waits for victims, or an extender was against all candidates.
    * ERROR: a plugin or an extender failed.

    `candidates` are those of the dry run; `tied` those out of them, as extenders left them, that are equally good by
    every criterion; `rejected` has the reasons of nodes that were tried and are no candidates.
    """

    status: Status
    result: PostFilterResult | None = None
    candidates: Sequence[Candidate] = ()
    tied: Sequence[Candidate] = ()
    rejected: NodeToStatus = attrs.field(factory=no_candidates)

    @property
    def chosen(self) -> Candidate | None:
        """The node and victims that preemption would take: the first of those that are tied."""
        return self.tied[0] if self.tied else None


PREEMPTION_PLAN: StateKey[PreemptionPlan] = StateKey("preemption.plan")
"""The plan that was carried out, or came to nothing, in this cycle; for explanations."""
