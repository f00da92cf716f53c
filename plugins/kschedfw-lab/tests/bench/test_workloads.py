"""Workloads have the shapes and sizes of scheduler_perf's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kschedfw_lab.bench.shapes import bound, made
from kschedfw_lab.bench.workload import Workload
from kschedfw_lab.bench.workloads import SCHEDULER_PERF, WORKLOADS, UnknownWorkloadError, find_workload

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.manifests import parse_manifests
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod

SharedData = Callable[[str], Path]


NAMES_OF_OURS = {"target": "scheduler-perf-node"}

each = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda workload: workload.name)
each_of_theirs = pytest.mark.parametrize(
    "workload", SCHEDULER_PERF.values(), ids=lambda workload: workload.name
)


@each
def test_its_objects_can_be_made(workload: Workload) -> None:
    assert isinstance(made(workload.node(0)), Node)
    assert isinstance(made(workload.initial_pod(0)), Pod)
    assert isinstance(made(workload.measured_pod(0)), Pod)
    assert all(made(manifest).name for manifest in workload.others)
    if workload.churn is not None:
        assert isinstance(made(workload.churn(0)), Pod)


@each
def test_what_comes_with_nodes_and_pods_can_be_made(workload: Workload) -> None:
    node, pod, initial = workload.node(1), workload.measured_pod(5), workload.initial_pod(5)
    companions = [
        *workload.with_node(node),
        *workload.with_devices(node, 4),
        *workload.with_pod(pod),
        *(() if workload.with_bound is None else workload.with_bound(bound(initial, "node-1"), 2)),
    ]
    names = [(type(each), each.key) for each in map(made, companions)]
    assert len(set(names)) == len(names)


@each
def test_names_differ(workload: Workload) -> None:
    makers = [workload.initial_pod, workload.measured_pod]
    names = [made(make(i)).key for make in makers for i in range(20)]
    assert len(set(names)) == len(names)
    assert len({made(workload.node(i)).name for i in range(20)}) == 20


def test_pods_share_what_pods_from_a_file_would() -> None:
    manifests = [WORKLOADS["pod-affinity"].measured_pod(i) for i in (0, 1)]
    from_file = parse_manifests("\n---\n".join(map(json.dumps, manifests))).pods
    for one, other in (from_file, [made(manifest) for manifest in manifests]):
        assert isinstance(one, Pod)
        assert isinstance(other, Pod)
        assert one.spec is other.spec
        assert one.metadata is not other.metadata


def test_an_unknown_name_is_answered_with_one_that_is_meant() -> None:
    with pytest.raises(UnknownWorkloadError, match="no workload 'mixd'; did you mean 'mixed'"):
        find_workload("mixd")
    with pytest.raises(UnknownWorkloadError, match="did you mean 'mixed-distinct'"):
        find_workload("mixed-distint")


# Against scheduler_perf itself


@pytest.fixture
def scheduler_perf(shared_data: SharedData) -> dict[str, Any]:
    return _read(shared_data("scheduler_perf/workloads.json"))


@cache
def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def followed(workload: Workload, scheduler_perf: Mapping[str, Any]) -> dict[str, Any]:
    """The workload of scheduler_perf that is named in `follows`."""
    test_case, _, rest = workload.follows.partition(" (")
    size = rest.partition(")")[0].partition(",")[0]
    flat: list[dict[str, Any]] = scheduler_perf["flat"]
    return next(each for each in flat if (each["testCase"], each["workload"]) == (test_case, size))


@each_of_theirs
def test_sizes(workload: Workload, scheduler_perf: dict[str, Any]) -> None:
    if "1000 pods" in workload.follows:
        pytest.skip("scheduler_perf's is too small, or goes on for a time instead")
    ops = followed(workload, scheduler_perf)["ops"]
    created = [op for op in ops if op["opcode"] == "createPods"]
    sets = [op for op in ops if op["opcode"] == "createPodSets"]
    nodes = sum(op["count"] for op in ops if op["opcode"] == "createNodes")
    initial = sum(op["count"] for op in created if not op.get("collectMetrics"))
    initial += sum(op["count"] * op["createPodsOp"]["count"] for op in sets)
    measured = sum(op["count"] for op in created if op.get("collectMetrics"))
    if workload.name == "mixed":
        initial //= 2
    if "ten times as many nodes" in workload.follows:
        nodes *= 10
    assert (workload.nodes, workload.initial_pods, workload.pods) == (nodes, initial, measured)


@each_of_theirs
def test_nodes(workload: Workload, scheduler_perf: dict[str, Any]) -> None:
    ops = [
        op
        for op in followed(workload, scheduler_perf)["ops"]
        if op["opcode"] == "createNodes" and op["count"]
    ]
    if workload.devices:  # those without a driver are left out
        ops = [op for op in ops if op.get("nodeTemplatePath")]
    expected = set()
    for op in ops:
        template = (
            manifest(op.get("nodeTemplatePath"), scheduler_perf) if op.get("nodeTemplatePath") else None
        )
        for zone in op.get("labelNodePrepareStrategy", {}).get("labelValues", [None]):
            limits = op.get("nodeAllocatableStrategy", {}).get("nodeAllocatable", {})
            expected.add(node_shape(template or scheduler_perf["defaultNode"], zone, limits))
    assert {node_shape(workload.node(i)) for i in range(30)} == expected


def node_shape(node: Mapping[str, Any], zone: str | None = None, limits: Mapping[str, str] = EMPTY) -> str:
    labels = dict(node["metadata"].get("labels", {}))
    labels = {"zone": labels.get("topology.kubernetes.io/zone", zone)}
    resources = {
        key.rpartition("-")[0] or key: str(amount)
        for key, amount in {**node["status"]["capacity"], **limits}.items()
    }
    taints = node.get("spec", {}).get("taints", [])
    return json.dumps([labels, resources, taints], sort_keys=True)


@each_of_theirs
def test_measured_pods(workload: Workload, scheduler_perf: dict[str, Any]) -> None:
    perf = followed(workload, scheduler_perf)
    if workload.name == "unschedulable":
        (path,) = next(op for op in perf["ops"] if op["opcode"] == "churn")["templatePaths"]
    else:
        op = next(op for op in perf["ops"] if op.get("collectMetrics"))
        path = op.get("podTemplatePath") or perf["defaultPodTemplatePath"] or "templates/pod-default.yaml"
    assert pod_shape(workload.measured_pod(7)) == pod_shape(manifest(path, scheduler_perf))


@each_of_theirs
def test_claims_and_volumes(workload: Workload, scheduler_perf: dict[str, Any]) -> None:
    measured = [op for op in followed(workload, scheduler_perf)["ops"] if op.get("collectMetrics")]
    op: Mapping[str, Any] = measured[0] if measured else EMPTY
    paths = [op.get(f"{kind}TemplatePath") for kind in ("persistentVolume", "persistentVolumeClaim")]
    pod = workload.measured_pod(7)
    if workload.devices:
        pytest.skip("its pods have claims for devices")
    made_for_pod: Sequence[Any] = workload.with_pod(pod) or (None, None)
    for path, ours in zip(paths, made_for_pod, strict=True):
        if path is None:
            assert ours is None
            continue
        theirs = manifest(path, scheduler_perf)
        assert ours["metadata"].get("annotations") == theirs.get("metadata", {}).get("annotations")
        for field, value in theirs["spec"].items():
            assert (
                ours["spec"][field].keys() >= value.keys()
                if field in ("awsElasticBlockStore", "csi")
                else (ours["spec"][field] == value)
            )
    for made_ours in map(made, workload.with_pod(pod)):
        assert "pod-7" in made_ours.name


@each_of_theirs
def test_initial_pods(workload: Workload, scheduler_perf: dict[str, Any]) -> None:
    perf = followed(workload, scheduler_perf)
    default = perf["defaultPodTemplatePath"] or "templates/pod-default.yaml"
    paths = {
        op.get("podTemplatePath") or default
        for op in perf["ops"]
        if op["opcode"] in ("createPods", "createPodSets") and not op.get("collectMetrics")
    }
    if not paths:
        pytest.skip("it has none")
    numbers = [7] if workload.devices else range(30)  # pods with devices differ by their numbers
    shapes = {json.dumps(pod_shape(workload.initial_pod(i)), sort_keys=True) for i in numbers}
    assert shapes == {json.dumps(pod_shape(manifest(path, scheduler_perf)), sort_keys=True) for path in paths}


def specs(manifests: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What is asked for, by kind; of a template, what its claims ask for."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in manifests:
        if each["kind"] in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"):
            spec = each["spec"]["spec"] if each["kind"] == "ResourceClaimTemplate" else each["spec"]
            kind = each["kind"].removesuffix("Template")
            if spec not in found.setdefault(kind, []):
                found[kind].append(spec)
    return found


@each_of_theirs
def test_classes_and_claims(workload: Workload, scheduler_perf: dict[str, Any]) -> None:
    if not workload.devices:
        pytest.skip("it has none")
    paths = [
        op["templatePath"]
        for op in followed(workload, scheduler_perf)["ops"]
        if op["opcode"] == "createAny" and "resourceslice" not in op["templatePath"] and op.get("count") != 0
    ]
    theirs = specs([manifest(path, scheduler_perf) for path in paths])
    ours = specs(
        [
            *workload.others,
            *workload.with_devices(workload.node(0), workload.devices),
            *workload.with_pod(workload.measured_pod(5)),
        ]
    )
    for kind, expected in theirs.items():
        for spec in expected:
            assert spec in ours[kind]


def manifest(path: str, scheduler_perf: Mapping[str, Any]) -> dict[str, Any]:
    template = scheduler_perf["templates"][path]
    if "rendered" in template:
        template = next(each for each in template["rendered"] if each["Index"] == 7)
    found: dict[str, Any] = template["manifest"]
    return found


def pod_shape(pod: Mapping[str, Any]) -> dict[str, Any]:
    """What scheduling reads of a pod, but for its name and namespace, as the API server would have it."""
    read = made({**pod, "metadata": {"name": "pod", "labels": pod["metadata"].get("labels", {})}})
    assert isinstance(read, Pod)
    text = json.dumps({"spec": pod["spec"], "labels": pod["metadata"].get("labels", {})})
    for ours, theirs in NAMES_OF_OURS.items():
        text = text.replace(f'"{ours}"', f'"{theirs}"')
    shape: dict[str, Any] = json.loads(text)
    spec = shape["spec"]
    # scheduler_perf adds the claims, which are compared by themselves.
    volumes = [each for each in spec.pop("volumes", ()) if "persistentVolumeClaim" not in each]
    if volumes:
        spec["volumes"] = volumes
    for container in spec["containers"]:
        del container["image"]
        for kind, amounts in container.get("resources", {}).items():
            for name in amounts if kind != "claims" else ():
                amounts[name] = {"3": "3000m"}.get(str(amounts[name]), str(amounts[name]))
    for reference in spec.get("resourceClaims", ()):
        if "resourceClaimName" in reference:
            reference["resourceClaimName"] = reference["resourceClaimName"].rpartition("-")[2]
    for constraint in spec.get("topologySpreadConstraints", ()):
        for key in [key for key in constraint if key[0].isupper()]:
            constraint[key[0].lower() + key[1:]] = constraint.pop(key)  # as it was meant
    return shape
