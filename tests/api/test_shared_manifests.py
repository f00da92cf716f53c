"""Real manifests come out as Kubernetes v1.36 reads them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kschedfw.api.documents import documents
from kschedfw.api.manifests import (
    FieldValidation,
    ManifestError,
    node_from_manifest,
    object_from_manifest,
    pod_from_manifest,
    read_manifests,
    to_manifest,
)
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.objects import supported_kind
from kschedfw.api.owners import pod_from_template
from kschedfw.api.pod import Pod
from kschedfw.api.requests import node_allocatable, pod_qos_class, pod_requests
from kschedfw.api.resource import Resource

pytestmark = pytest.mark.slow

SharedData = Callable[[str], Path]

# Kubernetes refuses this one for a field that scheduling doesn't read: spec.podCIDRs.
OUT_OF_SCOPE = {"manifests/k8s-managedfields-node.yaml"}


def expected_documents(shared_data: SharedData) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Each expectation with the manifest it is about; None where the document has no content."""
    directory = shared_data("manifests/expected-k8s136.json").parent.parent
    expected = json.loads((directory / "manifests/expected-k8s136.json").read_text())
    for file in expected["files"]:
        text = (directory / file["file"]).read_text()
        found = {document.number - 1: document for document in documents([text]) if not document.item}
        items = {(each.number - 1, each.item): each.content for each in documents([text]) if each.item}
        for each in file["docs"]:
            document = found.get(each["doc"])
            content: Any = document.content if document is not None else None
            if "item" in each:
                kind = content["kind"].removesuffix("List")
                typed = {"apiVersion": content["apiVersion"], "kind": kind} if kind else {}
                taken = items.get((each["doc"], f"items[{each['item']}]"))
                content = {**typed, **(taken or content["items"][each["item"]])}
            yield file["file"], each, content


def amounts(found: Resource) -> dict[str, Any]:
    result: dict[str, Any] = {"memory": found.memory, "milliCPU": found.milli_cpu}
    if found.ephemeral_storage:
        result["ephemeralStorage"] = found.ephemeral_storage
    if found.allowed_pod_number:
        result["pods"] = found.allowed_pod_number
    return result | ({"scalar": dict(found.scalar_resources)} if found.scalar_resources else {})


def summary(obj: Named) -> dict[str, Any]:
    """What the expectations say of an object that is valid."""
    result: dict[str, Any] = {"name": obj.name}
    if isinstance(obj, Node):
        return result | {
            "allocatable": amounts(node_allocatable(obj)),
            "images": len(obj.status.images),
            "taints": len(obj.spec.taints),
        }
    spec: Any = getattr(obj, "spec", None)
    template: Any = getattr(spec, "template", None)
    if not isinstance(obj, Pod) and template is None:
        return result
    pod = obj if isinstance(obj, Pod) else pod_from_template(obj, template, "pod")
    requests = pod_requests(pod)
    result["pod"] = {
        "requests": amounts(requests.amounts),
        "non0CPU": requests.non_zero_milli_cpu,
        "non0Mem": requests.non_zero_memory,
        "qos": pod_qos_class(pod).value,
    }
    ports = [
        f"{port.protocol}/{port.host_ip}/{port.host_port}"
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    ]
    if ports:
        result["pod"]["hostPorts"] = ports
    for field in ("replicas", "parallelism", "completions"):
        if hasattr(spec, field):
            result[field] = getattr(spec, field)
    return result


def test_every_document_is_read_as_kubernetes_does(shared_data: SharedData) -> None:
    wrong, checked = [], 0
    for file, expected, manifest in expected_documents(shared_data):
        if manifest is None or "items" in expected:
            continue
        try:
            kind = supported_kind(manifest)
        except ManifestError:
            kind = None
        if kind is None or "decodeError" in expected:
            # Kinds that scheduling reads are always in groups that Kubernetes knows.
            if kind is not None:
                wrong.append((file, expected, "should not be decoded"))
            continue
        checked += 1
        try:
            obj = object_from_manifest(manifest)
        except ManifestError as error:
            if expected.get("valid"):
                wrong.append((file, expected, str(error)))
            continue
        found = summary(obj)
        if {key: expected[key] for key in found if key in expected} != {
            key: found[key] for key in found if key in expected
        }:
            wrong.append((file, expected, str(found)))
        if "validationErrors" in expected and file not in OUT_OF_SCOPE:
            wrong.append((file, expected, "should be refused"))
        assert object_from_manifest(to_manifest(obj)) == obj
    assert not wrong
    assert checked > 80


def test_a_directory_of_everything_loads_in_one_go(shared_data: SharedData) -> None:
    loaded = read_manifests(shared_data("manifests"))
    assert len(loaded.nodes) > 20
    assert len(loaded.pods) > 100
    assert sum("has not been rendered" in str(problem) for problem in loaded.problems) == 3
    assert "jobs.v1alpha1.batch.volcano.sh" in {str(obj.kind) for obj in loaded.custom_objects}


OF_V1BETA1 = "spec.template.spec.containers[0].capabilities"
"""A container had that before v1 of the API was out; the API server of today refuses it, and so is it here."""


def test_what_loads_loads_with_strict_field_validation_too(shared_data: SharedData) -> None:
    directory = shared_data("manifests")
    lenient = read_manifests(directory, field_validation=FieldValidation.IGNORE)
    strict = read_manifests(directory)
    known = set(map(str, lenient.problems))
    (only,) = [problem for problem in strict.problems if str(problem) not in known]
    assert only.path == OF_V1BETA1
    loaded, still_loaded = (
        {obj.metadata.key for obj in manifests.objects(skip_invalid=True)} for manifests in (lenient, strict)
    )
    refused = loaded - still_loaded
    assert all(key.startswith("default/elasticsearch-logging-controller") for key in refused)


def test_a_large_trace_loads(shared_data: SharedData) -> None:
    loaded = read_manifests(shared_data("openb/nodes_gpu.json.gz"), shared_data("openb/pods.json.gz"))
    assert (len(loaded.nodes), len(loaded.pods), loaded.problems) == (1213, 8152, ())


@pytest.mark.parametrize("kind", ["pods", "nodes"])
def test_scenarios_of_the_conformance_suite_load(shared_data: SharedData, kind: str) -> None:
    directory = shared_data("manifests").parent.parent / "conformance"
    if not directory.is_dir():
        pytest.skip(f"NOT TESTED: no conformance scenarios beside {directory.parent}")
    read = pod_from_manifest if kind == "pods" else node_from_manifest
    count = 0
    for path in sorted(directory.glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines()[:20]:
            scenario = json.loads(line)
            for manifest in scenario["objects"].get(kind, ()):
                read(manifest)
                count += 1
    assert count > 100
