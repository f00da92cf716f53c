"""The scores of one pod's feasible nodes, from raw answers to weighted totals."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from kschedfw.framework.results import IntArray


@attrs.frozen(eq=False)
class PluginScores:
    """One plugin's scores, shape (n,): as it gave them, and brought into 0–100."""

    weight: int
    raw: IntArray
    normalized: IntArray

    @property
    def weighted(self) -> IntArray:
        return self.normalized * self.weight


@attrs.frozen(eq=False)
class NodeScores:
    """The scores of n feasible nodes by plugin, in profile order; skipped plugins are missing."""

    node_names: tuple[str, ...]
    by_plugin: Mapping[str, PluginScores]

    @property
    def totals(self) -> IntArray:
        """Σ weight × normalised score, shape (n,)."""
        totals = np.zeros(len(self.node_names), dtype=np.int64)
        for scores in self.by_plugin.values():
            totals += scores.weighted
        return totals
