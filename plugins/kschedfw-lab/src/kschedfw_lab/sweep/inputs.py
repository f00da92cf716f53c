"""The clusters and traces of a sweep: what they are, their content's digest, and their objects, read once a process."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final

import attrs

from kschedfw import KschedfwError, Node, Pod, read_manifests, read_openb_nodes, read_openb_pods
from kschedfw.api import FrozenDict, Named, RefusedPod
from kschedfw.api.reading import open_file, shown, sources
from kschedfw.simulator import Arrivals
from kschedfw_lab.bench.openb import NODES_FILE, PODS_FILE
from kschedfw_lab.bench.stage import Case, Objects
from kschedfw_lab.bench.workload import Placement
from kschedfw_lab.bench.workloads import WORKLOADS, find_workload
from kschedfw_lab.sweep.errors import SweepError, inside, one_line, similar

_KEYS: Final = ("name", "manifests", "openb", "workload", "trace")
_WHAT_THERE_IS: Final = "a path, or one of manifests, openb (nodes, pods) and workload"
_KEPT: Final = 2
"""How many clusters a process keeps. A grid has the runs of a cluster one after another."""
_PIECE: Final = 1 << 20
_ARRIVAL: Final = "openb.trace/creation-time"
_DURATION: Final = "kschedfw/duration-seconds"
_TIMES: Final = frozenset({_ARRIVAL, _DURATION, "openb.trace/scheduled-time", "openb.trace/deletion-time"})
"""The annotations with pods' times."""


@attrs.frozen
class Size:
    """How many nodes and pods a run has; None is all that the cluster has, or the workload's own number."""

    nodes: int | None = None
    pods: int | None = None
    initial_pods: int | None = None


WHOLE: Final = Size()


class Draw(StrEnum):
    """How pending pods are drawn by a run's seed; each place in their order keeps its arrival.

    `shuffle` gives each pod another place. `resample` gives each place any of the pods, with replacement: the bootstrap
    (Efron, 1979).
    """

    SHUFFLE = "shuffle"
    RESAMPLE = "resample"


@attrs.frozen
class ClusterSource:
    """Where a cluster comes from: files of manifests, the tables of an OpenB trace, or a workload of `kschedfw bench`.

    `digest` is that of the files' content; empty as long as nobody has read them.
    """

    label: str
    manifests: tuple[str, ...] = ()
    openb_nodes: tuple[str, ...] = ()
    openb_pods: tuple[str, ...] = ()
    workload: str = ""
    trace: str = ""
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

    def digested(self) -> ClusterSource:
        """The same with the digest of its files.

        Raises:
            SweepError: a file can't be read.
        """
        digest = hashlib.sha256()
        try:
            for path in self.files:
                with open_file(path, again=True) as file:
                    while piece := file.read(_PIECE):
                        digest.update(piece)
                digest.update(b"\0")
        except OSError as error:
            raise SweepError(one_line(error)) from None
        return attrs.evolve(self, digest=digest.hexdigest())

    def to_json(self) -> dict[str, object]:
        """What it is, without where: the same content has the same."""
        return {"label": self.label, "workload": self.workload, "digest": self.digest}


def read_source(given: object, folder: Path) -> ClusterSource:
    """The cluster that a value of the factor `cluster` stands for; paths are in the folder.

    Raises:
        SweepError: it is none, or there is no such file.
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
    for key in given:
        if key not in _KEYS:
            raise SweepError.at(str(key), f"unknown field; {similar(str(key), _KEYS)}")
    kinds = [key for key in ("manifests", "openb", "workload") if key in given]
    if len(kinds) != 1:
        raise SweepError(f"expected {_WHAT_THERE_IS}; found {' and '.join(kinds) or 'none of them'}")
    found = {"manifests": _manifests, "openb": _openb, "workload": _workload}[kinds[0]](given, folder)
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
    """The objects of the cluster in this size. What this process has read already isn't read again.

    Of files, the first nodes and the first pending pods are taken, and the pods that are bound to these nodes.

    Raises:
        SweepError: a file can't be read, isn't what it was when the sweep was planned, or has fewer nodes or pods.
    """
    if source.workload:
        return _made(source, size)
    return _part_of(source, size)


def refused_by_admission(source: ClusterSource) -> Sequence[RefusedPod]:
    """The pods of the cluster's manifests that an API server would not create; `objects_of` hasn't got them.

    Raises:
        SweepError: a file can't be read, or isn't what it was when the sweep was planned.
    """
    return () if source.workload else _read(source).refused


@attrs.frozen
class _Read:
    """The objects of files, and the pods that admission refused."""

    objects: tuple[Named, ...]
    refused: tuple[RefusedPod, ...] = ()


@lru_cache(maxsize=_KEPT)
def _read(source: ClusterSource) -> _Read:
    if source.digested().digest != source.digest:
        raise SweepError(f"{source.label}: isn't what it was when the sweep was planned; plan it again")
    try:
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
    pending = [obj for obj in objects if isinstance(obj, Pod) and _is_pending(obj)]
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
                obj.uid in kept_pods if _is_pending(obj) else not obj.node_name or obj.node_name in kept_nodes
            )
        return True

    return tuple(obj for obj in objects if is_kept(obj))


def _is_pending(pod: Pod) -> bool:
    return not pod.node_name and not pod.is_terminal


def drawn(objects: Sequence[Named], draw: Draw, seed: int) -> Sequence[Named]:
    """The objects, with the pending pods drawn anew; the same for the same seed.

    A pod keeps all that it is but its name, if another has that already, and its arrival, which is that of its place.

    Raises:
        ArrivalsError: a pod's times aren't numbers.
    """
    pending = [obj for obj in objects if isinstance(obj, Pod) and _is_pending(obj)]
    random = Random(f"{draw} {seed}")
    if draw is Draw.SHUFFLE:
        chosen = random.sample(pending, len(pending))
    else:
        chosen = random.choices(pending, k=len(pending)) if pending else []
    stays = Arrivals().plan(pending, 0)
    places = iter(zip(pending, chosen, strict=True))
    free = {(pod.namespace, pod.name) for pod in pending}
    taken = {(obj.namespace, obj.name) for obj in objects if isinstance(obj, Pod)} - free
    found: list[Named] = []
    for obj in objects:
        if isinstance(obj, Pod) and _is_pending(obj):
            place, pod = next(places)
            found.append(_at_place(place, pod, stays[pod.uid].duration, _free_name(pod, taken)))
        else:
            found.append(obj)
    return found


def _free_name(pod: Pod, taken: set[tuple[str, str]]) -> str:
    names = itertools.chain([pod.name], (f"{pod.name}.{number}" for number in itertools.count(2)))
    name = next(name for name in names if (pod.namespace, name) not in taken)
    taken.add((pod.namespace, name))
    return name


def _at_place(place: Pod, pod: Pod, duration: float | None, name: str) -> Pod:
    """The pod with this name, and with the arrival of the place."""
    of_place = {key: value for key, value in place.annotations.items() if key == _ARRIVAL}
    of_pod = {key: value for key, value in pod.annotations.items() if key not in _TIMES}
    if duration is not None:
        of_pod[_DURATION] = str(duration)
    metadata = attrs.evolve(
        pod.metadata,
        name=name,
        uid=pod.uid if name == pod.name else f"{pod.uid}.{name}",
        annotations=FrozenDict({**of_pod, **of_place}),
        creation_timestamp=place.metadata.creation_timestamp,
    )
    return attrs.evolve(pod, metadata=metadata)
