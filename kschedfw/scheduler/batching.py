"""Reuse of one pod's search for similar pods that follow it (KEP-5598, the gate OpportunisticBatching).

Where each pod fills a node, the second best node of a search is the best one for the next pod. So the totals of
a search are kept, and a similar pod that follows at once is tried on the best remaining node, alone. Since v1.37 the
node of the last pod is scored again if it has room left. Other nodes never are, whatever has changed meanwhile:
decisions differ from those without batching.

Equal nodes of a kept search are drawn as in a search. kube-scheduler v1.36 takes them in the order of its heap,
which depends on the order in which its workers happen to finish.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.clock import Clock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.metrics import BatchAttempt, BatchFlush, MetricsRecorder, listens
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.outcome import Totals
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.versions.v1_37 import BATCH_RESCORING
from kschedfw.scheduler.select import HostSelector

MAX_BATCH_AGE: Final = 0.5
"""The seconds for which a search is reused. Its totals become stale, since changes aren't applied to them (as in
kube-scheduler)."""

_TAKEN: Final = np.iinfo(np.int64).min
"""The total of a node that a pod has taken."""

_SIGNED_POINTS: Final = (
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.PRE_SCORE,
    ExtensionPoint.SCORE,
)


@frozen
class Hint:
    """The node that a pod is tried on first, and the key of the pod whose search it comes from."""

    node: str
    batch_of: str


@frozen(eq=False)
class Scored:
    """The n feasible nodes of a search with their totals, and the number of the chosen one among the best.

    `raw` has their scores by plugin, before they were normalised, each of shape (n,), if the batch keeps them.
    """

    nodes: NodeSelection
    totals: Totals
    chosen: int
    raw: Mapping[str, IntArray] | None = None

    @property
    def index(self) -> int:
        """The index of the chosen node."""
        return int(self.totals.best[self.chosen])


class _KeptSearch:
    """The totals of a search, without the nodes that pods have taken; with its raw scores where they were kept."""

    def __init__(self, pod: str, signature: Hashable, made: float, scored: Scored) -> None:
        self.pod = pod
        """The key of the pod that was searched for."""
        self.signature = signature
        self.made = made
        self.left = len(scored.nodes)
        self._nodes = scored.nodes
        # The table replaces its list when rows move. This one still tells which node was in which row.
        self._infos: Sequence[NodeInfo] = scored.nodes.table.node_infos
        self._totals: IntArray = scored.totals.values.copy()
        self._raw = dict(scored.raw or {})
        self._take(scored.index)

    def _take(self, index: int) -> None:
        self._totals[index] = _TAKEN
        self._last = index
        self.left -= 1

    def take_best(self, selector: HostSelector) -> str:
        """Return the name of the best remaining node, and mark it as taken."""
        self._hold()
        totals = Totals(self._totals)
        index = int(totals.best[selector.select(totals, self._nodes)])
        self._take(index)
        return self._nodes[index].name

    def _hold(self) -> None:
        # Selectors and plugins look nodes up by their rows, so the nodes of the search get a table in which these
        # haven't moved.
        if self._nodes.table.node_infos is not self._infos:
            infos = [self._infos[row] for row in self._nodes.rows.tolist()]
            self._nodes = NodeSelection.whole(NodeTable.of(infos))
            self._infos = self._nodes.table.node_infos

    def rescore_last(
        self, framework: Framework, state: CycleState, pod: Pod, last: NodeInfo
    ) -> BatchFlush | None:
        """Put back the node that was taken last, with its scores of now. Return the obstacle if a plugin fails.

        The scores of all nodes that are left are normalised again, since a plugin's best or worst may have changed.
        """
        # A copy, since the search of all nodes may follow, with pre_scores of its own.
        state = state.clone()
        if not framework.run_pre_score_plugins(state, pod, [last]).is_success:
            return BatchFlush.PRE_SCORE_ERROR
        fresh, _ = framework.rescore(state, pod, last)
        if fresh is None:
            return BatchFlush.RESCORE_ERROR
        self._hold()
        there = self._totals != _TAKEN
        there[self._last] = True
        for name, score in fresh.items():
            # A plugin that was skipped in the search had no preference.
            self._raw.setdefault(name, np.zeros(len(there), dtype=np.int64))[self._last] = score
        rows = self._nodes.rows[there]
        raw = {name: self._raw[name][there] for name in fresh}
        totals, _ = framework.normalize_scores(state, pod, NodeSelection(self._nodes.table, rows), raw)
        if totals is None:
            return BatchFlush.NORMALIZE_ERROR
        self._totals[there] = totals.values
        self.left += 1
        return None


class Batch:
    """The kept search of a profile, and the turn of the pod that is being scheduled.

    A turn is `begin`, `take_hint` once the pre_filters have passed, and `end` when a node is chosen. A pod that gets
    no node, or that another profile schedules, has no `end`: the gap in the numbers of cycles shows it.
    """

    def __init__(self, framework: Framework, clock: Clock, metrics: MetricsRecorder) -> None:
        self._framework = framework
        self._clock = clock
        self._metrics = metrics
        self._measures = listens(metrics)
        self._profile = framework.profile.scheduler_name
        names = dict.fromkeys(name for point in _SIGNED_POINTS for name in framework.plugins_at(point))
        self._plugins = [framework.plugins[name] for name in names]
        self._refuser: AnyPlugin | None = None
        """The plugin that couldn't sign the last pod. It is asked first, since most likely it can't sign the next one
        either."""
        self._rescores = framework.handle.feature_gates.follows(BATCH_RESCORING)
        self._kept: _KeptSearch | None = None
        self._last_cycle = self._cycle = 0
        self._last_node = ""
        self.signature: Hashable | None = None
        """The signature of the pod that is being scheduled; None if its search can't be reused."""
        self._hint: Hint | None = None

    def begin(self, pod: Pod, cycle: int) -> None:
        """Begin the turn of a pod, in the cycle of this number."""
        self._cycle, self._hint = cycle, None
        self.signature = self._sign(pod)

    @property
    def keeps_scores(self) -> bool:
        """True if the raw scores of the pod's search are needed for `Scored`."""
        return self._rescores and self.signature is not None

    def _sign(self, pod: Pod) -> Hashable | None:
        # An extender's answers aren't signed, so they may differ for equal signatures.
        if self._framework.parts.extenders:
            return None
        try:
            if self._refuser is not None and self._refuser.sign_for_batch(pod) is None:
                return None
            signatures = []
            for plugin in self._plugins:
                signature = plugin.sign_for_batch(pod)
                if signature is None:
                    self._refuser = plugin
                    return None
                signatures.append(signature)
            made = tuple(signatures)
            hash(made)
        except HOOK_FAILURES:  # a plugin whose `sign` raises counts as one that can't sign
            return None
        return made

    def take_hint(self, state: CycleState, pod: Pod, selector: HostSelector) -> Hint | None:
        """Return the node to try first, if the last search can be reused for the pod.

        Call it after the pre_filters.
        """
        if self.signature is None and not self._measures:
            return None
        started = self._clock.monotonic()
        kept = self._kept
        if kept is not None and kept.left:
            flush = self._obstacle(kept, state, pod)
            if flush is None:
                self._hint = Hint(kept.take_best(selector), kept.pod)
            else:  # keep the search until another one replaces it; the next pod checks it again
                self._metrics.batch_flushed(flush, self._profile)
        if self._hint is None:
            self._metrics.batch_attempt(BatchAttempt.NO_HINT, self._profile)
        self._metrics.node_hint(self._hint is not None, self._profile, self._clock.monotonic() - started)
        return self._hint

    def _obstacle(self, kept: _KeptSearch, state: CycleState, pod: Pod) -> BatchFlush | None:
        # In kube-scheduler's order: the metric tells the first obstacle.
        if self._cycle != self._last_cycle + 1:
            return BatchFlush.POD_SKIPPED
        if self._rescores and pod.status.nominated_node_name:
            return BatchFlush.POD_NOMINATED
        if self.signature is None or self.signature != kept.signature:
            return BatchFlush.POD_INCOMPATIBLE
        if self._clock.monotonic() - kept.made > MAX_BATCH_AGE:
            return BatchFlush.EXPIRED
        snapshot = self._framework.handle.snapshot
        if self._last_node not in snapshot:
            return BatchFlush.NODE_MISSING
        last = snapshot.get(self._last_node)
        if self._framework.run_filter_plugins(state, pod, last).is_rejected:
            return None
        # The pod fits beside the last one, so that node may be the best one again. Up to v1.36 its total isn't known.
        if not self._rescores:
            return BatchFlush.NODE_NOT_FULL
        started = self._clock.monotonic()
        flush = kept.rescore_last(self._framework, state, pod, last)
        self._metrics.batch_rescored(self._profile, self._clock.monotonic() - started)
        return flush

    def end(self, pod: Pod, node: str, feasible: int, scored: Scored | None = None) -> None:
        """End the turn of a pod that gets this node; `feasible` is the number of feasible nodes.

        `scored` is needed if several are feasible and the pod has a signature.
        """
        self._last_cycle, self._last_node = self._cycle, node
        if self.signature is None and not self._measures:
            # The rest would only tell metrics why nothing is kept, which takes longer than a cycle's other steps.
            self._kept = None
            return
        started = self._clock.monotonic()
        hint = self._hint
        if hint is not None:
            attempt = BatchAttempt.HINT_USED if hint.node == node else BatchAttempt.HINT_NOT_USED
            self._metrics.batch_attempt(attempt, self._profile)
        # A hint that was followed leaves the search in use, without the node that it named.
        if hint is None or hint.node != node:
            self._keep(pod, feasible, scored)
        self._metrics.batch_stored(self._profile, self._clock.monotonic() - started)

    def _keep(self, pod: Pod, feasible: int, scored: Scored | None) -> None:
        if feasible > 1 and self.signature is not None and scored is not None:
            made = self._clock.monotonic()
            self._kept = _KeptSearch(pod.key, self.signature, made, scored)
            return
        self._kept = None
        reason = BatchFlush.POD_NOT_BATCHABLE if feasible > 1 else BatchFlush.EMPTY_LIST
        self._metrics.batch_flushed(reason, self._profile)


@define(eq=False)
class Batching:
    """The batches of a scheduler's profiles."""

    _clock: Clock
    _metrics: MetricsRecorder
    _batches: WeakKeyDictionary[Framework, Batch] = attrs.field(factory=WeakKeyDictionary, init=False)

    def begin(self, framework: Framework, state: CycleState, pod: Pod) -> Batch | None:
        """Begin the turn of a pod. Return None if it isn't scheduled in a numbered cycle, and so takes no part."""
        if state.scheduling_cycle is None:
            return None
        batch = self._batches.get(framework)
        if batch is None:
            batch = self._batches[framework] = Batch(framework, self._clock, self._metrics)
        batch.begin(pod, state.scheduling_cycle)
        return batch
