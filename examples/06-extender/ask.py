"""Serves the extender on a free port and asks it what kube-scheduler would: `python ask.py`."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import uvicorn
from extender import LICENCES, make_app
from kschedfw_kubernetes import HTTPExtender

from kschedfw import InMemoryCluster, Pod, Scheduler, load_configuration, make_node, make_pod
from kschedfw.api import to_manifest
from kschedfw.testing import FakeClock

CONFIGURATION = Path(__file__).with_name("kube-scheduler.yaml")

NODES = [
    make_node("plain").capacity(cpu=8, memory="32Gi").build(),
    make_node("cad").capacity(cpu=8, memory="32Gi").annotations({LICENCES: "cad"}).build(),
    make_node("both").capacity(cpu=8, memory="32Gi").annotations({LICENCES: "cad,solver"}).build(),
]
PODS = [
    make_pod("drawing").annotations({LICENCES: "cad"}).build(),
    make_pod("simulation").annotations({LICENCES: "solver"}).build(),
    make_pod("web").build(),
    make_pod("movie").annotations({LICENCES: "render"}).build(),
]


@contextmanager
def served() -> Iterator[str]:
    """The URL of the extender, on a thread of this process."""
    server = uvicorn.Server(uvicorn.Config(make_app(), log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listening:  # from here on requests wait for their answer
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def post(url: str, body: object) -> Any:
    """Return the extender's answer: JSON both ways, with the names of fields as in Go."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def ask(url: str, pod: object, nodes: list[dict[str, Any]]) -> None:
    """Make the two requests that kube-scheduler makes: filter the nodes, then score those that are left."""
    print("POST /filter")
    result = post(f"{url}/filter", {"Pod": pod, "Nodes": {"items": nodes}, "NodeNames": None})
    left = result["Nodes"]["items"]
    print(f"  Nodes: {', '.join(node['metadata']['name'] for node in left)}")
    for field in ("FailedNodes", "FailedAndUnresolvableNodes", "Error"):
        print(f"  {field}: {result[field]!r}")
    print("POST /prioritize")
    for priority in post(f"{url}/prioritize", {"Pod": pod, "Nodes": {"items": left}, "NodeNames": None}):
        print(f"  {priority}")


def schedule(url: str) -> None:
    """Have a scheduler of kschedfw ask it in kube-scheduler's place, as the configuration says but for the port."""
    (config,) = load_configuration(CONFIGURATION).extenders
    cluster = InMemoryCluster([*NODES, *PODS])
    with HTTPExtender(attrs.evolve(config, url_prefix=url)) as extender:
        Scheduler(cluster, extenders=[extender], clock=FakeClock()).run_until_idle()
    for pod in cluster.list(Pod):
        print(f"  {pod.name}: {pod.node_name or pod.status.conditions[0].message}")


def main() -> None:
    with served() as url:
        ask(url, to_manifest(PODS[0]), [to_manifest(node) for node in NODES])
        print("Every pod, by a scheduler that asks the extender:")
        schedule(url)


if __name__ == "__main__":
    main()
