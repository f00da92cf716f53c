"""Compares decisions, or only placements, with those recorded in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from kschedfw.api.errors import KschedfwError
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import (
    Explaining,
    Explanation,
    ExplanationWriter,
    NodeExplanation,
    Result,
    read_explanations,
)
from kschedfw.explain.text import as_text
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.simulator import Outcome, Report, Simulation
from kschedfw.testing.configured import Configuration, set_up
from kschedfw.testing.manifest_reader import ManifestReader

UPDATE = "KSCHEDFW_UPDATE_GOLDEN"
"""The environment variable that makes tests rewrite golden files if it is 1."""

Placements: TypeAlias = Mapping[str, str | None]
"""The pods' nodes at the end, by the pods' keys."""

Objects: TypeAlias = InMemoryCluster | Iterable[Named | Mapping[str, object]]
"""A cluster, or its objects, or their manifests, which are read as from a file."""

MOST_DIFFERENCES = 20
"""How many differences are listed; after a change of a weight there may be thousands."""


class GoldenFileError(KschedfwError, ValueError):
    """A file has no placements."""


def record_decisions(
    cluster: Objects,
    *,
    configuration: Configuration | None = None,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    seed: int = 0,
) -> list[Explanation]:
    """Every decision on the cluster's pending pods, in order, as a `Simulation` makes them.

    A `configuration`, or the path of its file (relative to the working directory), provides profiles, extenders,
    sampling and backoffs; `registry` offers plugins.

    Raises:
        AssertionError: there was no pod to schedule, or a plugin, an extender or a binding failed. ValueError: there
        are a configuration and profiles. ConfigurationError, ManifestError: the configuration or a manifest is
        refused.
        TypeError: the cluster or the configuration has the wrong type.
        OSError: the configuration's file can't be read.
    """
    return _simulated(cluster, configuration, profiles, registry, seed)[1]


def assert_golden(
    path: Path | str,
    cluster: Objects,
    *,
    configuration: Configuration | None = None,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    seed: int = 0,
    placements_only: bool = False,
    update: bool | None = None,
) -> None:
    """Assert that the decisions are those in the file, down to the scores of every node.

    With `placements_only` the file only has each pod's final node (JSON: a node, or null, by the pod's key), so that
    changes of scores that move no pod don't matter. With `update` the file is written instead, and its directory is
    made; by default if the environment variable `KSCHEDFW_UPDATE_GOLDEN` is 1. A relative path starts at the working
    directory. For the other arguments see `record_decisions`.

    Raises:
        AssertionError: there is no file, or something has changed; says what, and shows the first changed decision.
            With `update` too: no pod was there to schedule, or a plugin, an extender or a binding failed.
        ExplanationFileError, GoldenFileError: the file can't be understood.
        And the other errors of `record_decisions`.
    """
    path = Path(path)
    report, decisions = _simulated(cluster, configuration, profiles, registry, seed)
    placements = {each.pod: None if each.preempted else each.node for each in report.decisions}
    if os.environ.get(UPDATE) == "1" if update is None else update:
        _write(path, placements if placements_only else decisions)
        return
    if not path.exists():
        raise AssertionError(f"{path}: there is no such file; {UPDATE}=1 writes it")
    if placements_only:
        found = _moves(_read_placements(path), placements, decisions)
    else:
        found = differences(list(read_explanations(path)), decisions)
    problems = list(islice(found, MOST_DIFFERENCES + 1))
    if not problems:
        return
    told = "\n".join(f"* {text}" for text, _ in problems[:MOST_DIFFERENCES])
    more = "\n* and more" if len(problems) > MOST_DIFFERENCES else ""
    shown = next((f"\n\n{as_text(changed)}" for _, changed in problems if changed is not None), "")
    raise AssertionError(
        f"{path}: decisions have changed; if they should, {UPDATE}=1 writes the file anew\n{told}{more}{shown}"
    )


def _simulated(
    cluster: Objects,
    configuration: Configuration | None,
    profiles: Sequence[Profile] | None,
    registry: Registry | None,
    seed: int,
) -> tuple[Report, list[Explanation]]:
    found: list[Explanation] = []
    cluster = _cluster(cluster)
    with set_up(configuration, profiles, registry) as setup:
        report = Simulation(
            cluster,
            profiles=setup.profiles,
            registry=registry,
            seed=seed,
            extenders=setup.extenders,
            percentage_of_nodes_to_score=setup.percentage_of_nodes_to_score,
            initial_backoff=setup.initial_backoff,
            max_backoff=setup.max_backoff,
            explaining=Explaining(found.append),
        ).run()
    _check_pods(report, cluster)
    _check_failures(report, found)
    return report, found


def _cluster(given: Objects) -> InMemoryCluster:
    if isinstance(given, InMemoryCluster):
        return given
    if isinstance(given, Mapping | str | bytes) or not isinstance(given, Iterable):
        remedy = "InMemoryCluster(read_manifests(path).objects()) makes one of files"
        raise TypeError(
            "cluster: expected an InMemoryCluster or a list of objects and manifests, "
            f"found {type(given).__name__}; {remedy}"
        )
    return InMemoryCluster(ManifestReader(lenient=False).objects(given))


def _check_pods(report: Report, cluster: InMemoryCluster) -> None:
    """Without decisions every test would pass."""
    if report.pods:
        return
    why = "the cluster has no pending pods"
    if report.other_scheduler:
        wanted = {pod.spec.scheduler_name for pod in cluster.list(Pod) if not pod.node_name}
        why = (
            f"{report.other_scheduler} for another scheduler (spec.schedulerName: "
            f"{', '.join(sorted(wanted))}), and the only profiles are those of {report.profile}"
        )
    raise AssertionError(f"no pod was tried: {why}")


def _check_failures(report: Report, decisions: Sequence[Explanation]) -> None:
    """The decisions of a plugin that fails must not be recorded."""
    broken = {each.pod: each.message for each in decisions if each.result is Result.FAILED}
    broken |= {each.pod: each.message for each in report.decisions if each.outcome is Outcome.FAILED}
    if not broken:
        return
    told = "".join(f"\n* {pod}: {message}" for pod, message in islice(broken.items(), MOST_DIFFERENCES))
    more = "\n* and more" if len(broken) > MOST_DIFFERENCES else ""
    raise AssertionError(f"scheduling failed, so nothing is compared or written:{told}{more}")


def _write(path: Path, golden: Placements | Sequence[Explanation]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        if isinstance(golden, Mapping):
            json.dump(golden, file, indent=2, sort_keys=True, ensure_ascii=False)
            file.write("\n")
            return
        writer = ExplanationWriter(file)
        for decision in golden:
            writer.write(decision)


def _read_placements(path: Path) -> Placements:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise GoldenFileError(
            f"{path}: no placements, as assert_golden(placements_only=True) writes them: {error}"
        ) from None
    is_right = isinstance(read, dict) and all(node is None or isinstance(node, str) for node in read.values())
    if not is_right:
        raise GoldenFileError(f"{path}: no placements: it should be an object with a node, or null, by pod")
    placements: Placements = read
    return placements


def _moves(
    recorded: Placements, today: Placements, decisions: Sequence[Explanation]
) -> Iterator[tuple[str, Explanation | None]]:
    """The pods on other nodes than recorded, each with the last decision on it."""
    last = {each.pod: each for each in decisions}
    for pod, node in recorded.items():
        if pod not in today:
            yield f"{pod}: is no longer scheduled", None
        elif today[pod] != node:
            yield f"{pod}: {node or 'no node'} → {today[pod] or 'no node'}", last.get(pod)
    for pod in today.keys() - recorded.keys():
        yield f"{pod}: is new", last.get(pod)


def differences(
    recorded: Sequence[Explanation], decided: Sequence[Explanation]
) -> Iterator[tuple[str, Explanation | None]]:
    """The differences between decisions, each with the present decision."""
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
