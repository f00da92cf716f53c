"""An explanation as tables and sentences, for output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np

from kschedfw.api.words import counted
from kschedfw.explain.explanation import Explanation, NodeExplanation, Result, Verdict
from kschedfw.explain.group_sections import group_headline, group_overview, of_group
from kschedfw.explain.groups import GroupStep
from kschedfw.explain.section import EXAMPLES, Section, listed
from kschedfw.explain.steps import FilterStep, PreemptionCandidate, PreemptionStep, Refusals, ScoreStep
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.results import not_left_over
from kschedfw.framework.status import Status

_ONLY: Final = "(asked for this explanation only)"

EXTENDERS = "extenders"


def headline(explanation: Explanation | GroupStep) -> str:
    """Return the result for the pod or the group in one line."""
    if isinstance(explanation, GroupStep):
        return group_headline(explanation)
    match explanation.result:
        case Result.PLACED:
            what = f"placed on {explanation.node}"
        case Result.WAITING:
            what = f"waiting for permission to go to {explanation.node}"
        case Result.NOMINATED:
            what = f"fits nowhere yet; nominated to {explanation.nominated}, where room was made"
        case Result.GATED:
            return f"{explanation.pod}: gated, so not tried (profile {explanation.profile})"
        case Result.UNSCHEDULABLE if explanation.node is not None:
            what = f"refused after {explanation.node} was chosen"
        case other:
            what = other.value
    return f"{explanation.pod}: {what} (attempt {explanation.attempt}, profile {explanation.profile})"


def overview(explanation: Explanation | GroupStep, top: int = 5) -> Iterator[Section]:
    """Yield the whole decision: the best nodes, why others weren't chosen, and what preemption found.

    Of a group: the step that ended its cycle, the placements, and the members on the nearest one. Tables have `top`
    rows at most.
    """
    if isinstance(explanation, GroupStep):
        yield from group_overview(explanation, top)
        return
    if explanation.message:
        yield Section(lines=(explanation.message,))
    if explanation.group is not None:
        yield Section(lines=(of_group(explanation.group),))
    if explanation.filter is not None and len(explanation.filter.feasible):
        yield _best(explanation, top)
    if others := _groups(explanation):
        rows = tuple(
            (str(len(nodes)), status.plugin, ", ".join(status.reasons), _examples(explanation, nodes))
            for status, nodes in others
        )
        title = "Why not the others" if explanation.feasible else "Why no node would do"
        yield Section(title, ("nodes", "plugin", "reason", "e.g."), rows)
    if (also := _beyond(explanation)) is not None:
        yield also
    yield from evidence_sections(explanation, top)
    if explanation.preemption is not None:
        yield _preemption(explanation.preemption, explanation.nominated, top)
    if lines := tuple(_skipped(explanation)):
        yield Section(lines=lines)


def node_section(node: NodeExplanation) -> Iterator[Section]:
    """Return everything about one node."""
    tied = ", with the highest total" if node.is_tied else ""
    lines = [f"node {node.node}: {node.verdict}{tied}"]
    if node.refusal is not None:
        lines.append(_said(node.refusal))
        lines.extend(evidence_lines(node, node.refusal.plugin))
    for each in node.also_refused_by.values():
        lines.append(f"would also have been refused by {_said(each)}")
        lines.extend(evidence_lines(node, each.plugin))
    yield Section(lines=tuple(lines))
    if node.total is not None:
        rows = [
            (name, *map(str, (score.raw, score.normalized, score.weight, score.weighted)))
            for name, score in node.scores.items()
        ]
        rest = node.total - sum(score.weighted for score in node.scores.values())
        if rest:
            rows.append((EXTENDERS, "", "", "", str(rest)))
        headers = ("plugin", "raw", "normalized", "weight", "weighted")
        yield Section("Scores", headers, (*rows, ("total", "", "", "", str(node.total))))


def plugin_section(explanation: Explanation, plugin: str, top: int = 5) -> Iterator[Section]:
    """Return everything about one plugin."""
    yield Section(lines=tuple(_part(explanation, plugin)))
    groups = [(status, nodes) for status, nodes in _groups(explanation) if status.plugin == plugin]
    if groups:
        yield _refused(explanation, "Refused by it", groups)
    beyond = explanation.beyond
    if beyond is not None and (refusals := beyond.refusals.get(plugin)) is not None:
        title = f"Refused by it if it is asked about every node {_ONLY}"
        yield _refused(explanation, title, refusals.by_status().items())
    yield from evidence_sections(explanation, top, plugin)
    if explanation.score is not None and plugin in explanation.score.plugins:
        scored = (
            (each.node, *map(str, (score.raw, score.normalized, score.weight, score.weighted)))
            for each in islice(explanation.best(), top)
            if (score := each.scores.get(plugin)) is not None
        )
        yield Section(
            "Scores of the best nodes", ("node", "raw", "normalized", "weight", "weighted"), tuple(scored)
        )


def _refused(explanation: Explanation, title: str, groups: Iterable[tuple[Status, IntArray]]) -> Section:
    rows = (
        (str(len(nodes)), ", ".join(status.reasons), _examples(explanation, nodes))
        for status, nodes in groups
    )
    return Section(title, ("nodes", "reason", "e.g."), tuple(rows))


def _part(explanation: Explanation, plugin: str) -> Iterator[str]:
    step, score = explanation.filter, explanation.score
    if plugin in explanation.pre_filter.skipped:
        yield f"{plugin}: filter skipped, as it has nothing to do for this pod"
    if plugin in explanation.pre_filter.narrowing:
        yield f"{plugin}: named the only nodes in question"
    if explanation.pre_filter.refusal is not None and explanation.pre_filter.refusal.plugin == plugin:
        yield f"{plugin}: refused the pod as such: {explanation.pre_filter.refusal.message}"
    if step is not None and plugin in step.plugins:
        position = step.plugins.index(plugin) + 1
        yield f"{plugin}: filter {position} of {len(step.plugins)}, asked about nodes that those before it let pass"
    if score is not None and plugin in score.skipped:
        yield f"{plugin}: score skipped, as it has nothing to do for this pod"
    if score is not None and plugin in score.plugins:
        yield f"{plugin}: scored {counted(len(score.totals), 'node')}{f' {_ONLY}' if score.beyond else ''}"


def _best(explanation: Explanation, top: int) -> Section:
    feasible, score = explanation.feasible, explanation.score
    count = len(feasible)
    title = "Best nodes" if count > 1 else "The only feasible node"
    best = list(islice(explanation.best(), top))
    lines = [f"{count - len(best)} more feasible"] if count > len(best) else []
    if score is None:
        return Section(
            title,
            ("node",),
            tuple((each.node,) for each in best),
            (*lines, "not scored: there was nothing to choose from"),
        )
    columns = _columns(score)
    # A single node's scores are all shown, though none of them differs from another.
    differing = {name: values for name, values in columns.items() if count == 1 or np.ptp(values)}
    short = _initials(tuple(differing))
    places = {name: place for place, name in enumerate(feasible)}
    rows: tuple[tuple[str, ...], ...] = tuple(
        (
            f"{each.node} (chosen)" if each.verdict is Verdict.CHOSEN else each.node,
            str(each.total),
            *(str(int(values[places[each.node]])) for values in differing.values()),
        )
        for each in best
    )
    weights = {name: scores.weight for name, scores in score.plugins.items()}
    lines.extend(
        f"{initials}: {name}{_times(weights.get(name, 1))}"
        for name, initials in short.items()
        if initials != name
    )
    same = [
        f"{name} {int(values[0])}{_times(weights.get(name, 1), ', weight ')}"
        for name, values in columns.items()
        if name not in differing
    ]
    if same:
        lines.append(f"the same for all of them: {'; '.join(same)}")
    if len(tied := explanation.tied) > 1:
        lines.append(
            f"{len(tied)} nodes have the highest total; {explanation.node} was drawn from {listed(tied)}"
        )
    if score.beyond:
        lines.append("the scores were asked for this explanation only: a single feasible node isn't scored")
    return Section(title, ("node", "total", *short.values()), rows, tuple(lines))


def _times(weight: int, words: str = ", × weight ") -> str:
    return "" if weight == 1 else f"{words}{weight}"


def _columns(score: ScoreStep) -> Mapping[str, IntArray]:
    """The columns of weighted scores by plugin, and of the extenders' scores."""
    columns = {name: scores.weighted for name, scores in score.plugins.items()}
    if score.extenders.any():
        columns[EXTENDERS] = score.extenders
    return columns


