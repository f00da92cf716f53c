"""A cluster in this process's memory, for embedders, tests and the simulator."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.custom import CustomObject, CustomResource
from kschedfw.api.defaults import default_namespace
from kschedfw.api.evolver import evolver
from kschedfw.api.field_errors import printable
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.kinds import KIND_OF, name_of_kind
from kschedfw.api.meta import DEFAULT_NAMESPACE, Named, ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodCondition, PodStatus
from kschedfw.api.records import frozen
from kschedfw.api.workloads import Namespace
from kschedfw.cluster.errors import AlreadyExistsError, ConflictError, NotFoundError
from kschedfw.cluster.protocol import EventType, Handler, T, WatchEvent
from kschedfw.cluster.watch import Journal, ObjectStore, stored_as

if TYPE_CHECKING:
    pass

# Labels that the API server's PodTopologyLabels admission plugin copies from a node to the pods that are bound to it.
TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")

_LONGEST_MESSAGE = 2048

_OWN_UIDS = "00000000-0000-0000-0000-"
"""The prefix of uids that were given out by a cluster in memory, rather than by an API server."""


_SCHEDULED = PodCondition("PodScheduled", "True")

_stamped = evolver(ObjectMeta, "uid", "labels", "resource_version")
_told = evolver(PodStatus, "nominated_node_name", "conditions")


@frozen
class RecordedEvent:
    """An event about an object, and the number of times it was recorded.

    As in Kubernetes' event series, an event that equals an earlier one adds to its count. `regarding` is the
    object's key and `kind` its kind; `type` is Normal or Warning. `related` is the key of the pod that caused
    the event, if any: for a victim of preemption, the pod that preempted it.
    """

    regarding: str
    kind: str
    type: str
    reason: str
    message: str
    related: str = ""
    count: int = 1


class InMemoryCluster(ObjectStore):
    """A store of objects that behaves like the API server as far as a scheduler can tell.

    It assigns uids (deterministic ones) and resource versions, puts namespaced objects without a namespace into
    `default`, and creates missing namespaces. It doesn't validate, and has no controllers or kubelets: a bound
    pod doesn't start, and a deleted object is gone at once.

    A write returns after its event has been delivered, unless it was made by the handler itself, or another
    thread was delivering to the same handler.

    `events_limit` is the number of recorded events that are kept; the oldest are dropped first.
    """

    def __init__(self, objects: Iterable[Named] = (), *, events_limit: int = 1000) -> None:
        super().__init__()
        self._listed: dict[type[Named], dict[tuple[type[Named], str | None], tuple[Any, ...]]] = {}
        """The results of `list`, until the kind changes: plugins list Services for every pod."""
        self._implied_namespaces: set[str] = set()
        self._version = 0
        self._scheduled = PodStatus(), PodStatus()
        """The status of the pod that was bound last, before and after: most pods come with the same empty one."""
        self._uids = 0
        self._events: BoundedDict[tuple[str, str, str, str, str, str], int] = BoundedDict(events_limit)
        """The number of times each event was recorded, by the object's key, its kind, type, reason and message."""
        for obj in objects:
            self.add(obj)

    # --- reading ---

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """Return the objects of the kind (in the namespace, if given) in the order in which they were added.

        Objects of a custom kind that can't be read as the class are omitted and logged
        (`kschedfw.cluster.memory`); `get` raises a ManifestError for them.
        """
        with self.lock:
            lists = self._listed.get(kind)
            if lists is None:
                lists = self._listed[kind] = self._listed.setdefault(stored_as(kind), {})
            listed = lists.get((kind, namespace))
            if listed is None:
                objects = self._all(kind)
                # Without a namespace, the list is copied as it is: a loop over all claims would take long.
                listed = tuple(
                    objects if namespace is None else (obj for obj in objects if obj.namespace == namespace)
                )
                lists[kind, namespace] = listed
            return listed

    @property
    def events(self) -> Sequence[RecordedEvent]:
        """The recorded events, in the order of their first occurrence."""
        with self.lock:
            return tuple(RecordedEvent(*event, count) for event, count in self._events.items())

    @property
    def implied_namespaces(self) -> frozenset[str]:
        """The namespaces that were created because an object was put into them. Their labels aren't known."""
        with self.lock:
            return frozenset(self._implied_namespaces)

    @property
    def resource_version(self) -> int:
        """The number of writes so far."""
        return self._version

    def journal(self, write: Handler) -> Callable[[], None]:
        """Call `write` for every existing object, then for every change as part of it. Return a function that ends it.

        Unlike the handler of a `watch`, it is called with the `lock` held, before others can see the change or
        make another one. It must be quick, and must neither wait nor change the cluster.
        """
        with self.lock:
            for kind in self._objects.values():
                for obj in kind.values():
                    write(WatchEvent(EventType.ADDED, obj))
            journal = Journal(write)
            self._subscriptions.append(journal)
        return self._unsubscriber(journal)

    def next_version(self) -> int:
        """Return a new resource version, for an object that belongs to this cluster and is kept elsewhere."""
        with self.lock:
            self._version += 1
            return self._version

    # --- writing ---

    def add(self, obj: T) -> T:
        """Create the object and return it as stored.

        A Namespace that was created because an object was put into it is replaced.

        Raises:
            AlreadyExistsError: there is an object of this kind and key.
            TypeError: it isn't an object, but a builder of one, for example.
        """
        if not isinstance(obj, Named):
            raise TypeError(f"obj: expected an object such as a node or a pod, found {obj!r}")
        if isinstance(obj, CustomResource):
            return _read_back(obj, self.add(obj.as_custom_object()))
        with self.lock:
            if _lacks_namespace(obj):
                obj = obj.with_metadata(attrs.evolve(obj.metadata, namespace=DEFAULT_NAMESPACE))
            old = self._objects.get(type(obj), {}).get(obj.key)
            if old is not None:
                if type(obj) is not Namespace or obj.key not in self._implied_namespaces:
                    raise AlreadyExistsError(f"{_title(obj)} already exists")
                self._implied_namespaces.discard(obj.key)
                stored = self._replace(obj, old)
            else:
                if obj.namespace and obj.namespace not in self._objects.get(Namespace, {}):
                    self._implied_namespaces.add(obj.namespace)
                    self._create(Namespace(metadata=ObjectMeta(name=obj.namespace)))
                stored = self._create(obj)
        self._deliver()
        return stored

    def update(self, obj: T) -> T:
        """Replace the object and return it as stored; an update that changes nothing is no write.

        Raises NotFoundError, and ConflictError if the object carries a uid or a resource version that isn't the
        present one. Without them the update is unconditional.
        """
        if isinstance(obj, CustomResource):
            return _read_back(obj, self.update(obj.as_custom_object()))
        with self.lock:
            old = self._present(obj)
            version = obj.metadata.resource_version
            if version and version != old.metadata.resource_version:
                conflict = ConflictError(
                    f"{_title(obj)} has been modified: the update is for resource version {version}, "
                    f"the present one is {old.metadata.resource_version}"
                )
                conflict.present = old
                raise conflict
            stored = self._replace(obj, old)
        self._deliver()
        return stored

    def delete(self, obj: Named) -> None:
        """Delete the object at once, as `Cluster.delete`. Objects that it owns or contains stay."""
        if isinstance(obj, CustomResource):
            obj = obj.as_custom_object()
        with self.lock:
            old = self._present(obj)
            self._version += 1
            del self._objects[type(obj)][old.key]
            self._forget_lists(type(obj))
            if type(obj) is Namespace:
                self._implied_namespaces.discard(old.key)
            self._publish(WatchEvent(EventType.DELETED, old))
        self._deliver()

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod, as `Cluster.bind`, with all changes that the API server makes to the pod.

        The pod gets `PodScheduled=True` and the node's zone and region labels, and loses its nomination. As
        there, the node need not exist.
        """
        self.bind_those(lambda: ((pod, node_name),))

    def bind_those(self, choose: Callable[[], Iterable[tuple[Pod, str]]]) -> None:
        """Bind the pods that `choose` returns to its nodes, all or none, as one change.

        `choose` is called with the `lock` held, so that no other write comes between its look at the cluster
        and the bindings. It must not wait, nor change the cluster. Raises what `bind` raises, before anything
        is bound.
        """
        with self.lock:
            # A list, so that all pods are checked before the first is bound.
            for pod, node_name in [(self.check_binding(pod), node_name) for pod, node_name in choose()]:
                self._bind(pod, node_name)
        self._deliver()

    def check_binding(self, pod: Pod) -> Pod:
        """Return the pod as stored, if `bind` would bind it. Raises what `bind` raises."""
        with self.lock:
            present = self._present(pod)
        # The API server's checks of a Binding in its order. It refuses a pod that is on this very node, too.
        if present.is_terminating:
            raise ConflictError(f"{_title(pod)} is being deleted, cannot be assigned to a host")
        if present.node_name:
            raise ConflictError(f"{_title(pod)} is already assigned to node {present.node_name!r}")
        if present.spec.scheduling_gates:
            raise ConflictError(f"{_title(pod)} has non-empty .spec.schedulingGates")
        return present

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Patch the pod's status, as `Cluster.patch_pod_status`; a patch that changes nothing is no write."""
        with self.lock:
            present = self._present(pod)
            status = present.status
            status = _told(
                status,
                status.nominated_node_name if nominated_node_name is None else nominated_node_name,
                status.conditions if condition is None else _set_condition(status.conditions, condition),
            )
            if status != present.status:
                self._write(present.with_status(status), present)
        self._deliver()

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Record an event, as `Cluster.record_event`; see `events`."""
        # Made printable: the message may contain text of a manifest.
        text = printable(message, _LONGEST_MESSAGE)
        other = "" if related is None else related.metadata.key
        event = (regarding.metadata.key, name_of_kind(regarding), type, reason, text, other)
        with self.lock:
            self._events[event] = self._events.get(event, 0) + 1

    # --- behind the scenes; all of these but `_deliver` with the lock held ---

    def _present(self, obj: T) -> T:
        """Return the stored object of that kind and key."""
        key = obj.key
        if _lacks_namespace(obj):
            key = f"{DEFAULT_NAMESPACE}/{key}"
        present = self.get(type(obj), key)
        if present is None:
            raise NotFoundError(f"{_title(obj)} doesn't exist")
        if obj.uid and obj.uid != present.uid:
            raise ConflictError(f"{_title(obj)} is another one by now: uid {present.uid}, not {obj.uid}")
        return present

    def _create(self, obj: T) -> T:
        uid = obj.uid
        if not uid:
            self._uids += 1
            uid = str(uuid.UUID(int=self._uids))
        elif uid.startswith(_OWN_UIDS):
            # Another cluster in memory gave it out: no object here gets it again.
            self._uids = max(self._uids, int(uid[len(_OWN_UIDS) :], 16))
        return self._write(_with_own_labels(obj), None, uid=uid)

    def _bind(self, present: Pod, node_name: str) -> None:
        given, status = self._scheduled
        if present.status is not given:
            status = _told(present.status, "", _set_condition(present.status.conditions, _SCHEDULED))
            self._scheduled = present.status, status
        labels, topology = present.labels, self._topology_labels(node_name)
        if topology:
            labels = FrozenDict({**labels, **topology})
        metadata = self._new_version(present.metadata, present.uid, labels)
        # Setting the condition, clearing the nomination and copying the labels is the API server's part of a Binding.
        # One new Pod for the three changes, since every placement comes here.
        self._store(present.bound_to(node_name, metadata=metadata, status=status), present)

    def _replace(self, obj: T, old: Named) -> T:
        """Replace the old object, but keep its uid and namespace, which no update changes."""
        metadata = attrs.evolve(
            obj.metadata,
            uid=old.uid,
            namespace=old.namespace,
            resource_version=old.metadata.resource_version,
        )
        obj = _with_own_labels(obj.with_metadata(metadata))
        return obj if obj == old else self._write(obj, old)

    def _write(self, obj: T, old: Named | None, *, uid: str | None = None) -> T:
        """Store the object with a new version, and with this uid if it isn't its own."""
        meta = obj.metadata
        return self._store(obj.with_metadata(self._new_version(meta, uid or meta.uid, meta.labels)), old)

    def _new_version(self, metadata: ObjectMeta, uid: str, labels: FrozenDict[str, str]) -> ObjectMeta:
        self._version += 1
        return _stamped(metadata, uid, labels, str(self._version))

    def _store(self, obj: T, old: Named | None) -> T:
        """Store the object in place of the old one, and publish the event."""
        # A key that is there keeps its place in the dict: an update doesn't change the order of `list`.
        self._objects.setdefault(type(obj), {})[obj.key] = obj
        self._forget_lists(type(obj))
        self._publish(WatchEvent(EventType.ADDED if old is None else EventType.MODIFIED, obj, old))
        return obj

    def _topology_labels(self, node_name: str) -> dict[str, str]:
        node = self.get(Node, node_name)
        if node is None:
            return {}
        return {label: node.labels[label] for label in TOPOLOGY_LABELS if label in node.labels}

    def _forget_lists(self, kind: type[Named]) -> None:
        if (lists := self._listed.get(kind)) is not None:
            lists.clear()


def _read_back(written: T, stored: CustomObject) -> T:
    """Return the stored object as an instance of the class that was written."""
    assert isinstance(written, CustomResource)
    return cast("T", type(written).of(stored))


def _lacks_namespace(obj: Named) -> bool:
    if obj.metadata.namespace:
        return False
    kind = KIND_OF.get(type(obj))
    return kind is not None and kind.namespaced


def _with_own_labels(obj: T) -> T:
    """Return a namespace with the label that the API server gives it; other objects as they are."""
    return cast("T", default_namespace(obj)) if isinstance(obj, Namespace) else obj


def _set_condition(conditions: tuple[PodCondition, ...], new: PodCondition) -> tuple[PodCondition, ...]:
    if any(old.type == new.type for old in conditions):
        return tuple(new if old.type == new.type else old for old in conditions)
    return (*conditions, new)


def _title(obj: Named) -> str:
    return f"{name_of_kind(obj)} {obj.metadata.key}"
