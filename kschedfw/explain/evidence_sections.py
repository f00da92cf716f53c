"""What lies behind refusals, in tables: numbers, taints, terms, holders of ports; and the nodes that come closest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from kschedfw.explain.explanation import Explanation, NodeExplanation
from kschedfw.explain.section import EXAMPLES, Section
from kschedfw.framework.evidence import Evidence

_ONLY = "(asked for this explanation only)"


def evidence_sections(explanation: Explanation, top: int, plugin: str | None = None) -> Iterator[Section]:
    """The closest nodes, where none was feasible, and what is behind each reason; of all plugins, or of one."""
    if plugin is None and not explanation.feasible and (closest := _closest(explanation, top)):
        yield Section(f"Closest nodes {_ONLY}", ("node", "what is in the way"), closest)
    rows: list[tuple[str, ...]] = []
    lines: list[str] = []
    for name, by_asked in _by_plugin(explanation).items():
        if plugin not in (None, name):
            continue
        groups = sorted(by_asked.items(), key=lambda group: -len(group[1]))
        rows.extend((str(len(found)), name, asked, _examples(found)) for asked, found in groups[:top])
        if len(groups) > top:
            lines.append(f"{name}: {len(groups) - top} more")
    if rows:
        headers = ("nodes", "plugin", "what is asked for", "closest, or e.g.")
        yield Section(f"Behind the reasons {_ONLY}", headers, tuple(rows), tuple(lines))


def evidence_lines(node: NodeExplanation, plugin: str) -> Iterator[str]:
    """What lies behind one plugin's refusal of the node."""
    return (f"  {each}" for each in node.evidence.get(plugin, ()))


def _closest(explanation: Explanation, top: int) -> tuple[tuple[str, ...], ...]:
    return tuple((node.node, _in_the_way(node)) for node in islice(explanation.closest(), top))


def _in_the_way(node: NodeExplanation) -> str:
    """Everything that refuses the node; where a plugin gave no evidence, its reasons."""
    refusals = [node.refusal, *node.also_refused_by.values()]
    told: list[str] = []
    for status in refusals:
        if status is not None:
            told.extend([*map(str, node.evidence.get(status.plugin, ()))] or status.reasons)
    return "; and ".join(dict.fromkeys(told))


_Found = list[tuple[str, Evidence]]
"""Pieces of evidence, each with its node."""


def _by_plugin(explanation: Explanation) -> dict[str, dict[str, _Found]]:
    """All evidence, by plugin and by what is asked for."""
    groups: dict[str, dict[str, _Found]] = {}
    if explanation.beyond is not None:
        for plugin, by_row in explanation.beyond.evidence.items():
            for row, pieces in by_row.items():
                for each in pieces:
                    by_asked = groups.setdefault(plugin, {})
                    by_asked.setdefault(each.asked, []).append((explanation.nodes[row], each))
    return groups


def _examples(found: Sequence[tuple[str, Evidence]]) -> str:
    ordered = sorted(found, key=lambda each: each[1].gap or 0.0)[:EXAMPLES]
    return ", ".join(f"{node} ({each.found})" if each.found else node for node, each in ordered)