def _initials(names: Sequence[str]) -> Mapping[str, str]:
    """The capital letters of each name, or the whole name if these aren't unique."""
    short = {name: "".join(letter for letter in name if letter.isupper()) or name for name in names}
    taken = list(short.values())
    return {name: initials if taken.count(initials) == 1 else name for name, initials in short.items()}


def _groups(explanation: Explanation) -> list[tuple[Status, IntArray]]:
    """The reasons why nodes aren't feasible, with the rows of the nodes."""
    groups: list[tuple[Status, IntArray]] = []
    if explanation.result is Result.GATED:
        # A gate refuses the pod on no particular node.
        return groups
    step, pre_filter = explanation.filter, explanation.pre_filter
    if step is None:
        if pre_filter.refusal is not None and explanation.nodes:
            groups.append((pre_filter.refusal, np.arange(len(explanation.nodes))))
        return groups
    groups.extend(step.refusals.by_status().items())
    if pre_filter.left_over is not None:
        left_out = np.setdiff1d(np.arange(len(explanation.nodes)), pre_filter.left_over)
        if len(left_out):
            groups.append((not_left_over(pre_filter.narrowing), left_out))
    not_reached = step.not_looked_at
    if step.nominated or step.batch_of:
        not_reached = np.setdiff1d(np.arange(len(explanation.nodes)), step.candidates)
    if len(not_reached):
        groups.append((Status.unschedulable(_why_not_reached(explanation, step)), not_reached))
    return groups


