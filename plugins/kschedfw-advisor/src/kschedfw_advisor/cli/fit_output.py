"""The answer of `kschedfw fit` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kschedfw import Pod
from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw.what_if import Replicas
from kschedfw_advisor.amounts import amounts_text
from kschedfw_advisor.cli.pod_templates import PodTemplate
from kschedfw_advisor.cli.what_if_output import Background, names_text
from kschedfw_advisor.quotas import Allowance


@attrs.frozen
class Answer:
    """How many replicas of each template fit: by itself, and, of several, together in turns."""

    templates: tuple[PodTemplate, ...]
    alone: tuple[Replicas, ...]
    together: tuple[Replicas, ...] | None
    at_most: int
    nodes: int
    background: Background
    allowed: tuple[Allowance | None, ...]
    """How many replicas of each quotas allow by itself, and together."""
    allowed_together: tuple[Allowance | None, ...]

    def to_json(self) -> dict[str, object]:
        together = self.together
        return {
            "nodes": self.nodes,
            "atMost": self.at_most,
            "pods": [
                {"pod": each.name, **_json(replicas), "quota": _quota_json(allowed)}
                for each, replicas, allowed in zip(self.templates, self.alone, self.allowed, strict=True)
            ],
            "together": None
            if together is None
            else [
                {"pod": each.name, **_json(replicas), "quota": _quota_json(allowed)}
                for each, replicas, allowed in zip(
                    self.templates, together, self.allowed_together, strict=True
                )
            ],
            **self.background.to_json(),
        }


def _json(replicas: Replicas) -> dict[str, object]:
    refusal = replicas.refusal
    return {
        "replicas": replicas.count,
        "byNode": dict(replicas.by_node),
        "stoppedBy": None if refusal is None else refusal.message,
    }


def _quota_json(allowed: Allowance | None) -> dict[str, object] | None:
    return None if allowed is None else {"replicas": allowed.replicas, "stoppedBy": allowed.refusal or None}


def print_fit(answer: Answer, *, top: int) -> None:
    """Print the answer to stdout; `top` is how many nodes a row names."""
    print_parts(stdout_console(), _parts(answer, top))


def _parts(answer: Answer, top: int) -> Iterator[RenderableType]:
    first = True
    for template, replicas, allowed in zip(answer.templates, answer.alone, answer.allowed, strict=True):
        if not first:
            yield ""
        first = False
        yield Text(
            f"{template.name} ({_requests(template.pod)}): {_headline(replicas, answer)}{_at_most(replicas, allowed)}",
            "bold",
        )
        yield from _where(replicas, top)
        yield from _stopped(replicas, answer)
        if allowed is not None and allowed.refusal:
            yield block(f"{_allows(allowed)}: {allowed.refusal}")
    if answer.together is not None:
        yield _together(answer)
        for template, replicas in zip(answer.templates, answer.together, strict=True):
            if replicas.refusal is not None:
                yield block(f"no more of {template.name}: {replicas.refusal.message}")
        for template, allowed in zip(answer.templates, answer.allowed_together, strict=True):
            if allowed is not None and allowed.refusal:
                yield block(f"of {template.name}, {_allows(allowed)}: {allowed.refusal}")
    yield from answer.background.parts()


def _requests(pod: Pod) -> str:
    return amounts_text(pod.requests.demand) or "no requests"


def _headline(replicas: Replicas, answer: Answer) -> str:
    if not replicas.count:
        return f"no replica fits on {counted(answer.nodes, 'node')}"
    least = "at least " if replicas.refusal is None else ""
    used = len(replicas.by_node)
    fits = "fits" if replicas.count == 1 else "fit"
    more = "1 more replica" if replicas.count == 1 else f"{replicas.count:,} more replicas"
    return f"{least}{more} {fits}, on {used:,} of {counted(answer.nodes, 'node')}"


def _at_most(replicas: Replicas, allowed: Allowance | None) -> str:
    """What the headline adds where the quota allows fewer replicas than fit."""
    if allowed is None or allowed.replicas >= replicas.count:
        return ""
    return f"; the quota allows {allowed.replicas:,}"


def _allows(allowed: Allowance) -> str:
    return f"the namespace's quota allows {counted(allowed.replicas, 'more replica')}"


def _where(replicas: Replicas, top: int) -> Iterator[RenderableType]:
    """The nodes by how many replicas they get."""
    by_count: dict[int, list[str]] = {}
    for node, count in replicas.by_node.items():
        by_count.setdefault(count, []).append(node)
    if not by_count:
        return
    table: Table = plain_table("", "replicas on each", "nodes", first="right")
    table.add_column("which", overflow="fold", header_style="dim")
    for count in sorted(by_count, reverse=True):
        nodes = sorted(by_count[count])
        table.add_row(f"{count:,}", f"{len(nodes):,}", Text(names_text(nodes, top)))
    yield block(table)


def _stopped(replicas: Replicas, answer: Answer) -> Iterator[RenderableType]:
    if replicas.refusal is None:
        yield block(f"stopped at {answer.at_most:,} replicas; --at-most says after how many")
    else:
        what = "what stops the next: " if replicas.count else ""
        yield block(f"{what}{replicas.refusal.message}")


def _together(answer: Answer) -> RenderableType:
    table = plain_table("Together, in turns", "pod", "together", "by itself")
    together: Sequence[Replicas] = answer.together or ()
    for template, alone, each in zip(answer.templates, answer.alone, together, strict=True):
        table.add_row(Text(template.name), f"{each.count:,}", f"{alone.count:,}")
    return block(table)
