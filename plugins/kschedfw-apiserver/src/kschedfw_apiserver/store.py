"""The objects that the API server shows, with their versions and their history."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import attrs
import msgspec

from kschedfw import Clock, CustomKind, CustomObject, InMemoryCluster
from kschedfw.api import DEFAULT_NAMESPACE, ManifestError, Named, read_object, to_manifest
from kschedfw.api.reading import custom_key, read_custom_object, write_time
from kschedfw.cluster import ConflictError, EventType, WatchEvent
from kschedfw_apiserver.carrying import carried
from kschedfw_apiserver.defaults import as_new
from kschedfw_apiserver.resources import Catalogue, Resource, defined_resources
from kschedfw_apiserver.status import invalid, too_old

Manifest = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace and name; the namespace is empty for cluster-scoped objects."""

_version_of: Final = attrgetter("version")


@attrs.frozen(eq=False)
class Stored:
    """An object in one of its versions.

    `manifest` has neither kind nor apiVersion, and must not be changed. Its JSON is cached.
    """

    resource: Resource
    manifest: Manifest
    version: int

    @property
    def key(self) -> Key:
        metadata = self.manifest["metadata"]
        return metadata.get("namespace", ""), metadata["name"]

    @property
    def uid(self) -> str:
        return str(self.manifest["metadata"]["uid"])

    @cached_property
    def item(self) -> bytes:
        """Return the JSON for a list of built-in kinds, whose items have neither kind nor apiVersion."""
        return msgspec.json.encode(self.manifest)

    @property
    def json(self) -> bytes:
        resource = self.resource
        return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode() + self.item[1:]


@attrs.frozen(eq=False)
class StoredChange:
    """A change of an object. For DELETED, `stored` is its last state with the version of the deletion."""

    type: EventType
    stored: Stored
    old: Stored | None

    @property
    def version(self) -> int:
        return self.stored.version


class OutdatedError(Exception):
    """The object has changed since the state that a replacement was made from."""


