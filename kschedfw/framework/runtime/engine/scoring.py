"""Scoring of the feasible nodes, from raw scores to weighted totals (kube-scheduler `prioritizeNodes`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.metrics import Operation
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import MAX_NODE_SCORE
from kschedfw.framework.runtime.engine.plugins import PluginMemo, ScoreError, ScorePlugin, check_range
from kschedfw.framework.runtime.engine.totals import NodeScores, PluginScores, Totals
from kschedfw.framework.runtime.hooks import HookTable
from kschedfw.framework.runtime.measuring import Meter
from kschedfw.framework.status import Status

_SUCCESS = Status.success()


class Scoring:
    """The score plugins of a profile, asked about some nodes by their batch forms, or else node by node."""

    def __init__(
        self,
        hooks: HookTable,
        plugins: Mapping[str, AnyPlugin],
        profile: Profile,
        counts: Mapping[str, PluginMemo],
        parallelizer: Parallelizer,
        meter: Meter | None,
    ) -> None:
        batches, normalize = dict(hooks["score_batch"]), dict(hooks["normalize_score"])
        self.plugins = tuple(
            ScorePlugin(
                plugins[name],
                name,
                hook,
                batches.get(name),
                normalize.get(name),
                profile.weight(name),
                counts[name],
            )
            for name, hook in hooks["score"]
        )
        # kube-scheduler checks this when a profile is made, too: later no sum of weighted scores is checked again.
        if sum(each.weight for each in self.plugins) * MAX_NODE_SCORE > np.iinfo(np.int64).max:
            raise ProfileError(
                f"profile {profile.scheduler_name!r}: total score of Score plugins could overflow"
            )
        self._parallelizer = parallelizer
        self._meter = meter

    def scores(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[NodeScores | None, Status]:
        """Return every plugin's raw and normalised scores; None with an ERROR if a plugin fails."""
        active = [each for each in self.plugins if each.name not in state.skip_score_plugins]
        try:
            # Copies, since a plugin may return the same array each time, and `normalize_score` may change its argument.
            raw = {each.name: self.raw(each, state, pod, nodes).copy() for each in active}
            normalized = {
                each.name: each.normalized(state, pod, nodes, raw[each.name].copy()) for each in active
            }
            for name, scores in normalized.items():
                check_range(name, scores)
        except ScoreError as error:
            return None, error.status
        by_plugin = {
            each.name: PluginScores(each.weight, raw[each.name], normalized[each.name]) for each in active
        }
        names = nodes.names if isinstance(nodes, NodeSelection) else tuple(info.name for info in nodes)
        return NodeScores(names, by_plugin), _SUCCESS

    def totals(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> tuple[Totals | None, Status]:
        """Return only the totals of `scores`."""
        scores, status = self.scores(state, pod, nodes)
        return None if scores is None else Totals(scores.totals), status

    def raw(self, each: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> IntArray:
        """Return one plugin's scores of the nodes, shape (k,), by its batch form if it has one. Not to be changed."""
        together = each.ask_together(state, pod, nodes) if isinstance(nodes, NodeSelection) else None
        return self.one_by_one(each, state, pod, nodes) if together is None else together

    def one_by_one(
        self, each: ScorePlugin, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> IntArray:
        """Return the scores of the scalar form, shape (k,)."""
        infos = list(nodes)
        meter, parallelizer = self._meter, self._parallelizer
        working = nullcontext() if meter is None else meter.working(Operation.SCORE, parallelizer, len(infos))
        with working:
            scores = parallelizer.map(len(infos), lambda index: each.ask(state, pod, infos[index]))
        return np.array(scores, dtype=np.int64)
