from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.control_plane import ControlPlane, control_plane


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A kube-apiserver with an etcd of its own; only tests with the marks `needs_control_plane` may ask for it."""
    with control_plane(tmp_path_factory.mktemp("control-plane"), users={"alices": "alice"}) as real:
        yield real
