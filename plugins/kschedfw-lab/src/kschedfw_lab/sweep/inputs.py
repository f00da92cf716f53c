"""The clusters and traces of a sweep: their sources and digests, and their objects, which a process reads once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from kschedfw import KschedfwError, Node, Pod, read_manifests
from kschedfw.api import Named, RefusedPod, counted
from kschedfw.api.reading import open_file, shown, sources
from kschedfw_lab.bench.openb import NODES_FILE, PODS_FILE
from kschedfw_lab.bench.stage import Case, Objects
from kschedfw_lab.bench.workload import Placement
from kschedfw_lab.bench.workloads import WORKLOADS, find_workload
from kschedfw_lab.openb import read_openb_nodes, read_openb_pods
from kschedfw_lab.sweep.draws import is_pending
from kschedfw_lab.sweep.errors import SweepError, inside, one_line, similar
from kschedfw_lab.sweep.traces import (
    OWN,
    WINDOW,
    files_of,
    is_own_reader,
    kinds_of_traces,
    own_reader,
    read_trace,
    read_window,
)

_KEYS: Final = ("name", "manifests", "openb", "workload", OWN, "trace")
_WHAT_THERE_IS: Final = "a path, or one of manifests, openb (nodes, pods), workload, reader and recording"
_KEPT: Final = 2
"""The number of clusters that a process keeps. In a grid, the runs of a cluster follow one another."""
_PIECE: Final = 1 << 20


@attrs.frozen
class Size:
    """The numbers of nodes and pods of a run. None means all of the cluster, or the workload's own number."""

    nodes: int | None = None
    pods: int | None = None
    initial_pods: int | None = None


WHOLE: Final = Size()


@attrs.frozen
class ClusterSource:
    """The source of a cluster: manifests, OpenB tables, a workload of `kschedfw bench`, or a foreign trace.

    `recording` is the kind and the path of a trace that another distribution reads, or a function in a file. `window`
    is its wanted part, as first and last time in seconds since 1970. `digest` is that of the files' content; empty
    until the files have been read.
    """

    label: str
    manifests: tuple[str, ...] = ()
    openb_nodes: tuple[str, ...] = ()
    openb_pods: tuple[str, ...] = ()
    workload: str = ""
    trace: str = ""
    recording: tuple[str, str] | None = None
    window: tuple[float, float] = (-math.inf, math.inf)
    digest: str = ""

    @property
    def files(self) -> Iterator[Path]:
        """All files, in the order in which they are read."""
        for source in sources(self.manifests):
            if source.path is None:
                raise SweepError(f"{source.name}: {source.problem}")
            yield source.path
        yield from map(Path, (*self.openb_nodes, *self.openb_pods))
        if self.trace:
            yield from (Path(self.trace, name) for name in (NODES_FILE, PODS_FILE))
        if self.recording is not None:
            kind, path = self.recording
            if is_own_reader(kind):
                yield Path(kind.rpartition(":")[0])
            yield from files_of(Path(path))

    def digested(self) -> ClusterSource:
        """Return the source with the digest of its files.

        Raises:
            SweepError: a file can't be read.
        """
        digest = hashlib.sha256()
        try:
            for path in self.files:
                with open_file(path, again=True) as file:
                    while piece := file.read(_PIECE):
                        digest.update(piece)
                # Between files, so that content that moves from one to the next changes the digest.
                digest.update(b"\0")
        except OSError as error:
            raise SweepError(one_line(error)) from None
        return attrs.evolve(self, digest=digest.hexdigest())

    def to_json(self) -> dict[str, object]:
        """Return the content without its location, so that equal contents have equal keys."""
        found: dict[str, object] = {"label": self.label, "workload": self.workload, "digest": self.digest}
        if self.recording is not None:
            times = [time if math.isfinite(time) else None for time in self.window]
            # The reader's file is in the digest; where it is makes no difference.
            found |= {"recording": Path(self.recording[0]).name, "window": times}
        return found


