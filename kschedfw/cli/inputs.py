"""From the command line's files to a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import attrs

from kschedfw.api.documents import sources
from kschedfw.api.errors import KschedfwError
from kschedfw.api.manifests import Manifests, read_manifests
from kschedfw.cluster import InMemoryCluster, from_manifests
from kschedfw.simulator import openb_notes, read_openb_nodes, read_openb_pods

KINDS_NAMED = 5
"""How many kinds a note lists before it only counts them."""


class InputFormat(StrEnum):
    """What the input files are."""

    MANIFESTS = "manifests"
    OPENB = "openb"


class InvalidInputError(KschedfwError, ValueError):
    """Some of the input is wrong; `problems` has a line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        count = len(self.problems)
        found = "1 problem" if count == 1 else f"{count} problems"
        return f"{found} in the input, so nothing was done (--skip-invalid leaves out what is invalid)"


@attrs.frozen
class Input:
    """A cluster, what was left out of it and why, and notes on what was read."""

    cluster: InMemoryCluster
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()


def read_input(
    format: InputFormat, cluster: Sequence[Path], pods: Sequence[Path], *, skip_invalid: bool = False
) -> Input:
    """Read everything into one cluster.

    Raises:
        InvalidInputError: something is wrong with it, unless `skip_invalid`.
        OpenbError: a CSV is not one of the OpenB trace.
        AlreadyExistsError: two CSVs have a node or pod of the same name.
        OSError: a file can't be read.
    """
    if format is InputFormat.OPENB:
        return _read_openb(cluster, pods)
    manifests = read_manifests(*cluster, *pods)
    problems = [" ".join(str(problem).splitlines()) for problem in manifests.problems]
    if problems and any(path.suffix.lower() == ".csv" for path in (*cluster, *pods)):
        problems.append("a CSV is no manifest; those of the OpenB trace are read with --format openb")
    if problems and not skip_invalid:
        raise InvalidInputError(problems)
    notes = [f"{path}: no .yaml, .yml or .json file in it" for path in (*cluster, *pods) if _is_barren(path)]
    return Input(from_manifests(manifests), problems, [*notes, *_notes(manifests)])


def _is_barren(path: Path) -> bool:
    return path.is_dir() and next(iter(sources([path])), None) is None


def _notes(manifests: Manifests) -> list[str]:
    if not manifests.ignored:
        return []
    most = sorted(manifests.ignored.items(), key=lambda item: (-item[1], item[0]))
    kinds = [f"{count} {kind}" for kind, count in most[:KINDS_NAMED]]
    if (rest := len(most) - KINDS_NAMED) > 0:
        kinds.append(f"{rest} more kinds")
    return [f"scheduling has no use for some of the input: {', '.join(kinds)}"]


def _read_openb(nodes: Sequence[Path], pods: Sequence[Path]) -> Input:
    trace = [pod for path in pods for pod in read_openb_pods(path)]
    filled = InMemoryCluster()
    for obj in (*(node for path in nodes for node in read_openb_nodes(path)), *trace):
        filled.add(obj)
    return Input(filled, notes=openb_notes(trace))
