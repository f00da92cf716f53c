"""The cluster of a real API server: client, reflectors, writes, events, leader election."""

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
from kschedfw.kubernetes.reflector import KindStatus
from kschedfw.kubernetes.resources import SCHEDULER_KINDS

__all__ = [
    "ApiError",
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
    "NotSyncedError",
    "SCHEDULER_KINDS",
    "UnavailableError",
    "connect",
]
