"""A served API server, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import Client, KubernetesCluster, connect

from kschedfw.testing.waiting import PATIENCE


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


@pytest.fixture
def connected(server: ApiServer, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Makes clients of the server, which are closed at the end."""
    clients: list[Client] = []

    def make(**options: object) -> Client:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        client = connect(kubeconfig, **{"qps": -1, "chance": Random(0), **options})  # type: ignore[arg-type]
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(connected: Callable[..., Client]) -> Client:
    return connected()


@pytest.fixture
def cluster(client: Client) -> Iterator[KubernetesCluster]:
    with KubernetesCluster(client) as cluster:
        assert cluster.wait_for_sync(PATIENCE)
        yield cluster
