"""Through the wire or not, the plugins' decisions are the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from extender_server.asgi import send
from hypothesis import given, settings
from kschedfw_kubernetes.extender_server import ExtenderApp
from kschedfw_kubernetes.http_extender.client import NodesAsSent, pod_as_sent
from kschedfw_kubernetes.http_extender.wire import ExtenderArgs, FilterResult, HostPriorityList

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import default_profile
from kschedfw.framework.profile import ExtensionPoint, Profile
from kschedfw.framework.status import Code
from kschedfw.testing import FrameworkHarness
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters, pods

pytestmark = pytest.mark.slow

PLUGINS = [name for name in default_profile().plugin_names if name not in ("PrioritySort", "DefaultBinder")]


@settings(max_examples=examples(25))  # it has a thread to start
@pytest.mark.parametrize("cache", [False, True])
@given(objects=clusters(), pod=pods())
def test_the_server_decides_as_the_framework_does(cache: bool, objects: DrawnCluster, pod: Pod) -> None:
    harness = FrameworkHarness(*PLUGINS, nodes=objects.nodes, pods=objects.bound)
    verdicts = harness.filter(pod)
    app = ExtenderApp(Profile(PLUGINS), cluster=InMemoryCluster([*objects.nodes, *objects.bound]))
    try:
        body = args(pod, objects.nodes, cache=cache).write()
        filtered = FilterResult.read(answer(app, "/filter", body))
        priorities = HostPriorityList.read(answer(app, "/prioritize", body))
    finally:
        app.close()
    feasible = [name for name, status in verdicts.items() if status.is_success]
    if cache:
        assert filtered.node_names == tuple(feasible)
    else:
        assert filtered.nodes == [
            json
            for json, node in zip(NodesAsSent().write(list(objects.nodes)), objects.nodes, strict=True)
            if node.name in feasible
        ]
    unresolvable = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert filtered.failed_and_unresolvable.keys() == {
        n for n, s in verdicts.items() if s.code is unresolvable
    }
    assert filtered.failed.keys() == {n for n, s in verdicts.items() if s.code is Code.UNSCHEDULABLE}
    highest = 100 * len(harness.framework.plugins_at(ExtensionPoint.SCORE))
    assert dict(priorities.priorities) == {
        name: (20 * total + highest) // (2 * highest) for name, total in harness.score(pod).items()
    }


def args(pod: Pod, nodes: Sequence[Node], *, cache: bool) -> ExtenderArgs:
    if cache:
        return ExtenderArgs(pod_as_sent(pod), node_names=tuple(node.name for node in nodes))
    return ExtenderArgs(pod_as_sent(pod), nodes=NodesAsSent().write(list(nodes)))


def answer(app: ExtenderApp, path: str, body: bytes) -> bytes:
    reply = send(app, "POST", path, body)
    assert reply is not None
    assert reply.status == 200, reply.text
    return reply.body
