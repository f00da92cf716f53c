"""Declarative tests of policies: suites of cases in YAML, read strictly and run by simulation.

A suite is a file with a cluster, a configuration and cases; a case has pods and what is expected of them. Paths in a
suite start where the suite is. `docs/testing.md` shows one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import yaml

from kschedfw.api.admission import RefusedPod
from kschedfw.api.documents import read_only_document
from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError, FieldErrors, at, first_of, join, printable
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.manifest_error import InvalidManifestsError
from kschedfw.api.manifests import parse_manifests, read_manifests
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod
from kschedfw.api.selector_text import parse_selector
from kschedfw.api.sources import UnreadableError
from kschedfw.api.strict import structure_strictly
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import SchedulerConfiguration
from kschedfw.framework.runtime.registry import Registry
from kschedfw.simulator import Report
from kschedfw.testing.cluster_assertions import (
    assert_evicted,
    assert_no_overcommit,
    assert_placed,
    assert_spread,
    key_of,
)
from kschedfw.testing.configured import read_configuration
from kschedfw.testing.golden import assert_placements, placements_of, simulated

SUFFIXES: Final = (".kschedfw.yaml", ".kschedfw.yml")
"""How the names of suites end; pytest collects these files, and no others."""

LARGEST: Final = 1 << 20
"""The largest suite, in bytes; clusters belong in files of their own, which have the limits of all input."""

MOST_CASES: Final = 1000

_KINDS: Final = {"nodes": "Node", "pods": "Pod", "objects": ""}
"""The kind of the manifests in a field that has only one."""

_Manifests: TypeAlias = tuple[FrozenDict[str, object], ...]


@attrs.frozen
class PodExpectation:
    """The expected end of a pod; exactly one of the fields is given.

    Attributes:
        node: its node.
        one_of: nodes of which one should be its node.
        refused: a part of kube-scheduler's message; the pod should have no node for that reason.
    """

    node: str | None = None
    one_of: tuple[str, ...] = ()
    refused: str | None = None

    def validate(self) -> Iterator[FieldError]:
        if (self.node is not None) + bool(self.one_of) + (self.refused is not None) != 1:
            yield FieldError("", "expected one of node, oneOf and refused")


@attrs.frozen
class SpreadExpectation:
    """The expected spread: the arguments of `assert_spread`."""

    topology_key: str
    pods: str = ""
    max_skew: int = 1


@attrs.frozen
class MoveExpectation:
    """The pods, and no others, that are on other nodes than with the `baseline`.

    `baseline` is the path of a configuration; empty for kube-scheduler's own.
    """

    pods: tuple[str, ...] = ()
    baseline: str = ""


@attrs.frozen
class Expectations:
    """The expectations of a case; a field that isn't given isn't checked.

    Attributes:
        pods: by the pod's key, or its name if it is in `default`.
        evicted: the pods, and no others, that are evicted.
        spread: how pods are spread.
        placed_share: the share of all pods that have a node, from 0 to 1.
        no_overcommit: whether the pods of each node request no more than it has.
        moved: which pods another configuration would have placed elsewhere.
        placements: the path of a file with the node of each pod, as `assert_golden(placements_only=True)` writes it.
    """

    pods: FrozenDict[str, PodExpectation] = EMPTY
    evicted: tuple[str, ...] | None = None
    spread: tuple[SpreadExpectation, ...] = ()
    placed_share: float | None = None
    no_overcommit: bool = False
    moved: MoveExpectation | None = None
    placements: str = ""

    def validate(self) -> Iterator[FieldError]:
        if self == _NOTHING:
            known = ", ".join(
                ("pods", "evicted", "spread", "placedShare", "noOvercommit", "moved", "placements")
            )
            yield FieldError("", f"nothing is expected, so that the case couldn't fail; there is {known}")
        for key, pod in self.pods.items():
            yield from (error.inside(at("pods", key)) for error in pod.validate())
        for index, spread in enumerate(self.spread):
            if spread.max_skew < 1:
                yield FieldError.invalid(f"spread[{index}].maxSkew", spread.max_skew, "must be at least 1")
            if spread.pods:
                try:
                    parse_selector(spread.pods)
                except KschedfwError as error:
                    yield FieldError(f"spread[{index}].pods", str(error))
        if self.placed_share is not None and not 0 < self.placed_share <= 1:
            yield FieldError.invalid("placedShare", self.placed_share, "must be above 0 and at most 1")


_NOTHING: Final = Expectations()


@attrs.frozen(kw_only=True)
class CaseSetting:
    """The cluster and configuration that a suite gives to all its cases, or that a case adds.

    Attributes:
        configuration: the path of a configuration; empty for the suite's, or kube-scheduler's own.
        cluster: paths of manifests, or of directories of them.
        nodes: manifests of nodes; apiVersion and kind may be missing.
        pods: manifests of pods, pending and bound.
        objects: manifests of other objects.
        seed: the seed of all chance. Without one, the first by name of equally good nodes is chosen.
    """

    configuration: str = ""
    cluster: tuple[str, ...] = ()
    nodes: _Manifests = ()
    pods: _Manifests = ()
    objects: _Manifests = ()
    seed: int | None = None


@attrs.frozen(kw_only=True)
class CaseDocument(CaseSetting):
    """A case as written in its suite."""

    name: str
    expected: Expectations


@attrs.frozen(kw_only=True)
class Suite(CaseSetting):
    """The content of a file of cases."""

    cases: tuple[CaseDocument, ...]

    def validate(self) -> Iterator[FieldError]:
        if not 1 <= len(self.cases) <= MOST_CASES:
            yield FieldError("cases", f"a suite has 1 to {MOST_CASES:,} cases, not {len(self.cases):,}")
        seen: set[str] = set()
        for index, case in enumerate(self.cases):
            yield from (error.inside(f"cases[{index}].expected") for error in case.expected.validate())
            if case.name in seen or not case.name:
                yield FieldError.invalid(f"cases[{index}].name", case.name, "each case has a name of its own")
            seen.add(case.name)


class CaseError(KschedfwError, ValueError):
    """The error of a suite or a case; each line of the text has file, line, path, and problem."""

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "\n".join(first_of(self.errors, "problems"))


@attrs.frozen
class CasePlace:
    """A position in a file, with the lines of its fields by their paths."""

    file: Path
    lines: Mapping[str, int] = EMPTY

    def line(self, path: str) -> int:
        """Return the line of a field, or of the nearest one around it; 1 for the file itself."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path, 1)

    def error(self, errors: Iterable[FieldError]) -> CaseError:
        return CaseError(f"{self.file}:{self.line(error.path)}: {error}" for error in errors)


