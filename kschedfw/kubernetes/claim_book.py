"""What one scheduler knows of pods and of nodes' records, and whether it may claim a place: the protocol without I/O.

The safety argument is in docs/shared-state.md; tests visit every interleaving of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.cluster.errors import ConflictError
from kschedfw.kubernetes.node_record import NodeRecord, PodClaim

EXPIRY: Final = 30.0
"""Seconds for which a claim has to stand unchanged before it is held to be that of somebody dead."""


class Reason(StrEnum):
    """Why a claim is a conflict."""

    MOVED = "moved"
    """Somebody has taken something on the node since the decision."""
    VERSION = "version"
    """The record was updated by somebody else (HTTP 409)."""
    BEHIND = "behind"
    """Others have seen bindings that this scheduler hasn't seen."""
    UNSEEN = "unseen"
    """Somebody has claimed the node for a pod that isn't counted on it here."""
    TAKEN = "taken"
    """The pod is bound, gone, or claimed by somebody else."""


class ClaimConflictError(ConflictError):
    """A place couldn't be claimed; nothing was written."""

    def __init__(self, key: str, node_name: str, reason: Reason) -> None:
        super().__init__(f"Pod {key} on node {node_name}: conflict with another scheduler ({reason})")
        self.reason = reason


@attrs.frozen
class _Seen:
    """A pod's state: where it is bound, if it is, and its resource version."""

    key: str
    node_name: str
    version: int


@attrs.frozen
class _Versioned:
    record: NodeRecord = attrs.field(factory=NodeRecord)
    version: str = ""


