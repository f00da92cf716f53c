from __future__ import annotations

import secrets
from collections.abc import Iterator

import httpx2
import pytest
from apiserver.calling import Client
from kschedfw_apiserver import ApiServer, User
from kschedfw_apiserver.control_plane import ControlPlane, needs_control_plane

from kschedfw.testing.waiting import PATIENCE

ADMINISTRATOR = "administrator"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as served:
        yield served


@pytest.fixture
def call(server: ApiServer) -> Iterator[Client]:
    client = Client.of(server)
    yield client
    client.close()


@pytest.fixture(
    params=["for tests", pytest.param("real", marks=needs_control_plane)],
    ids=lambda which: f"server {which}",
)
def either(request: pytest.FixtureRequest) -> ApiServer | ControlPlane:
    """The server for tests and, where there is one, a kube-apiserver: both have to pass the test."""
    if request.param == "real":
        real: ControlPlane = request.getfixturevalue("real_server")
        return real
    served: ApiServer = request.getfixturevalue("server")
    served.add_user(ADMINISTRATOR, User(ADMINISTRATOR, ("system:masters",)))
    served.add_user("alices", User("alice"))
    return served


@pytest.fixture
def api(either: ApiServer | ControlPlane) -> Iterator[Client]:
    """The administrator's client, with an empty namespace."""
    namespace = f"test-{secrets.token_hex(4)}"
    client = Client(client_of(either, ADMINISTRATOR), namespace)
    client("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    yield client
    client.close()


@pytest.fixture
def alice(either: ApiServer | ControlPlane, api: Client) -> Iterator[Client]:
    """The client of somebody without rights, in the same namespace."""
    client = Client(client_of(either, "alices"), api.namespace)
    yield client
    client.close()


def client_of(server: ApiServer | ControlPlane, token: str) -> httpx2.Client:
    if isinstance(server, ControlPlane):
        return server.client(token)
    return httpx2.Client(base_url=server.url, headers={"authorization": f"Bearer {token}"}, timeout=PATIENCE)
