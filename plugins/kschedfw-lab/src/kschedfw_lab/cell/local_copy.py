"""A scheduler's private copy of a shared state."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kschedfw import Node, Pod
from kschedfw.api import CustomResource, Named, PodCondition
from kschedfw.cluster import EventType, Handler, LostRaceError, ObjectStore, WatchEvent, stored_as
from kschedfw_lab.cell.shared_state import (
    Claim,
    ClaimTransaction,
    CommitMode,
    CommitOutcome,
    Detection,
    State,
    moved_node,
)

T = TypeVar("T", bound=Named)


class LocalCopy(ObjectStore):
    """The `Cluster` of one of several schedulers: reads come from a private copy, writes go to the truth.

    The copy is updated only in `sync`, to the state of `delay` seconds ago; so it is as old as its scheduler
    wants it. The scheduler's own writes are seen at once. A binding is a transaction of one claim; `commit`
    makes one of many. After a conflict the copy is updated whatever the delay: the scheduler has just talked to
    the truth.

    Args:
        state: the shared state that is copied.
        now: seconds on any scale, for the delay.
        delay: seconds by which the copy lags at least.
        detection: how conflicts of bindings are detected.
        is_mine: whether a pending pod is this scheduler's; of other pending pods it sees only bound ones.
    """

    def __init__(
        self,
        state: State,
        *,
        now: Callable[[], float] = lambda: 0.0,
        delay: float = 0.0,
        detection: Detection = Detection.FINE,
        is_mine: Callable[[Pod], bool] = lambda _: True,
    ) -> None:
        super().__init__()
        self.state = state
        self.detection = detection
        self.delay = delay
        self._now = now
        self._is_mine = is_mine
        self._offered: frozenset[str] | None = None
        self._arriving = threading.Lock()
        """Guards the pending changes against those that arrive at the same time."""
        self._pending: deque[tuple[float, WatchEvent]] = deque()
        """The changes of the truth that the copy hasn't followed yet, each with the time at which it was made."""
        self._committed: dict[str, str] = {}
        """The node of each pod that a transaction of many has bound, until its binding cycle has come to `bind`."""
        self._sequences: dict[str, int] = {}
        following = state.follow(self._note)
        self._close = following.close
        # Changes that have come since stay behind the existing objects. Each of these counted as a change of its
        # node, so the numbers are set afterwards.
        self._apply(following.objects)
        self._sequences = dict(following.sequences)

    def close(self) -> None:
        """Stop following the truth: the end of the scheduler, orderly or by a crash."""
        self._close()
        with self.lock:
            self._pending.clear()
            for subscription in self._subscriptions:
                subscription.close()

    # --- the copy ---

    def sequence(self, node_name: str) -> int:
        """Return the node's sequence number as far as the copy has followed."""
        return self._sequences.get(node_name, 0)

    @property
    def lag(self) -> int:
        """The number of changes that the copy hasn't followed yet."""
        return len(self._pending)

    def sync(self) -> None:
        """Follow the truth up to `delay` seconds ago."""
        until = self._now() - self.delay
        with self.lock:
            while self._pending and self._pending[0][0] <= until:
                self._apply(1)
        self._deliver()

    def resync(self) -> None:
        """Follow the truth up to now."""
        with self.lock:
            self._apply(len(self._pending))
        self._deliver()

    def offer(self, node_names: Iterable[str] | None) -> None:
        """Show the scheduler these nodes only; None shows all. Other nodes look as if they were deleted."""
        with self.lock:
            before, self._offered = self._offered, None if node_names is None else frozenset(node_names)
            for node in self._objects.get(Node, {}).values():
                was, is_there = _is_in(before, node.name), self._is_offered(node)
                if was != is_there:
                    self._publish(WatchEvent(EventType.ADDED if is_there else EventType.DELETED, node))
        self._deliver()

    # --- reading, as `Cluster` ---

    def get(self, kind: type[T], key: str) -> T | None:
        """Read from the copy, as `Cluster.get`."""
        with self.lock:
            found = super().get(kind, key)
            return None if found is None or not self._is_offered(found) else found

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        """List from the copy, as `Cluster.list`."""
        with self.lock:
            return [obj for obj in super().list(kind, namespace) if self._is_offered(obj)]

    def watch(self, handler: Handler) -> Callable[[], None]:
        """Watch the copy, as `Cluster.watch`. Handlers are called in `sync`, `resync`, `offer` and own writes."""
        everything = (obj for kind in self._objects.values() for obj in kind.values())
        return self._subscribe(handler, filter(self._is_visible, everything))

    # --- writing, as `Cluster` ---

    def add(self, obj: T) -> T:
        """Add to the truth, as `Cluster.add`."""
        stored = self.state.truth.add(obj)
        self._catch_up_with(obj)
        return stored

    def update(self, obj: T) -> T:
        """Update the truth, as `Cluster.update`."""
        stored = self.state.truth.update(obj)
        self._catch_up_with(obj)
        return stored

    def delete(self, obj: Named) -> None:
        """Delete from the truth, as `Cluster.delete`."""
        self.state.truth.delete(obj)
        self._catch_up_with(obj)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        """Patch the truth, as `Cluster.patch_pod_status`."""
        self.state.truth.patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)
        self._catch_up_with(pod)

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        """Record the event at the truth, as `Cluster.record_event`."""
        self.state.truth.record_event(regarding, type, reason, message, related)

    def bind(self, pod: Pod, node_name: str) -> None:
        """Commit a transaction of this claim alone.

        Raises:
            LostRaceError: the claim was refused; the copy is up to date now.
        """
        if self._committed.pop(pod.uid, None) == node_name:
            return
        claim = Claim(pod, node_name, self.sequence(node_name))
        outcome = self._commit((claim,), CommitMode.INCREMENTAL)
        if outcome.conflicts:
            raise LostRaceError(f"Pod {pod.key}: conflict: {outcome.conflicts[0].reason}")

    def commit(self, claims: Iterable[Claim], mode: CommitMode) -> CommitOutcome:
        """Commit a transaction of these claims.

        Its pods are bound, so that `bind` in their binding cycles does nothing.
        """
        outcome = self._commit(tuple(claims), mode)
        self._committed |= {claim.pod.uid: claim.node_name for claim in outcome.accepted}
        return outcome

    def _commit(self, claims: tuple[Claim, ...], mode: CommitMode) -> CommitOutcome:
        outcome = self.state.commit(ClaimTransaction(claims, self.detection, mode))
        if outcome.conflicts:
            self.resync()
        else:
            for claim in outcome.accepted:
                self._catch_up_with(claim.pod)
        return outcome

    # --- behind the scenes ---

    def _note(self, event: WatchEvent) -> None:
        """Queue a change of the truth; called by the thread that makes it."""
        with self._arriving:
            self._pending.append((self._now(), event))

    def _apply(self, count: int) -> None:
        """Apply the next changes to the copy."""
        with self.lock:
            for _ in range(count):
                # Without `_arriving`: others append at the other end, and only who holds `lock` takes changes out.
                self._take(self._pending.popleft()[1])

    def _catch_up_with(self, obj: Named) -> None:
        """Apply all changes of one object ahead of the others, after an own write."""
        with self.lock:
            kind = stored_as(type(obj))
            key = obj.as_custom_object().key if isinstance(obj, CustomResource) else obj.key
            with self._arriving:
                own: list[WatchEvent] = []
                # Once through the whole deque, so that the changes of other objects keep their order.
                for _ in range(len(self._pending)):
                    time, event = self._pending.popleft()
                    if type(event.object) is kind and event.object.key == key:
                        own.append(event)
                    else:
                        self._pending.append((time, event))
            for event in own:
                self._take(event)
        self._deliver()

    def _take(self, event: WatchEvent) -> None:
        objects = self._objects.setdefault(type(event.object), {})
        if event.type is EventType.DELETED:
            objects.pop(event.object.key, None)
        else:
            objects[event.object.key] = event.object
        if node_name := moved_node(event):
            self._sequences[node_name] = self._sequences.get(node_name, 0) + 1
        if self._is_visible(event.object):
            self._publish(event)

    def _is_visible(self, obj: Named) -> bool:
        if isinstance(obj, Pod):
            # Pods on nodes that aren't offered, too: a deleted node's pods stay as well.
            return bool(obj.node_name) or self._is_mine(obj)
        return self._is_offered(obj)

    def _is_offered(self, obj: Named) -> bool:
        return not isinstance(obj, Node) or _is_in(self._offered, obj.name)


def _is_in(offered: frozenset[str] | None, node_name: str) -> bool:
    return offered is None or node_name in offered
