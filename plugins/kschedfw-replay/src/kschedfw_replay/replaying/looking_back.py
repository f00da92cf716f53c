"""Why pods go to other nodes than in the recording: explanations of the first ones, counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import attrs
from kschedfw_lab.compare import Against, Ground, against

from kschedfw import CycleState, Framework, GenericScheduler, Pod, ScheduleResult
from kschedfw.explain import ExplainingScheduler
from kschedfw_replay.replaying.fidelity import EXAMPLES

EXPLAINED: Final = 1000
"""The number of moved pods that are explained by default: an explanation takes as long as several decisions."""
_TIE: Final = "tie"


@attrs.frozen
class Moved:
    """A pod that was bound to another node than in the recording, and why not to that one."""

    pod: str
    recorded: str
    node: str
    why: str


class LookingBack:
    """An algorithm that decides as a `GenericScheduler`, and explains decisions before they are carried out.

    `recorded_node` returns the node of the recording for a pod that is bound first; None for other pods. The first
    `most` of those that go elsewhere are explained: `why` counts the reasons, `examples` has the first pods, without
    those of ties.
    """

    def __init__(
        self, scheduler: GenericScheduler, recorded_node: Callable[[Pod], str | None], most: int
    ) -> None:
        self._scheduler, self._explainer = scheduler, ExplainingScheduler(scheduler)
        self._recorded_node, self._most = recorded_node, most
        self.why: Counter[str] = Counter()
        self.examples: list[Moved] = []

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        """Return the decision of the `GenericScheduler`; raises what it raises."""
        result = self._scheduler.schedule(framework, state, pod)
        recorded = self._recorded_node(pod)
        if recorded not in (None, result.suggested_host) and self.why.total() < self._most:
            assert recorded is not None
            self._explain(framework, pod, recorded, result.suggested_host)
        return result

    def _explain(self, framework: Framework, pod: Pod, recorded: str, node: str) -> None:
        explanation = self._explainer.explain(framework, pod)
        # The explanation draws anew among equal nodes.
        if explanation.node == recorded:
            self.why[_TIE] += 1
            return
        difference = against(explanation, recorded)
        self.why[_reason(difference)] += 1
        is_tied = difference is not None and difference.ground is Ground.TIED
        if not is_tied and len(self.examples) < EXAMPLES:
            why = _reason(None) if difference is None else str(difference)
            self.examples.append(Moved(pod.key, recorded, node, why))


def _reason(difference: Against | None) -> str:
    if difference is None:
        return "the node isn't there"
    match difference.ground:
        case Ground.TIED:
            return _TIE
        case Ground.UNSEEN:
            return "not looked at"
        case Ground.REFUSED:
            return f"{difference.plugin or 'an extender'}: {', '.join(difference.reasons[:1])}"
        case Ground.OUTSCORED:
            return f"more points elsewhere, most by {difference.plugin or 'extenders'}"
