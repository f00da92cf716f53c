"""Leader election: one of several processes holds a Lease, and renews it (client-go `leaderelection`).

Clocks of different machines aren't compared: a lease has expired if this process hasn't seen it change for its
duration. Unlike client-go, there is a fence: the leader sends writes only until `renew_deadline` after it sent the last
renewal, and others don't take over before `lease_duration`.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import Annotated, Any, Final

import attrs
import msgspec

from kschedfw.api.reading import printable
from kschedfw.cluster import NotFoundError
from kschedfw_kubernetes.cluster.client import Client, micro_time
from kschedfw_kubernetes.cluster.decoding import Content
from kschedfw_kubernetes.cluster.errors import KubernetesError, UnavailableError
from kschedfw_kubernetes.cluster.resources import Resource
from kschedfw_kubernetes.cluster.stopping import StopSignal

_LOG = logging.getLogger(__name__)

LEASES: Final = Resource("Lease", "coordination.k8s.io/v1", "leases")
_JITTER: Final = 1.2
"""The number of retry periods that must fit into the renew deadline, as in client-go."""
_SHORTEST: Final = 1.0
"""The least timeout of a request in seconds, unless less time is left."""


_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class LeaderElectionConfigError(KubernetesError, ValueError):
    """The durations of a leader election don't fit together."""


class MalformedLeaseError(KubernetesError):
    """A lease has an invalid content, which no API server could have accepted."""


class _LeaseSpec(
    msgspec.Struct,
    rename={
        "holder": "holderIdentity",
        "transitions": "leaseTransitions",
        "acquire_time": "acquireTime",
        "duration": "leaseDurationSeconds",
    },
):
    holder: str | None = None
    transitions: _Int32 | None = None
    acquire_time: str | None = None
    duration: _Int32 | None = None


class _Lease(msgspec.Struct):
    metadata: dict[str, Any]
    spec: _LeaseSpec | None = None


@attrs.frozen
class LeaderRecord:
    """The leader's data in a lease (client-go `LeaderElectionRecord`)."""

    holder: str = ""
    transitions: int = 0
    acquire_time: str = ""
    duration: float = 0.0


