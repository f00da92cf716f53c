"""The cluster behind an API server."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeVar, cast

from kschedfw import Clock, CustomKind, CustomObject, CustomResource, Pod
from kschedfw.api import ManifestError, Named, PodCondition
from kschedfw.api.reading import custom_key
from kschedfw.cluster import EventType, Handler, Subscription, WatchEvent
from kschedfw_kubernetes.cluster.client import Client
from kschedfw_kubernetes.cluster.errors import NotSyncedError
from kschedfw_kubernetes.cluster.events import EventRecorder
from kschedfw_kubernetes.cluster.reflector import Changes, KindStatus, Reflector
from kschedfw_kubernetes.cluster.resources import SCHEDULER_KINDS, FollowedKind, Resource, resources_of
from kschedfw_kubernetes.cluster.store import Store
from kschedfw_kubernetes.cluster.watches import Watches
from kschedfw_kubernetes.cluster.writes import Writes

T = TypeVar("T", bound=Named)

_POLL_SECONDS: Final = 0.05


class KubernetesCluster:
    """The `Cluster` of an API server, from `start` to `close`; a context manager that does both.

    Reads come from memory, which follows the server and may lag behind writes. `kinds` are followed from the start. The
    first read of another kind waits until its objects are listed; from then on the kind is followed.

    Watchers are called on the thread that follows all kinds, or on the one that lists a kind, and must not wait for
    other changes. Changes of one kind are in order; changes of different kinds may not be. An object that can't be
    parsed is logged (`kschedfw_kubernetes.cluster.reflector`) and counted in `sync_status`.
    """

    def __init__(
        self,
        client: Client,
        kinds: Iterable[FollowedKind] = SCHEDULER_KINDS,
        *,
        clock: Clock | None = None,
        random: random.Random | None = None,
        first_list_seconds: float = 30.0,
    ) -> None:
        self._client = client
        self._first_list_seconds = first_list_seconds
        self._clock = clock or client.clock
        self._random = random or client.chance
        # Re-entrant: `_wait` holds the lock and calls `synced`, which acquires it.
        self._changed = threading.Condition(threading.RLock())
        """Guards the stores and subscriptions; notified when a kind is synced."""
        self._subscriptions: list[Subscription] = []
        self._reflectors: dict[object, Reflector] = {}
        self._watches = Watches(self._clock)
        self._started = self._closed = False
        self._writes = Writes(client, self._clock, self._known, self._resource)
        self._recorder = EventRecorder(client.with_own_rate(), self._clock)
        for kind in kinds:
            self._follow(kind)

    # --- start and end ---

    def start(self) -> KubernetesCluster:
        """Begin to follow the server. Return without waiting."""
        with self._changed:
            self._started = True
            reflectors = tuple(self._reflectors.values())
        for reflector in reflectors:
            reflector.start()
        self._recorder.start()
        return self

    def close(self, timeout: float = 5.0) -> None:
        """Send the remaining events, for at most `timeout` seconds, and stop following. The client stays open."""
        self._recorder.close(timeout)
        with self._changed:
            self._closed = True
            reflectors = tuple(self._reflectors.values())
            subscriptions, self._subscriptions = self._subscriptions, []
            self._changed.notify_all()
        for subscription in subscriptions:
            subscription.close()
        # Stop all before joining any, so that they end at the same time.
        for reflector in reflectors:
            reflector.stop()
        for reflector in reflectors:
            reflector.join(timeout)

    def __enter__(self) -> KubernetesCluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def synced(self) -> bool:
        """Return whether the objects of all kinds have been listed."""
        with self._changed:
            return all(reflector.synced for reflector in self._reflectors.values())

    def wait_for_sync(self, timeout: float) -> bool:
        """Wait until all kinds were listed and all watchers notified. Return False on timeout, in seconds."""
        deadline = self._clock.monotonic() + timeout
        if not self._wait(lambda: self.synced, deadline):
            return False
        with self._changed:
            # Wait only for changes up to now: on a busy cluster there is always another one.
            told = [(subscription, subscription.received) for subscription in self._subscriptions]
        return self._wait(
            lambda: all(each.is_closed or each.handled >= received for each, received in told), deadline
        )

    def sync_status(self) -> Mapping[str, KindStatus]:
        """Return the status of each followed kind, by the kind's name in the API (`csinodes.storage.k8s.io`)."""
        with self._changed:
            statuses = [reflector.status() for reflector in self._reflectors.values()]
        return {status.kind: status for status in statuses}

    # --- reading ---

    def get(self, kind: type[T], key: str) -> T | None:
        """Do what `Cluster.get` does. Raises NotSyncedError if objects of the kind couldn't be listed yet."""
        if issubclass(kind, CustomResource):
            store = self._store(kind.kind)
            with self._changed:
                return cast("T | None", kind.of(store.get(custom_key(kind.kind, key))))
        if kind is CustomObject:
            with self._changed:
                found = (store.get(key) for store in self._custom_stores())
                return cast("T | None", next((obj for obj in found if obj is not None), None))
        store = self._store(kind)
        with self._changed:
            return cast("T | None", store.get(key))

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """Do what `Cluster.list` does. Raises NotSyncedError if objects of the kind couldn't be listed yet.

        Custom objects that can't be read as the class are left out.
        """
        if issubclass(kind, CustomResource):
            store = self._store(kind.kind)
            with self._changed:
                read = [_read_as(kind, obj) for obj in store.list(namespace)]
            return cast("Sequence[T]", [obj for obj in read if obj is not None])
        if kind is CustomObject:
            with self._changed:
                return cast(
                    "Sequence[T]", [obj for store in self._custom_stores() for obj in store.list(namespace)]
                )
        store = self._store(kind)
        with self._changed:
            return cast("Sequence[T]", store.list(namespace))

    def watch(self, handler: Handler) -> Callable[[], None]:
        """Do what `Cluster.watch` does, for the followed kinds. The handler gets known objects before this returns."""
        with self._changed:
            known = [obj for reflector in self._reflectors.values() for obj in reflector.store.list()]
            subscription = Subscription(handler, [WatchEvent(EventType.ADDED, obj) for obj in known])
            self._subscriptions.append(subscription)
        subscription.deliver()

        def unsubscribe() -> None:
            subscription.close()
            with self._changed:
                if subscription in self._subscriptions:
                    self._subscriptions.remove(subscription)

        return unsubscribe

    # --- writing ---

    def add(self, obj: T) -> T:
        """Do what `Cluster.add` does."""
        return self._writes.add(obj)

    def update(self, obj: T) -> T:
        """Do what `Cluster.update` does. Only differences from the state that the object was made from are written."""
        return self._writes.update(obj)

    def bind(self, pod: Pod, node_name: str, *, deadline: float = math.inf) -> None:
        """Do what `Cluster.bind` does. If the answer gets lost, the pod is read to find out whether it is bound.

        After `deadline`, on the monotonic clock, nothing is sent, and a FencedError is raised.
        """
        self._writes.bind(pod, node_name, deadline)

    def binding_together(self, pods: Sequence[Pod]) -> AbstractContextManager[object]:
        """Do what `BindsTogether.binding_together` does: send the requests over one connection, without waiting."""
        return self._writes.binding_together(pods)

    def delete(self, obj: Named) -> None:
        """Do what `Cluster.delete` does.

        The server deletes the object now or, as most pods, after its grace period.
        """
        self._writes.delete(obj)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Do what `Cluster.patch_pod_status` does."""
        self._writes.patch_pod_status(pod, condition, nominated_node_name)

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Do what `Cluster.record_event` does, in the background. Events are dropped if the server can't keep up."""
        self._recorder.record(regarding, type, reason, message, related)

    # --- internals ---

    def _follow(self, kind: FollowedKind) -> Reflector:
        """Return the kind's reflector, which is made on first use. The lock must be held."""
        if isinstance(kind, type) and issubclass(kind, CustomResource):
            kind = kind.kind
        reflector = self._reflectors.get(kind)
        if reflector is None:
            reflector = Reflector(
                self._client,
                kind,
                lambda changes: self._apply(created, changes),
                self._random,
                self._clock,
                self._watches,
            )
            created = self._reflectors[kind] = reflector
        return reflector

    def _apply(self, reflector: Reflector, changes: Changes) -> None:
        with self._changed:
            if self._closed:
                return
            was_synced = reflector.synced
            for event in changes(reflector.store):
                for subscription in self._subscriptions:
                    subscription.put(event)
            is_first = reflector.synced and not was_synced
            subscriptions = tuple(self._subscriptions)
        # Deliver without the lock: a handler may acquire locks whose holders wait for this one.
        for subscription in subscriptions:
            subscription.deliver()
        if is_first:
            # After the delivery, for which `wait_for_sync` waits, too.
            with self._changed:
                self._changed.notify_all()

    def _store(self, kind: type[Named] | CustomKind) -> Store:
        """Return the kind's objects, once they are listed."""
        # Without the lock, since every read goes through here. Reflectors are never removed, and a kind stays synced.
        reflector = self._reflectors.get(kind)
        if reflector is None or not reflector.synced:
            reflector = self._synced(kind)
        return reflector.store

    def _synced(self, kind: type[Named] | CustomKind) -> Reflector:
        with self._changed:
            is_new = kind not in self._reflectors
            reflector = self._follow(kind)
            if is_new and self._started and not self._closed:
                reflector.start()
        deadline = self._clock.monotonic() + self._first_list_seconds
        if not self._started or not self._wait(lambda: reflector.synced, deadline):
            why = reflector.status().last_error or "no answer yet"
            raise NotSyncedError(
                f"{reflector.resource}: not listed yet: {why if self._started else 'not started'}"
            )
        return reflector

    def _wait(self, is_so: Callable[[], bool], deadline: float) -> bool:
        with self._changed:
            while not is_so():
                left = deadline - self._clock.monotonic()
                if left <= 0 or self._closed:
                    return False
                # Look again regularly: a sync notifies, but changes that another thread delivers don't.
                self._clock.wait_until(self._changed, self._clock.now() + min(left, _POLL_SECONDS))
            return True

    def _custom_stores(self) -> Iterable[Store]:
        return [each.store for kind, each in self._reflectors.items() if isinstance(kind, CustomKind)]

    def _known(self, obj: Named) -> Named | None:
        """Return the stored state of an object; None if there is none."""
        with self._changed:
            reflector = self._reflectors.get(_kind_of(obj))
            return None if reflector is None else reflector.store.get(obj.key)

    def _resource(self, obj: Named) -> Resource:
        """Return the resource of objects like this one."""
        kind = _kind_of(obj)
        reflector = self._reflectors.get(kind)
        return resources_of(kind)[0] if reflector is None else reflector.resource


def _kind_of(obj: Named) -> FollowedKind:
    return obj.kind if isinstance(obj, CustomObject) else type(obj)


def _read_as(kind: type[CustomResource], obj: Named) -> CustomResource | None:
    try:
        return kind.of(obj)
    except ManifestError:
        return None
