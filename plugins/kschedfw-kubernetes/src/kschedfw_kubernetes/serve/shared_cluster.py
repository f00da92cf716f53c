"""The port for a cluster that this scheduler shares with others that schedule at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from prometheus_client.registry import Collector

from kschedfw import Profile
from kschedfw.cluster import Cluster
from kschedfw_kubernetes.cluster import Client, KubernetesCluster


class SharedCluster(Cluster, Protocol):
    """A `Cluster` whose bindings are agreed on with other schedulers. `ClaimingCluster` is one."""

    def start(self) -> None:
        """Follow the other schedulers."""

    def wait_for_sync(self, timeout: float) -> bool:
        """Wait until the other schedulers' state is known. Return False on timeout, in seconds."""

    def close(self) -> None:
        """Stop following the other schedulers."""

    def counts(self) -> Mapping[str, int]:
        """Return what the log tells at the end, by name."""

    def collector(self) -> Collector:
        """Return the metrics."""


class Sharing(Protocol):
    """The way in which schedulers share a cluster: `--shared-state` chooses claims."""

    def shared(
        self, cluster: KubernetesCluster, client: Client, holder: str, profiles: Iterable[Profile]
    ) -> SharedCluster:
        """Return the cluster for a scheduler of this name. No other scheduler may have, or have had, the name."""
