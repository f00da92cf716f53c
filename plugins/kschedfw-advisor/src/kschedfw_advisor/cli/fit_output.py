"""The answer of `kschedfw fit` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

import attrs
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kschedfw.cli import block, counted, plain_table, print_parts, stdout_console
from kschedfw.explain import SCHEMA_VERSION
from kschedfw_advisor.amounts import amounts_text
from kschedfw_advisor.cli.pod_templates import PodTemplate, Template
from kschedfw_advisor.cli.what_if_output import Background, names_text, pods_text
from kschedfw_advisor.quotas import Allowance, refusal_finding
from kschedfw_advisor.turns import Copies, Fit, ReplicasOf


class FitOutcome(StrEnum):
    """The result for a pod or a group."""

    FITS = "fits"
    FITS_NOT = "fits-not"
    STOPPED = "stopped"

    @property
    def meaning(self) -> str:
        """Return what it says of the pod or the group."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    FitOutcome.FITS: "so many fit, and no more",
    FitOutcome.FITS_NOT: "none fits",
    FitOutcome.STOPPED: "as many fit as were asked for; there may be room for more",
}


@attrs.frozen
class Fits:
    """The number of replicas of a pod, or of copies of a group, that fit, and the number that the quotas allow."""

    template: Template
    fit: Fit
    allowed: Allowance | None

    @property
    def title(self) -> str:
        """The template's name; for a group with its kind before it."""
        return self.template.name if isinstance(self.template, PodTemplate) else str(self.template)

    @property
    def unit(self) -> str:
        """The noun for one of them: replica or copy."""
        return "replica" if isinstance(self.template, PodTemplate) else "copy"

    @property
    def units(self) -> str:
        return "replicas" if isinstance(self.template, PodTemplate) else "copies"

    @property
    def outcome(self) -> str:
        """The code of what came out: `fits`, `fits-not`, or `stopped` where there may be room for more."""
        if self.stopped_by is None:
            return FitOutcome.STOPPED.value
        return (FitOutcome.FITS if self.fit.count else FitOutcome.FITS_NOT).value

    @property
    def topology_key(self) -> str:
        """The node label whose value the pods of a copy share; empty without such a constraint."""
        return "" if isinstance(self.template, PodTemplate) else self.template.group.topology_key

    @property
    def stopped_by(self) -> str | None:
        """Return the reason why no further one fits; None if there is none."""
        stop = self.fit.refusal if isinstance(self.fit, ReplicasOf) else self.fit.next
        return None if stop is None else stop.message

    def count_text(self, count: int) -> str:
        return f"1 more {self.unit}" if count == 1 else f"{count:,} more {self.units}"

    def to_json(self) -> dict[str, object]:
        fit = self.fit
        found = {"outcome": self.outcome, "byNode": dict(fit.by_node), "stoppedBy": self.stopped_by}
        if isinstance(fit, ReplicasOf):
            name = {"pod": self.template.name, "replicas": fit.count}
            causes = [cause.to_json() for cause in fit.causes]
            return {**name, **found, "causes": causes, "quota": self._quota_json("replicas")}
        return {
            "podGroup": self.template.name,
            "members": len(self.template.pods),
            "copies": fit.count,
            **found,
            "byDomain": dict(fit.by_domain) if self.topology_key else None,
            "next": _next_json(fit),
            "quota": self._quota_json("copies"),
        }

    def _quota_json(self, unit: str) -> dict[str, object] | None:
        allowed = self.allowed
        if allowed is None:
            return None
        finding = refusal_finding(allowed.refusal) if allowed.refusal else None
        return {
            unit: allowed.count,
            "stoppedBy": allowed.refusal or None,
            "finding": None if finding is None else finding.to_json(),
        }


def _next_json(copies: Copies) -> dict[str, object] | None:
    if copies.next is None:
        return None
    return {
        "wouldRun": copies.next.would_run,
        "nearest": copies.next.domain or None,
        "groupCause": None if copies.next.cause is None else dict(copies.next.cause),
        "withoutPlace": [
            {"pod": each.pod.key, "message": each.message} for each in copies.next.without_place
        ],
    }


@attrs.frozen
class Answer:
    """The number of each template that fits: alone, and, if there are several templates, together in turns."""

    alone: tuple[Fits, ...]
    together: tuple[Fits, ...] | None
    at_most: int
    nodes: int
    background: Background

    def to_json(self) -> dict[str, object]:
        return {
            "schemaVersion": SCHEMA_VERSION,
            "nodes": self.nodes,
            "atMost": self.at_most,
            "pods": [each.to_json() for each in self.alone if isinstance(each.fit, ReplicasOf)],
            "podGroups": [each.to_json() for each in self.alone if isinstance(each.fit, Copies)],
            "together": None if self.together is None else [each.to_json() for each in self.together],
            **self.background.to_json(),
        }


