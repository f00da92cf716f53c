"""Reports over HTTP, from a real server on this machine."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from kschedfw_loadaware import (
    Endpoint,
    Load,
    LoadReport,
    LoadWatcherSource,
    MetricsError,
    NodeLoad,
    PrometheusSource,
    TargetLoadPacking,
)

from kschedfw import make_node, make_pod
from kschedfw.testing import FakeClock, FrameworkHarness

WATCHER = {
    "timestamp": 1000,
    "window": {"duration": "15m", "start": 100, "end": 1000},
    "source": "Prometheus",
    "data": {
        "NodeMetricsMap": {
            "a": {
                "metrics": [
                    {"name": "host.cpu.utilisation", "type": "CPU", "operator": "AVG", "value": 20},
                    {"name": "host.cpu.utilisation", "type": "CPU", "operator": "STD", "value": 4},
                ]
            }
        }
    },
}

Answer = tuple[int, str]


class Server:
    """Answers by path and query; `seen` are the requests."""

    def __init__(self) -> None:
        self.answer: Callable[[str, dict[str, str]], Answer] = lambda path, query: (404, "")
        self.seen: list[tuple[str, str | None]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # http.server's name
                server.seen.append((self.path, self.headers.get("Authorization")))
                url = urllib.parse.urlsplit(self.path)
                status, text = server.answer(url.path, dict(urllib.parse.parse_qsl(url.query)))
                content = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Not to the tests' output."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_load_watcher_is_asked_for_its_metrics(server: Server) -> None:
    server.answer = lambda path, query: (200, json.dumps(WATCHER)) if path == "/watcher" else (404, "")
    report = LoadWatcherSource(Endpoint(server.address + "/")).read(5)
    assert report == LoadReport(100, 1000, {"a": NodeLoad(Load(20, 4))})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((500, "no"), "/watcher: HTTP 500 'Internal Server Error'"),
        ((200, "<html>"), "/watcher: Expecting value"),
        ((200, "[]"), "a report: must be an object, not list"),
        ((200, '{"window": {"start": 0, "end": 1}}'), "data: must be an object, not NoneType"),
    ],
)
def test_a_bad_answer_names_the_address(server: Server, answer: Answer, text: str) -> None:
    server.answer = lambda path, query: answer
    with pytest.raises(MetricsError) as raised:
        LoadWatcherSource(Endpoint(server.address)).read(0)
    assert str(raised.value).startswith(f"load-watcher at {server.address}: ")
    assert text in str(raised.value)


def test_no_answer_at_all_is_an_error_of_the_same_kind(server: Server) -> None:
    server.close()
    with pytest.raises(MetricsError, match="Connection refused"):
        LoadWatcherSource(Endpoint(server.address)).read(0)
    server._http.server_close()


def vector(*series: tuple[dict[str, str], str]) -> str:
    result = [{"metric": labels, "value": [0, value]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


QUERIES = {
    "avg_over_time(instance:node_cpu:ratio[900s])": vector(
        ({"instance": "a:9100"}, "0.25"), ({"instance": "b"}, "0.5"), ({"instance": "c:9100"}, "NaN")
    ),
    "stddev_over_time(instance:node_cpu:ratio[900s])": vector(({"instance": "a:9100"}, "0.125")),
    "avg_over_time(instance:node_memory_utilisation:ratio[900s])": vector(
        ({"node": "a", "instance": "10.0.0.1:9100"}, "0.75"), ({}, "1")
    ),
    "stddev_over_time(instance:node_memory_utilisation:ratio[900s])": vector(),
}


def test_prometheus_is_asked_for_means_and_deviations(server: Server) -> None:
    server.answer = lambda path, query: (
        (200, QUERIES[query["query"]])
        if path == "/api/v1/query" and query["time"] == "1000.000"
        else (400, "")
    )
    report = PrometheusSource(Endpoint(server.address, token="secret")).read(1000)
    assert report == LoadReport(100, 1000, {"a": NodeLoad(Load(25, 12.5), Load(75)), "b": NodeLoad(Load(50))})
    assert {authorization for _, authorization in server.seen} == {"Bearer secret"}


@pytest.mark.parametrize("answer", ["{}", '{"data": {"resultType": "scalar"}}', "3", vector(({}, "x"))])
def test_an_answer_that_is_no_vector_is_an_error(server: Server, answer: str) -> None:
    server.answer = lambda path, query: (200, answer)
    with pytest.raises(MetricsError, match=r"the answer to avg_over_time.* is no vector"):
        PrometheusSource(Endpoint(server.address)).read(0)


def test_a_plugin_goes_on_with_what_it_has_when_the_server_fails(server: Server) -> None:
    server.answer = lambda path, query: (200, json.dumps(WATCHER))
    clock = FakeClock()
    harness = FrameworkHarness(
        TargetLoadPacking,
        nodes=[make_node(name).capacity(cpu=10).build() for name in "ab"],
        args={"TargetLoadPacking": {"watcherAddress": server.address}},
        clock=clock,
    )
    pod = make_pod().limits(cpu=1).build()
    assert harness.score(pod) == {"a": 85, "b": 0}
    server.answer = lambda path, query: (503, "")
    clock.advance(60)
    assert harness.score(pod) == {"a": 85, "b": 0}
    assert len(server.seen) == 2
