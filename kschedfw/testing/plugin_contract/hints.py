"""Checks of queueing hints."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from kschedfw.api.custom import CustomKind, CustomObject
from kschedfw.framework.events import ClusterEvent, EventResource, QueueingHint
from kschedfw.testing.plugin_contract.stage import PluginStage
from kschedfw.testing.plugin_contract.subject import Subject, violated

_PODS = (EventResource.POD, EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD)


def ask_hints(subject: Subject, stage: PluginStage) -> None:
    """Call every hint with each kind of change of its resource."""
    events = stage.hooks.answer("events_to_register")
    assert isinstance(events, Sequence)
    for event in events:
        if event.hint is None:
            continue
        for pod, (old, new) in itertools.product(stage.pods, _happens(subject, stage, event)):
            try:
                answer = event.hint(pod, old, new)
            except Exception as error:
                violated(
                    f"{stage.name}: the hint for {event.label} raised {type(error).__name__}: {error}",
                    "old is None for an addition, new for a deletion; what the hint can't read is no reason to fail: "
                    "answer QUEUE if in doubt",
                    error,
                )
            if not isinstance(answer, QueueingHint):
                violated(
                    f"{stage.name}: the hint for {event.label} returned {answer!r}",
                    "return QueueingHint.QUEUE or QueueingHint.SKIP",
                )


def _happens(
    subject: Subject, stage: PluginStage, event: ClusterEvent
) -> Iterator[tuple[object | None, object | None]]:
    """Yield old and new object of an addition, an update and a deletion, for kinds of the contract's objects."""
    kind = str(event.resource).rpartition("/")[2]
    objects: list[object] = [each for each in subject.objects if type(each).__name__ == kind]
    if isinstance(event.resource, CustomKind):
        objects += (each for each in stage.cluster.list(CustomObject) if each.kind == event.resource)
    if event.resource in (*_PODS, EventResource.WILDCARD):
        objects += stage.pods
        objects += (each.pod for info in stage.nodes for each in info.pods[:1])
    if event.resource in (EventResource.NODE, EventResource.WILDCARD):
        objects += (info.node for info in stage.nodes)
    for one, other in zip(objects, [*objects[1:], *objects[:1]], strict=True):
        yield None, one
        yield one, None
        yield one, one
        if type(one) is type(other):
            yield one, other
