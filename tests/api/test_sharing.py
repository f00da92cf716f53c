"""Equal parts of pods are one object, and that is all that changes."""

from __future__ import annotations

import pytest
from hypothesis import given

from kschedfw.api import objects
from kschedfw.api.containers import ResourceRequirements
from kschedfw.api.manifest_error import ManifestError
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


def test_pods_that_differ_in_requests_alone_share_the_rest_of_their_containers() -> None:
    specs = [
        {
            "containers": [
                {"name": "main", "image": "a", "ports": [{"containerPort": 80}], "resources": resources},
                {"name": "side", "image": "b"},
            ],
            "initContainers": [{"name": "first", "image": "c", "resources": resources}],
        }
        for resources in ({"requests": {"cpu": "1"}}, {"limits": {"cpu": "2"}})
    ]
    first, second = (pod_from_manifest({"metadata": {"name": "p"}, "spec": spec}) for spec in specs)
    assert first.spec.containers[0].ports is second.spec.containers[0].ports
    assert [pod.requests.amounts.milli_cpu for pod in (first, second)] == [1000, 2000]
    for pod in (first, second):
        assert pod.spec.containers[1].resources == ResourceRequirements()
        assert pod.spec.init_containers[0].resources == pod.spec.containers[0].resources


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


def read(manifest: Manifest) -> Pod | str:
    """The pod, or why it is refused."""
    try:
        return pod_from_manifest(manifest)
    except ManifestError as error:
        return str(error)


def read_alone(manifest: Manifest) -> Pod | str:
    """The same without what other pods have left behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "shared_pod", lambda *_: None)
        return read(manifest)


@given(pod_manifests())
def test_pods_are_those_that_are_read_alone(manifest: Manifest) -> None:
    assert read(manifest) == read_alone(manifest)


@pytest.mark.parametrize(
    "resources",
    [
        {"requests": {"cpu": "2"}, "limits": {"cpu": "3", "memory": "1Gi"}},
        {"requests": {"cpu": "-1"}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        {"requests": {"example.com/gpu": "1"}},
        {"requests": {"cpu": "a lot"}},
        {"requests": ["cpu"]},
    ],
    ids=lambda resources: str(resources)[:40],
)
@pytest.mark.parametrize("more", [{}, {"resources": {"requests": {"cpu": "2500m"}}}], ids=["", "of the pod"])
def test_pods_that_differ_in_resources_alone_share_the_rest_and_are_checked_like_others(
    resources: Manifest, more: Manifest
) -> None:
    tolerations = [{"key": "spot", "operator": "Exists"}]
    containers: list[Manifest] = [
        {"name": "main", "image": "a"},
        {"name": "other", "image": "b", "resources": {"limits": {"cpu": "1"}}},
    ]

    def pod(its: Manifest) -> Manifest:
        spec = {
            "containers": [{**containers[0], "resources": its}, containers[1]],
            "tolerations": tolerations,
            **more,
        }
        return {"metadata": {"name": "pod"}, "spec": spec}

    first, second = read(pod({"requests": {"cpu": "1"}})), read(pod(resources))
    assert second == read_alone(pod(resources))
    if isinstance(first, Pod) and isinstance(second, Pod):
        assert first.spec.tolerations is second.spec.tolerations
        assert first.requests != second.requests
        assert first.spec.containers[1] == second.spec.containers[1]


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
