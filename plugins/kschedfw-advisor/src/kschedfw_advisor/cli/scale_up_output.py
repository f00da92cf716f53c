"""The answer of `kschedfw scale-up` as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kschedfw.api import how_to_install
from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw.explain import SCHEMA_VERSION
from kschedfw.what_if import Refused
from kschedfw_advisor.cli.what_if_output import Background, pods_text, price_text
from kschedfw_advisor.node_groups import NodeGroup
from kschedfw_advisor.quotas import Uncreated
from kschedfw_advisor.scale_up import Purchase, ScaleUp, ScaleUpSearch

_REASONS_SHOWN: Final = 5


def to_json(
    answer: ScaleUp,
    groups: Sequence[NodeGroup],
    background: Background,
    uncreated: Sequence[Uncreated] = (),
) -> dict[str, object]:
    """The answer in types that `json.dumps` knows; prices are texts, which are exact."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "outcome": outcome_of(answer).value,
        "placedWithoutNewNodes": len(answer.placed_without),
        "waiting": len(answer.waiting),
        "best": _json(answer.best),
        "alone": {name: _json(purchase) for name, purchase in answer.alone.items()},
        "search": None if answer.search is None else _search_json(answer.search),
        "groups": {
            group.name: {
                "min": group.min,
                "max": group.max,
                "price": None if group.price is None else str(group.price),
                "nodesThatCanBeAdded": answer.room[group.name],
            }
            for group in groups
        },
        "notCreated": [each.to_json() for each in uncreated],
        **background.to_json(),
    }


class ScaleUpOutcome(StrEnum):
    """Output of what new nodes do for the pending pods."""

    NOT_NEEDED = "not-needed"
    ALL_PLACED = "all-placed"
    SOME_PLACED = "some-placed"
    NONE_PLACED = "none-placed"

    @property
    def meaning(self) -> str:
        """Return what it says of the new nodes."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    ScaleUpOutcome.NOT_NEEDED: "no new node is needed",
    ScaleUpOutcome.ALL_PLACED: "the new nodes get all pods a place",
    ScaleUpOutcome.SOME_PLACED: "the new nodes get some of the pods a place",
    ScaleUpOutcome.NONE_PLACED: "no new node of these groups helps",
}


def outcome_of(answer: ScaleUp) -> ScaleUpOutcome:
    """Return what the best purchase does."""
    if not answer.waiting:
        return ScaleUpOutcome.NOT_NEEDED
    if not answer.best.placed:
        return ScaleUpOutcome.NONE_PLACED
    return ScaleUpOutcome.SOME_PLACED if answer.best.refused else ScaleUpOutcome.ALL_PLACED


def _search_json(search: ScaleUpSearch) -> dict[str, object]:
    return {"cost": search.cost, "lowerBound": search.bound, "gap": search.gap}


def _json(purchase: Purchase) -> dict[str, object]:
    return {
        "nodes": dict(purchase.counts),
        "price": None if purchase.price is None else str(purchase.price),
        "placed": [{"pod": each.pod.key, "node": each.node_name} for each in purchase.placed],
        "refused": [
            {
                "pod": each.pod.key,
                "message": each.message,
                "causes": [cause.to_json() for cause in purchase.causes.get(each.pod.key, ())],
            }
            for each in purchase.refused
        ],
    }


def print_scale_up(answer: ScaleUp, groups: Sequence[NodeGroup], background: Background) -> None:
    """Print the answer to stdout."""
    print_parts(stdout_console(), _parts(answer, groups, background))


def _parts(answer: ScaleUp, groups: Sequence[NodeGroup], background: Background) -> Iterator[RenderableType]:
    yield Text(_headline(answer), "bold")
    if answer.placed_without:
        yield f"{counted(len(answer.placed_without), 'pending pod')} had a place without new nodes"
    if answer.waiting:
        if answer.best.counts:
            yield _best(answer, groups)
        if len(groups) > 1:
            if answer.search is not None or sum(bool(each.placed) for each in answer.alone.values()) > 1:
                yield block(
                    _searched(answer.search, "is cheaper" if _have_prices(groups) else "has fewer nodes")
                )
            yield _alone(answer, groups)
        if answer.best.refused:
            yield from _refused(answer.best.refused)
    yield from background.parts()


def _headline(answer: ScaleUp) -> str:
    best, waiting = answer.best, len(answer.waiting)
    if not waiting:
        without = " without a place" if answer.placed_without else ""
        return f"No new node is needed: no pod is pending{without}"
    if not best.placed:
        return f"No new node of these groups helps: {counted(waiting, 'pod')} without a place"
    cost = "" if best.price is None else f", for {price_text(best.price)}"
    nodes = f"{counted(best.nodes, 'new node')}{cost}"
    if waiting == 1:
        return f"{nodes}: the pod without a place gets one"
    of = f"{len(best.placed):,} of {waiting:,}" if best.refused else f"all {waiting:,}"
    return f"{nodes}: {of} pods without a place get one"


def _best(answer: ScaleUp, groups: Sequence[NodeGroup]) -> RenderableType:
    has_prices = any(group.price is not None for group in groups)
    table = plain_table("New nodes", "group", "nodes", "pods on them", *(["price"] * has_prices))
    names = {group.name: group for group in groups}
    for name, count in answer.best.counts.items():
        price = names[name].price
        cells = [f"{count:,}", f"{_pods_on(answer.best, name):,}"]
        if has_prices:
            cells.append("" if price is None else price_text(price * count))
        table.add_row(Text(name), *cells)
    return block(table)


def _have_prices(groups: Sequence[NodeGroup]) -> bool:
    return all(group.price is not None for group in groups)


def _searched(search: ScaleUpSearch | None, is_better: str) -> str:
    """Return the line on how much cheaper another mixture of the groups could be."""
    if search is None:
        install = how_to_install("kschedfw-advisor", "optimal")
        return f"a mixture that {is_better} may exist; with {install} all are searched"
    if not search.gap:
        return f"no mixture of these groups {is_better}"
    # Rounded up, so that it stays a bound.
    return f"a mixture that {is_better} may exist, by {math.ceil(search.gap * 1000) / 10:g} % at most"


def _pods_on(purchase: Purchase, group: str) -> int:
    return sum(each.node_name in purchase.new_nodes[group] for each in purchase.placed)


def _alone(answer: ScaleUp, groups: Sequence[NodeGroup]) -> RenderableType:
    has_prices = any(group.price is not None for group in groups)
    headers = "group", "nodes", "at most", "pods placed", *(["price"] * has_prices)
    table: Table = plain_table("Each group alone", *headers)
    for name, purchase in answer.alone.items():
        placed = f"{len(purchase.placed):,} of {len(answer.waiting):,}"
        cells = [f"{purchase.nodes:,}", f"{answer.room[name]:,}", placed]
        if has_prices:
            cells.append("" if purchase.price is None else price_text(purchase.price))
        table.add_row(Text(name), *cells)
    return block(table)


def _refused(refused: Sequence[Refused]) -> Iterator[RenderableType]:
    by_message: dict[str, list[Refused]] = {}
    for each in refused:
        by_message.setdefault(each.message, []).append(each)
    messages = sorted(by_message, key=lambda message: -len(by_message[message]))
    lines = [
        f"{pods_text(each.pod for each in by_message[message])}: {message}"
        for message in messages[:_REASONS_SHOWN]
    ]
    if (more := len(messages) - _REASONS_SHOWN) > 0:
        lines.append(f"{counted(more, 'more reason')}; --json has all")
    yield block("Still without a place:", *lines)
