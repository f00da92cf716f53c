"""A pod's JSON is read as its manifest is, whatever other pods have left behind."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.manifest_error import ManifestError
from kschedfw.api.objects import pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.api.pod_json import pod_from_json
from kschedfw.testing.strategies import Manifest, pod_manifests

_SPEC: Manifest = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}


def stored(name: str, **fields: Any) -> Manifest:
    """Return the manifest of a pod as the API server has it."""
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"metadata": {**metadata, **fields.pop("metadata", {})}, "spec": _SPEC, **fields}


def read(manifest: Manifest) -> Pod:
    return pod_from_json(json.dumps(manifest).encode())


def outcome(reader: Any, *given: Any) -> Pod | str:
    """Return the pod, or why it is refused."""
    try:
        pod: Pod = reader(*given)
    except ManifestError as error:
        return str(error)
    return pod


@st.composite
def changes(draw: st.DrawFn) -> Manifest:
    """Draw what the API server writes into pods, now and then of a wrong type."""
    null = st.none()
    names = st.sampled_from(["web-0", "web-1"])
    metadata = st.fixed_dictionaries(
        {"name": names, "namespace": st.just("shop"), "uid": st.sampled_from(["u1", "u2"])},
        optional={
            "labels": null | st.dictionaries(names, names | null | st.just(1), max_size=2),
            "ownerReferences": null | st.just([{"kind": "ReplicaSet", "name": "web", "controller": True}]),
            "creationTimestamp": null | st.sampled_from(["2026-01-01T00:00:00Z", "yesterday"]),
            "deletionTimestamp": st.just("2026-01-01T00:00:00Z"),
            "finalizers": null | st.just(["example.org/f"]),
            "generation": null | st.sampled_from([1, 2, 1 << 64, "3"]),
            "managedFields": st.just([{"manager": "m"}]),
            "resourceVersion": st.just("12"),
        },
    )
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    resized = {
        "phase": "Running",
        "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}],
    }
    status = st.sampled_from(
        [{}, {"phase": "Pending", "conditions": [condition]}, resized, {"phase": 1}, None]
    )
    return {"metadata": draw(metadata), "status": draw(status)}


@given(st.lists(st.tuples(pod_manifests(), changes()), min_size=1, max_size=4))
def test_pods_are_those_of_their_manifests(drawn: list[tuple[Manifest, Manifest]]) -> None:
    for manifest, changed in drawn:
        for each in (manifest, {**manifest, **changed}):
            expected = outcome(lambda one: pod_from_manifest(one, check=False), each)
            found = outcome(read, each)
            assert found == expected
            if isinstance(found, Pod) and isinstance(expected, Pod):
                own = Pod(expected.metadata, expected.spec, expected.status)
                assert (found.requests, found.host_ports) == (own.requests, own.host_ports)
                assert list(found.labels) == list(expected.labels)


def test_pods_of_a_workload_share_their_specs_parts_and_requests() -> None:
    mounted = {"volumes": [{"name": "kube-api-access-1", "projected": {}}]}
    first = read(stored("first", spec={**_SPEC, **mounted}))
    mounted = {"volumes": [{"name": "kube-api-access-2", "projected": {}}]}
    second = read(stored("second", spec={**_SPEC, **mounted, "nodeName": "n"}))
    assert second.spec.containers is first.spec.containers
    assert second.requests is first.requests
    assert (first.node_name, second.node_name) == ("", "n")
    assert [pod.spec.volumes[0].name for pod in (first, second)] == ["kube-api-access-1", "kube-api-access-2"]


RESOURCES = (
    st.none()
    | st.sampled_from(
        [{}, {"limits": {"cpu": "2", "memory": "1Gi"}}, {"requests": {"cpu": "3"}, "limits": {"cpu": "1"}}]
    )
    | st.fixed_dictionaries(
        {
            "requests": st.dictionaries(
                st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "500m", "much"])
            )
        }
    )
)


@given(
    st.lists(
        st.tuples(RESOURCES, RESOURCES, st.sampled_from([{}, {"resources": {"limits": {"cpu": "4"}}}])),
        max_size=4,
    ),
    st.integers(0, 10**9),
)
def test_pods_that_differ_in_their_resources_are_those_of_their_manifests(
    drawn: list[tuple[Manifest | None, Manifest | None, Manifest]], number: int
) -> None:
    # Other examples hardly have this name, so the first of these pods is the first of its kind.
    name = f"n{number}"
    for resources, of_sidecar, own in drawn:
        spec = {
            "containers": [{"name": name, "resources": resources}],
            "initContainers": [{"name": "sidecar", "restartPolicy": "Always", "resources": of_sidecar}],
            **own,
        }
        manifest = stored("web-0", spec=spec)
        expected = outcome(lambda one: pod_from_manifest(one, check=False), manifest)
        found = outcome(read, manifest)
        assert found == expected
        if isinstance(found, Pod) and isinstance(expected, Pod):
            assert found.requests == Pod(expected.metadata, expected.spec, expected.status).requests


def test_pods_that_differ_in_their_resources_share_the_rest_of_their_specs() -> None:
    specs = [
        read(
            stored(
                "web-0",
                spec={
                    "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
                    "tolerations": [{"key": "gpu", "operator": "Exists"}],
                },
            )
        ).spec
        for cpu in ("1", "2", "3")
    ]
    assert len({id(spec.tolerations) for spec in specs}) == 1
    assert [str(spec.containers[0].resources.requests["cpu"]) for spec in specs] == ["1", "2", "3"]


def test_requests_of_a_pod_that_is_resized_are_its_own() -> None:
    resized = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}
    grown, other = read(stored("grown", status=resized)), read(stored("other"))
    assert [pod.requests.amounts.milli_cpu for pod in (grown, other)] == [3000, 1000]


def test_labels_count_where_constraints_refer_to_them() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["version"],
    }
    spec = {**_SPEC, "topologySpreadConstraints": [constraint]}
    for version in ("1", "2"):
        manifest = stored("p", spec=spec, metadata={"labels": {"app": "web", "version": version}})
        assert read(manifest) == pod_from_manifest(manifest)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"metadata": ', b'{"metadata": {"name": "\xff"}, "spec": {}}']
)
def test_text_that_is_no_object_is_an_error(text: bytes) -> None:
    with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
        pod_from_json(text)
