"""Traces of SimKube, version 2: workloads that were applied and deleted, with the lifetimes of their pods.

A trace has no nodes and no pods of workloads: the pods are made of the workloads' templates, as kschedfw makes them of
manifests, and end after the time that the trace tells for the pod of that number. Lost is everything else about them:
their names, when each was created, where it ran, and that a controller replaced it. CronJobs and workloads of custom
kinds aren't expanded.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kschedfw.api import InvalidManifestsError, ManifestError, Named, Pod, parse_manifests, to_manifest
from kschedfw.api.reading import UnreadableError, content_of
from kschedfw_replay.importing.observations import Binding, Observation, checked_time
from kschedfw_replay.recording.blocks import RecordingError

_VERSION: Final = 2
_LARGEST: Final = 1 << 30
"""The largest trace, in bytes. It is read into memory, as by SimKube."""

_HOW_TO_RAISE: Final = ": the limit `"
"""Begins the part of an error that says how a limit of manifests is raised; traces have no option for it."""


class _Event(msgspec.Struct):
    ts: int
    applied_objs: list[dict[str, Any]]
    deleted_objs: list[dict[str, Any]]


_Lifecycle = str | dict[str, int | tuple[int, int]]
"""`Empty`, `{"Running": start}` or `{"Finished": [start, end]}`."""


class _Trace(msgspec.Struct):
    version: int
    events: list[_Event]
    pod_lifecycles: dict[tuple[str, str], dict[int, list[_Lifecycle]]]
    """By the kind, as `group/version.Kind`, and `namespace/name` of what owns the pods; by the hash of their spec."""


def read_simkube(path: Path) -> Iterator[Observation | Binding]:
    """Yield the observations in a trace.

    Raises:
        RecordingError: it is no trace of this version.
    """
    try:
        content = content_of(path, _LARGEST)
    except UnreadableError as error:
        raise RecordingError(f"{path}: {error}") from None
    try:
        trace = msgspec.msgpack.decode(content, type=_Trace)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordingError(f"{path}: not a trace of SimKube of version {_VERSION}: {error}") from None
    if trace.version != _VERSION:
        raise RecordingError(f"{path}: a trace of version {trace.version}; version {_VERSION} is read")
    yield from _Expansion(trace, path).observations()


class _Expansion:
    """The pods of a trace's workloads."""

    def __init__(self, trace: _Trace, path: Path) -> None:
        self._trace, self._path = trace, path
        self._made: dict[tuple[str, str], dict[str, Named]] = {}
        """The objects made for each workload that still exist, by the workload's kind and key."""
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._ends: list[tuple[float, int, tuple[str, str], str]] = []
        """The ends of pods, as a heap: time, a number that makes items distinct, workload, pod."""

    def observations(self) -> Iterator[Observation]:
        for number, event in enumerate(self._trace.events):
            checked_time(event.ts, f"{self._path}: events[{number}].ts")
            yield from self._ended(event.ts)
            for obj in event.applied_objs:
                made, problem = _expanded(obj)
                if problem or not made:
                    # Yielded although it changes nothing, so that the importer tells what is left out.
                    yield Observation(event.ts, obj, problem=problem)
                if problem:
                    # The workload stays as it was before.
                    continue
                yield from self._apply(event.ts, obj, made)
            for obj in event.deleted_objs:
                yield from self._apply(event.ts, obj, {})
        yield from self._ended(float("inf"))

    def _apply(
        self, at: float, workload: Mapping[str, Any], wanted: dict[str, Named]
    ) -> Iterator[Observation]:
        owner = _identity(workload)
        present = self._made.setdefault(owner, {})
        # A list, since the loop changes the dict.
        for key in [key for key in present if key not in wanted]:
            yield Observation(at, to_manifest(present.pop(key)), gone=True)
        for key, obj in wanted.items():
            if isinstance(obj, Pod) and key not in present:
                self._begin(at, owner, key)
            present[key] = obj
            yield Observation(at, to_manifest(obj))

    def _begin(self, at: float, owner: tuple[str, str], key: str) -> None:
        number = self._numbers[owner]
        self._numbers[owner] += 1
        lifecycles = [
            each for of_hash in self._trace.pod_lifecycles.get(owner, {}).values() for each in of_hash
        ]
        # Traces tell lifecycles, not which pod had which: pods take them in turn.
        if lifecycles and (seconds := _duration(lifecycles[number % len(lifecycles)])) is not None:
            where = f"{self._path}: pod_lifecycles of {' '.join(owner)}: the end of pod {number}"
            ends = checked_time(at + seconds, where)
            heapq.heappush(self._ends, (ends, sum(self._numbers.values()), owner, key))

    def _ended(self, until: float) -> Iterator[Observation]:
        while self._ends and self._ends[0][0] <= until:
            at, _, owner, key = heapq.heappop(self._ends)
            # It may have gone with its workload before.
            pod = self._made.get(owner, {}).pop(key, None)
            if pod is not None:
                yield Observation(at, to_manifest(pod), gone=True)


def _expanded(obj: Mapping[str, Any]) -> tuple[dict[str, Named], str]:
    """Return the objects that kschedfw makes for a workload, by kind and key, and the error in its manifest, if any.

    Nothing is made of kinds that kschedfw doesn't read.
    """
    try:
        manifests = parse_manifests(json.dumps(obj))
    # TypeError, ValueError: a value that JSON doesn't have, such as bytes.
    except (ManifestError, InvalidManifestsError, TypeError, ValueError):
        return {}, f"{_subject(obj)}: can't be written as JSON"
    if manifests.problems:
        first, _, _ = str(manifests.problems[0].errors[0]).partition(_HOW_TO_RAISE)
        return {}, f"{_subject(obj)}: {first}"
    return {f"{type(each).__name__} {each.key}": each for each in manifests.objects()}, ""


def _identity(obj: Mapping[str, Any]) -> tuple[str, str]:
    """The kind and name of a workload, as a trace writes them."""
    given = obj.get("metadata")
    metadata = given if isinstance(given, Mapping) else {}
    kind = f"{obj.get('apiVersion')}.{obj.get('kind')}"
    return kind, f"{metadata.get('namespace', 'default')}/{metadata.get('name')}"


def _subject(obj: Mapping[str, Any]) -> str:
    return f"{obj.get('kind')} {_identity(obj)[1]}"


def _duration(lifecycle: _Lifecycle) -> float | None:
    """Return the lifetime of a pod in seconds; None if its end is unknown."""
    finished = lifecycle.get("Finished") if isinstance(lifecycle, Mapping) else None
    return max(0.0, finished[1] - finished[0]) if isinstance(finished, tuple) else None
