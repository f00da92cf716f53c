"""The content of events.k8s.io/v1 events.

The sender makes it for a batch of events, and not the thread that records them: then the code for one is still in the
processor's cache for the next.
"""

from __future__ import annotations

import uuid
from random import Random
from typing import Final

import attrs

from kschedfw import CustomObject, CustomResource, Pod
from kschedfw.api import DEFAULT_NAMESPACE, KIND_OF, Named
from kschedfw.api.reading import printable, subdomain_problems
from kschedfw_kubernetes.cluster.client import micro_time
from kschedfw_kubernetes.cluster.decoding import Content
from kschedfw_kubernetes.cluster.resources import Resource

_EVENTS: Final = Resource("Event", "events.k8s.io/v1", "events")
_ACTIONS: Final = {
    "Scheduled": "Binding",
    "FailedScheduling": "Scheduling",
    "BindingConditionsPending": "Scheduling",
    "Preempted": "Preempting",
}
"""kube-scheduler's action by the reason of its event. For other reasons, the reason is the action."""
# The API server's limits for events.k8s.io/v1; a longer note, reason or action is refused.
_LONGEST_NOTE: Final = 1024
_LONGEST_NAME: Final = 128
_DEFAULT_CONTROLLER: Final = "default-scheduler"

Key = tuple[object, ...]


def _shortened(note: str) -> str:
    return printable(note, _LONGEST_NOTE)


@attrs.define(eq=False)
class Happening:
    """The content of an event, the first of a series. `seen` is its time in seconds since the epoch."""

    regarding: Named
    related: Named | None
    type: str
    reason: str
    note: str = attrs.field(converter=_shortened)
    seen: float

    @property
    def controller(self) -> str:
        """The name of the pod's scheduler; that of the default one for other objects."""
        name = self.regarding.spec.scheduler_name if isinstance(self.regarding, Pod) else ""
        return name or _DEFAULT_CONTROLLER

    @property
    def key(self) -> Key:
        """The key of its series: equal for events about one state of an object, whatever their notes (client-go).

        Raises:
            KeyError: the API server has no objects of this class.
        """
        related = () if self.related is None else _identity(self.related)
        return self.controller, self.reason, self.type, *_identity(self.regarding), *related

    def content(self, host: str, chance: Random) -> Content:
        """Return a new event about this, reported from `host`. `chance` names it if it can't be named by its object."""
        namespace = self.regarding.namespace or DEFAULT_NAMESPACE
        controller, reason = self.controller, self.reason
        content: Content = {
            "apiVersion": _EVENTS.api_version,
            "kind": _EVENTS.kind,
            "metadata": {"name": self._name(chance), "namespace": namespace},
            "eventTime": micro_time(self.seen),
            "reportingController": controller,
            "reportingInstance": f"{controller}-{host}"[:_LONGEST_NAME],
            "action": _ACTIONS.get(reason, reason)[:_LONGEST_NAME],
            "reason": reason[:_LONGEST_NAME],
            "type": self.type,
            "note": self.note,
            "regarding": _reference(self.regarding),
        }
        if self.related is not None:
            content["related"] = _reference(self.related)
        return content

    def _name(self, chance: Random) -> str:
        """Return the event's name: the object's name and the time, or a random one if that is too long."""
        name = f"{self.regarding.name}.{int(self.seen * 1e9):x}"
        # client-go also names events by the object and the time, and falls back to a UUID.
        if subdomain_problems(name):
            return str(uuid.UUID(int=chance.getrandbits(128), version=4))
        return name


def collection_of(content: Content) -> str:
    """Return the path of all events in the event's namespace."""
    return _EVENTS.collection(content["metadata"]["namespace"])


def path_of(content: Content) -> str:
    """Return the path of the event."""
    metadata = content["metadata"]
    return _EVENTS.path(metadata["namespace"], metadata["name"])


def _kind_of(obj: Named) -> tuple[str, str]:
    """Return the name and the API version of an object's kind."""
    kind = obj.kind if isinstance(obj, CustomObject | CustomResource) else KIND_OF[type(obj)]
    return kind.name, kind.api_version


def _identity(obj: Named) -> Key:
    metadata = obj.metadata
    return *_kind_of(obj), metadata.namespace, metadata.name, metadata.uid, metadata.resource_version


def _reference(obj: Named) -> Content:
    kind, version = _kind_of(obj)
    reference = {
        "kind": kind,
        "apiVersion": version,
        "namespace": obj.namespace,
        "name": obj.name,
        "uid": obj.uid,
        "resourceVersion": obj.metadata.resource_version,
    }
    return {key: value for key, value in reference.items() if value}
