"""The API server, or its store, is killed in the middle: every pod is bound all the same, and once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kschedfw_apiserver.control_plane import ControlPlane, control_plane, needs_control_plane
from kschedfw_kubernetes.cluster import KubernetesCluster, connect
from serve.replicas import Replica

from kschedfw.api.builders import make_node, make_pod
from kschedfw.api.pod import Pod
from kschedfw.cluster import AlreadyExistsError, ClusterError, WatchEvent
from kschedfw.testing.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.slow, *needs_control_plane]

PODS, NODES = 300, 40


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ControlPlane]:
    """One of its own, since it isn't there all the time."""
    with control_plane(tmp_path) as running:
        yield running


@pytest.mark.parametrize("killed", ["kube-apiserver", "etcd"])
def test_every_pod_is_bound_once(server: ControlPlane, tmp_path: Path, killed: str) -> None:
    bound: Counter[str] = Counter()
    with (
        connect(server.kubeconfig(tmp_path / "kubeconfig"), qps=-1) as client,
        KubernetesCluster(client) as cluster,
    ):
        assert cluster.wait_for_sync(PATIENCE)
        for number in range(NODES):
            cluster.add(make_node(f"n{number}").capacity(cpu="8", memory="16Gi", pods="20").build())
        cluster.watch(lambda event: bound.update(_newly_bound(event)))
        options = ("--leader-elect=false", "--kube-api-qps=-1")
        with Replica(server, tmp_path, "scheduler", *options) as replica:
            replica.wait_until_ready()
            making = threading.Thread(target=_make_pods, args=(cluster,))
            making.start()
            replica.wait_for(lambda: len(bound) >= PODS / 4)
            server.restart(killed)
            making.join()
            eventually(lambda: len(bound) == PODS)
            eventually(lambda: len([pod for pod in cluster.list(Pod) if pod.node_name]) == PODS)
    assert set(bound.values()) == {1}


def _make_pods(cluster: KubernetesCluster) -> None:
    for number in range(PODS):
        pod = make_pod(f"p{number}").requests(cpu="100m").build()
        while True:
            try:
                cluster.add(pod)
            except AlreadyExistsError:
                break
            except ClusterError:
                continue
            break


def _newly_bound(event: WatchEvent) -> list[str]:
    before = event.old.node_name if isinstance(event.old, Pod) else ""
    pod = event.object
    return [pod.key] if isinstance(pod, Pod) and pod.node_name not in ("", before) else []
