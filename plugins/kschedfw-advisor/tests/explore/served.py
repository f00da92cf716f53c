"""The page, served over real HTTP."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from explore.clusters import default_configuration
from kschedfw_advisor.explore.access import Access, Guarded
from kschedfw_advisor.explore.app import ExploreApp
from kschedfw_advisor.explore.follow import Reading
from kschedfw_advisor.explore.simulations import Simulations
from kschedfw_advisor.explore.workbench import Workbench
from kschedfw_kubernetes.web import Server, configured, listen

from kschedfw import InMemoryCluster
from kschedfw.testing.waiting import PATIENCE

TOKEN = "the-token"


@attrs.frozen
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@attrs.frozen
class Page:
    """A page that is served; requests carry its token unless they say otherwise."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}"

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, None, headers)

    def post(self, path: str, content: object, **headers: str) -> Answer:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.ask("POST", path, body, {"Content-Type": "application/json", **headers})

    def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Authorization": f"Bearer {TOKEN}", **named}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {name: value for name, value in given.items() if value})
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, told, response.read())
        finally:
            connection.close()


@contextmanager
def served(
    cluster: InMemoryCluster,
    follow: Callable[[], InMemoryCluster] | None = None,
    gates: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Iterator[Page]:
    """Serve the page of a cluster until the end of the block; `follow` reads the cluster again, at once and often.

    `notes` are those of the reading.
    """
    bench = Workbench(cluster, default_configuration(*gates))
    app = ExploreApp(bench, Simulations(bench, [], seed=0), "a <b>cluster</b>", notes)
    if follow is not None:
        app.follow(lambda: Reading(follow()), Reading(cluster), 0.1)
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    ready = threading.Event()
    server = Server(configured(Guarded(app.asgi, Access.of(TOKEN, (), port))), ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield Page(port)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive()
