"""Calls every filter for every node, and collects the evidence for rejections, which decisions don't need."""

from __future__ import annotations

from collections.abc import Iterable

from kschedfw.api.pod import Pod
from kschedfw.explain.refusals import Refusals
from kschedfw.explain.steps import Beyond
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.evidence import Evidence, GivesEvidence
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.hooks import Hook, asked_method


def ask_all_filters(
    framework: Framework, state: CycleState, pod: Pod, nodes: Iterable[NodeInfo] | None = None
) -> Beyond:
    """The rejections of every filter on every node, whatever the other filters say, and the evidence for them.

    With `nodes`, only these nodes of the snapshot are asked about.

    As in the decision, a node must pass both without and with the pods that are nominated to it.
    """
    # Once for each plugin: an isinstance check against a protocol takes as long as some filters.
    giving = {
        name: asked_method(plugin, "evidence")
        for name, plugin in framework.plugins.items()
        if isinstance(plugin, GivesEvidence)
    }
    said: dict[str, NodeToStatus] = {}
    evidence: dict[str, dict[int, tuple[Evidence, ...]]] = {}
    rows = framework.handle.snapshot.table.rows
    for info in framework.handle.snapshot.node_infos if nodes is None else nodes:
        views = [(state, info)]
        if (crowded := framework.add_nominated_pods(state, pod, info)) is not None:
            views.append(crowded)
        refused_by: set[str] = set()
        for view, node_info in views:
            for plugin, status in framework.run_each_filter_plugin(view, pod, node_info).items():
                if status.is_rejected and plugin not in refused_by:
                    refused_by.add(plugin)
                    said.setdefault(plugin, NodeToStatus()).set(info.name, status)
                    ask = giving.get(plugin)
                    if ask is not None and (found := _evidence(ask, plugin, view, pod, node_info)):
                        evidence.setdefault(plugin, {})[rows[info.name]] = found
    refusals = {plugin: Refusals.taken_from(each, rows) for plugin, each in said.items()}
    return Beyond(refusals, evidence)


def _evidence(ask: Hook, name: str, state: CycleState, pod: Pod, node_info: NodeInfo) -> tuple[Evidence, ...]:
    try:
        return tuple(ask(state, pod, node_info))
    except Exception as error:  # an explanation without evidence is better than none
        return (Evidence(f"{name} can't say what lies behind it", f"{type(error).__name__}: {error}"),)
