"""Checks that the plugin rejects or scores something in generated clusters: otherwise other checks prove little."""

from __future__ import annotations

import unittest
from collections.abc import Callable

from kschedfw.testing.plugin_contract.stage import PluginStage, on_stages
from kschedfw.testing.plugin_contract.subject import Subject, concerns

_REMEDY = "Override `pods` and `nodes` so that they have what the plugin looks at"


class OpinionChecks(Subject):
    """Checks that the plugin rejects or scores something. If not, they are skipped: that breaks no rule."""

    @concerns("filter")
    def test_filter_refuses_some_node(self) -> None:
        asked = 0

        def refuses(stage: PluginStage) -> bool:
            nonlocal asked
            for pod in stage.pods:
                state = stage.begin(pod)
                verdicts = {} if state is None else stage.verdicts(state, pod)
                asked += len(verdicts)
                if any(status.is_rejected for status in verdicts.values()):
                    return True
            return False

        if not self._is_seen(refuses):
            how = (
                f"about {asked:,} nodes"
                if asked
                else "about none, since pre_filter skips or refuses every pod"
            )
            self._tell(f"{self._name}.filter refuses no node in the generated clusters (it was asked {how})")

    @concerns("score")
    def test_scores_differ_between_some_nodes(self) -> None:
        asked = 0

        def differ(stage: PluginStage) -> bool:
            nonlocal asked
            for pod in stage.pods:
                state = stage.begin(pod)
                nodes = [] if state is None else stage.feasible(state, pod)
                if state is None or not stage.begin_scoring(state, pod, nodes):
                    continue
                scores, _ = stage.framework.run_score_plugins(state, pod, nodes)
                own = None if scores is None else scores.by_plugin.get(stage.name)
                if own is None:
                    continue
                asked += len(nodes)
                if len(set(own.normalized.tolist())) > 1:
                    return True
            return False

        if not self._is_seen(differ):
            how = f"about {asked:,} nodes" if asked else "about none, since pre_score skips every pod"
            self._tell(
                f"{self._name} scores all nodes of a generated cluster alike, for every pod (it was asked {how})"
            )

    def _is_seen(self, holds: Callable[[PluginStage], bool]) -> bool:
        """Whether `holds` is true in some generated world; stops at the first one."""
        seen = False

        def check(new_stage: Callable[[], PluginStage]) -> None:
            nonlocal seen
            seen = seen or holds(new_stage())

        on_stages(self, check)
        return seen

    def _tell(self, what: str) -> None:
        # unittest's exception, so that the contract doesn't need pytest, which also understands it.
        raise unittest.SkipTest(f"{what}: its other tests show little. {_REMEDY}")