def _why_not_reached(explanation: Explanation, step: FilterStep) -> str:
    if step.nominated:
        return "not looked at: the pod was nominated to a node, and still fits there"
    if step.batch_of:
        return f"not looked at: the search for {step.batch_of} was reused, of which the node is the best that was left"
    if explanation.result is Result.FAILED and explanation.node is None:
        return "not looked at: a plugin failed before"
    return f"not looked at: {step.wanted} feasible nodes were found before"


def _beyond(explanation: Explanation) -> Section | None:
    """Rejections that the decision didn't reach, of nodes that others rejected or that weren't filtered."""
    if explanation.beyond is None or explanation.filter is None:
        return None
    decided = explanation.filter.refusals
    rows = []
    for plugin, refusals in explanation.beyond.refusals.items():
        for status, nodes in refusals.by_status().items():
            others = [row for row in nodes.tolist() if not _is_from(decided, row, plugin)]
            if others:
                named = _examples(explanation, np.array(others))
                rows.append((str(len(others)), plugin, ", ".join(status.reasons), named))
    if not rows:
        return None
    return Section(
        f"Would also have been refused {_ONLY}", ("nodes", "plugin", "reason", "e.g."), tuple(rows)
    )


def _is_from(refusals: Refusals, row: int, plugin: str) -> bool:
    status = refusals.of(row)
    return status is not None and status.plugin == plugin


def _preemption(step: PreemptionStep, nominated: str | None, top: int) -> Section:
    lines = []
    # A stable sort: the chosen one first, the others in the order in which they were found.
    shown = sorted(step.candidates, key=lambda each: each != step.chosen)[:top]
    if len(step.candidates) > len(shown):
        lines.append(counted(len(step.candidates) - len(shown), "more candidate"))
    if len(step.tied) > 1:
        names = listed([candidate.node for candidate in step.tied])
        lines.append(f"{len(step.tied)} candidates do equally little harm, the first is taken: {names}")
    if step.refusals is not None:
        for status, nodes in step.refusals.by_status().items():
            lines.append(f"no candidates, {counted(len(nodes), 'node')}: {status.message}")
    if not step.candidates:
        made = (
            f"room was made for node {nominated}, by a plugin that names no candidates" if nominated else ""
        )
        lines.insert(0, step.message or made or "no plugin could make room")
    rows = tuple(_candidate(each, is_chosen=each == step.chosen) for each in shown)
    headers = ("node", "victims", "priority", "PDBs violated") if rows else ()
    return Section("Preemption", headers, rows, tuple(lines))


