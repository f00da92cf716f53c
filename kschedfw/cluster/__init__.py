"""Where objects live: the `Cluster` protocol, and the cluster in memory that is its embedded default."""

from kschedfw.cluster.claim_controller import ClaimController
from kschedfw.cluster.errors import AlreadyExistsError, ClusterError, ConflictError, NotFoundError
from kschedfw.cluster.freeing import Freed, free_pods
from kschedfw.cluster.local_copy import LocalCopy
from kschedfw.cluster.memory import InMemoryCluster, RecordedEvent, from_manifests
from kschedfw.cluster.protocol import Cluster, EventType, Handler, T, WatchEvent
from kschedfw.cluster.references import MissingObject, missing_objects
from kschedfw.cluster.revertible import Change, RevertibleCluster
from kschedfw.cluster.shared_state import FitCheck, Following, SharedState, State
from kschedfw.cluster.transactions import Claim, ClaimTransaction, CommitMode, Conflict, Detection, Outcome
from kschedfw.cluster.volume_controller import VolumeController

__all__ = [
    "T",
    "AlreadyExistsError",
    "Change",
    "Claim",
    "ClaimController",
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
    "LocalCopy",
    "MissingObject",
    "NotFoundError",
    "Outcome",
    "RecordedEvent",
    "RevertibleCluster",
    "SharedState",
    "State",
    "VolumeController",
    "WatchEvent",
    "free_pods",
    "from_manifests",
    "missing_objects",
]