@attrs.frozen
class Case:
    """A case that can be run: its position in a suite that was read."""

    place: CasePlace = attrs.field(repr=False)
    suite: Suite = attrs.field(repr=False)
    index: int

    @property
    def document(self) -> CaseDocument:
        return self.suite.cases[self.index]

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def path(self) -> str:
        return f"cases[{self.index}]"

    @property
    def file(self) -> Path:
        return self.place.file

    @property
    def line(self) -> int:
        return self.place.line(self.path)

    @property
    def configuration(self) -> tuple[str, str]:
        """The path of the configuration of the case, and the field that names it: the case's own, or its suite's."""
        own = self.document.configuration
        return (own, join(self.path, "configuration")) if own else (self.suite.configuration, "configuration")

    @property
    def seed(self) -> int | None:
        return self.suite.seed if self.document.seed is None else self.document.seed

    def scenes(self) -> tuple[tuple[str, CaseSetting], ...]:
        return ("", self.suite), (self.path, self.document)


def find_suites(path: Path) -> list[Path]:
    """Return the suites in a directory, by name; a file is a suite, whatever its name is."""
    if not path.is_dir():
        return [path]
    return sorted(found for found in path.rglob("*") if found.name.endswith(SUFFIXES) and found.is_file())


def read_cases(path: Path) -> list[Case]:
    """Read the cases of a suite; their manifests and configurations are read when they are run.

    Raises:
        CaseError: the file isn't a suite; names each problem's line.
        OSError: the file can't be read.
    """
    place = CasePlace(path)
    try:
        content, text = read_only_document(path, LARGEST, noun="suite", part="cases")
        place = CasePlace(path, _lines(text))
        suite = structure_strictly(content, Suite)
    except UnreadableError as error:
        raise CaseError([f"{path}: {error}"]) from None
    except FieldErrors as error:
        raise place.error(error.errors) from None
    if errors := list(suite.validate()):
        raise place.error(errors)
    return [Case(place, suite, index) for index in range(len(suite.cases))]


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
        after = placements_of(report)
        moves = {
            pod: f"{node or 'no node'} → {after[pod] or 'no node'}"
            for pod, node in before.items()
            if after[pod] != node
        }
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
        """Schedule under the configuration of that path, which the field names."""
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
            yield f"{key} should go to {' or '.join(nodes)}, and {where}"
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
    except CaseError:
        raise
    except InvalidManifestsError as error:
        raise place.error(FieldError(path, str(problem)) for problem in error.problems) from None
    except OSError as error:
        raise place.error([FieldError(path, f"{error.filename}: {error.strerror or error}")]) from None
    except KschedfwError as error:
        raise place.error(FieldError(path, line) for line in str(error).splitlines()) from None


def _lines(text: str) -> Mapping[str, int]:
    """Return the line, from 1, of each value in a YAML document, by its path."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(_lines_in(yaml.compose(text, Loader=loader), ""))


def _lines_in(node: yaml.Node | None, path: str) -> Iterator[tuple[str, int]]:
    # Aliases are gone through each time; the document was read before, which limits what they amount to.
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = at(path, str(key.value))
            yield inner, key.start_mark.line + 1
            yield from _lines_in(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            inner = at(path, index)
            yield inner, value.start_mark.line + 1
            yield from _lines_in(value, inner)


def shown_problems(problems: Sequence[str]) -> str:
    """Return the problems of a case, each on lines of its own."""
    return "\n".join(f"  * {printable(line, 4000)}" for problem in problems for line in problem.splitlines())
