"""The base class of plugins that decide by the domains of topology keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import ArgsT, Plugin, hookimpl
from kschedfw.framework.results import DomainScores, DomainVerdicts, Normalizing, Verdicts
from kschedfw.framework.status import Status

_NO_REFUSALS = DomainVerdicts((), ())
_NO_SCORES = DomainScores((), Normalizing.STRETCHED)


class PluginByDomain(Plugin[ArgsT], Generic[ArgsT]):
    """A plugin whose answers about a node follow from its domains, such as its zone.

    A subclass states what is refused and what is scored by domain, once; the hooks for single nodes and for many follow
    from it, and the framework asks for it in a fraction of their time. The nodes are those of the snapshot; the pods on
    them may be others, as in preemption's dry runs. A subclass that overrides one of the hooks must override the method
    that it follows from, too; otherwise that isn't asked.
    """

    def domain_refusals(self, state: CycleState, nodes: NodeTable) -> DomainVerdicts | None:  # noqa: ARG002  # for plugins to override
        """Return the filter's verdicts by domain, after pre_filter. The values are read at once, and not kept.

        Return None for a pod whose verdicts aren't by domain, if the class has filter and filter_batch of its own.
        """
        return _NO_REFUSALS

    def domain_scores(self, state: CycleState, nodes: NodeTable) -> DomainScores | None:  # noqa: ARG002  # for plugins to override
        """Return the scores by domain, after pre_score.

        Return None for a pod whose scores aren't sums by domain, if the class has score, score_batch and
        normalize_score of its own.
        """
        return _NO_SCORES

    if TYPE_CHECKING:
        # Type checkers let any signature override these: a hook takes any of its arguments.
        def filter(self, *args: Any, **kwargs: Any) -> Status | None: ...
        def filter_batch(self, *args: Any, **kwargs: Any) -> Verdicts: ...
        def score(self, *args: Any, **kwargs: Any) -> int: ...
        def score_batch(self, *args: Any, **kwargs: Any) -> IntArray: ...
        def normalize_score(self, *args: Any, **kwargs: Any) -> IntArray: ...
    else:

        @hookimpl
        def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
            return self._verdicts(state, self.handle.snapshot.table).of(node_info)

        @hookimpl
        def filter_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> Verdicts:
            return self._verdicts(state, nodes).at(nodes, rows)

        @hookimpl
        def score(self, state: CycleState, node_info: NodeInfo) -> int:
            return self._scores(state, self.handle.snapshot.table).of(node_info)

        @hookimpl
        def score_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> IntArray:
            return self._scores(state, nodes).at(nodes, rows)

        @hookimpl
        def normalize_score(self, state: CycleState, scores: IntArray) -> IntArray:
            return self._scores(state, self.handle.snapshot.table).normalizing.of(scores)

    def _verdicts(self, state: CycleState, nodes: NodeTable) -> DomainVerdicts:
        found = self.domain_refusals(state, nodes)
        assert found is not None, f"{self.name} has no verdicts by domain here, and no filter of its own"
        found.check(nodes)
        return found

    def _scores(self, state: CycleState, nodes: NodeTable) -> DomainScores:
        found = self.domain_scores(state, nodes)
        assert found is not None, f"{self.name} has no scores by domain here, and no score of its own"
        found.check(nodes)
        return found


AnyPluginByDomain: TypeAlias = PluginByDomain[Any]
"""A plugin by domain whatever its arguments are."""
