"""Faults between the scheduler and a real API server: every pod is bound all the same, and once, with one event."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from kschedfw_apiserver import Faults
from kschedfw_apiserver.control_plane import ControlPlane, needs_control_plane
from kschedfw_apiserver.faults import FaultyApp
from kschedfw_apiserver.serving import ServingThread
from serve.replicas import Replica

from kschedfw.testing.waiting import PATIENCE

pytestmark = [pytest.mark.slow, *needs_control_plane]

PODS, NODES = 60, 10
_PODS = "/api/v1/namespaces/default/pods"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
_FORWARDED = (b"authorization", b"content-type", b"accept")


class Relay:
    """An ASGI application that sends each request on to an API server."""

    def __init__(self, server: ControlPlane) -> None:
        self._server = server
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def close(self) -> None:
        """End all requests that are under way, while the loop still runs."""
        if self._client is not None and self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result(PATIENCE)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._client is None:
            # Made here, as it belongs to the loop that it is used from.
            self._loop = asyncio.get_running_loop()
            context = ssl.create_default_context(cafile=str(self._server.authority))
            limits = httpx2.Limits(max_connections=None)
            self._client = httpx2.AsyncClient(
                base_url=self._server.url, verify=context, timeout=None, limits=limits
            )
        body, is_complete = b"", False
        while not is_complete:
            message = await receive()
            body += message.get("body", b"")
            is_complete = not message.get("more_body", False)
        headers = [(name, value) for name, value in scope["headers"] if name in _FORWARDED]
        headers.append((b"accept-encoding", b"identity"))
        target = f"{scope['path']}?{scope['query_string'].decode()}"
        async with self._client.stream(scope["method"], target, headers=headers, content=body) as answer:
            given = [(b"content-type", answer.headers.get("content-type", "").encode())]
            await send({"type": "http.response.start", "status": answer.status_code, "headers": given})
            async for chunk in answer.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@contextmanager
def behind(server: ControlPlane, faults: Faults) -> Iterator[ControlPlane]:
    """Yield the server as it is seen through the faults."""
    relay = Relay(server)
    thread = ServingThread(FaultyApp(relay, faults), 0, None)
    thread.start()
    try:
        yield attrs.evolve(server, url=f"http://127.0.0.1:{thread.port}")
    finally:
        relay.close()
        thread.stop()


def is_binding(method: str, path: str) -> bool:
    return method == "POST" and path.endswith("/binding")


def is_write(method: str, path: str) -> bool:
    return method != "GET" and not path.startswith("/apis/a")  # but for reviews of who may read the endpoints


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(watch_seconds=1.0), id="watches are cut"),
        pytest.param(Faults(expired_watches=0.5, watch_seconds=1.0), id="versions are too old"),
        pytest.param(Faults(throttled=0.1, only=is_write), id="writes are throttled"),
        pytest.param(Faults(failed_after=0.2, only=is_binding), id="bindings fail after their effect"),
        pytest.param(Faults(failed_before=0.2, only=is_binding), id="bindings fail before their effect"),
        pytest.param(Faults(lost=0.2, only=is_binding), id="answers are lost"),
        pytest.param(Faults(half_sent=0.2, only=is_binding), id="answers break off"),
    ],
)
def test_every_pod_is_bound_once(real_server: ControlPlane, tmp_path: Path, faults: Faults) -> None:
    with real_server.client() as client, behind(real_server, faults) as faulty:
        client.delete(_EVENTS).raise_for_status()
        for number in range(NODES):
            client.post("/api/v1/nodes", json=_node(number)).raise_for_status()
        options = ("--leader-elect=false", "--kube-api-qps=-1")
        with Replica(faulty, tmp_path, "scheduler", *options) as replica:
            replica.wait_until_ready()
            for number in range(PODS):
                client.post(_PODS, json=_pod(number)).raise_for_status()
            replica.wait_for(lambda: _bound(client) == PODS)
            replica.wait_for(lambda: len(_events(client)) >= PODS)
            assert replica.ends() == 0
        assert _events(client) == Counter(f"p{number}" for number in range(PODS))


def _events(client: httpx2.Client) -> Counter[str]:
    """Return how often each pod was told to be scheduled."""
    told: Counter[str] = Counter()
    for event in client.get(_EVENTS).raise_for_status().json()["items"]:
        if event["reason"] == "Scheduled":
            told[event["regarding"]["name"]] += (event.get("series") or {}).get("count", 1)
    return told


def _bound(client: httpx2.Client) -> int:
    query = {"fieldSelector": "spec.nodeName!=", "resourceVersion": "0"}
    return len(client.get(_PODS, params=query).raise_for_status().json()["items"])


def _node(number: int) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "20"}
    return {"metadata": {"name": f"n{number}"}, "status": {"capacity": amounts, "allocatable": amounts}}


def _pod(number: int) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"name": f"p{number}"}, "spec": {"containers": [container]}}
