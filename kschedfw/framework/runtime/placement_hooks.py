"""Runs the hooks that find and rate placements of a group.

Semantics: kube-scheduler v1.36 `RunPlacementGeneratePlugins`, `RunPlacementScorePlugins`; `placement_feasible` is of
v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kschedfw.api.records import frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.groups import GroupPlacement, PlacedGroup, QueuedGroup
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.metrics import MeasuredPoint
from kschedfw.framework.profile import ExtensionPoint, Profile
from kschedfw.framework.runtime.calls import call, named
from kschedfw.framework.runtime.hook_answers import as_integer, as_placement_scores, as_placements
from kschedfw.framework.runtime.hooks import HookTable
from kschedfw.framework.runtime.measuring import Meter, measured
from kschedfw.framework.status import Code, Status

_SUCCESS = Status.success()
_FEASIBLE_CODES = HOOKS["placement_feasible"].codes or frozenset()


@frozen
class PlacementScore:
    """The scores of a placement, by plugin and weighted."""

    name: str
    by_plugin: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.by_plugin.values())


class PlacementHooks:
    """The part of a `Framework` that finds and rates placements of groups."""

    profile: Profile
    _hooks: HookTable
    _meter: Meter | None

    @measured(MeasuredPoint.PLACEMENT_GENERATE)
    def run_placement_generate_plugins(
        self, state: CycleState, group: QueuedGroup, placement: GroupPlacement
    ) -> tuple[Sequence[GroupPlacement], Status]:
        """Return the placements to try; the given one without such a plugin, none unless the status is success."""
        # At most one: `HookTable` refuses several.
        for name, hook in self._hooks["placement_generate"]:
            try:
                answer = as_placements(
                    "placement_generate", hook(state, group, placement), placement.nodes.table
                )
            except HOOK_FAILURES as error:
                answer = Status.from_error(error)
            if isinstance(answer, Status):
                status = answer
                if not answer.is_rejected:
                    status = Status.from_error(HOOKS["placement_generate"].explained(answer).as_error())
                return (), status.with_plugin(name)
            return answer, _SUCCESS
        return (placement,), _SUCCESS

    @property
    def can_stop_trials(self) -> bool:
        """True if a plugin has placement_feasible, and so is asked before and after each member of a trial."""
        return bool(self._hooks["placement_feasible"])

    @measured(MeasuredPoint.PLACEMENT_FEASIBLE)
    def run_placement_feasible_plugins(
        self, state: CycleState, group: QueuedGroup, placed: PlacedGroup, left: int, scheduled: int
    ) -> Status:
        """Return success if the placement suffices for the group, WAIT if it may with more members; else a refusal."""
        found = _SUCCESS
        for plugin, hook in self._hooks["placement_feasible"]:
            status = call("placement_feasible", hook, state, group, placed, left, scheduled)
            if status.code not in _FEASIBLE_CODES and not status.is_success:
                return named(status, "placement_feasible", plugin)
            if status.is_rejected:
                return status.with_plugin(plugin)
            if status.is_wait and found.is_success:
                found = status.with_plugin(plugin)
        return found

    @measured(MeasuredPoint.POD_GROUP_POST_FILTER)
    def run_pod_group_post_filter_plugins(
        self, state: CycleState, group: QueuedGroup, preempt: Callable[[], Status]
    ) -> Status:
        """Call the plugins in order to make room for the group, until one succeeds or answers that nothing helps."""
        reasons: list[str] = []
        rejector = ""
        for plugin, hook in self._hooks["pod_group_post_filter"]:
            status = call("pod_group_post_filter", hook, state, group, preempt)
            if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return status.with_plugin(plugin)
            if status.code is not Code.UNSCHEDULABLE:
                failure = HOOKS["pod_group_post_filter"].explained(status).as_error()
                return Status.from_error(failure).with_plugin(plugin)
            reasons.extend(status.reasons)
            rejector = rejector or plugin
        return Status.unschedulable(*reasons).with_plugin(rejector)

    @measured(MeasuredPoint.PLACEMENT_SCORE)
    def run_placement_score_plugins(
        self, state: CycleState, group: QueuedGroup, placed: Sequence[PlacedGroup]
    ) -> tuple[Sequence[PlacementScore], Status]:
        """Return the weighted scores of each placement; none unless the status is success."""
        names = [each.placement.name for each in placed]
        weighted: dict[str, dict[str, int]] = {name: {} for name in names}
        normalizing = dict(self._hooks["normalize_placement_score"])
        for plugin, hook in self._hooks["placement_score"]:
            weight = self.profile.weight(plugin, ExtensionPoint.PLACEMENT_SCORE)
            try:
                scores: Mapping[str, int] = {
                    each.placement.name: as_integer("placement_score", hook(state, group, each))
                    for each in placed
                }
                answer = (
                    scores
                    if (normalize := normalizing.get(plugin)) is None
                    else normalize(state, group, scores)
                )
                for name, score in as_placement_scores("normalize_placement_score", answer, names).items():
                    weighted[name][plugin] = weight * score
            except HOOK_FAILURES as error:
                return (), named(Status.from_error(error), "placement_score", plugin)
        return [PlacementScore(name, weighted[name]) for name in names], _SUCCESS
