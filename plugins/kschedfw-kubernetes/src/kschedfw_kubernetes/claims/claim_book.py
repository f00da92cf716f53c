"""One scheduler's knowledge of pods and of nodes' records: the claim protocol without I/O.

docs/shared-state.md has the safety argument. Tests visit every interleaving of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.cluster import LostRaceError
from kschedfw_kubernetes.claims.node_record import NodeRecord, PodClaim

# The 10 s in which a claim's binding may be sent (`CLAIM_SECONDS`), and 20 s in which a sent binding takes effect.
EXPIRY: Final = 30.0
"""Seconds without a change after which a claim counts as that of a dead scheduler."""


class Reason(StrEnum):
    """The reason why a place can't be claimed."""

    ROOM = "room"
    """The pod doesn't fit any more, because others have claimed places on the node."""
    FOREIGN = "foreign"
    """The pod doesn't fit any more, and the pod that came to the node last was bound without a claim."""
    TAKEN = "taken"
    """The pod is bound, gone, or claimed by another scheduler."""
    VERSION = "version"
    """Another scheduler has updated the record (HTTP 409)."""
    BEHIND = "behind"
    """Other schedulers have seen bindings that this scheduler hasn't seen."""
    UNSEEN = "unseen"
    """The record has a claim for a pod that isn't counted on the node here."""


class ClaimConflictError(LostRaceError):
    """A place couldn't be claimed. Nothing was written."""

    def __init__(self, key: str, node_name: str, reason: Reason, why: str = "") -> None:
        told = f"{reason}: {why}" if why else str(reason)
        super().__init__(f"Pod {key} on node {node_name}: conflict with another scheduler ({told})")
        self.reason = reason


@attrs.frozen
class _Seen:
    """The node and the resource version of a pod, as last seen."""

    key: str
    node_name: str
    version: int


@attrs.frozen
class _Versioned:
    record: NodeRecord = attrs.field(factory=NodeRecord)
    version: str = ""


