"""The client against a server on loopback: what it asks, and what it makes of the answers."""

from __future__ import annotations

import json
import logging
import socket
from base64 import b64encode
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from cluster.raw_server import reply, serving
from http_extender.servers import Answer, elapsed, refused_url, scripted
from kschedfw_kubernetes.http_extender import ExtenderError, HTTPExtender

from kschedfw import make_node, make_pod
from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.pod import Pod, PodSpec
from kschedfw.api.quantity import Quantity
from kschedfw.config import ExtenderConfigError
from kschedfw.config.extenders import ExtenderConfig, ExtenderManagedResource
from kschedfw.framework.extender import Extender, Victims
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.testing import FakeClock
from kschedfw.testing.waiting import PATIENCE, eventually

POD = make_pod("web").uid("u-web").requests(cpu="500m").host_port(80).build()
NODES = [NodeInfo.of(make_node(name).uid(f"u-{name}").capacity(cpu=4).build()) for name in ("a", "b", "c")]

QUANTITY = Quantity.parse(1)

POD_JSON = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u-web"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example/app:1",
                "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "500m"}},
            }
        ],
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
    },
    "status": {},
}


def node_json(name: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "pods": "110"}
    return {
        "metadata": {"name": name, "uid": f"u-{name}", "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def extender(url: str, **settings: Any) -> HTTPExtender:
    """One with all verbs."""
    defaults = {
        "filter_verb": "filter",
        "prioritize_verb": "prioritize",
        "preempt_verb": "preempt",
        "bind_verb": "bind",
        "weight": 1,
    }
    return HTTPExtender(ExtenderConfig(url, **{**defaults, **settings}))


def names(infos: Any) -> list[str]:
    return [info.name for info in infos]


class TestWhatItIs:
    def test_it_is_an_extender(self) -> None:
        with HTTPExtender(ExtenderConfig("http://extender.example", ignorable=True, weight=7)) as made:
            as_such: Extender = made
            assert (as_such.name, as_such.weight, as_such.is_ignorable) == (
                "http://extender.example",
                7,
                True,
            )

    @pytest.mark.parametrize(
        ("verb", "properties"),
        [
            ("", (False, False, False, False)),
            ("filter_verb", (True, False, False, False)),
            ("prioritize_verb", (False, True, False, False)),
            ("bind_verb", (False, False, True, False)),
            ("preempt_verb", (False, False, False, True)),
        ],
    )
    def test_it_does_what_it_has_a_verb_for(self, verb: str, properties: tuple[bool, ...]) -> None:
        config = ExtenderConfig("http://extender.example", weight=1, **({verb: "do"} if verb else {}))  # type: ignore[arg-type]
        with HTTPExtender(config) as made:
            assert (
                made.is_filter,
                made.is_prioritizer,
                made.is_binder,
                made.supports_preemption,
            ) == properties

    def test_a_configuration_that_cannot_work_is_refused(self) -> None:
        with pytest.raises(ExtenderConfigError, match="urlPrefix"):
            HTTPExtender(ExtenderConfig("nowhere"))


class TestInterest:
    managing = ExtenderConfig(
        "http://extender.example",
        managed_resources=(
            ExtenderManagedResource("example.com/gpu"),
            ExtenderManagedResource("example.com/nic"),
        ),
    )

    def test_in_every_pod_if_it_manages_nothing(self) -> None:
        with HTTPExtender(ExtenderConfig("http://extender.example")) as made:
            assert made.is_interested(make_pod().build())

    @pytest.mark.parametrize("resource", ["example.com/gpu", "example.com/nic"])
    @pytest.mark.parametrize("place", ["containers", "initContainers"])
    @pytest.mark.parametrize("kind", ["requests", "limits"])
    def test_in_pods_that_name_what_it_manages(self, resource: str, place: str, kind: str) -> None:
        def interested_in(name: str) -> bool:
            naming = Container(
                "second", resources=ResourceRequirements(**{kind: FrozenDict({name: QUANTITY})})
            )
            plain = Container("first")
            spec = (
                PodSpec(containers=(plain, naming))
                if place == "containers"
                else PodSpec(containers=(plain,), init_containers=(plain, naming))
            )
            with HTTPExtender(self.managing) as made:
                return made.is_interested(Pod(spec=spec))

        assert interested_in(resource)
        assert not interested_in("cpu")
        assert not interested_in("example.com/other")


class TestFilter:
    def test_sends_whole_nodes(self) -> None:
        with scripted({"/filter": '{"Nodes":{"items":[]}}'}) as server, extender(server.url) as made:
            made.filter(POD, NODES[:2])
            (asked,) = server.asked
        assert (asked.method, asked.path) == ("POST", "/filter")
        assert asked.headers["Content-Type"] == "application/json"
        assert json.loads(asked.body) == {
            "Pod": POD_JSON,
            "Nodes": {"metadata": {}, "items": [node_json("a"), node_json("b")]},
            "NodeNames": None,
        }

    def test_sends_names_to_an_extender_with_a_cache(self) -> None:
        with (
            scripted({"/filter": '{"NodeNames":[]}'}) as server,
            extender(server.url, node_cache_capable=True) as made,
        ):
            made.filter(POD, NODES)
            assert json.loads(server.bodies[0]) == {
                "Pod": POD_JSON,
                "Nodes": None,
                "NodeNames": ["a", "b", "c"],
            }

    @pytest.mark.parametrize("prefix", ["", "/", "/a/b", "/a/b///"])
    def test_a_verb_is_put_behind_the_prefix(self, prefix: str) -> None:
        path = f"{prefix.rstrip('/')}/filter"
        with scripted({path: "{}"}) as server, extender(server.url + prefix) as made:
            made.filter(POD, NODES)
            assert server.asked[0].path == path

    def test_leaves_the_nodes_that_come_back(self) -> None:
        answer = {
            "Nodes": {"items": [node_json("c"), {"metadata": {"name": "a"}}]},
            "FailedNodes": {"b": "too hot"},
            "FailedAndUnresolvableNodes": {"b": "burnt down"},
        }
        with scripted({"/filter": json.dumps(answer)}) as server, extender(server.url) as made:
            result = made.filter(POD, NODES)
        # What is known of the nodes stays as it was, whatever the extender sends back.
        assert result.feasible == [NODES[2], NODES[0]]
        assert result.failed == {"b": "too hot"}
        assert result.failed_and_unresolvable == {"b": "burnt down"}

    @pytest.mark.parametrize(
        ("cache", "answer", "left"),
        [
            (True, {"NodeNames": ["c", "a"]}, ["c", "a"]),
            (True, {"NodeNames": []}, []),
            (True, {"Nodes": {"items": [{"metadata": {"name": "b"}}]}}, ["b"]),
            (True, {"NodeNames": ["a"], "Nodes": {"items": [{"metadata": {"name": "b"}}]}}, ["a"]),
            (True, {}, []),
            (False, {"NodeNames": ["a"]}, []),
            (False, {"Nodes": {"items": None}}, []),
            (False, {}, []),
        ],
    )
    def test_names_count_only_from_an_extender_with_a_cache(
        self, cache: bool, answer: dict[str, Any], left: list[str]
    ) -> None:
        with (
            scripted({"/filter": json.dumps(answer)}) as server,
            extender(server.url, node_cache_capable=cache) as made,
        ):
            assert names(made.filter(POD, NODES).feasible) == left

    @pytest.mark.parametrize(
        ("cache", "answer"),
        [(True, '{"NodeNames":["a","z"]}'), (False, '{"Nodes":{"items":[{"metadata":{"name":"z"}}]}}')],
    )
    def test_a_node_that_was_not_asked_for_is_an_error(self, cache: bool, answer: str) -> None:
        with (
            scripted({"/filter": answer}) as server,
            extender(server.url, node_cache_capable=cache) as made,
            pytest.raises(
                ExtenderError, match='claims a filtered node "z" which is not found in the input node list'
            ),
        ):
            made.filter(POD, NODES)

    def test_without_the_verb_nothing_is_asked(self) -> None:
        with extender(refused_url(), filter_verb="") as made:
            result = made.filter(POD, NODES)
        assert (result.feasible, result.failed, result.failed_and_unresolvable) == (NODES, {}, {})

    def test_an_unchanged_node_is_written_once(self) -> None:
        """And one that changed is written again, whatever was remembered."""
        changed = [NodeInfo.of(make_node("a").labels(x="y").build()), *NODES[1:]]
        with scripted({"/filter": "{}"}) as server, extender(server.url) as made:
            for nodes in (NODES, NODES, changed):
                made.filter(POD, nodes)
            first, second, third = (json.loads(body)["Nodes"]["items"] for body in server.bodies)
        assert first == second
        assert third[0]["metadata"]["labels"]["x"] == "y"
        assert third[1:] == first[1:]

    def test_nodes_of_the_past_are_forgotten(self) -> None:
        with scripted({"/filter": "{}"}) as server, extender(server.url) as made:
            for _ in range(3):
                made.filter(POD, [NodeInfo.of(make_node(f"n{i}").build()) for i in range(1001)])
                made.filter(POD, NODES)
            assert len(made._nodes._written) < 2100
            assert json.loads(server.bodies[-1])["Nodes"]["items"] == [node_json(name) for name in "abc"]


class TestPrioritize:
    def test_brings_back_the_priorities(self) -> None:
        answer = '[{"Host":"a","Score":10},{"Host":"c","Score":3}]'
        with scripted({"/prioritize": answer}) as server, extender(server.url) as made:
            assert made.prioritize(POD, NODES) == {"a": 10, "c": 3}
            assert json.loads(server.bodies[0])["Nodes"]["items"] == [node_json(name) for name in "abc"]

    def test_a_node_that_comes_twice_gets_the_sum(self) -> None:
        answer = '[{"Host":"a","Score":1},{"Host":"a","Score":2}]'
        with scripted({"/prioritize": answer}) as server, extender(server.url) as made:
            assert made.prioritize(POD, NODES) == {"a": 3}

    def test_a_sum_beyond_int64_wraps_around(self) -> None:
        most = (1 << 63) - 1
        answer = f'[{{"Host":"a","Score":{most}}}, {{"Host":"a","Score":{most}}}]'
        with scripted({"/prioritize": answer}) as server, extender(server.url, weight=2) as made:
            assert made.prioritize(POD, NODES) == {"a": -2}

    def test_without_the_verb_all_are_equal(self) -> None:
        with extender(refused_url(), prioritize_verb="") as made:
            assert made.prioritize(POD, NODES) == {"a": 0, "b": 0, "c": 0}


class TestPreemption:
    low = make_pod("low").uid("u-low").node("a").build()
    other = make_pod("other").uid("u-other").node("a").build()
    far = make_pod("far").uid("u-far").node("b").build()
    candidates: ClassVar = {"a": Victims((low,), 1), "b": Victims((far,))}
    snapshot = Snapshot.of([info.node for info in NODES], [low, other, far])

    def answer(self, uid: str, node: str = "a") -> str:
        return json.dumps({"NodeNameToMetaVictims": {node: {"Pods": [{"UID": uid}], "NumPDBViolations": 4}}})

    def test_sends_whole_pods(self) -> None:
        with scripted({"/preempt": self.answer("u-low")}) as server, extender(server.url) as made:
            chosen = made.process_preemption(POD, self.candidates, self.snapshot)
            sent = json.loads(server.bodies[0])
        assert chosen == {"a": Victims((self.low,), 4)}
        assert sent["Pod"] == POD_JSON
        assert sent["NodeNameToMetaVictims"] is None
        assert set(sent["NodeNameToVictims"]) == {"a", "b"}
        assert sent["NodeNameToVictims"]["a"]["NumPDBViolations"] == 1
        assert sent["NodeNameToVictims"]["a"]["Pods"][0]["metadata"]["uid"] == "u-low"

    def test_sends_uids_to_an_extender_with_a_cache(self) -> None:
        with scripted({"/preempt": "{}"}) as server, extender(server.url, node_cache_capable=True) as made:
            assert made.process_preemption(POD, self.candidates) == {}
            assert json.loads(server.bodies[0]) == {
                "Pod": POD_JSON,
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {
                    "a": {"Pods": [{"UID": "u-low"}], "NumPDBViolations": 1},
                    "b": {"Pods": [{"UID": "u-far"}], "NumPDBViolations": 0},
                },
            }

    def test_any_pod_of_the_node_may_be_chosen(self) -> None:
        with scripted({"/preempt": self.answer("u-other")}) as server, extender(server.url) as made:
            assert made.process_preemption(POD, self.candidates, self.snapshot)["a"].pods == (self.other,)

    @pytest.mark.parametrize(
        ("uid", "node", "known", "says"),
        [
            ("u-far", "a", True, 'a pod with uid "u-far" on node "a", which has none such'),
            ("u-far", "a", False, 'a pod with uid "u-far" on node "a", which has none such'),
            ("u-low", "z", True, "node 'z' not found"),
            ("u-low", "z", False, 'it chose node "z", which was no candidate'),
        ],
    )
    def test_what_is_not_there_cannot_be_chosen(self, uid: str, node: str, known: bool, says: str) -> None:
        with scripted({"/preempt": self.answer(uid, node)}) as server, extender(server.url) as made:
            with pytest.raises(ExtenderError) as caught:
                made.process_preemption(POD, self.candidates, self.snapshot if known else None)
            assert says in str(caught.value)

    def test_needs_the_verb(self) -> None:
        with (
            extender(refused_url(), preempt_verb="") as made,
            pytest.raises(ExtenderError, match="has no preempt verb"),
        ):
            made.process_preemption(POD, self.candidates)


class TestBind:
    def test_names_pod_and_node(self) -> None:
        with scripted({"/bind": '{"Error":""}'}) as server, extender(server.url) as made:
            made.bind(POD, "b")
            assert json.loads(server.bodies[0]) == {
                "PodName": "web",
                "PodNamespace": "default",
                "PodUID": "u-web",
                "Node": "b",
            }

    def test_an_error_is_one(self) -> None:
        with scripted({"/bind": '{"Error":"too late"}'}) as server, extender(server.url) as made:
            with pytest.raises(ExtenderError) as caught:
                made.bind(POD, "b")
            assert str(caught.value) == (
                f'extender "{server.url}": bind at {server.url}/bind failed: too late'
            )

    def test_needs_the_verb(self) -> None:
        with (
            extender(refused_url(), bind_verb="") as made,
            pytest.raises(ExtenderError, match="has no bind verb"),
        ):
            made.bind(POD, "b")


def ask_filter(made: HTTPExtender) -> object:
    return made.filter(POD, NODES)


def ask_prioritize(made: HTTPExtender) -> object:
    return made.prioritize(POD, NODES)


def ask_preempt(made: HTTPExtender) -> object:
    return made.process_preemption(POD, {"a": Victims((POD,))})


def ask_bind(made: HTTPExtender) -> object:
    made.bind(POD, "a")
    return None


VERBS = pytest.mark.parametrize(
    ("verb", "ask"),
    [("filter", ask_filter), ("prioritize", ask_prioritize), ("preempt", ask_preempt), ("bind", ask_bind)],
)


class TestFailures:
    """Whatever goes wrong, there is one error that names extender, verb, URL and cause."""

    @staticmethod
    def fails(made: HTTPExtender, verb: str, ask: Callable[[HTTPExtender], object]) -> str:
        with pytest.raises(ExtenderError) as caught:
            ask(made)
        error = caught.value
        assert (error.extender, error.verb) == (made.name, verb)
        assert error.url == f"{made.name}/{verb}"
        assert str(error) == f'extender "{made.name}": {verb} at {error.url} failed: {error.cause}'
        return error.cause

    @VERBS
    def test_refused(self, verb: str, ask: Callable[[HTTPExtender], object]) -> None:
        with extender(refused_url()) as made:
            assert "refused" in self.fails(made, verb, ask)

    @VERBS
    @pytest.mark.parametrize("status", [201, 204, 400, 404, 500, 503])
    def test_any_status_but_200(self, verb: str, ask: Callable[[HTTPExtender], object], status: int) -> None:
        body = b"" if status == 204 else b"{}"
        with scripted({f"/{verb}": Answer(body, status)}) as server, extender(server.url) as made:
            assert self.fails(made, verb, ask) == f"the answer has status {status}"

    @VERBS
    @pytest.mark.parametrize(
        "body", ["", "<html>", '"text"', "[[1]]", '{"Nodes":1,"NodeNameToMetaVictims":2,"Error":3}']
    )
    def test_malformed(self, verb: str, ask: Callable[[HTTPExtender], object], body: str) -> None:
        with scripted({f"/{verb}": body}) as server, extender(server.url) as made:
            assert self.fails(made, verb, ask).startswith("the answer is malformed: ")

    def test_a_node_without_a_proper_name(self) -> None:
        answer = '{"Nodes":{"items":[{"metadata":{"name":7}}]}}'
        with scripted({"/filter": answer}) as server, extender(server.url) as made:
            cause = self.fails(made, "filter", ask_filter)
        assert cause == "the answer is malformed: Nodes.items[0].metadata.name: must be a string, not '7'"

    def test_its_own_error(self) -> None:
        with scripted({"/filter": '{"Error":"out of order"}'}) as server, extender(server.url) as made:
            assert self.fails(made, "filter", ask_filter) == "out of order"

    @VERBS
    def test_slow_to_answer(self, verb: str, ask: Callable[[HTTPExtender], object]) -> None:
        with (
            scripted({f"/{verb}": Answer(delay=30)}) as server,
            extender(server.url, http_timeout=0.1) as made,
            elapsed() as seconds,
        ):
            assert self.fails(made, verb, ask) == "no answer within 100ms"
            assert seconds() < 25  # the answer would have taken longer

    def test_slow_to_end(self) -> None:
        """Each byte comes in time, the answer doesn't; the timeout is for all of it."""
        trickle = Answer('{"Error":"' + "x" * 1000 + '"}', pause=0.05)
        with (
            scripted({"/filter": trickle}) as server,
            extender(server.url, http_timeout=0.3) as made,
            elapsed() as seconds,
        ):
            assert self.fails(made, "filter", ask_filter) == "no answer within 300ms"
            assert seconds() < 25  # the answer would have taken longer

    def test_time_is_the_injected_clock_s(self) -> None:
        class Ticking(FakeClock):
            """Four seconds pass between one look at it and the next."""

            def monotonic(self) -> float:
                self.advance(4.0)
                return super().monotonic()

        config = ExtenderConfig("http://127.0.0.1:1", filter_verb="filter")
        with (
            HTTPExtender(config, clock=Ticking()) as made,
            pytest.raises(ExtenderError, match="no answer within 5s"),
        ):
            made.filter(POD, NODES)

    def test_the_next_call_may_succeed(self) -> None:
        with scripted({"/filter": Answer(status=500)}) as server, extender(server.url) as made:
            self.fails(made, "filter", ask_filter)
            server.answers["/filter"] = Answer('{"Nodes":{"items":[{"metadata":{"name":"b"}}]}}')
            assert names(made.filter(POD, NODES).feasible) == ["b"]

    def test_a_password_is_sent_and_neither_named_nor_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with scripted({"/filter": '{"Nodes":{"items":[]}}'}) as server:
            with extender(server.url.replace("://", "://user:s%20cret@")) as made:
                made.filter(POD, NODES)
            assert "cret" not in made.name + caplog.text
            assert server.asked[0].headers["Authorization"] == f"Basic {b64encode(b'user:s cret').decode()}"

    def test_passwords_are_not_shown(self) -> None:
        url = refused_url().replace("://", "://user:secret@")
        with extender(url) as made, pytest.raises(ExtenderError) as caught:
            made.filter(POD, NODES)
        assert "secret" not in str(caught.value)
        assert "user:xxxxx@127.0.0.1" in caught.value.url

    def test_a_url_that_cannot_be_sent_to(self) -> None:
        with extender("http://xn--a", http_timeout=1) as made, pytest.raises(ExtenderError):
            made.filter(POD, NODES)


class TestHTTP:
    def test_redirects_are_followed(self) -> None:
        moved = Answer(b"", 307, {"Location": "/elsewhere"})
        with scripted({"/filter": moved, "/elsewhere": '{"Nodes":{"items":[]}}'}) as server:
            with extender(server.url) as made:
                made.filter(POD, NODES)
            assert server.bodies[0] == server.bodies[1]

    def test_a_redirect_does_not_take_the_password_to_another_host(self) -> None:
        with (
            scripted({"/there": '{"Nodes":{"items":[]}}'}) as other,
            scripted({"/filter": Answer(b"", 307, {"Location": f"{other.url}/there"})}) as server,
        ):
            with extender(server.url.replace("://", "://user:secret@")) as made:
                made.filter(POD, NODES)
            assert "Authorization" in server.asked[0].headers
            assert "Authorization" not in other.asked[0].headers

    def test_a_redirect_on_the_same_host_keeps_the_password(self) -> None:
        moved = Answer(b"", 307, {"Location": "/there"})
        with scripted({"/filter": moved, "/there": '{"Nodes":{"items":[]}}'}) as server:
            with extender(server.url.replace("://", "://user:secret@")) as made:
                made.filter(POD, NODES)
            assert all("Authorization" in asked.headers for asked in server.asked)

    @pytest.mark.parametrize("host", [300 * "a", f"{64 * 'a'}.example", "a..b"])
    def test_a_redirect_to_a_host_that_no_name_server_knows_is_an_error(self, host: str) -> None:
        with (
            scripted({"/filter": Answer(b"", 307, {"Location": f"http://{host}/"})}) as server,
            extender(server.url) as made,
            pytest.raises(
                ExtenderError, match="a host name that can't be looked up, of the extender or where"
            ),
        ):
            made.filter(POD, NODES)

    def test_an_empty_prefix_is_an_error_of_the_call(self) -> None:
        with (
            extender("") as made,
            pytest.raises(ExtenderError, match='extender "": filter at /filter failed'),
        ):
            made.filter(POD, NODES)

    def test_a_redirect_takes_the_password_to_no_other_host(self) -> None:
        with scripted({"/filter": '{"Nodes":{"items":[]}}'}) as other:
            moved = Answer(b"", 307, {"Location": f"{other.url}/filter"})
            with scripted({"/filter": moved}) as server:
                with extender(server.url.replace("://", "://user:secret@")) as made:
                    made.filter(POD, NODES)
                assert "Authorization" in server.asked[0].headers
            assert "Authorization" not in other.asked[0].headers

    def test_redirects_in_a_circle_are_an_error(self) -> None:
        with (
            scripted({"/filter": Answer(b"", 307, {"Location": "/filter"})}) as server,
            extender(server.url) as made,
            pytest.raises(ExtenderError, match="redirects"),
        ):
            made.filter(POD, NODES)

    def test_cookies_are_not_kept(self) -> None:
        with scripted({"/filter": Answer(b"{}", headers={"Set-Cookie": "a=b"})}) as server:
            with extender(server.url) as made:
                made.filter(POD, NODES)
                made.filter(POD, NODES)
            assert not any("Cookie" in asked.headers for asked in server.asked)

    def test_calls_one_after_another_share_a_connection(self) -> None:
        with serving(lambda connection, _: connection.sendall(reply())) as server:
            with extender(f"http://127.0.0.1:{server.port}") as made:
                made.filter(POD, NODES)
                made.filter(POD, NODES[:1])
            assert server.connections == 1

    def test_a_connection_that_the_extender_has_ended_meanwhile_is_not_used(self) -> None:
        def answer_once(connection: socket.socket, _: bytes) -> None:
            connection.sendall(reply())
            connection.close()

        with (
            serving(answer_once) as server,
            extender(f"http://127.0.0.1:{server.port}", http_timeout=PATIENCE) as made,
        ):
            for _ in range(3):
                made.filter(POD, NODES)
                kept = made._transport._idle[("http", "127.0.0.1", server.port)]
                eventually(lambda kept=kept: not kept[-1].is_silent)  # type: ignore[misc]  # the end has arrived
            assert server.connections == 3

    @pytest.mark.parametrize(
        ("status", "method"), [(301, b"GET"), (302, b"GET"), (303, b"GET"), (307, b"POST"), (308, b"POST")]
    )
    def test_a_redirect_keeps_method_and_body_only_if_it_says_so(self, status: int, method: bytes) -> None:
        def answer(connection: socket.socket, head: bytes) -> None:
            moved = reply(b"", f"{status} Moved", "Location: /there\r\n")
            connection.sendall(moved if b" /filter " in head else reply())

        with serving(answer) as server, extender(f"http://127.0.0.1:{server.port}") as made:
            made.filter(POD, NODES)
            assert server.requests[1].startswith(method + b" /there HTTP/1.1")
            assert (b"Content-Length" in server.requests[1]) is (method == b"POST")


class TestProxy:
    """As in Go, the environment names the proxy. None is used for this machine."""

    def test_it_gets_a_request_without_tls_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with serving(lambda connection, _: connection.sendall(reply())) as proxy:
            monkeypatch.setenv("http_proxy", f"http://u:p@127.0.0.1:{proxy.port}")
            with extender("http://extender.invalid/prefix") as made:
                made.filter(POD, NODES)
            assert proxy.requests[0].startswith(b"POST http://extender.invalid/prefix/filter HTTP/1.1\r\n")
            assert b"\r\nHost: extender.invalid\r\n" in proxy.requests[0]
            assert b"Proxy-Authorization: Basic dTpw" in proxy.requests[0]

    def test_it_is_asked_for_a_tunnel_to_a_host_with_tls(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with serving(lambda connection, _: connection.sendall(reply(b"", "403 Forbidden"))) as proxy:
            monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
            with (
                extender("https://extender.invalid") as made,
                pytest.raises(ExtenderError, match="the proxy answers with status 403"),
            ):
                made.filter(POD, NODES)
            assert proxy.requests[0].startswith(b"CONNECT extender.invalid:443 HTTP/1.1\r\n")

    def test_one_of_another_kind_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
        with (
            extender("http://extender.invalid") as made,
            pytest.raises(ExtenderError, match="a proxy has to be an HTTP one"),
        ):
            made.filter(POD, NODES)

    def test_this_machine_is_asked_without_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        with scripted({"/filter": "{}"}) as server, extender(server.url) as made:
            made.filter(POD, NODES)
            assert len(server.asked) == 1
