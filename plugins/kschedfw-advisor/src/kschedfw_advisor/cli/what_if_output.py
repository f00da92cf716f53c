"""Pieces of text that the commands of "what if" share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby

import attrs
from rich.console import RenderableType

from kschedfw import Pod
from kschedfw.cli import block, missing_lines, refusal_notes
from kschedfw.cluster import MissingObject
from kschedfw_advisor.idle import Idle
from kschedfw_advisor.quotas import Uncreated
from kschedfw_advisor.reports import NO_REPORTS, Reports


@attrs.frozen
class Background:
    """Messages beside the answer: notes on what was read and done first, and missing objects.

    `reports` has the pods of manifests that an API server wouldn't create, and what else the input says of pods.
    """

    notes: list[str]
    missing: Sequence[MissingObject] = ()
    reports: Reports = NO_REPORTS

    def without(self, uncreated: Iterable[Uncreated], idle: Iterable[Idle] = ()) -> Background:
        """Return the background without pods that can't be created and idle workloads that the answer itself names."""
        lacking = tuple(uncreated)
        told = {pod for each in lacking for pod in each.refused}
        # A controller that says why it has no pods is in a note, too.
        reasons = (
            *(f": {each.reason}" for each in lacking),
            *(f": {each.reason}" for each in idle),
        )
        notes = [note for note in self.notes if not note.endswith(reasons)]
        refused = [pod for pod in self.reports.refused if pod not in told]
        return attrs.evolve(self, notes=notes, reports=attrs.evolve(self.reports, refused=refused))

    def to_json(self) -> dict[str, object]:
        return {"notes": self.all_notes(), "missing": [each.to_json() for each in self.missing]}

    def parts(self) -> Iterator[RenderableType]:
        if self.missing:
            yield block(*missing_lines(self.missing))
        if notes := self.all_notes():
            yield block(*(f"note: {note}" for note in notes))

    def all_notes(self) -> Sequence[str]:
        """Return the notes, with those on pods that wouldn't be created."""
        return [*self.notes, *refusal_notes(self.reports.refused)]


def names_text(names: Sequence[str], most: int) -> str:
    """Return the names as text; if there are many, only the first ones."""
    rest = len(names) - most
    return ", ".join([*names[:most], *([f"{rest:,} more"] if rest > 0 else [])])


def price_text(price: Decimal) -> str:
    """Return the price without trailing zeros."""
    return f"{price.normalize():,f}"


def pods_text(pods: Iterable[Pod], most: int = 3) -> str:
    """Return the keys of the pods as text; if there are many, only the first ones."""
    return names_text([pod.key for pod in pods], most)


def by_text(texts: Iterable[tuple[str, str]], most: int = 3) -> Iterator[str]:
    """Return lines for pairs (name, text): each text once, after the names that have it.

    The texts speak of one pod: "its eviction would …". So several names are introduced by "each of".
    """
    names: dict[str, list[str]] = {}
    for name, text in texts:
        names.setdefault(text, []).append(name)
    return (
        f"{'each of ' if len(own) > 1 else ''}{names_text(own, most)}: {text}" for text, own in names.items()
    )


def counts_text(names: Iterable[str], most: int = 3) -> str:
    """Return the names as text, each with its number of occurrences if that is more than 1."""
    counted = [(name, len(list(same))) for name, same in groupby(sorted(names))]
    counted.sort(key=lambda each: -each[1])
    return names_text([name if count == 1 else f"{name} ({count})" for name, count in counted], most)
