"""Fidelity: each recorded decision beside that of a configuration, on the recorded state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kschedfw import InMemoryCluster, Registry, VirtualClock
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.scheduler import Setup
from kschedfw_replay.replaying.history import Happening
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison
from kschedfw_replay.shadow.shadow import SETTLING_SECONDS, Shadow

EXAMPLES: Final = 5
"""The number of decisions that are kept of each kind of difference."""


@attrs.frozen
class FidelityReport:
    """Counts of a configuration's decisions that agree with the recorded scheduler's, and of those that don't."""

    counts: Mapping[tuple[Agreement, Cause | None], int]
    """The numbers of decisions, with the cause where they don't agree."""
    examples: tuple[Comparison, ...]
    """The first ones of each difference and cause."""

    @property
    def decisions(self) -> int:
        return sum(self.counts.values())

    @property
    def agreeing(self) -> float:
        """The share of decisions that are the same or tied; 1 without decisions."""
        agreeing = sum(count for (agreement, _), count in self.counts.items() if agreement.agrees)
        return agreeing / self.decisions if self.decisions else 1.0


class Fidelity:
    """A shadow of the recorded scheduler: it follows a history as it was. Close it in the end."""

    def __init__(self, setup: Setup, registry: Registry | None = None) -> None:
        self._clock = VirtualClock()
        self._shadow = Shadow(InMemoryCluster(), setup, clock=self._clock, registry=registry, latency=0.0)
        self._counts: Counter[tuple[Agreement, Cause | None]] = Counter()
        self._examples: list[Comparison] = []

    def take(self, happening: Happening) -> None:
        """Follow what has happened, and compare the decisions that it tells of; the latest ones with the next calls.

        Decisions are made when the recorded scheduler made them, as far as can be told (see `Timeline`). Those on pods
        of other schedulers aren't compared.
        """
        # Changes that were told before are settled by then, however long nothing happened in between.
        self._advance_to(min(happening.at, self._clock.now() + SETTLING_SECONDS))
        self._count(self._shadow.decisions())
        self._advance_to(happening.at)
        self._shadow.observe(_event(happening))

    def report(self) -> FidelityReport:
        """Return the report of all that was taken. Call it before `close`."""
        self._count(self._shadow.decisions(everything=True))
        return FidelityReport(dict(self._counts), tuple(self._examples))

    def close(self) -> None:
        self._shadow.close()

    def _advance_to(self, at: float) -> None:
        self._clock.advance_to(max(at, self._clock.now()))

    def _count(self, comparisons: Iterable[Comparison]) -> None:
        for comparison in comparisons:
            kind = comparison.agreement, comparison.cause
            self._counts[kind] += 1
            if not comparison.agreement.agrees and self._counts[kind] <= EXAMPLES:
                self._examples.append(comparison)


def _event(happening: Happening) -> WatchEvent:
    if happening.new is None:
        return WatchEvent(EventType.DELETED, happening.object)
    type_ = EventType.ADDED if happening.old is None else EventType.MODIFIED
    return WatchEvent(type_, happening.new, happening.old)
