"""The JSON interface behind the page, over real HTTP."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator

import pytest
import yaml
from explore.clusters import HOSTILE, PROFILE, cluster
from explore.served import TOKEN, Page, served
from kschedfw_advisor.explore import app

from kschedfw.config import parse_configuration
from kschedfw.testing.waiting import PATIENCE

WEIGHT = {"kind": "weight", "profile": PROFILE, "plugin": "ImageLocality", "weight": 5}
DRAIN = {"kind": "drain", "nodes": ["cpu-taken"]}


@pytest.fixture
def page() -> Iterator[Page]:
    with served(cluster()) as found:
        yield found


class TestThePage:
    def test_it_names_its_files_and_nothing_else(self, page: Page) -> None:
        answer = page.get("/")
        assert answer.headers["content-type"].startswith("text/html")
        assert "a &lt;b&gt;cluster&lt;/b&gt;" in answer.text
        assert "<script>" not in answer.text
        assert "style=" not in answer.text

    @pytest.mark.parametrize(
        ("name", "kind"),
        [("explore.js", "text/javascript"), ("theme.css", "text/css"), ("icon.svg", "image/svg+xml")],
    )
    def test_its_files(self, page: Page, name: str, kind: str) -> None:
        answer = page.get(f"/static/{name}")
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, kind)

    @pytest.mark.parametrize("name", ["..%2fapp.py", "%2e%2e/app.py", "app.py", "static_page.js", ""])
    def test_no_other_files(self, page: Page, name: str) -> None:
        assert page.get(f"/static/{name}").status == 404

    def test_answers_are_packed(self, page: Page) -> None:
        answer = page.get("/api/state", Accept_Encoding="gzip")
        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(answer.body) == page.get("/api/state").body


class TestChanges:
    def test_the_state(self, page: Page) -> None:
        state = page.get("/api/state").json
        assert state["map"]["nodes"]["names"] == ["cpu-taken", "memory-taken", "shut"]
        assert state["map"]["nodes"]["labels"]["note"]["values"] == [HOSTILE]
        assert state["map"]["pods"]["nodes"] == [0, 1, 0, -1, -1]
        assert state["fresh"] == [2]
        assert [(each["name"], each["pods"]) for each in state["waiting"]] == [("huge", [3]), ("gated", [4])]
        assert state["placed"] == [2]
        assert (state["tried"], state["undo"], state["redo"], state["kept"]) == (None, None, None, [])

    def test_what_is_tried_is_shown_and_not_kept(self, page: Page) -> None:
        tried = page.post("/api/try", {"changes": [DRAIN]}).json["tried"]
        assert tried["counts"] == {"moves": 2}
        assert tried["gains"] == {"memory-taken": 2}
        assert tried["losses"] == {"cpu-taken": 2}
        assert tried["moves"][0] == {
            "pod": "default/busy",
            "change": "moves",
            "before": "cpu-taken",
            "after": "memory-taken",
            "why": "",
            "workload": "",
        }
        assert page.get("/api/state").json["map"]["pods"]["nodes"] == [0, 1, 0, -1, -1]

    def test_what_is_kept_can_be_undone_and_redone(self, page: Page) -> None:
        kept = page.post("/api/keep", {"changes": [DRAIN, WEIGHT]}).json
        assert kept["kept"] == ["drain cpu-taken", "weight of ImageLocality: 5"]
        assert kept["map"]["nodes"]["cordoned"] == [0, 2]
        assert kept["notes"] == ["drain cpu-taken: evicts 1 pod, leaves 0 of the node's own"]
        undone = page.post("/api/undo", {}).json
        assert (undone["kept"], undone["redo"]) == ([], "drain cpu-taken, weight of ImageLocality: 5")
        assert page.post("/api/redo", {}).json["map"] == kept["map"]

    def test_what_comes_of_it_can_be_downloaded(self, page: Page) -> None:
        page.post("/api/keep", {"changes": [DRAIN, WEIGHT]})
        written = page.get("/api/configuration.yaml")
        assert written.headers["content-disposition"] == 'attachment; filename="configuration.yaml"'
        profile = parse_configuration(yaml.safe_load(written.text)).profiles[0]
        assert profile.weight("ImageLocality") == 5
        manifests = list(yaml.safe_load_all(page.get("/api/manifests.yaml").text))
        (node,) = [each for each in manifests if each["metadata"]["name"] == "cpu-taken"]
        assert node["spec"]["unschedulable"]
        assert node["metadata"]["labels"]["note"] == HOSTILE
        pods = {each["metadata"]["name"]: each["spec"] for each in manifests if each["kind"] == "Pod"}
        assert "nodeName" not in pods["busy"], "it has been evicted"
        assert pods["cache"]["nodeName"] == "memory-taken"

    def test_a_decision(self, page: Page) -> None:
        matrix = page.post("/api/explain", {"pod": "default/web"}).json
        assert (matrix["result"], matrix["node"]) == ("placed", "cpu-taken")
        elsewhere = page.post("/api/explain", {"pod": "default/web", "changes": [DRAIN]}).json
        assert elsewhere["node"] == "memory-taken"

    def test_simulations_side_by_side(self, page: Page) -> None:
        page.post("/api/keep", {"changes": [DRAIN]})
        kept, start = page.get("/api/configurations").json
        replay = page.post("/api/replay", {"runs": [kept, start]}).json
        assert [run["label"] for run in replay["runs"]] == [kept, start]
        moves = {run["label"]: run["moves"] for run in replay["runs"]}
        assert replay["map"]["pods"]["names"][0] == "default/cache"
        assert moves[start] != moves[kept]

    def test_pods_that_come_and_go(self, page: Page) -> None:
        asked = {
            "runs": ["as it was at the start"],
            "reschedule": True,
            "arrival_rate": 0.1,
            "mean_duration": 5,
        }
        (run,) = page.post("/api/replay", asked).json["runs"]
        assert run["times"][-1] > 0
        assert -2 in run["moves"]["nodes"], "some have left"


class TestRefusals:
    @pytest.mark.parametrize(
        ("path", "content", "status", "said"),
        [
            ("/api/keep", b"{", 400, "the request is malformed: "),
            ("/api/keep", b"[" * 100_000, 400, "the request is malformed: "),
            *(
                (
                    "/api/try",
                    b'{"changes": [{"kind": "arguments", "profile": "default-scheduler", "plugin": "NodeResourcesFit",'
                    b' "arguments": {"a": %s}}]}' % (b"[" * deep + b"]" * deep),
                    400,
                    "the request is malformed: arguments: nested too deeply",
                )
                for deep in (100, 900)
            ),
            (
                "/api/keep",
                {"changes": [{"kind": "explode"}]},
                400,
                "Invalid value 'explode' - at `$.changes[0].kind`",
            ),
            (
                "/api/keep",
                {"changes": [{**WEIGHT, "weight": -1}]},
                400,
                "`int` >= 0 - at `$.changes[0].weight`",
            ),
            ("/api/keep", {"changes": [{**WEIGHT, "more": 1}]}, 400, "unknown field `more`"),
            ("/api/keep", {"changes": [{**DRAIN, "nodes": []}]}, 400, "length >= 1"),
            ("/api/keep", {"changes": [{**DRAIN, "nodes": ["none"]}]}, 422, "there is no node 'none'"),
            ("/api/keep", {"changes": [{"kind": "add-nodes", "like": "shut", "count": 10**6}]}, 400, "10000"),
            (
                "/api/try",
                {"changes": [{**WEIGHT, "plugin": "Nothing"}]},
                422,
                "isn't there, or doesn't score",
            ),
            ("/api/explain", {"pod": "none"}, 422, "there is no pod 'none'"),
            ("/api/explain", {}, 400, "missing required field `pod`"),
            ("/api/replay", {"runs": ["none"]}, 422, "there is no configuration 'none'; there is "),
            ("/api/replay", {"runs": ["a", "b", "c"]}, 400, "length <= 2"),
            ("/api/undo", {}, 422, "there is nothing to undo"),
        ],
    )
    def test_one_line_says_what_is_wrong(
        self, page: Page, path: str, content: object, status: int, said: str
    ) -> None:
        answer = page.post(path, content)
        assert (answer.status, answer.text.count("\n")) == (status, 1)
        assert said in answer.text
        assert page.get("/api/state").json["kept"] == []

    def test_a_body_that_is_too_large(self, page: Page) -> None:
        assert page.post("/api/try", b" " * (app.MOST_BYTES + 1)).status == 413

    def test_a_body_that_doesnt_come(self, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(app, "READ_SECONDS", 0.2)
        lines = [
            "POST /api/try HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {TOKEN}",
            "Content-Type: application/json",
            "Content-Length: 10",
        ]
        with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE) as connection:
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n{").encode())
            answer = connection.recv(100)
            assert answer.startswith(b"HTTP/1.1 408")
            while piece := connection.recv(100):  # until the connection is closed: it takes a place of others
                answer += piece
            assert answer.endswith(b"within 0.2 s\n")

    def test_too_many_at_a_time(self, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(app, "MOST_WAITING", 1)
        begun, end = threading.Event(), threading.Event()

        def wait(*_: object) -> None:
            begun.set()
            end.wait(PATIENCE)

        monkeypatch.setattr(app, "state_of", wait)
        thread = threading.Thread(target=page.get, args=("/api/state",))
        thread.start()
        try:
            assert begun.wait(PATIENCE)
            assert page.get("/api/state").status == 503
        finally:
            end.set()
            thread.join()

    def test_a_failure_of_a_plugin_is_told_and_the_page_goes_on(
        self, page: Page, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise ZeroDivisionError("in a plugin")

        with monkeypatch.context() as patched:
            patched.setattr(app, "state_of", fail)
            assert page.get("/api/state").text == "this failed: ZeroDivisionError: in a plugin\n"
        assert page.get("/api/state").status == 200
