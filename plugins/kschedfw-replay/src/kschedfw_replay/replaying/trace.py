"""A recording as the objects of a simulation: for sweeps, searches and environments, which draw pods anew.

Lost against a replay are the changes of everything but pods. Nodes are those of the window's begin; other objects are
there from the beginning as they were when they first appeared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs

from kschedfw import Node, Pod
from kschedfw.api import FrozenDict, Named, PersistentVolume, PodStatus
from kschedfw.cluster import TOPOLOGY_LABELS
from kschedfw_replay.recording.reader import open_recording
from kschedfw_replay.replaying.fates import Fates, Survey
from kschedfw_replay.replaying.history import History

_DURATION: Final = "kschedfw/duration-seconds"


def read_trace(path: Path, since: float = -math.inf, until: float = math.inf) -> Sequence[Named]:
    """The nodes and other objects of a recording's window, and its pods with the times at which they came and went.

    A pod that waits has its arrival as `creationTimestamp`, and how long it stayed after its binding in the annotation
    `kschedfw/duration-seconds`. A pod that is bound at the begin has there how long it is still there. Pods that were
    bound when they appeared later, such as static ones, are left out.

    Raises:
        RecordingError: the recording is damaged, or nothing of it is in the window.
    """
    history, survey = History(open_recording(path), since, until), Survey()
    objects: dict[tuple[type[Named], str], Named] = {}
    pods: list[tuple[int, float, Pod]] = []
    names: set[str] = set()
    numbers = itertools.count()
    for happening in history:
        survey.take(happening)
        new = happening.new
        if happening.old is not None or new is None:
            continue
        is_first = happening.at == history.begins
        if isinstance(new, Pod):
            number = next(numbers)  # as the survey numbers them
            if is_first or not new.node_name:
                pods.append((number, happening.at, _renamed(new, names)))
        elif is_first or not isinstance(new, Node | PersistentVolume):
            objects.setdefault((type(new), new.key), new)
    return [*objects.values(), *(_with_times(survey.fates, *each) for each in pods)]


def _renamed(pod: Pod, names: set[str]) -> Pod:
    """The pod with a name that no pod of the trace had before, as those of a StatefulSet may have."""
    found = itertools.chain([pod.name], (f"{pod.name}.{number}" for number in itertools.count(2)))
    name = next(name for name in found if f"{pod.namespace}/{name}" not in names)
    names.add(f"{pod.namespace}/{name}")
    if name == pod.name:
        return pod
    return pod.with_metadata(attrs.evolve(pod.metadata, name=name, uid=f"{pod.uid}.{name}"))


def _with_times(fates: Fates, number: int, at: float, pod: Pod) -> Pod:
    fate, metadata = fates[number], pod.metadata
    annotations = {**pod.annotations}
    if math.isfinite(fate.duration) and fate.node is not None:
        annotations[_DURATION] = repr(fate.duration)
    if pod.node_name:
        return pod.with_metadata(attrs.evolve(metadata, annotations=FrozenDict(annotations)))
    labels = {key: value for key, value in pod.labels.items() if key not in TOPOLOGY_LABELS}
    return Pod(
        attrs.evolve(
            metadata,
            annotations=FrozenDict(annotations),
            labels=FrozenDict(labels),
            creation_timestamp=datetime.fromtimestamp(at, UTC),
            deletion_timestamp=None,
        ),
        pod.spec,
        PodStatus(),
    )
