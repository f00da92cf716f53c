"""Declarative tests of policies: suites of cases in YAML, read strictly; `case_runner` runs them.

A suite is a file with a cluster, a configuration and cases; a case has pods and what is expected of them. Paths in a
suite start where the suite is. `docs/testing.md` shows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import yaml

from kschedfw.api import EMPTY, FieldError, FieldErrors, FrozenDict, KschedfwError
from kschedfw.api.documents import read_only_document
from kschedfw.api.field_errors import at, first_of, join
from kschedfw.api.files import UnreadableError
from kschedfw.api.selector_text import parse_selector
from kschedfw.api.strict import structure_strictly
from kschedfw.cluster.workload_names import WorkloadName

SUFFIXES: Final = (".kschedfw.yaml", ".kschedfw.yml")
"""Ends of the names of suites; pytest collects these files, and no others."""

LARGEST: Final = 1 << 20
"""The largest suite, in bytes; clusters belong in files of their own, which have the limits of all input."""

MOST_CASES: Final = 1000

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
class SetExpectation:
    """The expected end of the pending pods that labels or a workload choose; there must be at least one.

    Attributes:
        pods: their labels, as a selector of kubectl (`app=batch`).
        workload: what they belong to, as `Kind/name` or `Kind/namespace/name`.
        within: the labels of the nodes that those with a node are on, as a selector; in a suite it is called `in`.
        placed: how many have a node; by default all, and none if `refused` is given.
        refused: a part of the message of each pod without a node.
    """

    pods: str = ""
    workload: str = ""
    within: str = attrs.field(default="", metadata={"json": "in"})
    placed: int | None = None
    refused: str = ""

    def validate(self) -> Iterator[FieldError]:
        if not (self.pods or self.workload):
            yield FieldError("", "expected pods, a label selector, or a workload such as Deployment/shop")
        for field, selector in (("pods", self.pods), ("in", self.within)):
            if selector:
                try:
                    parse_selector(selector)
                except KschedfwError as error:
                    yield FieldError(field, str(error))
        if self.workload and WorkloadName.parse(self.workload) is None:
            yield FieldError.invalid(
                "workload",
                self.workload,
                "expected Kind/name or Kind/namespace/name, such as Deployment/shop",
            )
        if self.placed is not None and self.placed < 0:
            yield FieldError.invalid("placed", self.placed, "must be at least 0")


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
        sets: pods by their labels or their workload.
        evicted: the pods, and no others, that are evicted.
        spread: how pods are spread.
        placed_share: the share of all pods that have a node, from 0 to 1.
        no_overcommit: whether the pods of each node request no more than it has.
        moved: which pods another configuration would have placed elsewhere.
        placements: the path of a file with the node of each pod, as `assert_golden(placements_only=True)` writes it.
    """

    pods: FrozenDict[str, PodExpectation] = EMPTY
    sets: tuple[SetExpectation, ...] = ()
    evicted: tuple[str, ...] | None = None
    spread: tuple[SpreadExpectation, ...] = ()
    placed_share: float | None = None
    no_overcommit: bool = False
    moved: MoveExpectation | None = None
    placements: str = ""

    def validate(self) -> Iterator[FieldError]:
        if self == _NOTHING:
            known = ", ".join(
                ("pods", "sets", "evicted", "spread", "placedShare", "noOvercommit", "moved", "placements")
            )
            yield FieldError("", f"nothing is expected, so that the case couldn't fail; there is {known}")
        for key, pod in self.pods.items():
            yield from (error.inside(at("pods", key)) for error in pod.validate())
        for index, each in enumerate(self.sets):
            yield from (error.inside(f"sets[{index}]") for error in each.validate())
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
