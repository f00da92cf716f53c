"""One contract, kept by every cluster there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import attrs
import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_apiserver.control_plane import ControlPlane, needs_control_plane
from kschedfw_kubernetes.cluster import SCHEDULER_KINDS, KubernetesCluster, connect

from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster, InMemoryCluster, WatchEvent
from kschedfw.cluster.protocol import Handler, T
from kschedfw.testing.cluster_contract import ClusterContract, Widget
from kschedfw.testing.waiting import PATIENCE


class TestInMemoryCluster(ClusterContract):
    @pytest.fixture
    def cluster(self) -> Cluster:
        return InMemoryCluster()


class BindsTwice(InMemoryCluster):
    def bind(self, pod: Pod, node_name: str) -> None:
        present = self.get(Pod, pod.key)
        assert present is not None
        self.update(present.bound_to(node_name))


class TellsTwice(InMemoryCluster):
    def watch(self, handler: Handler) -> Callable[[], None]:
        def twice(event: WatchEvent) -> None:
            handler(event)
            handler(event)

        return super().watch(twice)


class ForgetsVersions(InMemoryCluster):
    def update(self, obj: T) -> T:
        return super().update(obj.with_metadata(attrs.evolve(obj.metadata, resource_version="")))


@pytest.mark.parametrize(
    ("cluster", "broken"),
    [
        (BindsTwice, lambda contract: contract.test_a_pod_is_bound_once),
        (TellsTwice, lambda contract: contract.test_changes_are_told_in_their_order),
        (ForgetsVersions, lambda contract: contract.test_an_update_of_an_earlier_state_is_a_conflict),
    ],
)
def test_who_breaks_the_contract_is_found_out(
    cluster: type[InMemoryCluster], broken: Callable[[ClusterContract], Callable[..., None]]
) -> None:
    check = broken(ClusterContract())
    with pytest.raises((AssertionError, pytest.fail.Exception)) as found:
        check(cluster=cluster(), namespace="default")
    (note,) = found.value.__notes__
    assert note.startswith("what the contract asks for: `")


class PodsAlone(InMemoryCluster):
    """A cluster that has no kind but Pod; namespaces are parts of names."""

    def add(self, obj: T) -> T:
        assert isinstance(obj, Pod), f"{type(obj).__name__} is added"
        return super().add(obj)


class TestAClusterOfPodsAlone(ClusterContract):
    kinds = frozenset({Pod})

    @pytest.fixture
    def cluster(self) -> Cluster:
        return PodsAlone()


def test_checks_of_kinds_that_a_cluster_has_not_are_skipped_by_name() -> None:
    contract = TestAClusterOfPodsAlone()
    with pytest.raises(pytest.skip.Exception, match="the cluster keeps no Node: it isn't in `kinds`"):
        contract.test_cluster_scoped_objects_have_no_namespace(cluster=PodsAlone())


class TestKubernetesClusterOfTheApiServerForTests(ClusterContract):
    @pytest.fixture
    def cluster(self, of_the_server_for_tests: Cluster) -> Cluster:
        return of_the_server_for_tests


@pytest.fixture(scope="module")
def of_the_server_for_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ApiServer(custom=[Widget.kind]) as server:
        yield from followed(server.kubeconfig(tmp_path_factory.mktemp("api") / "kubeconfig"))


class TestKubernetesClusterOfARealApiServer(ClusterContract):
    pytestmark = needs_control_plane

    @pytest.fixture
    def cluster(self, of_a_real_server: Cluster, real_server: ControlPlane) -> Cluster:
        return of_a_real_server

    @pytest.mark.parametrize("time", ["first", "second"])
    def test_no_test_finds_nodes_or_pods_of_another(self, time: str, real_server: ControlPlane) -> None:
        with real_server.client() as client:
            for path in ("/api/v1/nodes", "/api/v1/pods"):
                assert client.get(path).raise_for_status().json()["items"] == []
            for path, name, spec in (
                ("/api/v1/nodes", "left", {}),
                ("/api/v1/namespaces/default/pods", time, {"containers": [{"name": "c", "image": "c"}]}),
            ):
                client.post(path, json={"metadata": {"name": name}, "spec": spec}).raise_for_status()


@pytest.fixture(scope="module")
def of_a_real_server(
    lasting_server: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with lasting_server.client() as client:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        client.post(definitions, json=WIDGETS).raise_for_status()
    yield from followed(lasting_server.kubeconfig(tmp_path_factory.mktemp("real") / "kubeconfig"))


WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.contract.example.com"},
    "spec": {
        "group": "contract.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


def followed(kubeconfig: Path) -> Iterator[Cluster]:
    with (
        connect(kubeconfig, qps=-1, chance=Random(0)) as client,
        KubernetesCluster(client, [*SCHEDULER_KINDS, Widget.kind]) as cluster,
    ):
        assert cluster.wait_for_sync(PATIENCE)
        yield cluster
