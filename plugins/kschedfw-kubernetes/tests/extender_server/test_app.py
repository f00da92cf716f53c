"""HTTP as kube-scheduler, load balancers and the curious speak it with the extender server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from extender_server.asgi import Reply, live, post, send
from kschedfw_kubernetes.extender_server import ExtenderApp, ServerLimits

from kschedfw.framework.errors import PluginNotFoundError
from kschedfw.framework.profile import Profile

ARGS = {
    "Pod": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    "Nodes": {"items": []},
}


@pytest.fixture
def app() -> Iterator[ExtenderApp]:
    made = ExtenderApp(
        Profile(["NodeUnschedulable", "TaintToleration"]), limits=ServerLimits(body_bytes=10_000)
    )
    yield made
    made.close()


def reply(app: ExtenderApp, *args: Any, **kwargs: Any) -> Reply:
    made = send(app, *args, **kwargs)
    assert made is not None
    return made


def test_bodies_are_those_of_extender_v1(app: ExtenderApp) -> None:
    """Literally, as a stock kube-scheduler writes and reads them; fields that kschedfw doesn't know come back, too."""
    meta = '"namespace":"default","creationTimestamp":null'
    containers = '"containers":[{"name":"c","image":"i","resources":{}}]'
    pod = f'{{"metadata":{{"name":"p",{meta}}},"spec":{{{containers}}},"status":{{}}}}'
    info = '"nodeInfo":{"architecture":"arm64"}'
    good = f'{{"metadata":{{"name":"good","creationTimestamp":null}},"spec":{{}},"status":{{{info}}}}}'
    bad = '{"metadata":{"name":"bad","creationTimestamp":null},"spec":{"unschedulable":true},"status":{}}'
    args = f'{{"Pod":{pod},"Nodes":{{"metadata":{{}},"items":[{good},{bad}]}},"NodeNames":null}}'.encode()
    filtered = reply(app, "POST", "/filter", args)
    assert filtered.status == 200
    assert filtered.headers["content-type"] == "application/json"
    assert filtered.text == (
        f'{{"Nodes":{{"metadata":{{}},"items":[{good}]}},"NodeNames":null,"FailedNodes":{{}},'
        '"FailedAndUnresolvableNodes":{"bad":"node(s) were unschedulable"},"Error":""}'
    )
    assert (
        reply(app, "POST", "/prioritize", args).text
        == '[{"Host":"good","Score":10},{"Host":"bad","Score":10}]'
    )


def test_field_names_may_be_in_any_case(app: ExtenderApp) -> None:
    args = {"pod": ARGS["Pod"], "nodes": {"items": [{"metadata": {"name": "n"}}]}, "nodenames": None}
    assert post(app, "/filter", args).json["Nodes"]["items"] == [{"metadata": {"name": "n"}}]


def test_a_body_may_come_in_pieces(app: ExtenderApp) -> None:
    body = json.dumps(ARGS).encode()
    assert reply(app, "POST", "/filter", [body[:7], b"", body[7:]]).status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_health(app: ExtenderApp, method: str) -> None:
    healthy = reply(app, method, "/healthz")
    assert (healthy.status, healthy.text) == (200, "ok\n")


def test_mounted_below_a_path(app: ExtenderApp) -> None:
    body = json.dumps(ARGS).encode()
    assert reply(app, "POST", "/extender/filter", body, root_path="/extender").status == 200
    assert reply(app, "POST", "/filter", body, root_path="/extender").status == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "text", "allow"),
    [
        ("POST", "/", 404, "no such path; there are /filter, /prioritize, /preempt and /healthz", None),
        (
            "POST",
            "/filter/",
            404,
            "no such path; there are /filter, /prioritize, /preempt and /healthz",
            None,
        ),
        ("GET", "/filter", 405, "/filter is for POST", "POST"),
        ("POST", "/healthz", 405, "/healthz is for GET", "GET, HEAD"),
    ],
)
def test_other_requests(
    app: ExtenderApp, method: str, path: str, status: int, text: str, allow: str | None
) -> None:
    refused = reply(app, method, path)
    assert (refused.status, refused.text, refused.headers.get("allow")) == (status, f"{text}\n", allow)
    assert refused.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["/filter", "/prioritize", "/preempt"])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "the body is malformed: no JSON: it is empty"),
        (b"{", "the body is malformed: no JSON: Expecting property name"),
        (b"[1]", "the body is malformed: Extender"),
        (b"{}", "the body is malformed: Pod: is missing"),
        (b'{"Pod":[]}', "the body is malformed: Pod: must be an object"),
    ],
)
def test_bad_bodies_are_refused_in_one_line(app: ExtenderApp, path: str, body: bytes, text: str) -> None:
    refused = reply(app, "POST", path, body)
    assert refused.status == 400
    assert refused.text.startswith(text)
    assert refused.text.count("\n") == 1


