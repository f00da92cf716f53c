"""The answer of `kschedfw scale-down` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw.explain import SCHEMA_VERSION
from kschedfw_advisor.cli.drain_output import moves_table, steps_to_json
from kschedfw_advisor.cli.what_if_output import Background, by_text, names_text, price_text
from kschedfw_advisor.drain_plan import DrainPlan, Move, Step
from kschedfw_advisor.scale_down import Price, Reason, Removal, ScaleDown

_REASONS_SHOWN = 3
_NODES_NAMED = 5
"""Removals of more nodes are shown without single pods, and more nodes that stay without every message."""


def to_json(answer: ScaleDown, background: Background) -> dict[str, object]:
    """The answer in types that `json.dumps` knows; prices are texts, which are exact."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "nodesRemoved": answer.gone,
        "nodesAdded": answer.added,
        "cost": None if answer.cost is None else str(answer.cost),
        "saved": None if answer.saved is None else str(answer.saved),
        "costAtLeast": str(answer.price.at_least),
        "savedAtLeast": str(answer.savings.at_least),
        "nodesWithoutPrice": answer.price.unpriced,
        "removals": [
            {
                "nodes": list(removal.drain.nodes),
                "replacedBy": {"group": removal.group, "node": removal.added} if removal.added else None,
                "saved": None if removal.saved is None else str(removal.saved),
                "savedAtLeast": str(removal.savings.at_least),
                "rounds": removal.drain.rounds,
                "steps": steps_to_json(removal.drain.steps),
                "goneWithTheNodes": [pod.key for pod in (*removal.drain.staying, *removal.drain.ending)],
            }
            for removal in answer.removals
        ],
        "kept": {
            node: [
                {
                    "pod": None if each.pod is None else each.pod.key,
                    "reason": each.text,
                    "finding": each.finding.to_json(),
                }
                for each in reasons
            ]
            for node, reasons in answer.kept.items()
        },
        **background.to_json(),
    }


def print_scale_down(answer: ScaleDown, background: Background) -> None:
    """Print the answer to stdout."""
    print_parts(stdout_console(), _parts(answer, background))


def _parts(answer: ScaleDown, background: Background) -> Iterator[RenderableType]:
    yield Text(_headline(answer), "bold")
    for number, removal in enumerate(answer.removals, 1):
        saves = _saves(removal.savings) if answer.has_prices else ""
        yield Padding(Text(f"{number}. {_title(removal)}{saves}", "bold"), (1, 0, 0, 0))
        yield from _pods(removal)
    if answer.kept:
        yield from _kept(answer.kept)
    yield from background.parts()


def _headline(answer: ScaleDown) -> str:
    nodes = answer.gone + len(answer.kept)
    if not answer.removals:
        return f"No node can go: each of {counted(nodes, 'node')} is needed"
    text = f"{answer.gone:,} of {counted(nodes, 'node')} can go"
    if answer.added:
        text += f", with {counted(answer.added, 'cheaper new node')}"
    if not answer.has_prices:
        return text
    saves = _saves(answer.savings)
    if answer.savings.unpriced:
        return f"{text}{saves}"
    if answer.price.unpriced:
        return f"{text}{saves} of at least {price_text(answer.price.at_least)}: {_unpriced(answer.price)}"
    return f"{text}{saves} of {price_text(answer.price.at_least)}"


def _saves(savings: Price) -> str:
    """Return what is saved as the end of a line; a bound where prices are missing."""
    if not savings.unpriced:
        return f", which saves {price_text(savings.at_least)}"
    return f", which saves at least {price_text(savings.at_least)}: {_unpriced(savings)}"


def _unpriced(price: Price) -> str:
    return f"{counted(price.unpriced, 'node')} {'has' if price.unpriced == 1 else 'have'} no price"


def _title(removal: Removal) -> str:
    names = removal.drain.nodes
    nodes = ", ".join(names) if len(names) <= _NODES_NAMED else counted(len(names), "node")
    if removal.added:
        return f"add {removal.added} of group {removal.group}, then remove {nodes}"
    return f"remove {nodes}"


def _pods(removal: Removal) -> Iterator[RenderableType]:
    drain = removal.drain
    if not drain.steps:
        yield "   there is nothing to evict"
    moves = [step for step in drain.steps if step.move is Move.MOVES]
    if len(drain.nodes) > _NODES_NAMED:
        yield Padding(_by_node(drain, moves), (0, 0, 0, 3))
    elif moves:
        yield Padding(moves_table(drain, moves), (0, 0, 0, 3))
    if lost := [step.pod.key for step in drain.steps if step.move is Move.LOST]:
        yield f"   gone for good, as their annotation safe-to-evict allows: {', '.join(lost)}"


def _by_node(drain: DrainPlan, moves: Sequence[Step]) -> RenderableType:
    """Return a table of the number of pods that leave each node, and of nodes that they go to.

    A row for each pod would fill a page.
    """
    table = plain_table("Nodes that go; --json has each of their pods", "node")
    for header in ("pods", "to nodes"):
        table.add_column(header, justify="right", header_style="dim")
    for node in drain.nodes:
        places = [step.to_node for step in moves if step.from_node == node]
        table.add_row(Text(node), f"{len(places):,}", f"{len(set(places)):,}")
    rounds = [f"in {drain.rounds} rounds: a PodDisruptionBudget wants it so"]
    return block(table, *(rounds if drain.rounds > 1 else []))


def _kept(kept: Mapping[str, Sequence[Reason]]) -> Iterator[RenderableType]:
    """Yield the nodes that stay, grouped by their reasons; if there are many, by the kinds of their reasons."""
    by_reason: dict[frozenset[str], list[str]] = {}
    for node, reasons in kept.items():
        sorts = frozenset(each.text for each in reasons)
        if len(kept) > _NODES_NAMED:
            # The text after the colon is a scheduler's message, which differs by counts.
            sorts = frozenset(text.partition(":")[0] for text in sorts)
        by_reason.setdefault(sorts, []).append(node)
    yield Padding(Text("Nodes that stay", "bold"), (1, 0, 0, 0))
    for nodes in by_reason.values():
        reasons = [each for node in nodes for each in kept[node]]
        texts = list(dict.fromkeys(each.text for each in reasons if each.pod is None))
        texts += by_text((each.pod.key, each.text) for each in reasons if each.pod is not None)
        lines = texts[:_REASONS_SHOWN]
        if (more := len(texts) - _REASONS_SHOWN) > 0:
            lines.append(f"{more:,} more; --json has all")
        yield Text(names_text(nodes, 5))
        yield from (Padding(Text(line), (0, 0, 0, 2)) for line in lines)