class ClaimBook:
    """One scheduler's knowledge of pods and claims. Not thread-safe: callers hold a lock.

    A pod *counts* on a node if it is bound there, if a claim of it is `shown` there, or if this scheduler is about to
    bind it there (*in flight*).

    With `checks` off, claims are never refused; this is for comparison.
    """

    def __init__(self, holder: str, *, checks: bool = True) -> None:
        self.holder = holder
        self.followed = 0
        """The resource version up to which pods have been seen."""
        self._checks = checks
        self._pods: dict[str, _Seen] = {}
        self._records: dict[str, _Versioned] = {}
        self._claims: dict[str, dict[str, PodClaim]] = {}
        """The claims, by pod and node."""
        self._shown: dict[str, str] = {}
        self._in_flight: dict[str, str] = {}
        self._since: dict[tuple[str, PodClaim], float] = {}
        """The time at which each claim was first seen, by node and claim."""
        self._unclaimed: set[str] = set()
        """Pods that were bound to a node on which no claim for them has been seen yet."""
        self._gone_unclaimed = 0
        self._last: dict[str, str] = {}
        """By node, the pod that came last by the action of another scheduler."""

    @property
    def foreign(self) -> int:
        """The number of pods that were bound without a claim, by schedulers that don't take part."""
        return self._gone_unclaimed + len(self._unclaimed)

    # --- observations ---

    def pod_seen(self, uid: str, key: str, node_name: str, version: int) -> None:
        """Store a pod's present state. The claims of a bound pod no longer count."""
        # Read before the pod is stored: `place` depends on it.
        before, known = self.place(uid), self._pods.get(uid)
        self._pods[uid] = _Seen(key, node_name, version)
        self.followed = max(self.followed, version)
        if node_name:
            self._in_flight.pop(uid, None)
            # A pod that is bound when it is first seen says nothing about who bound it. One that was in flight to this
            # node was claimed by this scheduler.
            if known is not None and before != node_name and node_name not in self._claims.get(uid, ()):
                self._unclaimed.add(uid)  # The claim may be seen later than the binding.
        self._show(uid, before)

    def pod_gone(self, uid: str, version: int) -> None:
        """Remove a pod that was deleted or has ended."""
        self._pods.pop(uid, None)
        self._in_flight.pop(uid, None)
        self._shown.pop(uid, None)
        self.followed = max(self.followed, version)
        self._gone_unclaimed += uid in self._unclaimed
        self._unclaimed.discard(uid)

    def record_seen(self, node_name: str, record: NodeRecord, version: str, now: float) -> set[str]:
        """Store a node's record. Return the uids of the pods whose claims have changed.

        An empty `version` means that the record is gone. `now` is monotonic, in seconds.
        """
        known = self._records.get(node_name, _Versioned())
        # The answer to a write, a read and the watch deliver the same record on different threads, in any order.
        if known.version and version and int(version) <= int(known.version):
            return set()
        self._records[node_name] = _Versioned(record, version)
        gone, come = {*known.record.claims} - {*record.claims}, {*record.claims} - {*known.record.claims}
        for claim in gone:
            self._since.pop((node_name, claim), None)
            before = self.place(claim.uid)
            self._claims.get(claim.uid, {}).pop(node_name, None)
            self._show(claim.uid, before)
        for claim in come:
            self._since[node_name, claim] = now
            self._unclaimed.discard(claim.uid)
            before = self.place(claim.uid)
            self._claims.setdefault(claim.uid, {})[node_name] = claim
            self._show(claim.uid, before)
        return {claim.uid for claim in gone | come}

    def version(self, node_name: str) -> str:
        """Return the resource version of the node's record, as last seen; empty if there is no record."""
        return self._records.get(node_name, _Versioned()).version

    def shown(self, uid: str) -> str:
        """Return the node that a pending pod is claimed for; empty for none."""
        return self._shown.get(uid, "")

    def place(self, uid: str) -> str:
        """Return the node that the pod occupies, bound or claimed; empty for none."""
        pod = self._pods.get(uid)
        bound = "" if pod is None else pod.node_name
        return bound or self._in_flight.get(uid, "") or self._shown.get(uid, "")

    def _show(self, uid: str, before: str) -> None:
        """Determine on which node a pod is shown, after a change of its claims or of the pod."""
        pod = self._pods.get(uid)
        self._shown.pop(uid, None)
        is_free = pod is not None and not pod.node_name and uid not in self._in_flight
        if is_free and (nodes := self._claims.get(uid)):
            # A pod has claims on two nodes if the answer to a claim was lost and the pod was decided again. It stays
            # where it is shown: for watchers, a move is a deletion and another pod.
            self._shown[uid] = before if before in nodes else min(nodes)
        if (place := self.place(uid)) and place != before:
            self._last[place] = uid

    # --- committing ---

    def obstacle(self, node_name: str) -> Reason | None:
        """Return the reason why no pod can be claimed for the node at present; None if there is none.

        Everything that counts on the node must be counted here: the claims of its record, and the pods that were bound
        since one of its claims was removed.
        """
        if not self._checks:
            return None
        record = self._records.get(node_name, _Versioned()).record
        # Pods and records are followed by separate watches. Without this check, a claim that somebody has removed may
        # be gone here before its binding is seen.
        if self.followed < record.watermark:
            return Reason.BEHIND
        all_count = all(self._is_over(each) or self.place(each.uid) == node_name for each in record.claims)
        return None if all_count else Reason.UNSEEN

    def claim(self, uid: str, node_name: str, refusal: Callable[[], str]) -> None:
        """Count a pending pod on the node, which must have no `obstacle`. `refusal` returns why it doesn't fit.

        The pod is in flight until it is seen bound, or `refused` is called.

        Raises:
            ClaimConflictError: the pod is bound, claimed or gone, or doesn't fit.
        """
        pod = self._pods.get(uid)
        if pod is None or pod.node_name or uid in self._in_flight or self._shown.get(uid):
            raise ClaimConflictError(uid if pod is None else pod.key, node_name, Reason.TAKEN)
        if self._checks and (why := refusal()):
            is_foreign = self._last.get(node_name) in self._unclaimed
            raise ClaimConflictError(pod.key, node_name, Reason.FOREIGN if is_foreign else Reason.ROOM, why)
        # After the check: `refusal` asks about a pod that doesn't count on the node yet.
        self._in_flight[uid] = node_name

    def commit(self, node_name: str, uids: Iterable[str]) -> tuple[NodeRecord, str]:
        """Return the record with the claims of these pods in flight, and the resource version that it has to replace.

        An empty version means that there is no record yet. Claims of bound or deleted pods are left out.
        """
        known = self._records.get(node_name, _Versioned())
        watermark = known.record.watermark
        mine = {uid: self._pods[uid] for uid in uids if uid in self._pods}
        kept = []
        for each in known.record.claims:
            if self._is_over(each):
                watermark = max(watermark, self._binding_version(each.uid))
            # An earlier claim of the same pod is replaced by the new one.
            elif each.uid not in mine:
                kept.append(each)
        claims = (PodClaim(uid, pod.key, pod.version, self.holder) for uid, pod in mine.items())
        return NodeRecord(known.record.sequence + 1, watermark, (*kept, *claims)), known.version

    def _is_over(self, claim: PodClaim) -> bool:
        """Return whether a claim has no effect any more: its pod is bound or gone."""
        pod = self._pods.get(claim.uid)
        # An unknown pod is gone only if this scheduler has followed pods beyond the state that the claimant saw.
        # Otherwise the pod may just not have arrived yet.
        return self.followed >= claim.version if pod is None else bool(pod.node_name)

    def _binding_version(self, uid: str) -> int:
        pod = self._pods.get(uid)
        return pod.version if pod is not None and pod.node_name else 0

    def refused(self, uid: str) -> None:
        """Drop claims of pods whose record wasn't written, or that weren't bound as far as is known.

        The write may have succeeded if its answer was lost. Then the record has the claim, and it counts like that of
        another scheduler until the pod is seen bound or the claim expires.
        """
        self._in_flight.pop(uid, None)
        self._show(uid, "")

    # --- claims of dead schedulers ---

    def expired(self, now: float) -> Iterator[tuple[str, PodClaim]]:
        """Yield the claims that have expired without a binding, with their nodes."""
        for (node_name, claim), since in self._since.items():
            pod = self._pods.get(claim.uid)
            # The thread that binds the pod still runs. It ends with the pod bound, or with `refused`.
            is_mine = self._in_flight.get(claim.uid) == node_name
            if pod is not None and not pod.node_name and not is_mine and now - since >= EXPIRY:
                yield node_name, claim

    def without(self, node_name: str, claim: PodClaim) -> tuple[NodeRecord, str]:
        """Return the record without an expired claim, and the resource version that it has to replace."""
        known = self._records[node_name]
        kept = tuple(each for each in known.record.claims if each != claim)
        return attrs.evolve(known.record, sequence=known.record.sequence + 1, claims=kept), known.version
