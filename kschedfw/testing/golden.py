"""Comparison of decisions, or only placements, with those recorded in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from kschedfw import InMemoryCluster, KschedfwError, Pod, Profile, Registry, Status
from kschedfw.api import Named, RefusedPod
from kschedfw.explain import (
    Explaining,
    Explanation,
    ExplanationWriter,
    NodeExplanation,
    Result,
    read_explanations,
)
from kschedfw.simulator import Outcome, Report, Simulation
from kschedfw.testing.configured import Configuration, given_configuration, tie_breaker
from kschedfw.testing.manifest_reader import ManifestReader

UPDATE = "KSCHEDFW_UPDATE_GOLDEN"
"""The environment variable that makes tests rewrite golden files if it is 1."""

_EITHER = f"{UPDATE}=1, or --update of `kschedfw test`, writes it"

NodesByPod: TypeAlias = Mapping[str, str | None]
"""The pods' nodes at the end, by the pods' keys."""

Objects: TypeAlias = InMemoryCluster | Iterable[Named | Mapping[str, object]]
"""A cluster, or its objects, or their manifests, which are read as from a file."""

MOST_DIFFERENCES = 20
"""The most differences that are listed; after a change of a weight there may be thousands."""


class GoldenFileError(KschedfwError, ValueError):
    """The error of a file without placements."""


def record_decisions(
    cluster: Objects,
    *,
    configuration: Configuration | None = None,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    seed: int | None = None,
) -> list[Explanation]:
    """Return every decision on the cluster's pending pods, in order, as a `Simulation` makes them.

    A `configuration`, or the path of its file (relative to the working directory), provides profiles, extenders,
    sampling, backoffs and feature gates; `registry` offers plugins. Of equally good nodes the first by name is chosen,
    so that one more pod doesn't move others; with a `seed`, a random one, as kube-scheduler does.

    Raises:
        AssertionError: there was no pod to schedule, or a plugin, an extender or a binding failed.
        ValueError: there are a configuration and profiles.
        ConfigurationError, ManifestError: the configuration or a manifest is refused.
        TypeError: the cluster or the configuration has the wrong type.
        OSError: the configuration's file can't be read.
    """
    # So that pytest shows the line of the test, here and below, and the difference.
    __tracebackhide__ = True
    return _explained(cluster, configuration, profiles, registry, seed)[1]


def assert_golden(
    path: Path | str,
    cluster: Objects,
    *,
    configuration: Configuration | None = None,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    seed: int | None = None,
    placements_only: bool = False,
    update: bool | None = None,
) -> None:
    """Assert that the decisions are those in the file, down to the scores of every node.

    With `placements_only` the file only has each pod's final node (JSON: a node, or null, by the pod's key), so that
    changes of scores that move no pod don't matter. With `update` the file is written instead, and its directory is
    made; by default if the environment variable `KSCHEDFW_UPDATE_GOLDEN` is 1. A relative path starts at the working
    directory. For the other arguments see `record_decisions`.

    Raises:
        AssertionError: there is no file, or something has changed; says what.
            With `update` too: no pod was there to schedule, no decision was made as an API server would create none of
            the pods, or a plugin, an extender or a binding failed.
        ExplanationFileError, GoldenFileError: the file can't be understood.

    The other errors of `record_decisions` are raised, too.
    """
    __tracebackhide__ = True
    report, decisions = _explained(cluster, configuration, profiles, registry, seed)
    if placements_only:
        assert_placements(path, placements_of(report), update=update)
        return
    if not decisions:
        refused = ", ".join(each.pod for each in report.refused)
        raise AssertionError(f"no decision was made: an API server would create none of {refused}")
    path = Path(path)
    if _is_written(path, update, f"{UPDATE}=1 writes it"):
        with path.open("w", encoding="utf-8") as file:
            writer = ExplanationWriter(file)
            for decision in decisions:
                writer.write(decision)
        return
    _assert_none(path, _differences(list(read_explanations(path)), decisions), f"{UPDATE}=1 writes it")


def assert_placements(path: Path | str, placements: NodesByPod, *, update: bool | None = None) -> None:
    """Assert that pods are where the file says; with `update`, write it. For errors see `assert_golden`."""
    __tracebackhide__ = True
    path = Path(path)
    if not placements:
        raise AssertionError(f"{path}: no pod was scheduled, so that there is nothing to compare")
    if _is_written(path, update, _EITHER):
        text = json.dumps(placements, indent=2, sort_keys=True, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")
        return
    _assert_none(path, _moves(_read_placements(path), placements), _EITHER)


def placements_of(report: Report) -> NodesByPod:
    """Return the node of each pod that was to be scheduled; None for those without one, refused ones included."""
    return {each.pod: each.place for each in report.decisions} | {each.pod: None for each in report.refused}


def moved(before: NodesByPod, after: NodesByPod) -> Mapping[str, str]:
    """Return the old and the new place of each pod that has another one, as text, by the pods' keys."""
    return {
        pod: f"{node or 'no node'} → {after[pod] or 'no node'}"
        for pod, node in before.items()
        if pod in after and after[pod] != node
    }


