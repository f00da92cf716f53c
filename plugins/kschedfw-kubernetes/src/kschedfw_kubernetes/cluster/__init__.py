"""The cluster of a real API server: client, reflectors, writes, events, leader election."""

from kschedfw_kubernetes.cluster.claim_book import ClaimBook, ClaimConflictError
from kschedfw_kubernetes.cluster.claiming_cluster import ClaimingCluster
from kschedfw_kubernetes.cluster.client import Client, connect
from kschedfw_kubernetes.cluster.cluster import KubernetesCluster
from kschedfw_kubernetes.cluster.errors import (
    ApiError,
    ConnectionConfigError,
    CredentialsError,
    ExpiredError,
    FencedError,
    ForbiddenError,
    KubernetesError,
    NotSyncedError,
    UnavailableError,
)
from kschedfw_kubernetes.cluster.leader_election import LeaderElector
from kschedfw_kubernetes.cluster.node_records import NodeRecords
from kschedfw_kubernetes.cluster.reflector import KindStatus
from kschedfw_kubernetes.cluster.resources import SCHEDULER_KINDS

__all__ = [
    "ApiError",
    "ClaimBook",
    "ClaimConflictError",
    "ClaimingCluster",
    "Client",
    "ConnectionConfigError",
    "CredentialsError",
    "ExpiredError",
    "FencedError",
    "ForbiddenError",
    "KindStatus",
    "KubernetesCluster",
    "KubernetesError",
    "LeaderElector",
    "NodeRecords",
    "NotSyncedError",
    "SCHEDULER_KINDS",
    "UnavailableError",
    "connect",
]