class LeaderElector:
    """A candidate in an election, from `run` to `stop`.

    `is_leader` is true while this process is the leader. `leader` is the name of the leader; it is empty while unknown.
    While this process isn't the leader, the client, and clients that share its fence, send no writes.

    `on_started_leading` is called on a thread of its own. `on_stopped_leading` is called on the thread of `run` when
    the lease is lost or released, and only after `on_started_leading`. `on_held` is called before the first write can
    be sent, and with each renewal. Its argument is the time, on the monotonic clock, before which no other process
    becomes the leader.

    Raises:
        LeaderElectionConfigError: not `lease_duration` > `renew_deadline` > 1.2 × `retry_period` > 0.
    """

    def __init__(
        self,
        client: Client,
        *,
        identity: str,
        namespace: str,
        name: str,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_started_leading: Callable[[], None],
        on_stopped_leading: Callable[[], None],
        on_held: Callable[[float], None] = lambda _until: None,
    ) -> None:
        if not identity:
            raise LeaderElectionConfigError("leader election: identity must not be empty")
        if not lease_duration > renew_deadline > _JITTER * retry_period > 0:
            raise LeaderElectionConfigError(
                "leader election: must be leaseDuration > renewDeadline > 1.2 × retryPeriod > 0, "
                f"not {lease_duration:g} s, {renew_deadline:g} s, {retry_period:g} s"
            )
        self._client, self._identity = client, identity
        self._namespace, self._name = namespace, name
        self._collection = LEASES.collection(namespace)
        self._path = LEASES.path(namespace, name)
        self._lease_duration, self._renew_deadline = lease_duration, renew_deadline
        self._retry_period = retry_period
        self._started, self._stopped, self._held = on_started_leading, on_stopped_leading, on_held
        self._clock, self._chance = client.clock, client.chance
        self._lease: Content | None = None
        self._record = LeaderRecord()
        self._observed_at = 0.0
        self._stopping = StopSignal(self._clock)
        self._release = False
        self._ended = threading.Event()
        self._ended.set()
        # From the start, and not only when `run` begins: until the first election no write may be sent.
        client.fence.close()

    @property
    def leader(self) -> str:
        return self._record.holder

    @property
    def standing_by(self) -> str | None:
        """A text about the other process that holds the lease; None if there is none.

        The text also says what to do if the other process isn't a replica of this scheduler.
        """
        record = self._record
        if record.holder in ("", self._identity):
            return None
        return (
            f"standing by: lease {self._namespace}/{self._name} is held by {printable(record.holder, 200)} since "
            f"{printable(record.acquire_time, 40) or 'an unknown time'}; if that isn't a replica of this scheduler, "
            "give this one a lease of its own by --leader-elect-resource-name"
        )

    @property
    def is_leader(self) -> bool:
        return self._record.holder == self._identity

    def run(self) -> None:
        """Wait to become the leader, and stay leader as long as possible. Return when the lease is lost or released."""
        self._ended.clear()
        try:
            if not self._acquire():
                return
            _LOG.info("became the leader: %s holds lease %s/%s", self._identity, self._namespace, self._name)
            threading.Thread(target=self._started, name="leading", daemon=True).start()
            try:
                self._renew()
            finally:
                # Before the callback, which may take a while.
                self._client.fence.close()
                self._stopped()
        finally:
            # After `on_stopped_leading`: another process may lead as soon as the lease is released.
            self._give_up()
            self._ended.set()

    def stop(self, *, release: bool = True, timeout: float = 10.0) -> None:
        """End `run`, and wait for its end. With `release` the next leader needn't wait until the lease has expired."""
        self._release = release
        self._stopping.set()
        self._ended.wait(timeout)

    # --- the election ---

    def _acquire(self) -> bool:
        while not self._stopping.is_set:
            if self._try(self._retry_period + self._renew_deadline):
                return True
            # Candidates wait for random times, but not longer than until the lease expires. So the next leader follows
            # a dead one after the lease duration and two retry periods at most.
            pause = self._retry_period * (1 + self._chance.random())
            left = self._observed_at + self._record.duration - self._clock.monotonic()
            self._stopping.wait(min(pause, left) if left > 0 else pause)
        return False

    def _renew(self) -> None:
        """Renew the lease until it is lost, no renewal succeeds for `renew_deadline` seconds, or `stop` is called."""
        deadline = self._clock.monotonic() + self._renew_deadline
        while not self._stopping.wait(min(self._retry_period, deadline - self._clock.monotonic())):
            left = deadline - self._clock.monotonic()
            if left <= 0:
                _LOG.error(
                    "lost lease %s/%s: not renewed within %g s",
                    self._namespace,
                    self._name,
                    self._renew_deadline,
                )
                return
            sent = self._clock.monotonic()
            if self._try(left):
                # Count from sending: other candidates count the lease duration from when they see the renewal, which is
                # later.
                deadline = sent + self._renew_deadline
            elif not self.is_leader:
                _LOG.error("lost lease %s/%s to %s", self._namespace, self._name, self.leader)
                return

    def _try(self, seconds: float) -> bool:
        """Acquire or renew the lease within this many seconds. Return whether this process holds it."""
        sent = self._clock.monotonic()
        try:
            mine = self._renewed(sent + seconds) if self.is_leader else self._taken(sent + seconds)
        except KubernetesError as error:
            _LOG.warning("lease %s/%s: %s", self._namespace, self._name, error)
            return False
        if mine:
            # Before the fence opens: `on_held` sets the alarm that ends a process that was suspended between check and
            # write.
            self._held(sent + self._lease_duration)
            self._client.fence.open_until(sent + self._renew_deadline)
        return mine

    def _renewed(self, deadline: float) -> bool:
        """Renew the held lease without reading it first."""
        assert self._lease is not None
        try:
            # client-go's fast path: write on top of the last state seen, and read only if the server refuses that.
            self._write(self._lease, deadline)
        except KubernetesError as error:
            # Another process has written the lease, or an answer was lost. Read it to find out.
            _LOG.info("lease %s/%s: %s", self._namespace, self._name, error)
            return self._taken(deadline)
        return True

    def _taken(self, deadline: float) -> bool:
        """Acquire the lease if nobody holds it."""
        try:
            lease = self._client.get_once(self._path, self._left(deadline))
        except NotFoundError:
            self._write(None, deadline)
            return True
        self._observe(lease)
        is_valid = self._observed_at + self._record.duration > self._clock.monotonic()
        if self._record.holder and is_valid and not self.is_leader:
            return False
        self._write(lease, deadline)
        return True

    def _left(self, deadline: float) -> float:
        """Return the seconds that the next request may take. Raises UnavailableError if the deadline has passed.

        As in client-go, no request may use up the renew deadline, so that there is time for another one if its
        connection is dead.
        """
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise UnavailableError("no answer in time")
        return min(left, max(_SHORTEST, self._renew_deadline / 2))

    def _observe(self, lease: Content) -> None:
        record = _record(lease)
        # Only a change of the spec, which has `renewTime`, shows that the holder lives. The new metadata is needed for
        # the next update.
        if self._lease is not None and lease.get("spec") == self._lease.get("spec"):
            self._lease = lease
            return
        before = self._record.holder
        self._lease, self._record = lease, record
        self._observed_at = self._clock.monotonic()
        if self._record.holder not in ("", before, self._identity):
            _LOG.info("%s", self.standing_by)

    def _write(self, lease: Content | None, deadline: float) -> None:
        now = micro_time(self._clock.now())
        record = LeaderRecord() if lease is None else _record(lease)
        is_ours = record.holder == self._identity
        spec = {
            "holderIdentity": self._identity,
            # The API has whole seconds. Rounded up, others never wait for less than the fence counts on.
            "leaseDurationSeconds": math.ceil(self._lease_duration),
            "acquireTime": record.acquire_time if is_ours and record.acquire_time else now,
            "renewTime": now,
            "leaseTransitions": record.transitions + (0 if is_ours or lease is None else 1),
        }
        self._put(lease, spec, self._left(deadline))

    def _put(self, lease: Content | None, spec: Content, timeout: float) -> None:
        if lease is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            method, path = "POST", self._collection
        else:
            # With its resourceVersion: if two candidates have read the same state, one gets 409.
            metadata = lease["metadata"]
            method, path = "PUT", self._path
        content = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
        self._observe(self._client.write_past_fence(method, path, content, timeout))

    def _give_up(self) -> None:
        """Release the lease if `stop` was called with `release`."""
        lease = self._lease
        if not self._release or not self.is_leader or lease is None:
            return
        now = micro_time(self._clock.now())
        spec = {
            "holderIdentity": "",
            # As in client-go: the API refuses a duration of 0.
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": self._record.transitions,
        }
        try:
            self._put(lease, spec, self._renew_deadline)
        except KubernetesError as error:
            _LOG.warning("lease %s/%s can't be given up: %s", self._namespace, self._name, error)


def _record(lease: Content) -> LeaderRecord:
    """Return the leader's data in a lease.

    Raises:
        MalformedLeaseError: the lease is invalid. The election continues when it has been corrected.
    """
    try:
        found = msgspec.convert(lease, _Lease)
    except msgspec.ValidationError as error:
        raise MalformedLeaseError(f"is malformed: {error}") from None
    spec = found.spec or _LeaseSpec()
    return LeaderRecord(
        spec.holder or "", spec.transitions or 0, spec.acquire_time or "", float(spec.duration or 0)
    )
