"""Transactions on a shared state: the request of a scheduler, and its outcome.

Terms and semantics: Schwarzkopf et al., "Omega: flexible, scalable schedulers for large compute clusters",
EuroSys 2013, sections 3.4 and 5.2.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from kschedfw.api.pod import Pod


class Detection(StrEnum):
    """The rule by which a claim conflicts with writes that others have committed since its decision."""

    FINE = "fine"
    """The pod doesn't fit any more."""
    COARSE = "coarse"
    """The node's sequence number has moved, whether or not the pod still fits."""


class CommitMode(StrEnum):
    """The treatment of the other claims of a transaction in which one conflicts."""

    INCREMENTAL = "incremental"
    """They are bound."""
    ALL_OR_NOTHING = "all-or-nothing"
    """None is bound: gang scheduling."""


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
class Outcome:
    """The outcome of a transaction.

    `accepted` are bound. With ALL_OR_NOTHING and a conflict it is empty; claims that have no conflict
    themselves are in neither field then.
    """

    accepted: tuple[Claim, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
