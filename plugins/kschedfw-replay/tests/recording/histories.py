"""Records to write: drawn ones, and a small fixed history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from kschedfw_replay import ChangeType, Gap, Record, RecordedChange, RecordingWriter, SegmentLimits, State

from kschedfw import VirtualClock

_TEXT = st.text(max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@st.composite
def _manifests(draw: st.DrawFn) -> dict[str, Any]:
    content = draw(st.dictionaries(_TEXT, _VALUES, max_size=3))
    return {**content, **pod(draw(st.sampled_from("abcdef"))), "spec": draw(_VALUES)}


@st.composite
def histories(draw: st.DrawFn, start: float = 0.0) -> list[Record]:
    """A history that begins with a state and has no gap at its end."""
    at = start + draw(st.integers(0, 5))
    records: list[Record] = []
    for run in range(draw(st.integers(1, 3))):
        if run:
            since, at = at, at + draw(st.floats(0, 9))
            records.append(Gap(since, at, draw(_TEXT)))
        names = draw(st.lists(st.sampled_from("abcdef"), unique=True))
        records.append(State(at, tuple(pod(name, value=draw(_VALUES)) for name in names)))
        for _ in range(draw(st.integers(0, 6))):
            at += draw(st.floats(0, 3))
            records.append(RecordedChange(at, draw(st.sampled_from(ChangeType)), draw(_manifests())))
    return records


def write(path: Path, records: Iterable[Record], limits: SegmentLimits | None = None) -> None:
    """Write records in one run, at the pace at which they happened."""
    clock = VirtualClock()
    with RecordingWriter(path, cluster="test", limits=limits, clock=clock) as writer:
        for record in records:
            clock.advance_to(record.since if isinstance(record, Gap) else record.at)
            writer.write(record)


SMALL: tuple[Record, ...] = (
    State(10.0, (pod("a", nodeName="n"), pod("b"))),
    RecordedChange(11.0, ChangeType.ADDED, pod("c")),
    RecordedChange(12.5, ChangeType.MODIFIED, pod("b", nodeName="n")),
    RecordedChange(14.0, ChangeType.DELETED, pod("a", nodeName="n")),
)


def folded(records: Iterable[Record]) -> Mapping[str, Any]:
    """The pods that there are after the records, by name."""
    pods: dict[str, Any] = {}
    for record in records:
        match record:
            case State():
                pods = {_name(each): each for each in record.manifests}
            case RecordedChange(type=ChangeType.DELETED):
                pods.pop(_name(record.manifest), None)
            case RecordedChange():
                pods[_name(record.manifest)] = record.manifest
    return pods


def _name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])