class Store:
    """All objects of the server. Objects of the cluster's kinds are stored in the cluster, others here.

    Writes to the cluster change what the server shows. A client's write is in the cluster before its answer is sent.
    Every object has a manifest here, with the fields that the cluster's classes lack. Every write has its own version,
    which the cluster counts.

    `history` is the number of changes of each resource that are kept for watches.
    """

    def __init__(self, cluster: InMemoryCluster, catalogue: Catalogue, clock: Clock, *, history: int) -> None:
        self.cluster = cluster
        self.catalogue = catalogue
        self.lock = cluster.lock
        self._clock = clock
        self._history = history
        self._objects: dict[Resource, dict[Key, Stored]] = {}
        self._listed: dict[Resource, Sequence[Stored]] = {}
        """Cached results of `all`, until the next change."""
        self._changes: dict[Resource, list[StoredChange]] = {}
        self._forgotten: dict[Resource, int] = {}
        """The newest version among each resource's forgotten changes."""
        self._compacted = cluster.resource_version
        self._listeners: dict[Resource, set[Callable[[], None]]] = {}
        self._writing = threading.local()
        """The manifest that this thread is writing to the cluster."""
        self.close = cluster.journal(self._follow)

    # --- reading; callers must not change the manifests ---

    @property
    def version(self) -> int:
        return self.cluster.resource_version

    def get(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        return self._objects.get(resource, {}).get((namespace, name))

    def all(self, resource: Resource) -> tuple[int, Sequence[Stored]]:
        """Return all objects of a resource in the order of their keys, and the version of this state."""
        with self.lock:
            listed = self._listed.get(resource)
            if listed is None:
                listed = self._listed[resource] = _in_order(self._objects.get(resource, {}))
            return self.version, listed

    def at(self, resource: Resource, version: int) -> Sequence[Stored]:
        """Return all objects of a resource as they were at an earlier version, in the order of their keys.

        Raises:
            StatusError: the changes since then are no longer kept.
        """
        with self.lock:
            changes = self.changes(resource, version)
            if not changes:
                return self.all(resource)[1]
            # Copied with the lock, and undone without it.
            objects = dict(self._objects.get(resource, {}))
        for change in reversed(changes):
            if change.old is None:
                objects.pop(change.stored.key, None)
            else:
                objects[change.old.key] = change.old
        return _in_order(objects)

    def changes(self, resource: Resource, after: int) -> list[StoredChange]:
        """Return the changes of a resource since a version.

        Raises:
            StatusError: some of them are no longer kept.
        """
        with self.lock:
            oldest = max(self._forgotten.get(resource, 0), self._compacted)
            if after < oldest:
                raise too_old(after, oldest)
            changes = self._changes.get(resource, [])
            return changes[bisect_right(changes, after, key=_version_of) :]

    def compact(self) -> None:
        """Forget all changes. Requests from an earlier version are answered that it is too old."""
        with self.lock:
            self._changes.clear()
            self._compacted = self.cluster.next_version()
        for listeners in tuple(self._listeners.values()):
            for listener in tuple(listeners):
                listener()

    def listen(self, resource: Resource, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener after each change of a resource, on any thread. Return a function that ends the calls."""
        with self.lock:
            listeners = self._listeners.setdefault(resource, set())
            listeners.add(listener)
        return lambda: listeners.discard(listener)

    # --- writing ---

    def create(self, resource: Resource, manifest: Manifest) -> Stored:
        """Add a new object, under an unused key.

        Raises:
            StatusError: the cluster can't read it.
            AlreadyExistsError: the key is used.
        """
        obj = self._read(resource, manifest)
        if obj is None:
            return self._keep(resource, manifest, None)
        with self._handing_over(manifest) as writing:
            self.cluster.add(obj)
            return writing.taken()

    def replace(self, old: Stored, manifest: Manifest) -> Stored:
        """Replace an object's manifest.

        Raises:
            StatusError: the cluster can't read it.
            OutdatedError: the object has changed since.
        """
        obj = self._read(old.resource, manifest)
        if obj is None:
            return self._keep(old.resource, manifest, old)
        with self.lock:
            present = self._present(old)
        assert present is not None
        version = present.metadata.resource_version
        obj = obj.with_metadata(attrs.evolve(obj.metadata, resource_version=version))
        with self._handing_over(manifest) as writing:
            try:
                self.cluster.update(obj)
            except ConflictError:
                raise OutdatedError from None
            if writing.stored is not None:
                return writing.stored
        # The manifests differ only in fields that the cluster's objects don't have.
        return self._keep(old.resource, manifest, old)

    def remove(self, old: Stored) -> Stored:
        """Delete an object. Return its last state. Raises OutdatedError."""
        with self.lock:
            obj = self._present(old)
            if obj is None:
                return self._drop(old, self.cluster.next_version())
        with self._handing_over(old.manifest) as writing:
            self.cluster.delete(obj)
            return writing.taken()

    def _present(self, old: Stored) -> Named | None:
        """Return the cluster's object, or None if the cluster has no kind for it.

        The lock must be held. Raises OutdatedError.
        """
        resource, (namespace, name) = old.resource, old.key
        if self.get(resource, namespace, name) is not old:
            raise OutdatedError
        key = f"{namespace}/{name}" if namespace else name
        if resource.custom:
            return self.cluster.get(CustomObject, custom_key(_custom_kind(resource), key))
        known = resource.known_kind
        return None if known is None else self.cluster.get(known.cls, key)

    def _keep(self, resource: Resource, manifest: Manifest, old: Stored | None) -> Stored:
        with self.lock:
            if old is not None:
                self._present(old)
            return self._record(resource, manifest, self.cluster.next_version(), old)

    def _read(self, resource: Resource, manifest: Manifest) -> Named | None:
        """Return the object that a manifest describes; None if the cluster has no kind for it."""
        try:
            if resource.custom:
                head = {"apiVersion": resource.api_version, "kind": resource.kind}
                return attrs.evolve(read_custom_object({**head, **manifest}), kind=_custom_kind(resource))
            known = resource.known_kind
            return None if known is None else read_object(manifest, known)
        except ManifestError as error:
            problems = [(each.path, each.message) for each in error.errors]
            raise invalid(resource, str(manifest["metadata"].get("name", "")), problems) from None

    # --- following the cluster; with the lock held ---

    def _handing_over(self, manifest: Manifest) -> _Writing:
        return _Writing(self._writing, manifest)

    def _follow(self, event: WatchEvent) -> None:
        """Record a change of the cluster, with the manifest that a client sent, or with one made from the object."""
        obj = event.object
        resource, key = self._place_of(obj)
        old = self.get(resource, *key)
        writing: _Writing | None = getattr(self._writing, "present", None)
        if writing is not None and (writing.stored is not None or writing.key != key):
            writing = None  # This is a write by a handler, during the client's write.
        if event.type is EventType.DELETED:
            assert old is not None
            stored = self._drop(old, self.cluster.resource_version)
        else:
            version = int(obj.metadata.resource_version)
            manifest = self._made_here(resource, key, event, old) if writing is None else writing.manifest
            stored = self._record(resource, manifest, version, old, uid=obj.uid)
        if writing is not None:
            writing.stored = stored

    def _place_of(self, obj: Named) -> tuple[Resource, Key]:
        if isinstance(obj, CustomObject):
            resource = self.catalogue.of_custom_kind(obj.kind)
        else:
            resource = self.catalogue.of_class(type(obj))
        namespace = (obj.namespace or DEFAULT_NAMESPACE) if resource.namespaced else ""
        return resource, (namespace, obj.name)

    def _made_here(self, resource: Resource, key: Key, event: WatchEvent, old: Stored | None) -> Manifest:
        new = _body(to_manifest(event.object))
        if old is not None and event.old is not None:
            return carried(old.manifest, _body(to_manifest(event.old)), new)
        namespace, name = key
        metadata = {"name": name, "creationTimestamp": self.time(), **new.get("metadata", {})}
        if namespace:
            metadata["namespace"] = namespace
        return as_new(resource, {**new, "metadata": metadata})

    def time(self, later: int = 0) -> str:
        """Return the time in whole seconds, as in metadata. `later` is added, in seconds."""
        return write_time(datetime.fromtimestamp(int(self._clock.now()) + later, UTC))

    def _record(
        self, resource: Resource, manifest: Manifest, version: int, old: Stored | None, *, uid: str = ""
    ) -> Stored:
        metadata = {**manifest["metadata"], "resourceVersion": str(version)}
        if uid:
            metadata["uid"] = uid
        stored = Stored(resource, {**manifest, "metadata": metadata}, version)
        self._objects.setdefault(resource, {})[stored.key] = stored
        if old is None:
            self._define(stored)
        self._remember(StoredChange(EventType.ADDED if old is None else EventType.MODIFIED, stored, old))
        return stored

    def _drop(self, old: Stored, version: int) -> Stored:
        del self._objects[old.resource][old.key]
        metadata = {**old.manifest["metadata"], "resourceVersion": str(version)}
        last = Stored(old.resource, {**old.manifest, "metadata": metadata}, version)
        for resource in _defined(last):
            self.catalogue.remove(resource)
        self._remember(StoredChange(EventType.DELETED, last, old))
        return last

    def _define(self, stored: Stored) -> None:
        for resource in _defined(stored):
            if self.catalogue.of_kind(resource.api_version, resource.kind) is None:
                self.catalogue.add(resource)

    def _remember(self, change: StoredChange) -> None:
        resource = change.stored.resource
        self._listed.pop(resource, None)
        changes = self._changes.setdefault(resource, [])
        changes.append(change)
        # Trim rarely, since each trimming moves the whole list.
        if len(changes) > 2 * self._history:
            self._forgotten[resource] = changes[-self._history - 1].version
            del changes[: -self._history]
        for listener in tuple(self._listeners.get(resource, ())):
            listener()


class _Writing:
    """A client's write in progress, for `Store._follow`, which the cluster calls in the same thread."""

    def __init__(self, place: threading.local, manifest: Manifest) -> None:
        self._place = place
        self.manifest = manifest
        metadata = manifest["metadata"]
        self.key: Key = (metadata.get("namespace", ""), metadata["name"])
        self.stored: Stored | None = None

    def __enter__(self) -> _Writing:
        self._place.present = self
        return self

    def __exit__(self, *exception: object) -> None:
        self._place.present = None

    def taken(self) -> Stored:
        assert self.stored is not None
        return self.stored


def _in_order(objects: Mapping[Key, Stored]) -> Sequence[Stored]:
    return [objects[key] for key in sorted(objects)]


def _custom_kind(resource: Resource) -> CustomKind:
    return CustomKind(resource.api_version, resource.kind, resource.namespaced)


def _body(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}


def _defined(stored: Stored) -> list[Resource]:
    if stored.resource.kind != "CustomResourceDefinition":
        return []
    return list(defined_resources(dict(stored.manifest)))
