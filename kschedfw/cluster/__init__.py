"""Where objects live: the `Cluster` protocol, and the cluster in memory that is its embedded default."""

from kschedfw.cluster.errors import AlreadyExistsError, ClusterError, ConflictError, NotFoundError
from kschedfw.cluster.loading import from_manifests
from kschedfw.cluster.memory import InMemoryCluster, RecordedEvent
from kschedfw.cluster.protocol import Cluster, EventType, WatchEvent
from kschedfw.cluster.volume_controller import VolumeController

__all__ = [
    "AlreadyExistsError",
    "Cluster",
    "ClusterError",
    "ConflictError",
    "EventType",
    "InMemoryCluster",
    "NotFoundError",
    "RecordedEvent",
    "VolumeController",
    "WatchEvent",
    "from_manifests",
]
