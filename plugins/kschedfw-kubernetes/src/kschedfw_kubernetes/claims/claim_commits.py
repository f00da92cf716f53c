"""Writes the claims of one scheduler into the nodes' records."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import attrs

from kschedfw import Pod
from kschedfw.cluster import AlreadyExistsError, ConflictError, FitCheck
from kschedfw_kubernetes.claims.claim_book import ClaimBook, ClaimConflictError, Reason
from kschedfw_kubernetes.claims.node_records import NodeRecords, Seen
from kschedfw_kubernetes.cluster.errors import KubernetesError

CLAIM_SECONDS: Final = 10.0
"""Seconds after sending its claim in which a pod's binding may be sent.

Other schedulers respect a claim for `EXPIRY`.
"""
PATIENCE: Final = 2.0
"""Seconds that a commit waits, in total, for watches that lag behind."""
_MOST_WRITES: Final = 8
"""The most attempts to write a commit, if others write the record at the same time."""
_WATCH_SECONDS: Final = 0.2
"""Seconds to wait until the watch delivers a record that others have written. After them, the record is read."""
RETRIED: Final = (Reason.VERSION, Reason.BEHIND, Reason.UNSEEN)
"""The reasons for which a commit waits or is repeated."""


@attrs.define
class ClaimFigures:
    """Counts of claims by outcome.

    `writes` are updates of records with claims of this scheduler. `retries` are delays of such updates, because others
    had written the record (VERSION) or a watch lagged behind (BEHIND, UNSEEN). `conflicts` are pods that had to be
    decided again. `expired` are claims of dead schedulers that this one has removed.
    """

    claims: int = 0
    writes: int = 0
    expired: int = 0
    retries: Counter[Reason] = attrs.field(factory=Counter)
    conflicts: Counter[Reason] = attrs.field(factory=Counter)


@attrs.define(eq=False)
class _Wish:
    """A pod to claim, and later the deadline of its binding or the reason why it wasn't claimed."""

    pod: Pod
    deadline: float | None = None
    failure: BaseException | None = None