def print_fit(answer: Answer, *, top: int) -> None:
    """Print the answer to stdout; `top` is how many nodes a row names."""
    print_parts(stdout_console(), _parts(answer, top))


def _parts(answer: Answer, top: int) -> Iterator[RenderableType]:
    for number, each in enumerate(answer.alone):
        if number:
            yield ""
        yield Text(f"{each.title} ({_size(each)}): {_headline(each, answer)}{_at_most(each)}", "bold")
        yield from _where(each, top)
        yield from _stopped(each, answer)
        if each.allowed is not None and each.allowed.refusal:
            yield block(f"{_allows(each, each.allowed)}: {each.allowed.refusal}")
    if answer.together is not None:
        yield _together(answer.alone, answer.together)
        for each in answer.together:
            if each.stopped_by is not None:
                yield block(f"no more of {each.title}: {_why_not(each)}")
        for each in answer.together:
            if each.allowed is not None and each.allowed.refusal:
                yield block(f"of {each.title}, {_allows(each, each.allowed)}: {each.allowed.refusal}")
    yield from answer.background.parts()


def _size(each: Fits) -> str:
    """Return the requests of one replica; for a group, the number of its pods by their requests."""
    requests = [amounts_text(pod.requests.demand) or "no requests" for pod in each.template.pods]
    if isinstance(each.template, PodTemplate):
        return requests[0]
    kinds = dict.fromkeys(requests)
    return "; ".join(f"{counted(requests.count(kind), 'pod')} of {kind}" for kind in kinds)


def _headline(each: Fits, answer: Answer) -> str:
    fit = each.fit
    if not fit.count:
        return f"no {each.unit} fits on {counted(answer.nodes, 'node')}"
    least = "at least " if each.stopped_by is None else ""
    fits = "fits" if fit.count == 1 else "fit"
    used = len(fit.by_node)
    return f"{least}{each.count_text(fit.count)} {fits}, on {used:,} of {counted(answer.nodes, 'node')}"


def _at_most(each: Fits) -> str:
    """Return the end of the headline where the quota allows fewer than fit; else the empty text."""
    if each.allowed is None or each.allowed.count >= each.fit.count:
        return ""
    return f"; the quota allows {each.allowed.count:,}"


def _allows(each: Fits, allowed: Allowance) -> str:
    return f"the namespace's quota allows {each.count_text(allowed.count)}"


def _where(each: Fits, top: int) -> Iterator[RenderableType]:
    """Yield a table of nodes by the number of pods that each gets.

    For a group with a topology constraint, it is one of domains by the number of copies.
    """
    key, fit = each.topology_key, each.fit
    counts = fit.by_domain if key and isinstance(fit, Copies) else fit.by_node
    by_count: dict[int, list[str]] = {}
    for name, count in counts.items():
        by_count.setdefault(count, []).append(name)
    if not by_count:
        return
    if key:
        headers = "copies in each", f"values of {key}"
    else:
        headers = "replicas on each" if isinstance(fit, ReplicasOf) else "pods on each", "nodes"
    table: Table = plain_table("", *headers, first="right")
    table.add_column("which", overflow="fold", header_style="dim")
    for count in sorted(by_count, reverse=True):
        names = sorted(by_count[count])
        table.add_row(f"{count:,}", f"{len(names):,}", Text(names_text(names, top)))
    yield block(table)


def _stopped(each: Fits, answer: Answer) -> Iterator[RenderableType]:
    if each.stopped_by is None:
        yield block(f"stopped at {answer.at_most:,} {each.units}; --at-most says after how many")
    else:
        what = "what stops the next: " if each.fit.count else ""
        yield block(f"{what}{_why_not(each)}")


def _why_not(each: Fits) -> str:
    """Return the reason why no more fit; for a group, also the number of the next copy's members that fit."""
    message = each.stopped_by
    assert message is not None
    if isinstance(each.fit, ReplicasOf) or each.fit.next is None:
        return message
    found, members = each.fit.next, len(each.template.pods)
    without = [one.pod for one in found.without_place]
    where = f" with {each.topology_key}={found.domain}, the nearest" if found.domain else ""
    if len(without) == members:
        pods = "its pod doesn't fit" if members == 1 else f"none of its {members:,} pods fits"
        return f"{pods}{where}: {message}"
    fitting = members - len(without)
    fits = f"{fitting:,} of its {counted(members, 'pod')} {'fits' if fitting == 1 else 'fit'}{where}"
    if found.would_run:
        fits += ", and would run without the others"
    return f"{fits}; {pods_text(without)}: {message}"


def _together(alone: Sequence[Fits], together: Sequence[Fits]) -> RenderableType:
    table = plain_table("Together, in turns", "pod", "together", "by itself")
    for each, others in zip(alone, together, strict=True):
        table.add_row(Text(each.title), f"{others.fit.count:,}", f"{each.fit.count:,}")
    return block(table)
