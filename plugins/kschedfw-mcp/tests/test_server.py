"""A session of an agent: the SDK's own client asks a real server, which is a process, about a small cluster."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from kschedfw_apiserver import ApiServer
from kschedfw_apiserver.forked import running_forked
from kschedfw_mcp.questions import MOST_WAITING, Limits, QuestionError, Runner, Source
from kschedfw_mcp.tools import make_server
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer

from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.slow

CLUSTER = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, labels: {disk: ssd}}
  status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
- apiVersion: v1
  kind: Node
  metadata: {name: n2, labels: {disk: ssd}}
  status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-1
    namespace: shop
    ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: w, controller: true}]
  spec: {nodeName: n1, containers: [{name: main, image: app, resources: {requests: {cpu: 3}}}]}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-2
    namespace: shop
    ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: w, controller: true}]
  spec: {nodeSelector: {disk: sdd}, containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: huge}
  spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 64}}}]}
"""

Session = Callable[[Client], Awaitable[None]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "cluster.yaml"
    path.write_text(CLUSTER, encoding="utf-8")
    return path


def session(do: Session, server: MCPServer | StdioServerParameters) -> None:
    async def run() -> None:
        async with Client(server) as client:
            await do(client)

    asyncio.run(run())


def server_of(cluster: Path) -> MCPServer:
    return make_server(Source((str(cluster),)), Limits())


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))


def printed(command: str) -> Any:
    """What the command of an answer prints."""
    program, *arguments = command.split()
    assert program == "kschedfw"
    with running_forked("-m", "kschedfw", *arguments) as process:
        out, _ = process.communicate()
    return json.loads(out)


def test_an_agent_finds_the_cause_tries_the_remedy_and_asks_about_a_drain(cluster: Path) -> None:
    async def ask(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        names = ("why-pending", "what-helps", "explain", "fit", "drain", "scale", "compare", "what-if")
        assert set(tools) == set(names)
        for tool in tools.values():
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            assert tool.description

        why = await told(client, "why-pending")
        assert (why["code"], why["answer"]["pending"]) == ("pods-wait", 2)
        named = {kind["workload"] or kind["firstPod"]: kind for kind in why["answer"]["kinds"]}
        assert set(named) == {"StatefulSet shop/web", "default/huge"}
        assert named["StatefulSet shop/web"]["firstRemedy"]["placed"] == 1
        assert why["command"] == f"kschedfw pending {cluster} --json"

        helps = await told(client, "what-helps", name="shop/web")
        (kind,) = helps["answer"]["kinds"]
        remedy = kind["helps"][0]
        assert remedy["edits"][0]["to"] == "ssd"
        edit = {"kind": "edit", "text": "it", "edits": remedy["edits"], "pods": kind["pods"]}
        tried = await told(client, "what-if", changes=[edit])
        moves = [(move["pod"], move["code"]) for move in tried["answer"]["moves"]]
        assert moves == [("shop/web-2", "newly-placed")]
        assert tried["codes"] == ["newly-placed", "no-pod-loses-its-place"]

        drained = await told(client, "drain", nodes=["n1"])
        assert (drained["code"], drained["answer"]["succeeds"]) == ("can-be-drained", True)

    # The client starts the server itself, as agents do.
    session(
        ask,
        StdioServerParameters(
            command=sys.executable, args=["-m", "kschedfw", "mcp", str(cluster)], env=dict(os.environ)
        ),
    )


def test_the_other_tools_answer_with_the_command_that_shows_the_same(cluster: Path) -> None:
    node = (
        "{apiVersion: v1, kind: Node, metadata: {name: large}, status: {allocatable: {cpu: 128, pods: 10}}}"
    )
    configuration = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}"

    async def ask(client: Client) -> None:
        explained = await told(client, "explain", pod="default/huge")
        assert explained["code"] == "not-placed"
        assert "UnschedulableAndUnresolvable" in explained["codes"]

        fits = await told(client, "fit", cpu="1", memory="1Gi")
        assert (fits["code"], fits["answer"]["pods"][0]["replicas"]) == ("fits", 5)
        assert printed(fits["command"]) == fits["answer"]

        up = await told(client, "scale", direction="up", node_groups=node)
        assert up["code"] == "pods-wait"  # the typo stays
        assert up["command"].endswith("--node-group node-groups.yaml --json")
        down = await told(client, "scale", direction="down")
        assert down["code"] == "nodes-can-go"

        compared = await told(client, "compare", configurations=["default", configuration])
        assert compared["code"] == "compared"
        assert "--config default --config configuration-2.yaml" in compared["command"]

    session(ask, server_of(cluster))


