"""Equal parts of pods are one object, and that is all that changes."""

from __future__ import annotations

from hypothesis import given

from kschedfw.api.objects import pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.api.sharing import with_shared_parts
from kschedfw.testing.strategies import Manifest, pod_manifests


@given(pod_manifests())
def test_pods_read_from_the_same_manifest_share_their_parts(manifest: Manifest) -> None:
    first, second = pod_from_manifest(manifest), pod_from_manifest(manifest)
    assert first == second
    assert first.labels is second.labels
    assert first.spec.containers is second.spec.containers
    assert first.spec.affinity is second.spec.affinity
    assert first.spec.tolerations is second.spec.tolerations
    assert first.spec.topology_spread_constraints is second.spec.topology_spread_constraints


@given(pod_manifests())
def test_requests_and_ports_of_a_pod_of_a_known_spec_are_those_that_would_be_computed(
    manifest: Manifest,
) -> None:
    pod = pod_from_manifest(manifest)
    own = Pod(pod.metadata, pod.spec, pod.status)
    assert (pod.requests, pod.host_ports) == (own.requests, own.host_ports)
    assert list(pod.requests.amounts.scalar_resources) == list(own.requests.amounts.scalar_resources)


def test_pods_of_a_workload_share_their_requests_unless_one_is_resized() -> None:
    spec = {"containers": [{"name": "main", "image": "a", "resources": {"requests": {"cpu": "1"}}}]}
    resized = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}
    first = pod_from_manifest({"metadata": {"name": "first"}, "spec": spec})
    bound = pod_from_manifest({"metadata": {"name": "bound"}, "spec": {**spec, "nodeName": "n"}})
    grown = pod_from_manifest({"metadata": {"name": "grown"}, "spec": spec, "status": resized})
    assert bound.node_name == "n"
    assert bound.requests is first.requests
    assert grown.requests.amounts.milli_cpu == 3000


@given(pod_manifests())
def test_sharing_changes_nothing_that_can_be_seen(manifest: Manifest) -> None:
    pod = pod_from_manifest(manifest)
    assert with_shared_parts(pod) == pod


def test_dicts_in_another_order_stay_as_they_are() -> None:
    orders = [{"a": "1", "b": "2"}, {"b": "2", "a": "1"}]
    resources = [{"cpu": "1", "memory": "2"}, {"memory": "2", "cpu": "1"}]
    for labels, requests in zip(orders, resources, strict=True):
        containers = [{"name": "main", "image": "app", "resources": {"requests": requests}}]
        pod = pod_from_manifest(
            {"metadata": {"name": "pod", "labels": labels}, "spec": {"containers": containers}}
        )
        assert list(pod.labels) == list(labels)
        assert list(pod.spec.containers[0].resources.requests) == list(requests)
