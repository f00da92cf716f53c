"""Workloads are named as for kubectl, and `explain` takes one, or the beginning of a pod's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from kschedfw.cluster import Workload, WorkloadName
from kschedfw.testing import Command

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "1", memory: 4Gi, pods: "10"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop}
spec: {containers: [{name: c, image: i}]}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER % "shop" + POD % "batch-1" + POD % "batch-2", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("deployment/web", WorkloadName("deployment", None, "web")),
        ("deploy/shop/web", WorkloadName("deployment", "shop", "web")),
        ("StatefulSets/db", WorkloadName("statefulset", None, "db")),
        ("pytorchjob/ml/train", WorkloadName("pytorchjob", "ml", "train")),
        ("shop/web", None),
        ("web", None),
    ],
)
def test_a_name_has_a_kind_and_perhaps_a_namespace(text: str, name: WorkloadName | None) -> None:
    assert WorkloadName.parse(text) == name


def test_a_name_without_a_namespace_means_the_workload_in_any() -> None:
    web = Workload("Deployment", "shop", "web")
    assert WorkloadName("deployment", None, "web").means(web)
    assert not WorkloadName("deployment", "other", "web").means(web)
    assert not WorkloadName("deployment", None, "web").means(None)


@pytest.mark.parametrize("name", ["deployment/web", "deploy/shop/web", "web-", "shop/web-"])
def test_explain_takes_a_workload_or_the_beginning_of_its_pods_names(
    kschedfw_command: Command, cluster: Path, name: str
) -> None:
    result = kschedfw_command("explain", cluster, name)
    assert result.code == 1
    assert result.out.startswith("shop/web-")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["deployment/wep"], "deployment 'wep': there is none of this name; did you mean web?"),
        (["batch-"], "pod 'batch-': several begin so: shop/batch-1, shop/batch-2; say which"),
        (
            ["--namespace", "shopp", "web-"],
            "namespace 'shopp': there is none of this name; did you mean shop?",
        ),
        (["batchh"], "pod 'batchh': there is none of this name; did you mean batch-2 or batch-1?"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(
    kschedfw_command: Command, cluster: Path, arguments: list[str], said: str
) -> None:
    result = kschedfw_command("explain", cluster, *arguments)
    assert (result.code, result.err.splitlines()[-1]) == (2, f"kschedfw: {said}")


def test_a_namespace_of_files_is_refused_by_commands_that_have_no_use_for_it(
    kschedfw_command: Command, cluster: Path
) -> None:
    result = kschedfw_command("simulate", cluster, "--namespace", "shop")
    assert (result.code, "--namespace shop: goes with a live cluster" in result.err) == (2, True)


def test_a_misspelt_pod_gets_no_notes_on_the_input(kschedfw_command: Command, cluster: Path) -> None:
    assert len(kschedfw_command("explain", cluster, "batch-3").err.splitlines()) == 1