class ClaimBook:
    """One scheduler's view of pods and claims. Not thread-safe: whoever uses it holds a lock.

    A pod *counts* on a node if it is bound there, if somebody's claim of it is `shown` there, or if this scheduler is
    about to bind it there (*in flight*). `count` numbers the changes that others have made, `moved` says with which
    one a node got a pod that counts. A decision is based on the `count` that was known when it began.

    With `checks` off, everybody claims whatever they like, for comparison.
    """

    def __init__(self, holder: str, *, checks: bool = True) -> None:
        self.holder = holder
        self.count = 0
        self.followed = 0
        """The resource version up to which the pods are known."""
        self._checks = checks
        self._moved: dict[str, int] = {}
        self._pods: dict[str, _Seen] = {}
        self._records: dict[str, _Versioned] = {}
        self._claims: dict[str, dict[str, PodClaim]] = {}
        """By pod and node."""
        self._shown: dict[str, str] = {}
        self._in_flight: dict[str, str] = {}
        self._since: dict[tuple[str, PodClaim], float] = {}
        """When each claim was first seen, by its node."""

    # --- what is seen ---

    def pod_seen(self, uid: str, key: str, node_name: str, version: int) -> None:
        """A pod's present state. It may have been bound: that ends its claims as far as this scheduler is concerned."""
        before = self._place(uid)
        self._pods[uid] = _Seen(key, node_name, version)
        self.followed = max(self.followed, version)
        if node_name:
            self._in_flight.pop(uid, None)
        self._show(uid, before)

    def pod_gone(self, uid: str, version: int) -> None:
        """A pod was deleted, or has ended."""
        self._pods.pop(uid, None)
        self._in_flight.pop(uid, None)
        self._shown.pop(uid, None)
        self.followed = max(self.followed, version)

    def record_seen(self, node_name: str, record: NodeRecord, version: str, now: float) -> set[str]:
        """A node's record; the uids of the pods whose claims have changed.

        An empty `version` says that the record is gone. `now` is monotonic, in seconds.
        """
        known = self._records.get(node_name, _Versioned())
        if known.version and version and int(version) <= int(known.version):
            return set()
        self._records[node_name] = _Versioned(record, version)
        gone, come = {*known.record.claims} - {*record.claims}, {*record.claims} - {*known.record.claims}
        for claim in gone:
            self._since.pop((node_name, claim), None)
            before = self._place(claim.uid)
            self._claims.get(claim.uid, {}).pop(node_name, None)
            self._show(claim.uid, before)
        for claim in come:
            self._since[node_name, claim] = now
            before = self._place(claim.uid)
            self._claims.setdefault(claim.uid, {})[node_name] = claim
            self._show(claim.uid, before)
        return {claim.uid for claim in gone | come}

    def shown(self, uid: str) -> str:
        """The node on which a pending pod counts because somebody has claimed it; empty for none."""
        return self._shown.get(uid, "")

    def _place(self, uid: str) -> str:
        """Where a pod counts; empty for nowhere."""
        pod = self._pods.get(uid)
        bound = "" if pod is None else pod.node_name
        return bound or self._in_flight.get(uid, "") or self._shown.get(uid, "")

    def _show(self, uid: str, before: str) -> None:
        """Decide anew where a pod is shown, after a change of its claims or of itself."""
        pod = self._pods.get(uid)
        self._shown.pop(uid, None)
        is_free = pod is not None and not pod.node_name and uid not in self._in_flight
        if is_free and (nodes := self._claims.get(uid)):
            self._shown[uid] = before if before in nodes else min(nodes)
        place = self._place(uid)
        if place and place != before:
            self.count += 1
            self._moved[place] = self.count

    # --- committing ---

    def claim(self, uid: str, node_name: str, basis: int) -> tuple[NodeRecord, str]:
        """The record to write, and the resource version that it has to replace (empty: there is none yet).

        The pod is in flight then, until it is seen bound, or `refused` or `failed` is called.

        Raises:
            ClaimConflictError: it isn't to be claimed.
        """
        pod = self._pods.get(uid)
        known = self._records.get(node_name, _Versioned())
        key = "" if pod is None else pod.key
        if pod is None or pod.node_name or uid in self._in_flight or self._shown.get(uid):
            raise ClaimConflictError(key or uid, node_name, Reason.TAKEN)
        if self._checks:
            if self._moved.get(node_name, 0) > basis:
                raise ClaimConflictError(key, node_name, Reason.MOVED)
            if self.followed < known.record.watermark:
                raise ClaimConflictError(key, node_name, Reason.BEHIND)
        kept, watermark = [], known.record.watermark
        for each in known.record.claims:
            if self._is_over(each):
                watermark = max(watermark, self._binding_version(each.uid))
            elif self._place(each.uid) == node_name or not self._checks:
                kept.append(each)
            else:
                raise ClaimConflictError(key, node_name, Reason.UNSEEN)
        self._in_flight[uid] = node_name
        mine = PodClaim(uid, pod.key, pod.version, self.holder)
        kept = [each for each in kept if each.uid != uid]
        return NodeRecord(known.record.sequence + 1, watermark, (*kept, mine)), known.version

    def _is_over(self, claim: PodClaim) -> bool:
        """Whether a claim keeps nothing any more: its pod is bound or gone."""
        pod = self._pods.get(claim.uid)
        return self.followed >= claim.version if pod is None else bool(pod.node_name)

    def _binding_version(self, uid: str) -> int:
        pod = self._pods.get(uid)
        return pod.version if pod is not None and pod.node_name else 0

    def refused(self, uid: str) -> None:
        """The record wasn't written."""
        self._in_flight.pop(uid, None)
        self._show(uid, "")

    def failed(self, uid: str) -> None:
        """The pod wasn't bound, or the record not written, as far as is known here: an answer may get lost.

        So the claim is treated like somebody else's, until the pod is seen bound or the claim expires. It has moved
        its node: the scheduler forgets the pod, and has to be told of it again.
        """
        self._in_flight.pop(uid, None)
        self._show(uid, "")

    # --- what the dead have left behind ---

    def expired(self, now: float) -> Iterator[tuple[str, PodClaim]]:
        """The claims that have stood too long without a binding, and their nodes."""
        for (node_name, claim), since in self._since.items():
            pod = self._pods.get(claim.uid)
            is_mine = self._in_flight.get(claim.uid) == node_name
            if pod is not None and not pod.node_name and not is_mine and now - since >= EXPIRY:
                yield node_name, claim

    def without(self, node_name: str, claim: PodClaim) -> tuple[NodeRecord, str]:
        """The record without a claim that has expired, and the resource version that it has to replace."""
        known = self._records[node_name]
        kept = tuple(each for each in known.record.claims if each != claim)
        return attrs.evolve(known.record, sequence=known.record.sequence + 1, claims=kept), known.version