def test_preemption_without_candidates_is_refused(app: ExtenderApp) -> None:
    refused = post(app, "/preempt", {"Pod": {}})
    assert (refused.status, refused.text) == (
        400,
        "neither NodeNameToVictims nor NodeNameToMetaVictims is there\n",
    )


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({**ARGS, "Nodes": None}, "neither Nodes nor NodeNames is there\n"),
        ({**ARGS, "Pod": {"metadata": {"name": "p"}}}, "Pod: Pod p: spec.containers: Required value\n"),
        (
            {**ARGS, "Nodes": {"items": [{"metadata": {"name": "n"}}, {"metadata": {"name": "N"}}]}},
            'Nodes.items[1]: Node N: metadata.name: Invalid value: "N": ',
        ),
    ],
)
def test_objects_that_no_api_server_has_are_refused(app: ExtenderApp, args: object, text: str) -> None:
    refused = post(app, "/filter", args)
    assert refused.status == 400
    assert refused.text.startswith(text)


class TestSize:
    def test_as_announced(self, app: ExtenderApp) -> None:
        headers = [(b"host", b"localhost:8888"), (b"content-length", b"10001")]
        refused = reply(app, "POST", "/filter", b"{}", headers=headers)
        assert (refused.status, refused.text) == (413, "the body is larger than 10000 bytes\n")

    @pytest.mark.parametrize(("size", "status"), [(10_000, 200), (10_001, 413)])
    def test_as_it_comes(self, app: ExtenderApp, size: int, status: int) -> None:
        body = json.dumps(ARGS).encode()
        body += b" " * (size - len(body))
        assert reply(app, "POST", "/filter", [body[:5000], body[5000:]]).status == status


def test_nobody_is_answered_who_has_left(app: ExtenderApp) -> None:
    assert send(app, "POST", "/filter", b"{", leave=True) is None


def test_other_protocols_are_not_spoken(app: ExtenderApp) -> None:
    async def nothing(*_: object) -> Any:
        raise AssertionError

    with pytest.raises(ValueError, match="speaks HTTP, not 'websocket'"):
        asyncio.run(app({"type": "websocket"}, nothing, nothing))


def test_lifespan() -> None:
    app = ExtenderApp(Profile(["NodeName"]))
    assert live(app, "startup", "shutdown") == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_profile_that_cannot_run_is_an_error_at_once() -> None:
    with pytest.raises(PluginNotFoundError):
        ExtenderApp(Profile(["NoSuchPlugin"]))


def test_requests_at_the_same_time_do_not_meet() -> None:
    """In an executor of the caller's with many threads, which is the caller's to end."""
    args = json.dumps(
        {**ARGS, "Nodes": {"items": [{"metadata": {"name": f"n{i}"}} for i in range(50)]}}
    ).encode()
    other = json.dumps({**ARGS, "Nodes": {"items": [{"metadata": {"name": "other"}}]}}).encode()
    with ThreadPoolExecutor(8) as executor, ThreadPoolExecutor(8) as clients:
        app = ExtenderApp(Profile(["TaintToleration"]), executor=executor)
        replies = list(clients.map(lambda body: reply(app, "POST", "/filter", body), [args, other] * 20))
        app.close()
        assert executor.submit(lambda: 1).result() == 1
    assert [len(each.json["Nodes"]["items"]) for each in replies] == [50, 1] * 20
