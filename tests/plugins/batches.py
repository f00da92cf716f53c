"""Asks a plugin's hooks in both forms, and while the cluster changes, to see that they agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import numpy as np
from hypothesis import strategies as st

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nodes.table import TableVersion
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.runtime.hooks import Hook
from kschedfw.framework.status import Status
from kschedfw.testing import FrameworkHarness

Answer = tuple[Status | None, int | None]
"""Of filter and of score; None where the plugin passes, has no such hook or is skipped."""


def some_rows(size: int) -> st.SearchStrategy[IntArray]:
    """Distinct rows of a table of so many, in any order."""
    rows = st.permutations(range(size)).flatmap(
        lambda order: st.integers(0, size).map(lambda count: order[:count])
    )
    return rows.map(lambda chosen: np.array(chosen, dtype=np.int64))


@attrs.frozen
class Asked:
    """One plugin in a harness, asked about one pod after another while the harness's snapshot changes."""

    harness: FrameworkHarness
    plugin: AnyPlugin
    hooks: Mapping[str, Hook]
    kept: dict[object, tuple[TableVersion, list[Answer]]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, harness: FrameworkHarness) -> Asked:
        (plugin,) = harness.framework.plugins.values()
        return cls(harness, plugin, harness.framework.hooks_of(plugin.name))

    def scalar(self, pod: Pod, rows: Iterable[int]) -> list[Answer]:
        infos, state = self.harness.snapshot.node_infos, self._state(pod)
        return [self._answer(state, pod, infos[row]) for row in rows]

    def batch(self, pod: Pod, rows: IntArray) -> list[Answer]:
        table, state = self.harness.snapshot.table, self._state(pod)
        refusals: list[Status | None] = [None] * len(rows)
        scores: list[int | None] = [None] * len(rows)
        name = self.plugin.name
        if "filter_batch" in self.hooks and name not in state.skip_filter_plugins:
            verdicts = self.hooks["filter_batch"](state, pod, table, rows)
            if verdicts is None and self.plugin.pure:
                return self.scalar(pod, rows)  # learning pauses, since nothing repeats
            assert verdicts.codes.shape == rows.shape
            refusals = [verdicts.of(index) for index in range(len(rows))]
        if "score_batch" in self.hooks and name not in state.skip_score_plugins:
            answer = self.hooks["score_batch"](state, pod, table, rows)
            if answer is None and self.plugin.pure:
                return self.scalar(pod, rows)
            assert (answer.shape, answer.dtype) == (rows.shape, np.int64)
            scores = answer.tolist()
        return list(zip(refusals, scores, strict=True))

    def keeps_its_promises(self, pod: Pod) -> None:
        """What was answered to the same signature still holds for rows in which nothing that it reads has changed."""
        table, signature = self.harness.snapshot.table, self.plugin.sign(pod)
        answers = self.scalar(pod, range(len(table)))
        version, before = self.kept.get(signature, (None, []))
        self.kept[signature] = (table.version, answers)
        if version is None or version.layout != table.layout:
            return
        changed = {*(table.node_changes.since(version.nodes) or ())}
        if self.plugin.reads is Reads.PODS:
            changed |= {*(table.pod_changes.since(version.pods) or ())}
        else:
            assert self.plugin.reads is Reads.NODE
        for row in {*range(len(table))} - changed:
            assert answers[row] == before[row]

    def _state(self, pod: Pod) -> CycleState:
        self.harness.pre_filter(pod)
        infos = self.harness.snapshot.node_infos
        state = self.harness.state
        if not self.harness.framework.run_pre_score_plugins(state, pod, infos).is_success:
            state.skip_score_plugins = frozenset({self.plugin.name})  # a pod that fails gets no scores
        return state

    def _answer(self, state: CycleState, pod: Pod, info: NodeInfo) -> Answer:
        refusal = score = None
        name = self.plugin.name
        if "filter" in self.hooks and name not in state.skip_filter_plugins:
            refusal = self.hooks["filter"](state, pod, info)
        if "score" in self.hooks and name not in state.skip_score_plugins:
            score = self.hooks["score"](state, pod, info)
        return refusal, score


def take(snapshot: Snapshot, node: Node, pods: Iterable[Pod]) -> None:
    """Bring the new state of a node into the snapshot, as the scheduler's cache does."""
    info = NodeInfo.of(node, pods)
    if node.name in snapshot:
        info.image_states = snapshot.get(node.name).image_states
        snapshot.update([info])
    else:
        snapshot.replace([*snapshot.node_infos, info])
    snapshot.update_image_states()
