"""The `Cluster` protocol, where objects live, and the cluster in memory that is its embedded default."""

from kschedfw.cluster.claim_controller import ClaimController
from kschedfw.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    LostRaceError,
    NotFoundError,
)
from kschedfw.cluster.freeing import (
    Freed,
    belongs_to_its_node,
    free_pods,
    freed,
    may_be_freed,
)
from kschedfw.cluster.local_copy import LocalCopy
from kschedfw.cluster.memory import TOPOLOGY_LABELS, InMemoryCluster, RecordedEvent, from_manifests
from kschedfw.cluster.protocol import Cluster, EventType, Handler, T, WatchEvent
from kschedfw.cluster.references import ClaimProblem, MissingObject, claim_problems, missing_objects
from kschedfw.cluster.revertible import Change, RevertibleCluster
from kschedfw.cluster.shared_state import (
    Claim,
    ClaimTransaction,
    CommitMode,
    Conflict,
    Detection,
    FitCheck,
    Following,
    Outcome,
    SharedState,
    State,
)
from kschedfw.cluster.volume_controller import VolumeController
from kschedfw.cluster.watch import Journal, Subscription

__all__ = [
    "T",
    "TOPOLOGY_LABELS",
    "AlreadyExistsError",
    "Change",
    "Claim",
    "ClaimController",
    "ClaimProblem",
    "ClaimTransaction",
    "Cluster",
    "ClusterError",
    "CommitMode",
    "Conflict",
    "ConflictError",
    "Detection",
    "EventType",
    "FitCheck",
    "Following",
    "Freed",
    "Handler",
    "InMemoryCluster",
    "Journal",
    "LocalCopy",
    "LostRaceError",
    "MissingObject",
    "NotFoundError",
    "Outcome",
    "RecordedEvent",
    "RevertibleCluster",
    "SharedState",
    "State",
    "Subscription",
    "VolumeController",
    "WatchEvent",
    "belongs_to_its_node",
    "claim_problems",
    "free_pods",
    "freed",
    "from_manifests",
    "may_be_freed",
    "missing_objects",
]