def read_source(given: object, folder: Path) -> ClusterSource:
    """Return the cluster for a value of the factor `cluster`. Paths are relative to the folder.

    Raises:
        SweepError: the value is no cluster, or a file doesn't exist.
    """
    if isinstance(given, (str, Path)):
        text = str(given)
        if text in WORKLOADS and not (folder / text).exists():
            raise SweepError(
                f"{text}: no such file or directory; the workload is written {{workload: {text}}}"
            )
        return ClusterSource(text, manifests=_paths(text, folder))
    if not isinstance(given, Mapping):
        raise SweepError(f"expected {_WHAT_THERE_IS}, found {shown(given)}")
    traces = kinds_of_traces()
    keys = (*_KEYS, *traces, *WINDOW)
    for key in given:
        if key not in keys:
            raise SweepError.at(str(key), f"unknown field; {similar(str(key), keys)}")
    kinds = [key for key in (*_READERS, *traces) if key in given]
    if len(kinds) != 1:
        raise SweepError(f"expected {_WHAT_THERE_IS}; found {' and '.join(kinds) or 'none of them'}")
    kind = kinds[0]
    if kind not in (*traces, OWN) and any(key in given for key in WINDOW):
        whose = " and ".join((*traces, OWN))
        raise SweepError.at("from" if "from" in given else "to", f"is for {whose}, not {kind}")
    found = _READERS[kind](given, folder) if kind in _READERS else _trace(kind, given, folder)
    name = given.get("name", found.label)
    if not isinstance(name, str) or not name:
        raise SweepError.at("name", f"expected a text, found {shown(name)}")
    return attrs.evolve(found, label=name)


def _manifests(given: Mapping[str, object], folder: Path) -> ClusterSource:
    paths = _within("manifests", given["manifests"], folder)
    return ClusterSource(_joined(given["manifests"]), manifests=paths)


def _openb(given: Mapping[str, object], folder: Path) -> ClusterSource:
    tables = given["openb"]
    if not isinstance(tables, Mapping) or set(tables) != {"nodes", "pods"}:
        raise SweepError.at("openb", f"expected nodes and pods, found {shown(tables)}")
    nodes, pods = (_within(f"openb.{key}", tables[key], folder) for key in ("nodes", "pods"))
    return ClusterSource(_joined(tables["pods"]), openb_nodes=nodes, openb_pods=pods)


def _workload(given: Mapping[str, object], folder: Path) -> ClusterSource:
    name = given["workload"]
    if not isinstance(name, str):
        raise SweepError.at("workload", f"expected a name, found {shown(name)}")
    try:
        find_workload(name)
    except KschedfwError as error:
        raise SweepError.at("workload", one_line(error)) from None
    trace = ""
    if "trace" in given:
        (trace,) = _within("trace", given["trace"], folder)
    return ClusterSource(name, workload=name, trace=trace)


def _trace(kind: str, given: Mapping[str, object], folder: Path) -> ClusterSource:
    (path,) = _within(kind, given[kind], folder)
    return ClusterSource(str(given[kind]), recording=(kind, path), window=read_window(given))


def _own(given: Mapping[str, object], folder: Path) -> ClusterSource:
    where = given[OWN]
    if not isinstance(where, str) or not is_own_reader(where):
        raise SweepError.at(OWN, f"expected FILE.py:FUNCTION, found {shown(where)}")
    file, _, function = where.rpartition(":")
    (file,) = _within(OWN, file, folder)
    if "trace" not in given:
        raise SweepError.at("trace", f"expected the path that {where} reads")
    (path,) = _within("trace", given["trace"], folder)
    with inside(OWN):
        own_reader(f"{file}:{function}")
    return ClusterSource(
        str(given["trace"]), recording=(f"{file}:{function}", path), window=read_window(given)
    )


_READERS: Final[Mapping[str, Callable[[Mapping[str, object], Path], ClusterSource]]] = {
    "manifests": _manifests,
    "openb": _openb,
    "workload": _workload,
    OWN: _own,
}


def _within(place: str, given: object, folder: Path) -> tuple[str, ...]:
    texts = given if isinstance(given, (list, tuple)) else [given]
    if not texts or not all(isinstance(text, (str, Path)) for text in texts):
        raise SweepError.at(place, f"expected a path or a list of paths, found {shown(given)}")
    with inside(place):
        return tuple(path for text in texts for path in _paths(str(text), folder))


def _paths(text: str, folder: Path) -> tuple[str, ...]:
    path = folder / text
    if not path.exists():
        raise SweepError(f"{text}: no such file or directory")
    return (str(path.resolve()),)


def _joined(given: object) -> str:
    return ", ".join(map(str, given)) if isinstance(given, (list, tuple)) else str(given)


