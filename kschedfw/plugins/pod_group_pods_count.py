"""PodGroupPodsCount: placements that take more members are better.

Semantics: kube-scheduler v1.36 `podgrouppodscount`; KEP-5732.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw import MAX_NODE_SCORE, MEMBER_STATES, CycleState, PlacedGroup, Plugin, hookimpl


class PodGroupPodsCount(Plugin):
    """Scores a placement by the number of members on nodes, scheduled earlier or by this placement."""

    name = "PodGroupPodsCount"

    @hookimpl
    def placement_score(self, state: CycleState, placed: PlacedGroup) -> int:
        return state.read(MEMBER_STATES).number_scheduled + len(placed.node_names)

    @hookimpl
    def normalize_placement_score(self, scores: Mapping[str, int]) -> Mapping[str, int]:
        highest = max(scores.values(), default=0)
        if not highest:
            # An error in kube-scheduler, too: a placement without any member can't be feasible.
            raise ValueError("no pods from pod group are assigned to any of the candidate placements")
        return {name: score * MAX_NODE_SCORE // highest for name, score in scores.items()}
