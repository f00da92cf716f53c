"""The cluster of a real API server: client, reflectors, writes, events, leader election."""

from kschedfw.kubernetes.claim_book import ClaimBook, ClaimConflictError
from kschedfw.kubernetes.claiming_cluster import ClaimingCluster
from kschedfw.kubernetes.client import Client, connect
from kschedfw.kubernetes.cluster import KubernetesCluster
from kschedfw.kubernetes.errors import (
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
from kschedfw.kubernetes.leader_election import LeaderElector
from kschedfw.kubernetes.node_records import NodeRecords
from kschedfw.kubernetes.reflector import KindStatus
from kschedfw.kubernetes.resources import SCHEDULER_KINDS

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
