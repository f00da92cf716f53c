"""Explanations as text, for terminals of any width and for pipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import PodGroup, group_key
from kschedfw.api.records import frozen
from kschedfw.cli.enabled import UsageError, check_name
from kschedfw.cli.exits import print_json
from kschedfw.cli.inputs import Input
from kschedfw.cli.output import missing_lines
from kschedfw.cli.tables import block, plain_table, print_parts, stdout_console
from kschedfw.cluster import ClaimProblem, MissingObject
from kschedfw.config import SchedulerConfiguration
from kschedfw.explain import Explanation, GroupStep, Result, Section, headline, overview
from kschedfw.explain.as_json import group_as_json
from kschedfw.explain.sections import evidence_sections, node_section, plugin_section
from kschedfw.framework.gate_table import GENERIC_WORKLOAD
from kschedfw.simulator import Decision


@frozen
class Context:
    """Context of the decision: objects that the pod refers to and the input lacks, and the pod's former node.

    `claims` are the problems of the claims of a pod without a place.
    """

    missing: Sequence[MissingObject] = ()
    was_on: str | None = None
    claims: Sequence[ClaimProblem] = ()

    def with_claims(self, claims: Iterable[ClaimProblem]) -> Context:
        """Return the context with problems of claims; what they call misspelt is no longer missing."""
        problems = tuple(claims)
        misspelt = {each.misspelt for each in problems}
        missing = [each for each in self.missing if (each.kind, each.name) not in misspelt]
        return attrs.evolve(self, missing=missing, claims=problems)

    def to_json(self) -> dict[str, object]:
        return {
            "missing": [each.to_json() for each in self.missing],
            "wasOn": self.was_on,
            "claims": [each.text for each in self.claims],
            "findings": [each.finding.to_json() for each in self.claims],
        }


def print_explanation(
    explanation: Explanation,
    attempts: Sequence[Explanation],
    context: Context,
    *,
    node: str | None = None,
    plugin: str | None = None,
    top: int = 5,
    end: Decision | None = None,
) -> None:
    """Print one of the attempts to stdout, or only the part about one node or plugin.

    `end` is the pod's outcome, if the attempt left it waiting.
    """
    sections: list[Section] = []
    if node is not None:
        sections.extend(node_section(explanation.of(node)))
    if plugin is not None:
        sections.extend(plugin_section(explanation, plugin, top))
    if node is None and plugin is None:
        sections.extend(overview(explanation, top))
    print_parts(stdout_console(), _parts(explanation, attempts, context, sections, end))


def _parts(
    explanation: Explanation,
    attempts: Sequence[Explanation],
    context: Context,
    sections: Sequence[Section],
    end: Decision | None,
) -> Iterator[RenderableType]:
    yield Text(headline(explanation), "bold")
    if context.was_on is not None:
        yield Text(f"before it was taken off: on {context.was_on}")
    if end is not None and explanation is attempts[-1]:
        yield Text(f"after that: {end.outcome.value}{f': {end.message}' if end.message else ''}")
    for other in attempts:
        if other is not explanation:
            yield Text(headline(other) + (f": {other.message}" if other.message else ""), "dim")
    if context.claims:
        yield block(*(each.text for each in context.claims))
    if context.missing:
        yield block(*missing_lines(context.missing))
    for section in sections:
        yield section_block(section)


def section_block(section: Section) -> Padding:
    """A section for the console."""
    parts: list[Table | str] = []
    if section.headers:
        parts.append(_table(section))
    elif section.title:
        parts.append(section.title)
    return block(*parts, *section.lines)


def _table(section: Section) -> Table:
    table = plain_table(section.title, *section.headers)
    for header, column in zip(section.headers, table.columns, strict=True):
        is_text = header in section.text
        column.justify, column.no_wrap = "left" if is_text else "right", not is_text
    for row in section.rows:
        table.add_row(*map(Text, row))
    return table


_PREFIX: Final = "podgroup/"


def group_name(argument: str) -> str | None:
    """The NAME or NAMESPACE/NAME of the group that is meant; None if it's a pod that is."""
    return argument.removeprefix(_PREFIX) if argument.startswith(_PREFIX) else None


