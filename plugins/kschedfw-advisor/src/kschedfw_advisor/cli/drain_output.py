"""The answer of `kschedfw drain` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw.explain import SCHEMA_VERSION, Cause
from kschedfw_advisor.cli.what_if_output import Background, by_text, pods_text
from kschedfw_advisor.drain_plan import DrainPlan, Move, Step
from kschedfw_advisor.ending import ends_by

_NAMED = 10
"""The number of pods named for each reason why they are in the way; --json has all."""


Causes: TypeAlias = Mapping[str, tuple[Cause, ...]]
"""The causes that keep pods off nodes, by pod (`causes_by_pod`)."""

_NONE: Final[Causes] = {}


def to_json(plan: DrainPlan, background: Background, causes: Causes = _NONE) -> dict[str, object]:
    """The plan in types that `json.dumps` knows."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "nodes": list(plan.nodes),
        "succeeds": plan.succeeds,
        "outcome": ("drained" if plan.succeeds else "pods-in-the-way"),
        "steps": steps_to_json(plan.steps, causes),
        "blocked": [
            {
                "pod": each.pod.key,
                "node": each.pod.node_name,
                "reason": each.reason,
                "finding": each.finding.to_json(),
            }
            for each in plan.blocked
        ],
        "staying": [pod.key for pod in plan.staying],
        "ending": [pod.key for pod in plan.ending],
        **background.to_json(),
    }


def steps_to_json(steps: Sequence[Step], causes: Causes = _NONE) -> list[dict[str, object]]:
    """Return the end of each pod in types that `json.dumps` knows."""
    return [
        {
            "round": step.round,
            "pod": step.pod.key,
            "from": step.from_node,
            "to": step.to_node,
            "outcome": step.move.value,
            "code": step.finding.code,
            "message": step.message,
            "causes": [cause.to_json() for cause in causes.get(step.pod.key, ())],
        }
        for step in steps
    ]


def print_drain(plan: DrainPlan, background: Background) -> None:
    """Print the plan to stdout."""
    print_parts(stdout_console(), _parts(plan, background))


def _parts(plan: DrainPlan, background: Background) -> Iterator[RenderableType]:
    yield Text(_headline(plan), "bold")
    if plan.blocked:
        yield _blocked(plan)
    troubles = [step for step in plan.steps if step.move is not Move.MOVES]
    if troubles:
        yield _troubles(troubles)
    if moves := [step for step in plan.steps if step.move is Move.MOVES]:
        yield moves_table(plan, moves)
    if plan.staying:
        yield block(f"staying, as pods of DaemonSets and mirror pods do: {pods_text(plan.staying)}")
    if plan.ending:
        yield block(f"ending already, {ends_by(plan.ending)}: {pods_text(plan.ending)}")
    yield from background.parts()


def _headline(plan: DrainPlan) -> str:
    nodes = ", ".join(plan.nodes) if len(plan.nodes) <= 3 else counted(len(plan.nodes), "node")
    moving = sum(step.move is Move.MOVES for step in plan.steps)
    if plan.succeeds:
        if not plan.steps:
            return f"{nodes}: can be drained; there is nothing to evict"
        every = "its only pod finds" if moving == 1 else f"all {moving:,} pods find"
        return f"{nodes}: can be drained; {every} another place{_in_rounds(plan)}"
    troubles = len(plan.steps) - moving + len(plan.blocked)
    return f"{nodes}: can't be drained without harm: {counted(troubles, 'pod')} in the way; {moving:,} would move"


def _in_rounds(plan: DrainPlan) -> str:
    return f", in {plan.rounds} rounds" if plan.rounds > 1 else ""


def _blocked(plan: DrainPlan) -> RenderableType:
    return block(
        "Can't be evicted:", *by_text(((each.pod.key, each.reason) for each in plan.blocked), _NAMED)
    )


def _troubles(steps: Sequence[Step]) -> RenderableType:
    return block("In the way:", *by_text(((each.pod.key, each.trouble) for each in steps), _NAMED))


def moves_table(plan: DrainPlan, steps: Sequence[Step]) -> RenderableType:
    """Return the table of the pods' new nodes, with a note on what a round is."""
    table = plain_table("Where the pods go", "round", first="right")
    shows_from = len({step.from_node for step in steps}) > 1
    for header in ("pod", *(["from"] if shows_from else []), "to"):
        table.add_column(header, overflow="fold", header_style="dim")
    for step in steps:
        row = (step.pod.key, *([step.from_node] if shows_from else []), step.to_node or "")
        table.add_row(str(step.round), *map(Text, row))
    hint = ["a round begins once the pods of the one before run: a PodDisruptionBudget wants it so"]
    return block(table, *(hint if plan.rounds > 1 else []))
