"""Every pod goes to one of the nodes that the algorithm calls best in that state: the log of decisions, replayed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
from kschedfw_apiserver import ApiServer, User
from kschedfw_apiserver.control_plane import ControlPlane, needs_control_plane
from kschedfw_kubernetes.cluster import Client, connect
from kschedfw_kubernetes.cluster.decoding import read_json
from kschedfw_kubernetes.cluster.resources import resources_of
from serve.replicas import Replica

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import Totals
from kschedfw.scheduler import Scheduler

pytestmark = pytest.mark.slow

_ADMINISTRATOR = "administrator"
"""The token of who makes nodes and pods, of a real server's administrator for example."""
_ZONE = "topology.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_ENDS_OF_ATTEMPTS = ("Successfully bound pod to node", "Unable to schedule pod")


@attrs.frozen
class Decision:
    """An attempt, and the node of the pod; none, if this attempt found none."""

    pod: str
    node: str


def decisions(log: str) -> Sequence[Decision]:
    """What was decided, in the order of the attempts, from a log at verbosity 4 in JSON."""
    lines = [json.loads(line) for line in log.splitlines()]
    attempts = [line["pod"] for line in lines if line["msg"] == "Attempting to schedule pod"]
    bound = {line["pod"]: line["node"] for line in lines if line["msg"] == "Successfully bound pod to node"}
    last = {pod: number for number, pod in enumerate(attempts)}
    return [
        Decision(pod, bound.get(pod, "") if number == last[pod] else "")
        for number, pod in enumerate(attempts)
    ]


def all_are_decided(log: str, pods: int) -> bool:
    """Return whether each of so many pods was tried, and no attempt goes on: a scheduler that ends cuts it short."""
    lines = [json.loads(line) for line in log.splitlines()]
    attempts = Counter(line["pod"] for line in lines if line["msg"] == "Attempting to schedule pod")
    ends = Counter(line["pod"] for line in lines if line["msg"].startswith(_ENDS_OF_ATTEMPTS))
    return len(attempts) == pods and attempts == ends


class Replay:
    """Decides anew, pod by pod; of equally good nodes it takes the one that the log has."""

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
        self._pods = {pod.key: pod.bound_to("") for pod in pods}
        self._scheduler = Scheduler(InMemoryCluster(nodes), selector=self)
        self._wanted = ""
        self.ties = 0

    def select(self, totals: Totals, nodes: NodeSelection) -> int:
        best = {nodes[index].name: nth for nth, index in enumerate(totals.best.tolist())}
        assert self._wanted in best, f"{self._wanted} isn't among the {len(best)} best"
        self.ties += len(best) > 1
        return best[self._wanted]

    def check(self, decision: Decision) -> None:
        self._wanted, pod = decision.node, self._pods[decision.pod]
        framework = self._scheduler.frameworks[pod.spec.scheduler_name]
        try:
            found = self._scheduler.algorithm.schedule(framework, CycleState(), pod).suggested_host
        except FitError:
            found = ""
        assert found == decision.node, f"{decision.pod} went to {decision.node or 'no node'}, not to {found}"
        if found:
            self._scheduler.cache.assume_pod(pod.bound_to(found))


def node(number: int) -> dict[str, Any]:
    amounts = {"cpu": str(2 + number % 3), "memory": f"{4 + number % 5}Gi", "pods": "20"}
    labels = {_ZONE: f"z{number % 3}", _HOSTNAME: f"n{number:04}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number:04}", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(number: int, chance: Random) -> dict[str, Any]:
    """Pods of many kinds: some spread, some keep away from one another, some are picky, some fit nowhere."""
    app = chance.choice(("plain", "plain", "spread", "apart", "picky", "near"))
    labels = {"app": app}
    selector = {"labelSelector": {"matchLabels": labels}}
    spec: dict[str, Any] = {}
    if app == "spread":
        spread = {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
        spec["topologySpreadConstraints"] = [spread]
    elif app == "apart":
        apart = {"weight": 50, "podAffinityTerm": {"topologyKey": _HOSTNAME, **selector}}
        spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}}
    elif app == "near":
        near = {"weight": 10, "podAffinityTerm": {"topologyKey": _ZONE, **selector}}
        spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}}
    elif app == "picky":
        spec["nodeSelector"] = {_ZONE: chance.choice(("z0", "z1"))}
    requests = {"cpu": f"{chance.choice((50, 100, 250))}m", "memory": f"{chance.choice((64, 200, 500))}Mi"}
    if number % 97 == 0:
        requests["cpu"] = "64"
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number:05}", "namespace": "default", "labels": labels},
        "spec": {"containers": [container], **spec},
    }


def listed(client: Client, kind: type[Named]) -> list[Any]:
    """Return the objects in the server's order.

    A scheduler that starts adds nodes to its cache in this order. Where only a part of the nodes is looked at, the
    order decides which: nodes sorted by age came in another one as soon as their creation took more than a second.
    """
    resource = resources_of(kind)[0]
    return [
        read_json(text, resource) for page in client.pages(resource.collection()) for text in page.items or ()
    ]


@pytest.fixture(
    params=[(150, 120, "for tests"), pytest.param((500, 2000, "real"), marks=needs_control_plane)],
    ids=lambda case: f"{case[1]} pods, server {case[2]}",
)
def case(request: pytest.FixtureRequest) -> Iterator[tuple[ApiServer | ControlPlane, int, int]]:
    nodes, pods, which = request.param
    if which == "real":
        yield request.getfixturevalue("real_server"), nodes, pods
    else:
        with ApiServer() as server:
            server.add_user(_ADMINISTRATOR, User("administrator", ("system:masters",)))
            yield server, nodes, pods


def test_every_pod_goes_to_one_of_the_best_nodes(
    case: tuple[ApiServer | ControlPlane, int, int], tmp_path: Path
) -> None:
    server, nodes, pods = case
    chance = Random(1)
    with connect(server.kubeconfig(tmp_path / "kubeconfig", token=_ADMINISTRATOR), qps=-1) as client:
        _in_parallel(
            partial(client.write, "POST", "/api/v1/nodes"), [node(number) for number in range(nodes)]
        )
        options = ("--v=4", "--logging-format=json", "--leader-elect=false", "--kube-api-qps=-1")
        with Replica(server, tmp_path, "replayed", *options) as replica:
            replica.wait_until_ready()
            path = "/api/v1/namespaces/default/pods"
            _in_parallel(partial(client.write, "POST", path), [pod(number, chance) for number in range(pods)])
            replica.wait_for(lambda: all_are_decided(replica.log, pods))
            assert replica.ends() == 0
        decided = decisions(replica.log)
        present = listed(client, Pod)
        replay = Replay(listed(client, Node), present)
    for decision in decided:
        replay.check(decision)
    # It is what is so in the cluster, and the test isn't an empty one.
    assert {each.key: each.node_name for each in present} == {each.pod: each.node for each in decided}
    assert 0 < Counter(each.node for each in decided)[""] < pods / 4
    assert replay.ties > pods / 20


def _in_parallel(write: Callable[[dict[str, Any]], object], contents: Sequence[dict[str, Any]]) -> None:
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(write, contents))
