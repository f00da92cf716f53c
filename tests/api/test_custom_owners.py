"""Pods of well-known custom kinds: JobSet, LeaderWorkerSet, RayCluster and the like."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kschedfw.api import Expand, Limits, Manifests, StatefulSet, parse_manifests

Manifest = dict[str, Any]


def template(cpu: str = "1") -> Manifest:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": {"own": "label"}}, "spec": {"containers": [container]}}


def owner(version: str, kind: str, spec: Manifest, **more: Any) -> Manifest:
    metadata = {"name": "x", "uid": "u", **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, **more}


def job_set(**spec: Any) -> Manifest:
    job = {"spec": {"parallelism": 2, "completions": 3, "template": template()}}
    replicated = [{"name": "w", "replicas": 2, "template": job}]
    return owner("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": replicated, **spec})


def ray(kind: str, field: str = "") -> Manifest:
    groups = [{"groupName": "gpu", "replicas": 2, "numOfHosts": 2, "template": template()}]
    cluster = {"headGroupSpec": {"template": template()}, "workerGroupSpecs": groups}
    return owner("ray.io/v1", kind, {field: cluster} if field else cluster)


_RAY: Final = ["x-head-0", *(f"x-gpu-worker-{number}" for number in range(4))]
_CASES: Final = {
    "JobSet": (job_set(), ["x-w-0-0", "x-w-0-1", "x-w-1-0", "x-w-1-1"]),
    "LeaderWorkerSet": (
        owner(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": template()}},
        ),
        ["x-0", "x-1", "x-0-1", "x-0-2", "x-1-1", "x-1-2"],
    ),
    "RayCluster": (ray("RayCluster"), _RAY),
    "RayJob": (ray("RayJob", "rayClusterSpec"), _RAY),
    "RayService": (ray("RayService", "rayClusterConfig"), _RAY),
    "Volcano's Job": (
        owner(
            "batch.volcano.sh/v1alpha1",
            "Job",
            {"tasks": [{"name": "t", "replicas": 2, "template": template()}]},
        ),
        ["x-t-0", "x-t-1"],
    ),
    "PyTorchJob": (
        owner(
            "kubeflow.org/v1",
            "PyTorchJob",
            {
                "pytorchReplicaSpecs": {
                    "Master": {"template": template()},
                    "Worker": {"replicas": 2, "template": template()},
                }
            },
        ),
        ["x-master-0", "x-worker-0", "x-worker-1"],
    ),
    "Rollout": (
        owner(
            "argoproj.io/v1alpha1",
            "Rollout",
            {"replicas": 2, "selector": {"matchLabels": {"own": "label"}}, "template": template()},
        ),
        ["x-stable-0", "x-stable-1"],
    ),
    "CloneSet": (
        owner("apps.kruise.io/v1alpha1", "CloneSet", {"replicas": 2, "template": template()}),
        ["x-0", "x-1"],
    ),
}


def load(*manifests: Manifest, **options: Any) -> Manifests:
    text = "\n---\n".join(map(json.dumps, manifests))
    return parse_manifests(text, **{"expand_workloads": Expand.ALL, **options})


@pytest.mark.parametrize("kind", _CASES)
def test_the_pods_of_its_templates_are_made(kind: str) -> None:
    manifest, names = _CASES[kind]
    loaded = load(manifest)
    assert not loaded.problems
    assert [pod.name for pod in loaded.pods] == names
    assert sum(loaded.made.values()) == len(names)
    assert not loaded.custom_owners
    for pod in loaded.pods:
        assert pod.labels["own"] == "label"
        assert pod.requests.amounts.milli_cpu == 1000
        assert pod.metadata.controller is not None
        assert pod.metadata.controller.uid


@pytest.mark.parametrize("kind", _CASES)
def test_without_being_asked_none_are_made_and_the_kind_is_named(kind: str) -> None:
    manifest, _ = _CASES[kind]
    loaded = load(manifest, expand_workloads=Expand.WORKLOADS)
    assert loaded.pods == ()
    assert sum(loaded.custom_owners.values()) == 1
    assert not load(manifest, expand_workloads=Expand.NOTHING).custom_owners


@pytest.mark.parametrize("kind", _CASES)
def test_none_are_made_where_pods_of_it_are_in_the_input(kind: str) -> None:
    manifest, names = _CASES[kind]
    there = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": names[-1]}, "spec": template()["spec"]}
    loaded = load(manifest, there)
    assert [pod.name for pod in loaded.pods] == [names[-1]]
    assert not loaded.custom_owners


def test_labels_and_owners_are_those_of_the_controllers() -> None:
    (pod, *_) = load(job_set()).pods
    assert pod.labels["jobset.sigs.k8s.io/replicatedjob-name"] == "w"
    assert pod.labels["jobset.sigs.k8s.io/job-index"] == "0"
    assert pod.labels["batch.kubernetes.io/job-completion-index"] == "0"
    assert pod.metadata.controller is not None
    assert (pod.metadata.controller.kind, pod.metadata.controller.name) == ("Job", "x-w-0")
    head = load(ray("RayCluster")).pods[0]
    assert head.labels["ray.io/node-type"] == "head"
    assert head.metadata.controller is not None
    assert (head.metadata.controller.kind, head.metadata.controller.api_version) == (
        "RayCluster",
        "ray.io/v1",
    )
    sets = load(_CASES["LeaderWorkerSet"][0]).of(StatefulSet)
    assert [(each.name, each.spec.replicas, each.spec.ordinals.start) for each in sets] == [
        ("x", 2, 0),
        ("x-0", 2, 1),
        ("x-1", 2, 1),
    ]


def test_volcanos_pods_are_for_its_scheduler_unless_the_job_names_one() -> None:
    manifest = copy.deepcopy(_CASES["Volcano's Job"][0])
    assert {pod.spec.scheduler_name for pod in load(manifest).pods} == {"volcano"}
    manifest["spec"]["schedulerName"] = "default-scheduler"
    assert {pod.spec.scheduler_name for pod in load(manifest).pods} == {"default-scheduler"}


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (ray("RayCluster") | {"spec": {**ray("RayCluster")["spec"], "suspend": True}}, "it is suspended"),
        (job_set(suspend=True), "it is suspended"),
        (
            job_set() | {"status": {"conditions": [{"type": "Completed", "status": "True"}]}},
            "it has finished",
        ),
        (job_set() | {"status": {"terminalState": "Failed"}}, "it has finished"),
    ],
)
def test_one_that_makes_none_now_says_why(manifest: Manifest, reason: str) -> None:
    loaded = load(manifest)
    assert loaded.pods == ()
    assert set(loaded.without_pods.values()) == {reason}


@pytest.mark.parametrize(
    ("kind", "path", "value", "problem"),
    [
        (
            "JobSet",
            (
                "replicatedJobs",
                0,
                "template",
                "spec",
                "template",
                "spec",
                "containers",
                0,
                "resources",
                "requests",
            ),
            {"cpu": "lots"},
            "spec.replicatedJobs[0].template.spec.template.spec.containers[0].resources.requests.cpu: Invalid value",
        ),
        (
            "JobSet",
            ("replicatedJobs", 0, "template", "spec", "template", "spec", "nodeSelctor"),
            {},
            'unknown field "spec.replicatedJobs[0].template.spec.template.spec.nodeSelctor"',
        ),
        (
            "JobSet",
            ("replicatedJobs", 0, "replicas"),
            "two",
            'spec.replicatedJobs[0].replicas: Invalid value: "two"',
        ),
        ("JobSet", ("replicatedJobs",), {}, "spec.replicatedJobs: Invalid value: {}: must be a list"),
        (
            "LeaderWorkerSet",
            ("leaderWorkerTemplate", "workerTemplate", "spec", "containers"),
            [],
            "spec.leaderWorkerTemplate.workerTemplate.spec.containers: Required value",
        ),
        (
            "RayCluster",
            ("headGroupSpec", "template", "spec"),
            "x",
            'headGroupSpec.template.spec: Invalid value: "x"',
        ),
        ("CloneSet", ("template", "spec", "containers"), [], "spec.template.spec.containers: Required value"),
        ("CloneSet", ("replicas",), 10**30, "more Pods, but only 200000 may still be made: the limit `pods`"),
    ],
)
def test_what_is_wrong_is_told_by_its_path_in_the_custom_object(
    kind: str, path: tuple[str | int, ...], value: object, problem: str
) -> None:
    manifest = copy.deepcopy(_CASES[kind][0])
    place: Any = manifest["spec"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    told = "\n".join(map(str, load(manifest).problems))
    assert problem in told
    # Who doesn't ask for its pods doesn't hear of it.
    assert not load(manifest, expand_workloads=Expand.WORKLOADS).problems


def test_pods_and_workloads_count_for_one_limit() -> None:
    clone_set, _ = _CASES["CloneSet"]
    deployment = {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "rc"},
        "spec": {"replicas": 2, "selector": {"own": "label"}, "template": template()},
    }
    assert not load(clone_set, deployment, limits=Limits(pods=4)).problems
    (problem,) = load(clone_set, deployment, limits=Limits(pods=3)).problems
    assert "stands for 2 more pods, but only 1 may still be made" in str(problem)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return the container and the key of every value in a manifest."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *_places(value[key]))]


_STRANGE: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [None, True, "", "x", 0, -1, 1.5, 1 << 70, [], {}, [None], {"x": [{}]}, [["x"]]]
)


_CHANGE: Final = st.tuples(st.integers(0, 199), _STRANGE)
"""The number of a place, counted on from the first one after the last, and what is put there."""
_LIST: Final = [None]


@given(st.sampled_from(sorted(_CASES)), st.lists(_CHANGE, min_size=1, max_size=3))
@example("JobSet", [(0, _LIST), (1, _LIST), (2, _LIST)])
def test_anything_in_any_place_is_taken_or_told_as_a_problem(
    kind: str, changes: list[tuple[int, object]]
) -> None:
    manifest = copy.deepcopy(_CASES[kind][0])
    for number, value in changes:
        places = _places(manifest["spec"])
        if places:
            container, key = places[number % len(places)]
            # A copy, since the same list may be drawn twice: put into itself, it would have no end.
            container[key] = copy.deepcopy(value)
    loaded = load(manifest)
    assert loaded.problems or loaded.pods or loaded.without_pods or loaded.objects()
