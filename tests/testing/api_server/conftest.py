from __future__ import annotations

from collections.abc import Iterator

import pytest

from kschedfw.testing.api_server import ApiServer
from tests.testing.api_server.calling import Client


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as served:
        yield served


@pytest.fixture
def call(server: ApiServer) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.close()
