"""Runs the cases of suites by simulation, and tells which expectations don't hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from kschedfw.api import (
    FieldError,
    KschedfwError,
    Named,
    Node,
    Pod,
    RefusedPod,
    parse_manifests,
    read_manifests,
)
from kschedfw.api.field_errors import join, printable
from kschedfw.api.manifest_error import InvalidManifestsError
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import SchedulerConfiguration
from kschedfw.framework.runtime.registry import Registry
from kschedfw.simulator import Report
from kschedfw.testing.cases import Case, CaseError, CasePlace, MoveExpectation, PodExpectation
from kschedfw.testing.cluster_assertions import (
    assert_evicted,
    assert_no_overcommit,
    assert_placed,
    assert_spread,
    key_of,
)
from kschedfw.testing.configured import read_configuration
from kschedfw.testing.golden import assert_placements, moved, placements_of, simulated
from kschedfw.testing.pod_sets import outcomes_of, wrong_sets

_KINDS: Final = {"nodes": "Node", "pods": "Pod", "objects": ""}
"""The kind of the manifests in a field that has only one."""


class Runner:
    """A runner of cases. Clusters and configurations that several cases name are read once.

    With `update`, files of placements are written instead of compared; by default if the environment variable
    `KSCHEDFW_UPDATE_GOLDEN` is 1.
    """

    def __init__(self, *, update: bool | None = None) -> None:
        self._update = update
        self._registry = Registry()
        self._objects: dict[tuple[Path, ...], tuple[Named, ...]] = {}
        self._configurations: dict[Path, SchedulerConfiguration] = {}

    def problems(self, case: Case) -> list[str]:
        """Run the case, and return the expectations that don't hold.

        Raises:
            CaseError: its manifests or a configuration are refused.
        """
        expected = case.document.expected
        cluster, refused = self._cluster(case)
        before = cluster.list(Pod)
        try:
            report = self._simulated(case, cluster, refused, *case.configuration)
        except AssertionError as error:
            return [str(error)]
        messages = {each.pod: each.message for each in report.decisions}
        messages |= {each.pod: each.message for each in refused}
        known = {pod.key for pod in before} | messages.keys()
        found = list(_misplaced(expected.pods, cluster, known, messages))
        if expected.sets:
            found += wrong_sets(expected.sets, outcomes_of(report, before, refused, cluster), cluster)
        with _collecting(found):
            if expected.evicted is not None:
                assert_evicted(cluster, expected.evicted, before=before)
        for spread in expected.spread:
            with _collecting(found):
                assert_spread(cluster, spread.topology_key, pods=spread.pods, max_skew=spread.max_skew)
        with _collecting(found):
            if expected.placed_share is not None:
                assert_placed(cluster, expected.placed_share)
        with _collecting(found):
            if expected.no_overcommit:
                assert_no_overcommit(cluster)
        with _collecting(found), _refusing(case.place, f"{case.path}.expected.placements"):
            if expected.placements:
                path = case.file.parent / expected.placements
                assert_placements(path, placements_of(report), update=self._update)
        if expected.moved is not None:
            with _collecting(found):
                found += self._wrong_moves(case, expected.moved, report)
        return found

    def _wrong_moves(self, case: Case, expected: MoveExpectation, report: Report) -> list[str]:
        cluster, refused = self._cluster(case)
        field = f"{case.path}.expected.moved.baseline"
        before = placements_of(self._simulated(case, cluster, refused, expected.baseline, field))
        moves = moved(before, placements_of(report))
        wanted = [key_of(name) for name in expected.pods]
        stays = (
            f"{pod} should move, and {f'stays on {before[pod]}' if before.get(pod) else 'has no node'}"
            for pod in wanted
            if pod not in moves
        )
        return [
            *stays,
            *(f"{pod} should not move: {move}" for pod, move in moves.items() if pod not in wanted),
        ]

    def _simulated(
        self,
        case: Case,
        cluster: InMemoryCluster,
        refused: Sequence[RefusedPod],
        configuration: str,
        field: str,
    ) -> Report:
        """Schedule the case under the configuration in this file; `field` names the file in errors."""
        with _refusing(case.place, field):
            # An absolute path: a relative one would be told of as one of the working directory.
            file = (case.file.parent / configuration).absolute()
            loaded = self._configuration(file) if configuration else None
            return simulated(cluster, loaded, registry=self._registry, seed=case.seed, refused=refused)

    def _configuration(self, file: Path) -> SchedulerConfiguration:
        if file not in self._configurations:
            self._configurations[file] = read_configuration(file, self._registry)
        return self._configurations[file]

    def _cluster(self, case: Case) -> tuple[InMemoryCluster, Sequence[RefusedPod]]:
        """Return a new cluster for the case, and the pods that an API server would not create."""
        objects: list[Named] = []
        for path, scene in case.scenes():
            with _refusing(case.place, join(path, "cluster")):
                objects += self._read(tuple(case.file.parent / name for name in scene.cluster))
        given = [
            (
                f"{join(path, field)}[{index}]",
                {"apiVersion": "v1", "kind": kind, **manifest} if kind else manifest,
            )
            for path, scene in case.scenes()
            for field, kind in _KINDS.items()
            for index, manifest in enumerate(getattr(scene, field))
        ]
        # Each manifest is a document, by whose number its errors are placed in the suite.
        manifests = parse_manifests(
            "\n".join(json.dumps(manifest) for _, manifest in given), existing=objects
        )
        if manifests.problems:
            raise case.place.error(
                error.inside(given[problem.document - 1][0])
                for problem in manifests.problems
                for error in problem.errors
            )
        with _refusing(case.place, case.path):
            cluster = InMemoryCluster([*objects, *manifests.objects()])
        return cluster, manifests.admission.refused

    def _read(self, paths: tuple[Path, ...]) -> tuple[Named, ...]:
        if paths not in self._objects:
            self._objects[paths] = read_manifests(*paths).objects()
        return self._objects[paths]


def _misplaced(
    expected: Mapping[str, PodExpectation],
    cluster: InMemoryCluster,
    known: set[str],
    messages: Mapping[str, str],
) -> Iterator[str]:
    """Yield the pods that aren't where they should be."""
    for name, pod in expected.items():
        key = key_of(name)
        if key not in known:
            similar = get_close_matches(key, known, n=1)
            yield f"there is no pod {key}{f'; did you mean {similar[0]}?' if similar else ''}"
            continue
        present = cluster.get(Pod, key)
        node = present.node_name if present is not None else ""
        message = messages.get(key, "")
        nodes = pod.one_of if pod.node is None else (pod.node,)
        if pod.refused is None and node not in nodes:
            where = f"is on {node}" if node else f"is on no node: {message}" if message else "was evicted"
            unknown = "".join(
                f"; there is no node {each}" for each in nodes if cluster.get(Node, each) is None
            )
            yield f"{key} should go to {' or '.join(nodes)}, and {where}{unknown}"
        elif pod.refused is not None and node:
            yield f"{key} should be refused ({pod.refused}), and is on {node}"
        elif pod.refused is not None and pod.refused not in message:
            yield f"{key} should be refused with {pod.refused!r}, not with {message!r}"


@contextmanager
def _collecting(found: list[str]) -> Iterator[None]:
    """Collect the text of an AssertionError raised in the block."""
    try:
        yield
    except AssertionError as error:
        found.append(str(error))


@contextmanager
def _refusing(place: CasePlace, path: str) -> Iterator[None]:
    """Raise errors of input in the block as a CaseError with the field that names the input."""
    try:
        yield
    # It names its place already.
    except CaseError:
        raise
    except InvalidManifestsError as error:
        raise place.error(FieldError(path, str(problem)) for problem in error.problems) from None
    except OSError as error:
        raise place.error([FieldError(path, f"{error.filename}: {error.strerror or error}")]) from None
    except KschedfwError as error:
        raise place.error(FieldError(path, line) for line in str(error).splitlines()) from None


def shown_problems(problems: Sequence[str]) -> str:
    """Return the problems of a case, each on lines of its own."""
    return "\n".join(f"  * {printable(line, 4000)}" for problem in problems for line in problem.splitlines())
