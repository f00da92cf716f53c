"""Further questions to plugins for explanations: every filter about every node, and evidence for rejections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from kschedfw.api.pod import Pod
from kschedfw.explain.steps import Beyond, Refusals
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Evidence, GivesEvidence, NodeToStatus
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.learning.evidence import learned_evidence
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.plugin import is_pure
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.hook_answers import as_evidence
from kschedfw.framework.runtime.hooks import Hook, asked_method
from kschedfw.framework.status import text_of

_Ask: TypeAlias = Callable[[CycleState, Pod, NodeInfo], tuple[Evidence, ...]]


def ask_all_filters(
    framework: Framework, state: CycleState, pod: Pod, nodes: NodeSelection | None = None
) -> Beyond:
    """The rejections of every filter on every node, whatever the other filters say, and the evidence for them.

    With `nodes`, only these nodes of the snapshot are asked about.

    As in the decision, a node must pass both without and with the pods that are nominated to it.
    """
    table = framework.handle.snapshot.table
    if nodes is None:
        nodes = NodeSelection.whole(table)
    refused = framework.refused_by_each_filter(state, pod, nodes)
    said = {plugin: NodeToStatus(codes=each) for plugin, each in refused.items()}
    evidence: dict[str, dict[int, tuple[Evidence, ...]]] = {}
    for plugin, each in refused.items():
        ask = _asking(framework, plugin)
        if ask is not None:
            rows = nodes.rows[each.codes != 0].tolist()
            asked = ((row, ask(state, pod, table.node_infos[row])) for row in rows)
            evidence[plugin] = {row: found for row, found in asked if found}
    for crowded_state, info in _crowded(framework, state, pod, nodes):
        for plugin, status in framework.run_each_filter_plugin(crowded_state, pod, info).items():
            is_known = plugin in refused and refused[plugin].get(info.name) is not None
            if is_known or not status.is_rejected:
                continue
            said.setdefault(plugin, NodeToStatus()).set(info.name, status)
            ask = _asking(framework, plugin)
            if ask is not None and (found := ask(crowded_state, pod, info)):
                evidence.setdefault(plugin, {})[table.rows[info.name]] = found
    refusals = {plugin: Refusals.taken_from(each, table.rows) for plugin, each in said.items()}
    return Beyond(refusals, {plugin: by_row for plugin, by_row in evidence.items() if by_row})


def _crowded(
    framework: Framework, state: CycleState, pod: Pod, nodes: NodeSelection
) -> Iterator[tuple[CycleState, NodeInfo]]:
    """Yield those of the nodes that pods are nominated to, with these pods, each with its state."""
    nominated = framework.handle.nominator.nominated_nodes()
    for info in nodes if nominated else ():
        if info.name in nominated and (crowded := framework.add_nominated_pods(state, pod, info)) is not None:
            yield crowded


def _asking(framework: Framework, name: str) -> _Ask | None:
    """Return the plugin's `evidence`, called without failing; None for a plugin that gives none.

    For a pure filter without it, the evidence is what the filter reads, unless explanations have words of their own.
    """
    # Imported here, since it imports plugins, which only profiles that have them need.
    from kschedfw.explain.wording import UNWORDED, WORDED

    plugin = framework.plugins[name]
    if isinstance(plugin, GivesEvidence):
        ask: Hook = asked_method(plugin, "evidence")
    elif type(plugin) in UNWORDED:
        return None
    elif type(plugin) in WORDED:
        ask = partial(WORDED[type(plugin)], plugin)
    elif is_pure(plugin, "filter"):
        ask = partial(learned_evidence, framework.hooks_of(name)["filter"])
    else:
        return None

    def evidence(state: CycleState, pod: Pod, node_info: NodeInfo) -> tuple[Evidence, ...]:
        try:
            return as_evidence("evidence", ask(state, pod, node_info))
        except HOOK_FAILURES as error:
            # An explanation without evidence is better than none.
            return (Evidence(f"{name} can't say what lies behind it", text_of(error)),)

    return evidence
