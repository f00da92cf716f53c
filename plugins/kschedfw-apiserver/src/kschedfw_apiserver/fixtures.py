"""The pytest fixture that serves kschedfw's cluster. pytest loads this module by its entry point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kschedfw import InMemoryCluster
    from kschedfw_apiserver import ApiServer


@pytest.fixture
def kschedfw_api_server(kschedfw_cluster: InMemoryCluster) -> Iterator[ApiServer]:
    """Serve the cluster in memory until the test ends. Needs the extra `serve`."""
    from kschedfw_apiserver import ApiServer

    with ApiServer(kschedfw_cluster) as server:
        yield server
