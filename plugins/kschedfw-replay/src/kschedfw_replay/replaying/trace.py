"""A recording as the objects of a simulation: for sweeps, searches and environments, which draw pods anew.

Lost against a replay are the changes of everything but pods. Nodes are those of the window's begin; other objects are
there from the beginning as they were when they first appeared. Claims have the volumes that they got (`Claims`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs
from kschedfw_lab import Trace

from kschedfw import Node, Pod
from kschedfw.api import FrozenDict, Named, PodStatus
from kschedfw.cluster import TOPOLOGY_LABELS
from kschedfw_replay.recording.reader import open_recording
from kschedfw_replay.replaying.claims import Claims
from kschedfw_replay.replaying.fates import Survey
from kschedfw_replay.replaying.history import History

_DURATION: Final = "kschedfw/duration-seconds"
_LIFETIME: Final = "kschedfw/lifetime-seconds"
_SHORTEST: Final = 1e-6
"""Seconds: the resolution of a recording's times. A pod that comes with the last record finds who was there then."""


def read_trace(path: Path, since: float = -math.inf, until: float = math.inf) -> Trace:
    """The nodes and other objects of a recording's window, and its pods with the times at which they came and went.

    A pod that waits has its arrival as `creationTimestamp`, and how long it stayed after its binding in the annotation
    `kschedfw/duration-seconds`. One without such a time (see `Fate.run_time`) has instead, in
    `kschedfw/lifetime-seconds`, how long after its arrival it was deleted, or the window ended.

    A simulation begins with the first arrival, so a pod that is bound at the window's begin has as its duration how
    long it stays after the first arrival; one that leaves before is left out. So are pods that were bound when they
    appeared later, such as static ones. Of pods that arrive, those are left out, and counted, whose claims no run can
    serve.

    Raises:
        RecordingError: the recording is damaged, or nothing of it is in the window.
    """
    history, survey, claims = History(open_recording(path), since, until), Survey(), Claims()
    objects: dict[tuple[type[Named], str], Named] = {}
    pods: list[tuple[int, float, Pod]] = []
    names: set[str] = set()
    numbers = itertools.count()
    for happening in history:
        survey.take(happening)
        new, is_first = happening.new, happening.at == history.begins
        if new is None or claims.take(new, is_first=is_first, has_appeared=happening.old is None):
            continue
        if happening.old is not None:
            continue
        if isinstance(new, Pod):
            # The survey numbers the pods in the same order.
            number = next(numbers)
            if is_first or not new.node_name:
                pods.append((number, happening.at, _renamed(new, names)))
        elif is_first or not isinstance(new, Node):
            objects.setdefault((type(new), new.key), new)
    first = min((at for _, at, pod in pods if not pod.node_name), default=history.begins) - history.begins
    found = [*objects.values(), *claims.objects()]
    left_out: Counter[str] = Counter()
    for number, at, pod in pods:
        fate = survey.fates[number]
        until_its_end = min(fate.duration, history.ends - at)
        if pod.node_name:
            if fate.duration > first:
                found.append(_annotated(pod, _DURATION, max(until_its_end - first, _SHORTEST)))
        elif (why := claims.lacking(pod)) is not None:
            left_out[why] += 1
        elif math.isinf(fate.run_time):
            found.append(_annotated(_arriving(pod, at), _LIFETIME, until_its_end))
        else:
            found.append(_annotated(_arriving(pod, at), _DURATION, fate.run_time))
    return Trace(found, left_out)


def _renamed(pod: Pod, names: set[str]) -> Pod:
    """The pod with a name that no pod of the trace had before, as those of a StatefulSet may have."""
    found = itertools.chain([pod.name], (f"{pod.name}.{number}" for number in itertools.count(2)))
    name = next(name for name in found if f"{pod.namespace}/{name}" not in names)
    names.add(f"{pod.namespace}/{name}")
    if name == pod.name:
        return pod
    return pod.with_metadata(attrs.evolve(pod.metadata, name=name, uid=f"{pod.uid}.{name}"))


def _annotated(pod: Pod, key: str, seconds: float) -> Pod:
    annotations = FrozenDict({**pod.annotations, key: repr(seconds)})
    return pod.with_metadata(attrs.evolve(pod.metadata, annotations=annotations))


def _arriving(pod: Pod, at: float) -> Pod:
    labels = {key: value for key, value in pod.labels.items() if key not in TOPOLOGY_LABELS}
    return Pod(
        attrs.evolve(
            pod.metadata,
            labels=FrozenDict(labels),
            creation_timestamp=datetime.fromtimestamp(at, UTC),
            deletion_timestamp=None,
        ),
        pod.spec,
        PodStatus(),
    )
