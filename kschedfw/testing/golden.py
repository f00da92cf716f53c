"""Decisions that were recorded once, held against those of today."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import (
    Explaining,
    Explanation,
    ExplanationWriter,
    NodeExplanation,
    read_explanations,
)
from kschedfw.explain.text import as_text
from kschedfw.framework.profile import Profile
from kschedfw.framework.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.simulator import Simulation

UPDATE = "KSCHEDFW_UPDATE_GOLDEN"
"""The environment variable that has golden files written anew, if it is 1."""

MOST_DIFFERENCES = 20
"""So many differences are told; after a change of a weight there may be thousands."""


def record_decisions(
    cluster: InMemoryCluster,
    *,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    seed: int = 0,
) -> list[Explanation]:
    """Every decision on the cluster's pending pods, in order, as a `Simulation` makes them."""
    found: list[Explanation] = []
    Simulation(
        cluster, profiles=profiles, registry=registry, seed=seed, explaining=Explaining(found.append)
    ).run()
    return found


def assert_golden(
    path: Path,
    cluster: InMemoryCluster,
    *,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    seed: int = 0,
    update: bool | None = None,
) -> None:
    """Assert that the decisions are those in the file, down to the scores of every node.

    With `update` the file is written instead; by default that is so where the environment variable
    `KSCHEDFW_UPDATE_GOLDEN` is 1.

    Raises:
        AssertionError: there is no file, or something has changed; says what, and shows the first changed decision.
        ExplanationFileError: the file can't be understood.
    """
    decisions = record_decisions(cluster, profiles=profiles, registry=registry, seed=seed)
    if os.environ.get(UPDATE) == "1" if update is None else update:
        with path.open("w", encoding="utf-8") as file:
            writer = ExplanationWriter(file)
            for decision in decisions:
                writer.write(decision)
        return
    if not path.exists():
        raise AssertionError(f"{path}: there is no such file; {UPDATE}=1 writes it")
    problems = list(islice(differences(list(read_explanations(path)), decisions), MOST_DIFFERENCES + 1))
    if not problems:
        return
    told = "\n".join(f"* {text}" for text, _ in problems[:MOST_DIFFERENCES])
    more = "\n* and more" if len(problems) > MOST_DIFFERENCES else ""
    shown = next((f"\n\n{as_text(changed)}" for _, changed in problems if changed is not None), "")
    raise AssertionError(
        f"{path}: decisions have changed; if they should, {UPDATE}=1 writes the file anew\n{told}{more}{shown}"
    )


def differences(
    recorded: Sequence[Explanation], decided: Sequence[Explanation]
) -> Iterator[tuple[str, Explanation | None]]:
    """What is different about the decisions, each with the one of today that it is about."""
    before = {(each.pod, each.attempt): each for each in recorded}
    today = {(each.pod, each.attempt): each for each in decided}
    for key, old in before.items():
        if (new := today.get(key)) is None:
            yield f"{_attempt(old)}: is no longer made", None
        else:
            for text in _changes(old, new):
                yield f"{_attempt(new)}: {text}", new
    for key, new in today.items():
        if key not in before:
            yield f"{_attempt(new)}: is new", new
    if list(before) != list(today) and before.keys() == today.keys():
        yield "the pods are scheduled in another order", None


def _attempt(explanation: Explanation) -> str:
    number = "" if explanation.attempt == 1 else f" (attempt {explanation.attempt})"
    return f"{explanation.pod}{number}"


def _changes(old: Explanation, new: Explanation) -> Iterator[str]:
    facts = (
        ("result", old.result, new.result),
        ("node", old.node, new.node),
        ("nominated", old.nominated, new.nominated),
        ("message", old.message, new.message),
        ("victims", _victims(old), _victims(new)),
    )
    for what, before, now in facts:
        if before != now:
            yield f"{what}: {before} → {now}"
    after = {row.node: row for row in new.rows()}
    for row in old.rows():
        if (other := after.pop(row.node, None)) is None:
            yield f"node {row.node}: is gone"
        else:
            yield from _node_changes(row, other)
    for name in after:
        yield f"node {name}: is new"


def _node_changes(old: NodeExplanation, new: NodeExplanation) -> Iterator[str]:
    if old.verdict is not new.verdict:
        yield f"node {old.node}: {old.verdict} → {new.verdict}"
    if old.refusal != new.refusal:
        yield f"node {old.node}: refusal: {_said(old.refusal)} → {_said(new.refusal)}"
    for plugin in dict.fromkeys((*old.scores, *new.scores)):
        before, now = old.scores.get(plugin), new.scores.get(plugin)
        if before != now:
            yield f"node {old.node}: {plugin}: {before} → {now}"
    if old.scores == new.scores and old.total != new.total:
        yield f"node {old.node}: total: {old.total} → {new.total}"


def _victims(explanation: Explanation) -> list[str]:
    step = explanation.preemption
    return [] if step is None or step.chosen is None else [victim.pod for victim in step.chosen.victims]


def _said(status: Status | None) -> str:
    return "none" if status is None else f"{status.plugin}: {status.message}"