# --- Objects -----------------------------------------------------------------------------------------------------


def objects_of(source: ClusterSource, size: Size) -> Sequence[Named]:
    """Return the objects of the cluster in this size. A process reads them only once.

    From files, the first nodes and the first pending pods are taken, and the pods that are bound to these nodes.

    Raises:
        SweepError: a file can't be read, has changed since the sweep was planned, or has too few nodes or pods.
    """
    if source.workload:
        return _made(source, size)
    return _part_of(source, size)


def left_out_of(source: ClusterSource) -> Iterator[str]:
    """Say which pods of a cluster no run has: those that an API server would not create, and those a trace leaves out.

    Raises:
        SweepError: a file can't be read, or has changed since the sweep was planned.
    """
    if source.workload:
        return
    read = _read(source)
    if read.refused:
        more = f" (and {len(read.refused) - 1:,} more)" if len(read.refused) > 1 else ""
        yield f"not created: {read.refused[0].message}{more}"
    for why, pods in read.left_out.items():
        yield f"{counted(pods, 'pod')} left out for {why}"


@attrs.frozen
class _Read:
    """The objects of files, the pods that admission refused, and the numbers of those that a trace leaves out."""

    objects: tuple[Named, ...]
    refused: tuple[RefusedPod, ...] = ()
    left_out: Mapping[str, int] = attrs.field(factory=dict)


@lru_cache(maxsize=_KEPT)
def _read(source: ClusterSource) -> _Read:
    # A run's key has the digest, so its results must be those of these files.
    if source.digested().digest != source.digest:
        raise SweepError(f"{source.label}: isn't what it was when the sweep was planned; plan it again")
    try:
        if source.recording is not None:
            kind, path = source.recording
            trace = read_trace(kind, Path(path), *source.window)
            return _Read(tuple(trace.objects), left_out=trace.left_out)
        if source.manifests:
            loaded = read_manifests(*source.manifests)
            return _Read(loaded.objects(), loaded.admission.refused)
        nodes = [node for path in source.openb_nodes for node in read_openb_nodes(path)]
        return _Read((*nodes, *(pod for path in source.openb_pods for pod in read_openb_pods(path))))
    except (KschedfwError, OSError) as error:
        raise SweepError(one_line(error)) from None


@lru_cache(maxsize=_KEPT)
def _made(source: ClusterSource, size: Size) -> tuple[Named, ...]:
    if source.trace and source.digested().digest != source.digest:
        raise SweepError(f"{source.label}: isn't what it was when the sweep was planned; plan it again")
    trace = Path(source.trace) if source.trace else None
    try:
        workload = find_workload(source.workload, trace)
    except (KschedfwError, OSError) as error:
        raise SweepError(one_line(error)) from None
    case = attrs.evolve(
        Case.of(workload, nodes=size.nodes, pods=size.pods, initial_pods=size.initial_pods),
        # Every configuration begins with the same pods on the same nodes.
        own_placement=Placement.BOUND,
        trace=trace,
    )
    made = Objects.of(case)
    return (*made.cluster, *made.placed, *made.measured)


@lru_cache(maxsize=_KEPT)
def _part_of(source: ClusterSource, size: Size) -> tuple[Named, ...]:
    objects = _read(source).objects
    if size.initial_pods is not None:
        raise SweepError(f"{source.label}: initialPods is for workloads; files say which pods are bound")
    if size == WHOLE:
        return objects
    nodes = [obj for obj in objects if isinstance(obj, Node)]
    pending = [obj for obj in objects if isinstance(obj, Pod) and is_pending(obj)]
    for what, wanted, there in (("nodes", size.nodes, nodes), ("pending pods", size.pods, pending)):
        if wanted is not None and wanted > len(there):
            raise SweepError(f"{source.label}: has {len(there):,} {what}, and {wanted:,} are asked for")
    kept_nodes = {node.name for node in nodes[: size.nodes]}
    kept_pods = {pod.uid for pod in pending[: size.pods]}

    def is_kept(obj: Named) -> bool:
        if isinstance(obj, Node):
            return obj.name in kept_nodes
        if isinstance(obj, Pod):
            return (
                obj.uid in kept_pods if is_pending(obj) else not obj.node_name or obj.node_name in kept_nodes
            )
        return True

    return tuple(obj for obj in objects if is_kept(obj))