def _candidate(candidate: PreemptionCandidate, *, is_chosen: bool) -> tuple[str, ...]:
    victims = candidate.victims
    highest = str(max(victim.priority for victim in victims)) if victims else ""
    return (
        f"{candidate.node}{' (chosen)' if is_chosen else ''}",
        listed([victim.pod for victim in victims]),
        highest,
        str(candidate.budget_violations),
    )


def _skipped(explanation: Explanation) -> Iterator[str]:
    step, score = explanation.pre_filter, explanation.score
    if step.skipped:
        yield f"filters with nothing to do for this pod: {', '.join(step.skipped)}"
    if score is not None and score.skipped:
        yield f"scores with nothing to do for this pod: {', '.join(score.skipped)}"


def _said(status: Status) -> str:
    return f"{status.plugin}: {status.message}" if status.plugin else status.message


def _examples(explanation: Explanation, rows: IntArray) -> str:
    return ", ".join(explanation.nodes[row] for row in rows[:EXAMPLES].tolist())


def evidence_sections(explanation: Explanation, top: int, plugin: str | None = None) -> Iterator[Section]:
    """The closest nodes if none was feasible, and the evidence for each reason; of all plugins, or of one."""
    if plugin is None and not explanation.feasible:
        closest = tuple((node.node, _in_the_way(node)) for node in islice(explanation.closest(), top))
        if closest:
            yield Section(f"Closest nodes {_ONLY}", ("node", "what is in the way"), closest)
    rows: list[tuple[str, ...]] = []
    lines: list[str] = []
    for name, by_asked in _by_plugin(explanation).items():
        if plugin not in (None, name):
            continue
        groups = sorted(by_asked.items(), key=lambda group: -len(group[1]))
        rows.extend((str(len(found)), name, asked, _closest_examples(found)) for asked, found in groups[:top])
        if len(groups) > top:
            lines.append(f"{name}: {len(groups) - top} more")
    if rows:
        headers = ("nodes", "plugin", "what is asked for", "closest, or e.g.")
        yield Section(f"Behind the reasons {_ONLY}", headers, tuple(rows), tuple(lines))


def evidence_lines(node: NodeExplanation, plugin: str) -> Iterator[str]:
    """The evidence for one plugin's rejection of the node."""
    return (f"  {each}" for each in node.evidence.get(plugin, ()))


def _in_the_way(node: NodeExplanation) -> str:
    """The evidence of all rejections of the node; the reasons of plugins without evidence."""
    refusals = [node.refusal, *node.also_refused_by.values()]
    told: list[str] = []
    for status in refusals:
        if status is not None:
            told.extend([*map(str, node.evidence.get(status.plugin, ()))] or status.reasons)
    return "; and ".join(dict.fromkeys(told))


_Found = list[tuple[str, Evidence]]
"""Pieces of evidence, each with its node."""


def _by_plugin(explanation: Explanation) -> dict[str, dict[str, _Found]]:
    """All evidence, by plugin and by the request that it is about; the plugin first whose request fails most nodes."""
    groups: dict[str, dict[str, _Found]] = {}
    if explanation.beyond is not None:
        for plugin, by_row in explanation.beyond.evidence.items():
            for row, pieces in by_row.items():
                for each in pieces:
                    by_asked = groups.setdefault(plugin, {})
                    by_asked.setdefault(each.asked, []).append((explanation.nodes[row], each))
    return dict(sorted(groups.items(), key=lambda group: -max(map(len, group[1].values()))))


def _closest_examples(found: Sequence[tuple[str, Evidence]]) -> str:
    ordered = sorted(found, key=lambda each: each[1].gap or 0.0)[:EXAMPLES]
    return ", ".join(f"{node} ({each.found})" if each.found else node for node, each in ordered)