class ClaimCommits:
    """Commits claims, one write per node at a time. Pods that arrive during a write share the next one.

    If another scheduler has written the record first, it is read again and the pods are checked against it. Those that
    still fit are committed again at once.

    Args:
        records, book: the records to write claims to, and the knowledge of pods and claims.
        changed: the book's lock; it is notified of every change.
        fit: checks whether a pod still fits, and counts it. Called with the lock held.
        seen: called with each record that was written or read.
        tell: called with pods whose claim was given up.
    """

    def __init__(
        self,
        records: NodeRecords,
        book: ClaimBook,
        changed: threading.Condition,
        fit: FitCheck,
        *,
        seen: Callable[[Seen], None],
        tell: Callable[[Iterable[str]], None],
    ) -> None:
        self.figures = ClaimFigures()
        self._records, self._book, self._changed, self._fit = records, book, changed, fit
        self._seen, self._tell = seen, tell
        self._clock = records.clock
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._wishes: defaultdict[str, list[_Wish]] = defaultdict(list)
        self._held: dict[str, tuple[Pod, str]] = {}
        """The pods in flight that `fit` counts, by uid, with their nodes."""

    def claim(self, pod: Pod, node_name: str) -> float:
        """Claim a place. Return the deadline for sending the binding, on the monotonic clock.

        Raises:
            ClaimConflictError: the pod doesn't fit any more, or other schedulers wrote the record first in every
                attempt.
            KubernetesError: the API server can't be reached, or refuses.
        """
        wish = _Wish(pod)
        with self._changed:
            # Before the wait for the node's lock, so that the thread that gets the lock next also commits this pod.
            self._wishes[node_name].append(wish)
        with self.alone(node_name):
            # Otherwise another thread has committed the pod with its own.
            if wish.deadline is None and wish.failure is None:
                with self._changed:
                    wishes = self._wishes.pop(node_name)
                try:
                    self._commit(node_name, wishes)
                except BaseException as error:
                    # The threads of the other pods wait for the lock and then read their results, so the error must
                    # reach each of them.
                    _refuse(wishes, error)
        if wish.deadline is None:
            assert wish.failure is not None
            if isinstance(wish.failure, ClaimConflictError):
                with self._changed:
                    self.figures.conflicts[wish.failure.reason] += 1
            raise wish.failure
        return wish.deadline

    def alone(self, node_name: str) -> threading.Lock:
        """Return the lock to hold while writing the node's record."""
        with self._changed:
            # Under the lock: two threads that both miss the key would get a lock each.
            return self._locks[node_name]

    def give_up(self, pods: Iterable[Pod]) -> None:
        """Give up the claims of pods whose claim or binding has failed, as far as is known."""
        uids = [pod.uid for pod in pods]
        with self._changed:
            for uid in uids:
                self._book.refused(uid)
                self.let_go(uid)
        self._tell(uids)

    def let_go(self, uid: str) -> None:
        """Remove the pod from the `fit` check, since it is no longer in flight. The lock must be held."""
        if (held := self._held.pop(uid, None)) is not None:
            self._fit.release(*held)

    def _commit(self, node_name: str, wishes: Sequence[_Wish]) -> None:
        late = self._clock.monotonic() + PATIENCE
        for _ in range(_MOST_WRITES):
            with self._changed:
                self._wait_for_view(node_name, wishes, late)
                # Checked again with each attempt: the record that won the race may have taken the room.
                wishes = self._fitting(node_name, wishes)
                if not wishes:
                    return
                record, version = self._book.commit(node_name, [wish.pod.uid for wish in wishes])
            # Before sending, since other schedulers may see the claim before the answer arrives here.
            sent = self._clock.monotonic()
            try:
                written = self._records.write(node_name, record, version)
            except BaseException as error:
                # Uncount the pods before the next attempt, which refuses pods that are in flight.
                self.give_up(wish.pod for wish in wishes)
                if not _is_race(error, version):
                    with suppress(KubernetesError):
                        self._read(node_name)  # The write may have succeeded although its answer was lost.
                    raise
                self._catch_up(node_name, version)
                continue
            self._seen(written)
            with self._changed:
                self.figures.writes += 1
                self.figures.claims += len(wishes)
            for wish in wishes:
                wish.deadline = sent + CLAIM_SECONDS
            return
        _refuse_all(wishes, node_name, Reason.VERSION)

    def _wait_for_view(self, node_name: str, wishes: Iterable[_Wish], late: float) -> None:
        """Wait until every claim in the record is counted here; refuse the wishes on timeout."""
        obstacle = self._book.obstacle(node_name)
        if obstacle is not None:
            self.figures.retries[obstacle] += 1
        while obstacle is not None:
            left = late - self._clock.monotonic()
            if left <= 0:
                _refuse_all(wishes, node_name, obstacle)
                return
            self._clock.wait_until(self._changed, self._clock.now() + left)
            obstacle = self._book.obstacle(node_name)

    def _fitting(self, node_name: str, wishes: Iterable[_Wish]) -> Sequence[_Wish]:
        """Count the fitting pods on the node, one after another, and refuse the others."""
        fitting = []
        for wish in wishes:
            if wish.failure is not None:
                continue
            pod = wish.pod
            try:
                self._book.claim(pod.uid, node_name, partial(self._fit.reserve, pod, node_name))
            except ClaimConflictError as error:
                wish.failure = error
            else:
                self._held[pod.uid] = pod, node_name
                fitting.append(wish)
        return fitting

    def _catch_up(self, node_name: str, version: str) -> None:
        """Read the record that another scheduler has written since this version."""
        until = self._clock.monotonic() + _WATCH_SECONDS
        with self._changed:
            self.figures.retries[Reason.VERSION] += 1
            while self._book.version(node_name) == version and (left := until - self._clock.monotonic()) > 0:
                self._clock.wait_until(self._changed, self._clock.now() + left)
            if self._book.version(node_name) != version:
                return
        self._read(node_name)

    def _read(self, node_name: str) -> None:
        present = self._records.read(node_name)
        if present is not None:
            self._seen(present)


def _is_race(error: BaseException, version: str) -> bool:
    """Return whether a write lost a race: the record has another version, or exists already."""
    # An update of an older version is a conflict. A new record can only meet one of the same name.
    return isinstance(error, ConflictError if version else AlreadyExistsError)


def _refuse_all(wishes: Iterable[_Wish], node_name: str, reason: Reason) -> None:
    for wish in wishes:
        wish.failure = wish.failure or ClaimConflictError(wish.pod.key, node_name, reason)


def _refuse(wishes: Iterable[_Wish], error: BaseException) -> None:
    for wish in wishes:
        if wish.deadline is None:
            wish.failure = wish.failure or error