def is_grouped(configuration: SchedulerConfiguration, pod: Pod) -> bool:
    """Tell whether the pod is scheduled together with others."""
    return bool(group_key(pod)) and configuration.gates.enabled(GENERIC_WORKLOAD)


def pending_members(loaded: Input, name: str, configuration: SchedulerConfiguration) -> Sequence[Pod]:
    """The members without a node of the group of this name; in the namespace, if there is one and the name has none.

    Raises:
        UsageError: there is none, there are several, it has no such member, or groups aren't scheduled as such.
    """
    namespace = None if "/" in name else loaded.namespace
    pods = loaded.cluster.list(Pod, namespace)
    keys = {group.key for group in loaded.cluster.list(PodGroup, namespace)} | {*map(group_key, pods)} - {""}
    matching = sorted(key for key in keys if name in (key, key.partition("/")[2]))
    if len(matching) > 1:
        raise UsageError(
            f"podgroup {name!r}: there are several: {', '.join(matching)}; say which as {_PREFIX}NAMESPACE/NAME"
        )
    if not matching:
        check_name("podgroup", name, [key if "/" in name else key.partition("/")[2] for key in keys])
    if not configuration.gates.enabled(GENERIC_WORKLOAD):
        raise UsageError(
            f"{_PREFIX}{name}: its members are scheduled one by one, without the feature gate {GENERIC_WORKLOAD}; "
            f"with --feature-gates {GENERIC_WORKLOAD}=true,GangScheduling=true they are scheduled together"
        )
    members = [pod for pod in pods if group_key(pod) == matching[0]]
    pending = [pod for pod in members if not pod.node_name]
    if not pending:
        why = f"all {len(members)} members have a node already" if members else "no pod is a member of it"
        raise UsageError(f"podgroup {matching[0]}: {why}, nothing is decided on it")
    return pending


def cycles_of(explanations: Sequence[Explanation]) -> Sequence[GroupStep]:
    """The group's cycles, from the explanations of its members."""
    # By identity: the members of a cycle share its step.
    steps = {id(each.group): each.group for each in explanations if each.group is not None}
    cycles = [step for step in steps.values() if step.result is not Result.GATED]
    return cycles or list(steps.values())[-1:]


def chosen_cycle(cycles: Sequence[GroupStep], number: int | None) -> GroupStep:
    """The cycle of this number; without one that which placed the group, or the last one.

    Raises:
        UsageError: there was no such cycle.
    """
    if number is None:
        return next((step for step in cycles if step.result is Result.PLACED), cycles[-1])
    for step in cycles:
        if step.attempt == number:
            return step
    raise no_attempt(number, [step.attempt for step in cycles], "group")


def no_attempt(number: int, known: Sequence[int], of: str) -> UsageError:
    """Return the error of an --attempt that is none of the known ones of a pod or group."""
    there_are = str(known[0]) if len(known) == 1 else f"{known[0]}–{known[-1]}"
    return UsageError(f"--attempt {number}: expected {there_are}, the attempts of the {of}")


def print_group(step: GroupStep, cycles: Sequence[GroupStep], *, top: int, as_json: bool) -> None:
    """Print one of the cycles to stdout."""
    if as_json:
        print_json(group_as_json(step))
    else:
        print_parts(stdout_console(), _group_parts(step, cycles, top))


def _group_parts(step: GroupStep, cycles: Sequence[GroupStep], top: int) -> Iterator[RenderableType]:
    yield Text(headline(step), "bold")
    alike: dict[tuple[Result, str], list[GroupStep]] = {}
    for other in cycles:
        if other is not step:
            alike.setdefault((other.result, other.message), []).append(other)
    for (result, message), others in alike.items():
        numbers = ", ".join(str(other.attempt) for other in others)
        said = (
            "the same" if (result, message) == (step.result, step.message) else f"{result.value}: {message}"
        )
        yield Text(f"{'attempt' if len(others) == 1 else 'attempts'} {numbers}: {said}", "dim")
    for section in overview(step, top):
        yield section_block(section)
    member = step.obstructed
    if member is not None and member.decision is not None:
        yield section_block(Section(lines=(f"Of {member.pod}, which has no node there:",)))
        for section in evidence_sections(member.decision, top):
            yield section_block(section)