def test_what_cant_be_answered_is_told_in_the_commands_words(cluster: Path) -> None:
    async def ask(client: Client) -> None:
        assert "node 'n9': there is none of this name" in await refusal(client, "drain", nodes=["n9"])
        assert "give a manifest, or cpu and memory" in await refusal(client, "fit")
        # The file is named as in the command, and not by its place on the disk.
        problem = await refusal(client, "fit", manifest="kind: Pod")
        assert "pod.yaml" in problem
        assert "kschedfw-mcp-" not in problem

    session(ask, server_of(cluster))


def test_a_name_that_would_be_an_option_is_refused(cluster: Path) -> None:
    async def ask(client: Client) -> None:
        for name in ("--html=/tmp/x", "-h", "a b", "$(id)", ""):
            for tool, arguments in (
                ("drain", {"nodes": [name]}),
                ("explain", {"pod": name}),
                ("what-helps", {"name": name}),
                ("fit", {"cpu": name}),
            ):
                assert "validation error" in await refusal(client, tool, **arguments)
        for name in ("-v", "--all"):
            assert "validation error" in await refusal(client, "why-pending", namespace=name)

    session(ask, server_of(cluster))


def test_a_question_that_takes_too_long_is_ended(cluster: Path) -> None:
    runner = Runner(Limits(seconds=0.05))
    expected = r"it took longer than 0.05 s \(--seconds allows more\): kschedfw pending"
    with pytest.raises(QuestionError, match=expected):
        asyncio.run(runner.ask(Source((str(cluster),)).line("pending")))


def test_too_many_questions_at_once_are_refused(cluster: Path) -> None:
    async def ask() -> list[object]:
        runner = Runner(Limits(seconds=0.05))
        line = Source((str(cluster),)).line("pending")
        asked = [runner.ask(line) for _ in range(MOST_WAITING + 1)]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    *_, last = asyncio.run(ask())
    assert "too many questions at once" in str(last)


def test_prompts_name_their_subject(cluster: Path) -> None:
    async def ask(client: Client) -> None:
        names = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert names == {"why-is-my-pod-pending", "can-i-drain-this-node"}
        for name, arguments in (
            ("why-is-my-pod-pending", {"pod": "shop/web-2"}),
            ("can-i-drain-this-node", {"node": "n1"}),
        ):
            (message,) = (await client.get_prompt(name, arguments)).messages
            (subject,) = arguments.values()
            assert subject in str(getattr(message.content, "text", ""))

    session(ask, server_of(cluster))


def test_a_live_cluster_is_asked_about_through_its_context(tmp_path: Path) -> None:
    nodes = [make_node("n1").capacity(cpu=4, memory="8Gi", pods=10).build()]
    pods = [make_pod("huge").requests(cpu=64).build()]
    with ApiServer(InMemoryCluster([*nodes, *pods])) as live:
        path = live.kubeconfig(tmp_path / "kubeconfig")
        context = yaml.safe_load(path.read_text())["current-context"]
        options = ("--kubeconfig", str(path), "--context", context)

        async def ask(client: Client) -> None:
            why = await told(client, "why-pending")
            assert [kind["firstPod"] for kind in why["answer"]["kinds"]] == ["default/huge"]
            assert why["command"] == f"kschedfw pending {' '.join(options)} --json"

        session(ask, make_server(Source((), options), Limits()))


@pytest.fixture(scope="module")
def served(cluster: Path) -> Iterator[tuple[str, str]]:
    with serving(cluster) as found:
        yield found


class TestHttp:
    """The same over streamable HTTP, which listens on the loopback address and wants its token."""

    def test_a_client_with_the_token_is_answered(self, served: tuple[str, str]) -> None:
        url, token = served
        assert url.startswith("http://127.0.0.1:")

        async def ask() -> None:
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                fits = await told(client, "fit", cpu="1", memory="1Gi")
                assert fits["code"] == "fits"

        asyncio.run(ask())

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": "Bearer {token}", "Host": "attacker.example"}, 421),
            ({"Authorization": "Bearer {token}", "Origin": "http://attacker.example"}, 403),
        ],
    )
    def test_others_are_refused(self, served: tuple[str, str], headers: dict[str, str], status: int) -> None:
        url, token = served
        sent = {name: value.replace("{token}", token) for name, value in headers.items()}
        answer = httpx2.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=sent)
        assert answer.status_code == status


@contextmanager
def serving(cluster: Path) -> Iterator[tuple[str, str]]:
    """The address and the token of a server of its own."""
    with running_forked("-m", "kschedfw", "mcp", cluster, "--http", "0") as process:
        assert process.stderr is not None
        url = re.search(r"mcp at (\S+)", process.stderr.readline())
        token = re.search(r"Bearer (\S+)", process.stderr.readline())
        assert url is not None
        assert token is not None
        yield url[1], token[1]
        process.terminate()
        assert process.wait(PATIENCE) in (0, 143)
