"""A real server process, a real client, and the scheduling algorithm between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import trustme
import yaml
from extender_server.processes import served
from http_extender.servers import Answer, refused_url, scripted
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.http_extender import HTTPExtender

from kschedfw import Parts, make_node, make_pod
from kschedfw.api.manifests import to_manifest
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.config.extenders import ExtenderConfig, ExtenderTLSConfig
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.extender import Victims
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Code
from kschedfw.scheduler import Cache, GenericScheduler, Scheduler, SchedulingError
from kschedfw.scheduler.extenders import order_extenders
from kschedfw.testing import FakeClock
from kschedfw.testing.waiting import eventually

pytestmark = pytest.mark.slow

NODES = [
    make_node("tainted").taint("dedicated").build(),
    make_node("disliked").taint("noisy", effect="PreferNoSchedule").build(),
    make_node("good").build(),
]
PODS = [make_pod("there").uid("u-there").node("good").host_port(80).build()]
NAMES_ONLY = Profile(["PrioritySort", "NodeName", "DefaultBinder"])
PLUGINS = ("--plugin", "TaintToleration", "--plugin", "NodePorts")


class Algorithm:
    """The scheduling algorithm over NODES and PODS with these extenders, and NodeName as its only plugin."""

    def __init__(self, *extenders: HTTPExtender, seed: int = 0) -> None:
        cache, snapshot = Cache(), Snapshot()
        for node in NODES:
            cache.add_node(node)
        for pod in PODS:
            cache.add_pod(pod)
        self.framework = Framework(
            Registry(),
            Profile(["NodeName"]),
            Parts(InMemoryCluster(), snapshot=snapshot, parallelizer=Parallelizer(1), extenders=extenders),
        )
        self.scheduler = GenericScheduler(cache, snapshot, random=Random(seed))

    def host(self, pod: Pod) -> str:
        return self.scheduler.schedule(self.framework, CycleState(), pod).suggested_host

    def hosts(self, pod: Pod) -> set[str]:
        """All that may come of it, over some seeds."""
        return {self.host(pod) for _ in range(20)}

    def refusals(self, pod: Pod) -> dict[str, tuple[Code, str]]:
        with pytest.raises(FitError) as caught:
            self.host(pod)
        statuses = caught.value.diagnosis.node_to_status
        return {node.name: (statuses.get(node.name).code, statuses.get(node.name).message) for node in NODES}


def extender(url: str, **settings: object) -> ExtenderConfig:
    verbs = {"filter_verb": "filter", "prioritize_verb": "prioritize", "weight": 2}
    return ExtenderConfig(url, **{**verbs, **settings})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cluster") / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([to_manifest(obj) for obj in (*NODES, *PODS)]))
    return path


@pytest.fixture(scope="module")
def without_cluster() -> Iterator[str]:
    with served(*PLUGINS) as url:
        yield url


@pytest.fixture(scope="module")
def with_cluster(cluster_file: Path) -> Iterator[str]:
    with served(*PLUGINS, "--cluster", cluster_file) as url:
        yield url


class TestServed:
    """Extender and server agree with each other, and with the same plugins in the scheduler."""

    def test_whole_nodes(self, without_cluster: str) -> None:
        with HTTPExtender(extender(without_cluster)) as client:
            algorithm = Algorithm(client)
            assert algorithm.hosts(make_pod().build()) == {"good"}
            tolerant = make_pod().toleration("dedicated").build()
            assert algorithm.hosts(tolerant) == {"good", "tainted"}

    @pytest.mark.parametrize("cache", [False, True])
    def test_pods_of_the_cluster(self, with_cluster: str, cache: bool) -> None:
        with HTTPExtender(extender(with_cluster, node_cache_capable=cache)) as client:
            algorithm = Algorithm(client)
            assert algorithm.hosts(make_pod().build()) == {"good"}
            assert algorithm.hosts(make_pod().host_port(80).build()) == {"disliked"}

    def test_a_whole_scheduler_asks_it(self, with_cluster: str) -> None:
        cluster = InMemoryCluster([*NODES, *PODS])
        with HTTPExtender(extender(with_cluster, node_cache_capable=True)) as client:
            scheduler = Scheduler(cluster, [NAMES_ONLY], clock=FakeClock(), extenders=[client])
            cluster.add(make_pod("web").build())
            cluster.add(make_pod("proxy").host_port(80).toleration("nothing").build())
            scheduler.run_until_idle()
            scheduler.close()
        bound = {pod.name: pod.node_name for pod in cluster.list(Pod)}
        assert bound["web"] == "good"
        assert bound["proxy"] == "disliked"

    def test_refusals_keep_their_reasons_and_kinds(self, with_cluster: str) -> None:
        with HTTPExtender(extender(with_cluster, node_cache_capable=True)) as client:
            refusals = Algorithm(client).refusals(make_pod().host_port(80).node("good").build())
        assert refusals["good"] == (
            Code.UNSCHEDULABLE,
            "node(s) didn't have free ports for the requested pod ports",
        )

    def test_preemption(self, with_cluster: str) -> None:
        pod = make_pod().priority(1).host_port(80).build()
        (there,) = PODS
        config = extender(with_cluster, preempt_verb="preempt", node_cache_capable=True)
        with HTTPExtender(config) as client:
            candidates = {"good": Victims((there,)), "tainted": Victims(()), "disliked": Victims((), 3)}
            assert client.process_preemption(pod, candidates, Snapshot.of(NODES, PODS)) == {
                "good": Victims((there,)),
                "disliked": Victims((), 3),
            }
            assert client.process_preemption(pod, {"good": Victims(())}, Snapshot.of(NODES, PODS)) == {}

    def test_over_tls(self, tmp_path: Path) -> None:
        ca = trustme.CA()
        certificate = ca.issue_cert("127.0.0.1")
        ca.cert_pem.write_to_path(tmp_path / "ca.pem")
        certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
        certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
        tls = ExtenderTLSConfig(ca_file=str(tmp_path / "ca.pem"))
        with served(*PLUGINS, "--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem") as url:
            assert url.startswith("https://")
            with HTTPExtender(extender(url, tls_config=tls)) as client:
                assert Algorithm(client).hosts(make_pod().build()) == {"good"}


FAILING = {
    "slow": Answer(delay=30),
    "malformed": Answer("<html>"),
    "failing": Answer(status=500),
    "reporting an error": Answer('{"Error":"out of order"}'),
}


class TestFailures:
    """What becomes of a pod when an extender fails."""

    @pytest.fixture(params=["refused", *FAILING])
    def url(self, request: pytest.FixtureRequest) -> Iterator[str]:
        if request.param == "refused":
            yield refused_url()
            return
        answer = FAILING[request.param]
        with scripted({"/filter": answer, "/prioritize": answer}) as server:
            yield server.url

    def test_the_filter_s_ends_the_attempt(self, url: str) -> None:
        with HTTPExtender(extender(url, http_timeout=0.2)) as client:
            with pytest.raises(SchedulingError) as caught:
                Algorithm(client).host(make_pod().build())
            assert str(caught.value).startswith(f'extender "{url}": filter at {url}/filter failed: ')

    def test_that_of_an_ignorable_one_is_passed_over(self, url: str) -> None:
        with HTTPExtender(extender(url, http_timeout=0.1, ignorable=True, prioritize_verb="")) as client:
            assert Algorithm(client).hosts(make_pod().build()) == {node.name for node in NODES}

    def test_without_its_priorities_the_others_count(self, url: str, without_cluster: str) -> None:
        configs = [extender(url, filter_verb="", http_timeout=0.1), extender(without_cluster)]
        failing, serving = map(HTTPExtender, configs)
        with failing, serving:
            assert Algorithm(failing, serving).host(make_pod().build()) == "good"

    def test_ignorable_ones_do_not_hold_up_the_others(self, url: str, without_cluster: str) -> None:
        configs = [extender(url, ignorable=True, http_timeout=0.1), extender(without_cluster)]
        first, last = order_extenders(map(HTTPExtender, configs))
        with first, last:
            assert first.name == without_cluster
            assert Algorithm(first, last).host(make_pod().build()) == "good"


def test_plugins_see_the_live_pods_and_nodes_of_a_followed_cluster(tmp_path: Path) -> None:
    asking = make_pod("asking").host_port(80).build()
    known = Snapshot.of(map(make_node_named, ("first", "late")))
    with (
        ApiServer() as api,
        served(*PLUGINS, "--kubeconfig", api.kubeconfig(tmp_path / "kubeconfig")) as url,
        HTTPExtender(extender(url, node_cache_capable=True)) as client,
    ):

        def passing() -> set[str]:
            return {info.name for info in client.filter(asking, known.node_infos).feasible}

        assert passing() == set(), "the server has no nodes yet"
        for name in ("first", "late"):
            api.cluster.add(make_node_named(name))
        eventually(lambda: passing() == {"first", "late"})
        taken = api.cluster.add(make_pod("taken").host_port(80).node("first").build())
        eventually(lambda: passing() == {"late"})
        api.cluster.delete(taken)
        eventually(lambda: passing() == {"first", "late"})


def make_node_named(name: str) -> Node:
    return make_node(name).capacity(cpu=1, memory="1Gi", pods=10).build()


def test_nodes_are_read_back_as_they_were(without_cluster: str) -> None:
    """Whatever a node has, it gets through the extender, and the scheduler goes on with its own."""
    with HTTPExtender(extender(without_cluster)) as client:
        snapshot = Snapshot.of(NODES, PODS)
        result = client.filter(make_pod().toleration("dedicated").build(), snapshot.node_infos)
    assert list(result.feasible) == list(snapshot.node_infos)
    assert all(isinstance(info.node, Node) for info in result.feasible)