def simulated(
    cluster: Objects,
    configuration: Configuration | None,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    seed: int | None = None,
    explaining: Explaining | None = None,
    refused: Sequence[RefusedPod] = (),
) -> Report:
    """Schedule the cluster's pending pods, as `record_decisions` says, and return the report.

    Pods that admission `refused` are passed on to the report.

    Raises:
        AssertionError: there was no pod to schedule, or a pod's last attempt failed. And the other errors of
            `record_decisions`.
    """
    __tracebackhide__ = True
    cluster = _cluster(cluster)
    report = Simulation(
        cluster,
        given_configuration(configuration, profiles, registry),
        profiles=profiles,
        registry=registry,
        seed=seed or 0,
        selector=tie_breaker(seed),
        refused=refused,
        explaining=explaining,
    ).run()
    _check_pods(report, cluster)
    _check_failures({each.pod: each.message for each in report.decisions if each.outcome is Outcome.FAILED})
    return report


def _explained(
    cluster: Objects,
    configuration: Configuration | None,
    profiles: Sequence[Profile] | None,
    registry: Registry | None,
    seed: int | None,
) -> tuple[Report, list[Explanation]]:
    __tracebackhide__ = True
    found: list[Explanation] = []
    report = simulated(cluster, configuration, profiles, registry, seed, Explaining(found.append))
    _check_failures({each.pod: each.message for each in found if each.result is Result.FAILED})
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
    """Raise AssertionError if there was no pod to schedule: without decisions every test would pass."""
    __tracebackhide__ = True
    if report.pods or report.refused:
        return
    why = "the cluster has no pending pods"
    if report.other_scheduler:
        wanted = {pod.spec.scheduler_name for pod in cluster.list(Pod) if not pod.node_name}
        why = (
            f"{report.other_scheduler} for another scheduler (spec.schedulerName: "
            f"{', '.join(sorted(wanted))}), and the only profiles are those of {report.profile}"
        )
    raise AssertionError(f"no pod was tried: {why}")


def _check_failures(broken: Mapping[str, str]) -> None:
    """Raise AssertionError if a plugin failed, since its decisions must not be recorded."""
    __tracebackhide__ = True
    if broken:
        raise AssertionError(
            f"scheduling failed, so nothing is compared or written:{_listed(map(': '.join, broken.items()))}"
        )


def _is_written(path: Path, update: bool | None, how: str) -> bool:
    """Tell whether the file is to be written now; if so, make its directory. `how` says what writes it.

    Raises:
        AssertionError: the file is to be compared with, and doesn't exist.
    """
    __tracebackhide__ = True
    if os.environ.get(UPDATE) == "1" if update is None else update:
        path.parent.mkdir(parents=True, exist_ok=True)
        return True
    if not path.exists():
        raise AssertionError(f"{path}: there is no such file; {how}")
    return False


def _assert_none(path: Path, differences: Iterator[str], how: str) -> None:
    __tracebackhide__ = True
    if told := _listed(differences):
        raise AssertionError(f"{path}: decisions have changed; if they should, {how} anew{told}")


def _listed(problems: Iterable[str]) -> str:
    """Return the first problems, each in a line of its own; empty if there are none."""
    first = list(islice(problems, MOST_DIFFERENCES + 1))
    more = "\n* and more" if len(first) > MOST_DIFFERENCES else ""
    return "".join(f"\n* {text}" for text in first[:MOST_DIFFERENCES]) + more


def _read_placements(path: Path) -> NodesByPod:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise GoldenFileError(
            f"{path}: no placements, as assert_golden(placements_only=True) writes them: {error}"
        ) from None
    is_right = isinstance(read, dict) and all(node is None or isinstance(node, str) for node in read.values())
    if not is_right:
        raise GoldenFileError(f"{path}: no placements: it should be an object with a node, or null, by pod")
    placements: NodesByPod = read
    return placements


def _moves(recorded: NodesByPod, today: NodesByPod) -> Iterator[str]:
    """Yield the pods on other nodes than recorded."""
    moves = moved(recorded, today)
    for pod in recorded:
        if pod not in today:
            yield f"{pod}: is no longer scheduled"
        elif pod in moves:
            yield f"{pod}: {moves[pod]}"
    yield from (f"{pod}: is new" for pod in today if pod not in recorded)


def _differences(recorded: Sequence[Explanation], decided: Sequence[Explanation]) -> Iterator[str]:
    """Yield the differences between decisions."""
    before = {(each.pod, each.attempt): each for each in recorded}
    today = {(each.pod, each.attempt): each for each in decided}
    for key, old in before.items():
        if (new := today.get(key)) is None:
            yield f"{_attempt(old)}: is no longer made"
        else:
            yield from (f"{_attempt(new)}: {text}" for text in _changes(old, new))
    for key, new in today.items():
        if key not in before:
            yield f"{_attempt(new)}: is new"
    if list(before) != list(today) and before.keys() == today.keys():
        yield "the pods are scheduled in another order"


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
