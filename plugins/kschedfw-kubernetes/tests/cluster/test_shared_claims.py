"""Pods that share a claim are bound in their first attempt, whoever else writes the claim meanwhile."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import KubernetesCluster

from kschedfw import Pod, Scheduler, make_node
from kschedfw.api import object_from_manifest
from kschedfw.api.meta import Named
from kschedfw.api.resource_claims import ResourceClaim
from kschedfw.testing.waiting import eventually

pytestmark = pytest.mark.slow

_PODS = 30
_DRIVER = "gpu.example.com"


def of_devices(kind: str, name: str, spec: object) -> Named:
    metadata = {"name": name}
    return object_from_manifest(
        {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    )


def pod(name: str) -> Named:
    container = {"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "1"}}}
    claims = [{"name": "shared", "resourceClaimName": "shared"}]
    metadata, spec = {"name": name}, {"containers": [container], "resourceClaims": claims}
    return object_from_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def objects() -> Iterator[Named]:
    yield make_node("n").capacity(cpu="8", memory="16Gi", pods="110").build()
    devices = [{"name": f"g{number}"} for number in range(_PODS + 1)]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    yield of_devices(
        "ResourceSlice", "n-gpus", {"driver": _DRIVER, "nodeName": "n", "pool": pool, "devices": devices}
    )
    expression = {"cel": {"expression": f'device.driver == "{_DRIVER}"'}}
    yield of_devices(
        "DeviceClass", "gpu", {"selectors": [expression], "extendedResourceName": "example.com/gpu"}
    )
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    yield of_devices("ResourceClaim", "shared", {"devices": {"requests": [request]}})
    for number in range(_PODS):
        yield pod(f"p{number}")


@pytest.mark.parametrize("conflicts", [False, True], ids=["among themselves", "with others"])
def test_pods_that_share_a_claim_are_bound_without_an_error(
    server: ApiServer, cluster: KubernetesCluster, caplog: pytest.LogCaptureFixture, *, conflicts: bool
) -> None:
    """Each pod also has a claim of its own for an extended resource, and a status that names it."""
    for each in objects():
        server.cluster.add(each)
    writes: Counter[str] = Counter()

    def every_second(method: str, path: str) -> bool:
        if method != "PATCH":
            return False
        writes[path] += 1
        return writes[path] % 2 == 1

    server.faults.only, server.faults.conflicting = every_second, float(conflicts)
    eventually(lambda: len(cluster.list(Pod)) == _PODS and cluster.list(ResourceClaim))
    with ThreadPoolExecutor(16) as executor:
        scheduler = Scheduler(cluster, random=Random(0), executor=executor, initial_backoff=0.05)
        running = threading.Thread(target=scheduler.run)
        running.start()
        eventually(lambda: all(each.node_name for each in server.cluster.list(Pod)))
        scheduler.stop()
        running.join()
    claims = server.cluster.list(ResourceClaim)
    users = Counter({each.name: len(each.status.reserved_for) for each in claims})
    assert (users.pop("shared"), {*users.values()}, len(users)) == (_PODS, {1}, _PODS)
    named = [each.status.extended_resource_claim_status for each in server.cluster.list(Pod)]
    assert {each.resource_claim_name for each in named if each is not None} == {*users}
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
