"""Counts how often each plugin was called, and why the memo couldn't answer for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import attrs

from kschedfw import ExtensionPoint, Framework, PluginMemo, Reads

_FORMS = ((ExtensionPoint.FILTER, "filter_batch"), (ExtensionPoint.SCORE, "score_batch"))


REPETITIVE = 0.9
"""The share of repeated answers from which on a report suggests that the plugin should promise to be `pure`."""


@attrs.frozen
class PluginUse:
    """The number of calls of a filter or score plugin in `attempts`.

    `rows_asked` is the number of nodes for which either form of its hooks was called; `rows_asked_before` is this
    number in earlier attempts. `rows_in_question` is the number of calls if every attempt called the plugin for every
    node at each of its `points`. `why_not` says why its answers can't be reused; empty if they can. `promises` is true
    if the plugin is `pure`, or declares `reads` and `sign`. Otherwise `repeated` is the share of answers that equal
    the answer for the previous pod on the same node; None if that isn't known.
    """

    plugin: str
    points: tuple[ExtensionPoint, ...]
    reads: Reads | None
    batch: bool
    """True if the plugin has a batch form at each of the points."""
    attempts: int
    rows_asked: int
    rows_in_question: int
    why_not: str
    rows_asked_before: int = 0
    promises: bool = True
    repeated: float | None = None

    @property
    def suggestion(self) -> str:
        """Advice that would save most calls at the least cost; empty if there is none."""
        if self.promises or self.repeated is None or self.repeated < REPETITIVE:
            return ""
        return (
            f"{self.repeated:.0%} of its answers about a node were those for the pod before: if they depend on the "
            "arguments alone, `pure = True` saves these calls"
        )

    @property
    def rows_per_attempt(self) -> float:
        return self.rows_asked / self.attempts if self.attempts else 0.0

    @property
    def spared(self) -> float:
        """The share of calls that were saved, because the answer was known or the plugin skipped the pod."""
        if not self.rows_in_question:
            return 0.0
        return max(0.0, 1 - self.rows_asked / self.rows_in_question)

    def to_json(self) -> dict[str, object]:
        return {
            "plugin": self.plugin,
            "points": [point.value for point in self.points],
            "reads": None if self.reads is None else self.reads.value,
            "batch": self.batch,
            "rowsAskedPerAttempt": self.rows_per_attempt,
            "spared": self.spared,
            "whyNot": self.why_not or None,
            "repeated": self.repeated,
            "suggestion": self.suggestion or None,
        }


def watch_plugins(framework: Framework, nodes: int) -> Callable[[int], tuple[PluginUse, ...]]:
    """Start counting. Return a function that takes the number of attempts and returns the counts.

    The counts have an entry for each filter and score plugin of the framework, in the order of the profile.
    """
    report = framework.memo_report()
    before = {name: counts.rows_asked for name, counts in report.items()}

    def uses(attempts: int) -> tuple[PluginUse, ...]:
        return tuple(
            _use(framework, name, counts, attempts, nodes, before[name])
            for name in framework.plugins
            if (counts := report.get(name)) is not None
        )

    return uses


def together(uses: Sequence[PluginUse]) -> tuple[PluginUse, ...]:
    """Return the sums, by plugin, of several measurements with one profile."""
    order = list(dict.fromkeys(use.plugin for use in uses))
    ordered = sorted(uses, key=lambda use: order.index(use.plugin))
    return tuple(_sum(list(same)) for _, same in groupby(ordered, key=lambda use: use.plugin))


def _sum(uses: Sequence[PluginUse]) -> PluginUse:
    return attrs.evolve(
        uses[0],
        attempts=sum(use.attempts for use in uses),
        rows_asked=sum(use.rows_asked for use in uses),
        rows_in_question=sum(use.rows_in_question for use in uses),
        rows_asked_before=sum(use.rows_asked_before for use in uses),
        why_not="; ".join(dict.fromkeys(use.why_not for use in uses if use.why_not)),
        # Take the minimum, since a plugin's promises have to hold in every workload.
        repeated=min((use.repeated for use in uses if use.repeated is not None), default=None),
    )


def _use(
    framework: Framework, name: str, counts: PluginMemo, attempts: int, nodes: int, asked_before: int
) -> PluginUse:
    plugin, learned = framework.plugins[name], framework.learned[name].forms
    forms = [(point, batch) for point, batch in _FORMS if name in framework.plugins_at(point)]
    return PluginUse(
        plugin=name,
        points=tuple(point for point, _ in forms),
        reads=plugin.reads,
        batch=all(batch in learned or getattr(plugin, batch, None) is not None for _, batch in forms),
        attempts=attempts,
        rows_asked=counts.rows_asked - asked_before,
        rows_in_question=attempts * nodes * len(forms),
        why_not="; ".join(_obstacles(framework, name, counts)),
        rows_asked_before=asked_before,
        promises=not PluginMemo.of(plugin).objection,
    )


def _obstacles(framework: Framework, name: str, counts: PluginMemo) -> Iterator[str]:
    """Yield the reasons why the plugin's hooks were asked about each node."""
    plugin = framework.plugins[name]
    yield from filter(None, [each.obstacle for each in framework.learned[name].forms.values()])
    if counts.objection:
        yield counts.objection
    if plugin.reads is Reads.CLUSTER:
        yield "it reads the whole cluster, where any change may matter"
    if counts.classes_unsigned:
        kinds = counts.classes_signed + counts.classes_unsigned
        yield f"no signature for {counts.classes_unsigned:,} of {kinds:,} kinds of pods"
