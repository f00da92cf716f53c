"""A client for tests of the API server: calls the application itself, or over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
from kschedfw_apiserver import ApiServer

from kschedfw.testing.waiting import PATIENCE

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Client:
    """Calls a server; every method gives the code and the JSON of the answer.

    `pods`, `leases` and `events` are paths in a namespace of its own.
    """

    def __init__(self, http: httpx2.Client, namespace: str = "default") -> None:
        self.http = http
        self.namespace = namespace
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"

    @classmethod
    def of(cls, server: ApiServer, token: str = "") -> Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return cls(httpx2.Client(base_url=server.url, headers=headers, timeout=PATIENCE))

    def __call__(
        self, method: str, path: str, body: Any = None, *, patch: str = "", **query: object
    ) -> tuple[int, Any]:
        headers = {"content-type": f"application/{patch}+json"} if patch else {}
        answer = self.http.request(method, path, json=body, headers=headers, params=_texts(query))
        return answer.status_code, answer.json()

    def watch(self, path: str, **query: object) -> list[Any]:
        """The events of a watch that ends by itself."""
        with self.http.stream("GET", path, params=_texts({"watch": 1, **query})) as answer:
            return [_event(line) for line in answer.iter_lines() if line]

    def close(self) -> None:
        self.http.close()


def _texts(query: dict[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in query.items()}


def _event(line: str) -> Any:
    import msgspec

    return msgspec.json.decode(line)


def pod(name: str = "web", **spec: object) -> dict[str, Any]:
    containers = [{"name": "main", "image": "app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def lease(name: str = "lock", **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]
