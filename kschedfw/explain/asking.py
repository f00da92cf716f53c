"""Asks filters more than a decision needs: about every node, and what lies behind their refusals."""

from __future__ import annotations

from kschedfw.api.pod import Pod
from kschedfw.explain.refusals import Refusals
from kschedfw.explain.steps import Beyond
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.evidence import Evidence, GivesEvidence
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.runtime.framework import Framework


def ask_all_filters(framework: Framework, state: CycleState, pod: Pod) -> Beyond:
    """What every filter says of every node, whatever the others say, and the evidence for that.

    As in the decision itself, a node must pass as it is and beside the pods that are nominated to it.
    """
    said: dict[str, NodeToStatus] = {}
    evidence: dict[str, dict[int, tuple[Evidence, ...]]] = {}
    rows = framework.handle.snapshot.table.rows
    for info in framework.handle.snapshot.node_infos:
        views = [(state, info)]
        if (crowded := framework.add_nominated_pods(state, pod, info)) is not None:
            views.append(crowded)
        refused_by: set[str] = set()
        for view, node_info in views:
            for plugin, status in framework.run_each_filter_plugin(view, pod, node_info).items():
                if status.is_rejected and plugin not in refused_by:
                    refused_by.add(plugin)
                    said.setdefault(plugin, NodeToStatus()).set(info.name, status)
                    if found := _evidence(framework, plugin, view, pod, node_info):
                        evidence.setdefault(plugin, {})[rows[info.name]] = found
    refusals = {plugin: Refusals.taken_from(each, rows) for plugin, each in said.items()}
    return Beyond(refusals, evidence)


def _evidence(
    framework: Framework, name: str, state: CycleState, pod: Pod, node_info: NodeInfo
) -> tuple[Evidence, ...]:
    plugin: object = framework.plugins[name]
    if not isinstance(plugin, GivesEvidence):
        return ()
    try:
        return tuple(plugin.evidence(state, pod, node_info))
    except Exception as error:  # it is asked for explanations alone, and must not keep one from being made
        return (Evidence(f"{name} can't say what lies behind it", f"{type(error).__name__}: {error}"),)
