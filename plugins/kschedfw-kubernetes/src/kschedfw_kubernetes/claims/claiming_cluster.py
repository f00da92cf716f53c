"""The cluster of one of several active schedulers. It claims a place in the node's record before it binds a pod."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar, cast

from kschedfw import Pod
from kschedfw.api import Named, PodCondition
from kschedfw.cluster import (
    ClusterError,
    EventType,
    FitCheck,
    Handler,
    Journal,
    NotFoundError,
    Subscription,
    WatchEvent,
)
from kschedfw_kubernetes.claims.claim_book import ClaimBook
from kschedfw_kubernetes.claims.claim_commits import ClaimCommits, ClaimFigures
from kschedfw_kubernetes.claims.node_records import NodeRecords, Seen
from kschedfw_kubernetes.cluster.cluster import KubernetesCluster
from kschedfw_kubernetes.cluster.errors import KubernetesError
from kschedfw_kubernetes.cluster.resources import resources_of
from kschedfw_kubernetes.cluster.stopping import StopSignal

if TYPE_CHECKING:
    from kschedfw_kubernetes.claims.claim_metrics import ClaimMetrics

T = TypeVar("T", bound=Named)

# A sweep reads memory unless a claim has expired. A dead scheduler's claims last this much longer than `EXPIRY`.
_SWEEP_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05
_POD: Final = resources_of(Pod)[0]

_log = logging.getLogger(__name__)


class ClaimingCluster:
    """A `Cluster` that forwards all calls, except for bindings, reads of pods and watches.

    `bind` first writes a claim into the node's record. It raises ClaimConflictError if another scheduler has taken the
    place before. Pods that others have claimed are shown as bound, to watchers and in `get`. Pending pods that aren't
    `is_mine` are hidden from watchers.

    Args:
        cluster: the API server's cluster. Only this object may bind pods.
        records: the store of the records.
        book: the knowledge of pods and claims.
        fit: makes the check whether a pod still fits a node. The check follows this cluster by its `journal`.
        is_mine: returns whether this scheduler takes a pending pod.
    """

    def __init__(
        self,
        cluster: KubernetesCluster,
        records: NodeRecords,
        book: ClaimBook,
        fit: Callable[[ClaimingCluster], FitCheck],
        is_mine: Callable[[Pod], bool] = lambda _: True,
    ) -> None:
        self._cluster, self._records, self._book, self._is_mine = cluster, records, book, is_mine
        self._clock = records.clock
        self._changed = threading.Condition(threading.RLock())
        """Guards the book and the pods shown to watchers. Notified of every change."""
        self._pods: dict[str, Pod] = {}
        self._told: dict[str, Pod] = {}
        self._journals: list[Journal] = []
        self._subscription: Subscription | None = None
        self._commits = ClaimCommits(
            records, book, self._changed, fit(self), seen=self._record_seen, tell=self._tell_all
        )
        self._stopping = StopSignal(self._clock)

    def start(self) -> None:
        """Follow the records, and remove expired claims regularly."""
        self._records.follow(self._record_seen)
        threading.Thread(target=self._sweep_for_ever, name="claims", daemon=True).start()

    def close(self) -> None:
        """Stop following the records."""
        self._stopping.set()
        self._records.close()

    def wait_for_sync(self, timeout: float) -> bool:
        """Wait until all records were received. Return False on timeout, in seconds."""
        deadline = self._clock.monotonic() + timeout
        while not self._records.synced and self._clock.monotonic() < deadline:
            self._stopping.wait(_POLL_SECONDS)
        return self._records.synced

    @property
    def figures(self) -> ClaimFigures:
        """Return the counts of this scheduler's claims by outcome."""
        return self._commits.figures

    @property
    def foreign(self) -> int:
        """Return the number of pods that schedulers which don't take part have bound without a claim."""
        return self._book.foreign

    def counts(self) -> Mapping[str, int]:
        """Return the counts by name, such as `claims` and `conflicts_room`, without reasons that never occurred."""
        figures = self.figures
        return {
            "claims": figures.claims,
            "writes": figures.writes,
            "expiries": figures.expired,
            "foreign": self.foreign,
            **{f"retries_{reason}": count for reason, count in figures.retries.items()},
            **{f"conflicts_{reason}": count for reason, count in figures.conflicts.items()},
        }

    def collector(self) -> ClaimMetrics:
        """Return the counts as metrics. Needs the extra `metrics`."""
        from kschedfw_kubernetes.claims.claim_metrics import ClaimMetrics

        return ClaimMetrics(self)

    def bind(self, pod: Pod, node_name: str) -> None:
        """Claim the place, then bind the pod.

        Raises:
            ClaimConflictError: another scheduler has taken the place; nothing was bound.
            NotFoundError, ConflictError: as for `Cluster.bind`.
            KubernetesError: the API server can't be reached, or refuses.
        """
        with self._changed:
            present = self._pods.get(pod.uid, pod)
        deadline = self._commits.claim(present, node_name)
        try:
            self._cluster.bind(pod, node_name, deadline=deadline)
        except BaseException:
            self._commits.give_up((pod,))
            raise

    # --- observations ---

    def _pod_event(self, event: WatchEvent) -> None:
        obj = event.object
        with self._changed:
            if not isinstance(obj, Pod):
                self._put(event)
            elif event.type is EventType.DELETED or obj.is_terminal:
                self._pods.pop(obj.uid, None)
                self._book.pod_gone(obj.uid, _version(obj))
                self._commits.let_go(obj.uid)
                if (told := self._told.pop(obj.uid, None)) is not None:
                    self._put(WatchEvent(EventType.DELETED, told))
            else:
                self._pods[obj.uid] = obj
                self._book.pod_seen(obj.uid, obj.key, obj.node_name, _version(obj))
                if obj.node_name:
                    self._commits.let_go(obj.uid)
                self._tell(obj.uid)
            self._changed.notify_all()
        # Without the lock: a handler may acquire locks whose holders wait for this one.
        self._deliver()

    def _record_seen(self, seen: Seen) -> None:
        with self._changed:
            for uid in self._book.record_seen(*seen, now=self._clock.monotonic()):
                self._tell(uid)
            self._changed.notify_all()
        self._deliver()

    def _tell_all(self, uids: Iterable[str]) -> None:
        with self._changed:
            for uid in uids:
                self._tell(uid)
        self._deliver()

    def _appearance(self, pod: Pod) -> Pod | None:
        """Return the pod as watchers see it; None if it is hidden from them."""
        if pod.node_name:
            return pod
        if shown := self._book.shown(pod.uid):
            return pod.bound_to(shown)
        return pod if self._is_mine(pod) else None

    def _tell(self, uid: str) -> None:
        """Notify watchers if the pod's appearance has changed."""
        pod = self._pods.get(uid)
        if pod is None:
            return
        old, new = self._told.get(uid), self._appearance(pod)
        if old is not None and (new is None or (old.node_name and old.node_name != new.node_name)):
            # A bound pod never loses its node. So watchers see its deletion, and then another pod.
            self._put(WatchEvent(EventType.DELETED, old))
            old = None
        if new is None:
            self._told.pop(uid, None)
        elif new != old:
            self._told[uid] = new
            self._put(WatchEvent(EventType.ADDED if old is None else EventType.MODIFIED, new, old))

    def _put(self, event: WatchEvent) -> None:
        for journal in self._journals:
            journal.put(event)
        if self._subscription is not None:
            self._subscription.put(event)

    def _deliver(self) -> None:
        if self._subscription is not None:
            self._subscription.deliver()

    def watch(self, handler: Handler) -> Callable[[], None]:
        """Do what `Cluster.watch` does. May be called once."""
        with self._changed:
            if self._subscription is not None:
                raise KubernetesError("a ClaimingCluster has one watcher: the scheduler whose pods it binds")
            # Set before the cluster is watched, which passes on all known objects before it returns.
            subscription = self._subscription = Subscription(handler, ())
        unsubscribe = self._cluster.watch(self._pod_event)

        def end() -> None:
            unsubscribe()
            subscription.close()

        return end

    def journal(self, write: Handler) -> Callable[[], None]:
        """Do what `InMemoryCluster.journal` does. Must be called before the cluster is watched."""
        journal = Journal(write)
        self._journals.append(journal)
        return lambda: self._journals.remove(journal)

    # --- claims of dead schedulers ---

    def _sweep_for_ever(self) -> None:
        while not self._stopping.wait(_SWEEP_SECONDS):
            try:
                self.sweep()
            except Exception:
                _log.exception("claims couldn't be cleaned up")

    def sweep(self) -> None:
        """Remove expired claims from the records."""
        with self._changed:
            expired = list(self._book.expired(self._clock.monotonic()))
        for node_name, claim in expired:
            # A failure, such as another scheduler's faster write, leaves the claim to the next sweep. The node's lock
            # is held during requests; the book's lock isn't.
            with suppress(ClusterError), self._commits.alone(node_name):
                if self._is_bound(claim.key, claim.uid):
                    continue
                with self._changed:
                    record, version = self._book.without(node_name, claim)
                self._record_seen(self._records.write(node_name, record, version))
                self.figures.expired += 1
                _log.info(
                    "the claim of %s by %s on node %s is taken back", claim.key, claim.holder, node_name
                )

    def _is_bound(self, key: str, uid: str) -> bool:
        """Return whether the pod is bound at the API server. The server is asked, since a watch may lag behind."""
        namespace, _, name = key.rpartition("/")
        try:
            present = self._records.client.get(_POD.path(namespace, name))
        except NotFoundError:
            return False
        is_same = present.get("metadata", {}).get("uid") == uid
        return is_same and bool((present.get("spec") or {}).get("nodeName"))

    # --- forwarded calls ---

    def get(self, kind: type[T], key: str) -> T | None:
        """Do what `Cluster.get` does; a pod that any scheduler has claimed is shown as bound."""
        found = self._cluster.get(kind, key)
        if not isinstance(found, Pod):
            return found
        with self._changed:
            shown = "" if found.node_name else self._book.shown(found.uid)
        return cast("T", found.bound_to(shown) if shown else found)

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """Do what `Cluster.list` does."""
        return self._cluster.list(kind, namespace)

    def add(self, obj: T) -> T:
        """Do what `Cluster.add` does."""
        return self._cluster.add(obj)

    def update(self, obj: T) -> T:
        """Do what `Cluster.update` does."""
        return self._cluster.update(obj)

    def delete(self, obj: Named) -> None:
        """Do what `Cluster.delete` does."""
        self._cluster.delete(obj)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Do what `Cluster.patch_pod_status` does."""
        self._cluster.patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Do what `Cluster.record_event` does."""
        self._cluster.record_event(regarding, type, reason, message, related)


def _version(pod: Pod) -> int:
    version = pod.metadata.resource_version
    return int(version) if version.isdecimal() else 0
