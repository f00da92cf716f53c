"""Omega's shared state: one truth for several schedulers, which commit transactions to it.

Terms and semantics: Schwarzkopf et al., "Omega: flexible, scalable schedulers for large compute clusters",
EuroSys 2013, sections 3.4 and 5.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import attrs

from kschedfw import InMemoryCluster, Node, Pod
from kschedfw.api import Named, PodCondition
from kschedfw.cluster import ClusterError, EventType, FitCheck, Handler, T, WatchEvent


class Detection(StrEnum):
    """The rule by which a claim conflicts with writes that others have committed since its decision."""

    FINE = "fine"
    """The pod doesn't fit any more."""
    COARSE = "coarse"
    """The node's sequence number has moved, whether or not the pod still fits."""


class CommitMode(StrEnum):
    """The treatment of the other claims of a transaction in which one conflicts."""

    INCREMENTAL = "incremental"
    """Bind the other claims."""
    ALL_OR_NOTHING = "all-or-nothing"
    """Bind no claim: gang scheduling."""


@attrs.frozen
class Claim:
    """A place for a pod: the node, and the node's sequence number in the copy that the decision was based on."""

    pod: Pod
    node_name: str
    sequence: int


@attrs.frozen
class ClaimTransaction:
    """The claims of one decision, in the order in which they were made."""

    claims: tuple[Claim, ...]
    detection: Detection = Detection.FINE
    mode: CommitMode = CommitMode.INCREMENTAL


@attrs.frozen
class Conflict:
    """A claim that was refused, and why."""

    claim: Claim
    reason: str


@attrs.frozen
class CommitOutcome:
    """The outcome of a transaction.

    `accepted` are bound. With ALL_OR_NOTHING and a conflict it is empty; claims that have no conflict
    themselves are in neither field then.
    """

    accepted: tuple[Claim, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


@attrs.frozen
class Following:
    """A subscription to a shared state: the function that ends it, and the state at its start.

    The state is the number of objects, and the sequence numbers of all nodes.
    """

    close: Callable[[], None]
    objects: int
    sequences: Mapping[str, int]


class Truth(Protocol):
    """The shared cluster, as far as a scheduler writes to it beside its transactions; methods as in `Cluster`."""

    def add(self, obj: T) -> T: ...

    def update(self, obj: T) -> T: ...

    def delete(self, obj: Named) -> None: ...

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None: ...

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None: ...


class State(Protocol):
    """A shared state as its schedulers see it: a `SharedState`, or one in another process."""

    @property
    def truth(self) -> Truth: ...

    def follow(self, note: Handler) -> Following: ...

    def commit(self, transaction: ClaimTransaction) -> CommitOutcome: ...


class SharedState:
    """A cluster that several schedulers share, with a sequence number per node.

    The number of a node grows with each change that may matter to a decision about the node: a pod is bound to
    it, changes or goes, or the node itself changes. Changes by others count, too, such as those of a foreign
    scheduler that writes to `truth` directly.

    `fit` checks claims where conflicts are detected FINE; without it a transaction must be COARSE. With
    `checks` off, every claim on a pod that can be bound is accepted: this is how several kube-schedulers behave
    on one cluster, for comparison.

    All methods may be called from any thread. Commits are serial.
    """

    def __init__(self, truth: InMemoryCluster, fit: FitCheck | None = None, *, checks: bool = True) -> None:
        self.truth = truth
        self._fit = fit
        self._checks = checks
        self._sequences: defaultdict[str, int] = defaultdict(int)
        self.close = truth.journal(self._note)

    def sequence(self, node_name: str) -> int:
        """Return the node's sequence number: at least 0, and never smaller than before."""
        return self._sequences.get(node_name, 0)

    def follow(self, note: Handler) -> Following:
        """Call `note` for every existing object, then for every change as it is made.

        See `InMemoryCluster.journal`.
        """
        told: list[WatchEvent] = []
        # One lock for counting and following: `note` gets exactly so many objects before the first change.
        with self.truth.lock:
            self.truth.journal(told.append)()
            close = self.truth.journal(note)
            return Following(close, len(told), dict(self._sequences))

    def commit(self, transaction: ClaimTransaction) -> CommitOutcome:
        """Bind the pods of all claims that don't conflict, as the mode says.

        Raises:
            ValueError: the detection is FINE, and there is no FitCheck.
        """
        if transaction.detection is Detection.FINE and self._fit is None and self._checks:
            raise ValueError(
                "detection: FINE needs a FitCheck, and this SharedState was made without; or use COARSE"
            )
        outcome = CommitOutcome()

        def choose() -> Sequence[tuple[Pod, str]]:
            nonlocal outcome
            outcome = self._decide(transaction)
            return [(claim.pod, claim.node_name) for claim in outcome.accepted]

        self.truth.bind_those(choose)
        return outcome

    def _decide(self, transaction: ClaimTransaction) -> CommitOutcome:
        accepted: list[Claim] = []
        conflicts: list[Conflict] = []
        claimed: set[str] = set()
        for claim in transaction.claims:
            # `check_binding` can't tell: nothing is bound before all claims are decided.
            reason = "it is in this transaction twice" if claim.pod.uid in claimed else ""
            reason = reason or self._refusal(claim, transaction.detection)
            if reason:
                conflicts.append(Conflict(claim, reason))
            else:
                claimed.add(claim.pod.uid)
                accepted.append(claim)
        if conflicts and transaction.mode is CommitMode.ALL_OR_NOTHING:
            if self._fit is not None and self._checks:
                for claim in reversed(accepted):
                    self._fit.release(claim.pod, claim.node_name)
            accepted = []
        return CommitOutcome(tuple(accepted), tuple(conflicts))

    def _refusal(self, claim: Claim, detection: Detection) -> str:
        # First: `reserve` counts the pod, and nobody releases a claim that is refused for another reason.
        try:
            self.truth.check_binding(claim.pod)
        except ClusterError as error:
            return str(error)
        if not self._checks:
            return ""
        if detection is Detection.COARSE:
            present = self.sequence(claim.node_name)
            # Numbers move when the pods are bound, after this: claims of one transaction don't conflict for sharing a
            # node.
            if present != claim.sequence:
                return f"node {claim.node_name} has moved from sequence number {claim.sequence} to {present}"
        if self._fit is None:
            return ""
        # Also where detection is coarse: later claims, and later transactions, count what is reserved here.
        return self._fit.reserve(claim.pod, claim.node_name)

    def _note(self, event: WatchEvent) -> None:
        if node_name := moved_node(event):
            self._sequences[node_name] += 1


def moved_node(event: WatchEvent) -> str:
    """Return the name of the node whose sequence number the event moves; empty for none.

    A kubelet's report about a pod doesn't move it, unless the pod ends.
    """
    obj, old = event.object, event.old
    if isinstance(obj, Node):
        return obj.name
    if not isinstance(obj, Pod) or not obj.node_name:
        return ""
    if event.type is not EventType.MODIFIED or not isinstance(old, Pod):
        return obj.node_name
    is_same = old.spec == obj.spec and old.labels == obj.labels and old.is_terminal == obj.is_terminal
    return "" if is_same and old.is_terminating == obj.is_terminating else obj.node_name
