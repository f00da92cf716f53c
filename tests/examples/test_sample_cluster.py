"""The sample cluster is what its generator writes, and what its README says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow

SAMPLE = Path(__file__).parents[2] / "examples" / "sample-cluster"
FILES = ["namespaces.yaml", "nodes.yaml", "priorityclasses.yaml", "workloads.yaml"]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sample-cluster")
    subprocess.run([sys.executable, SAMPLE / "generate.py", directory], check=True)
    return directory


@pytest.fixture(scope="module")
def nodes() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = yaml.safe_load((SAMPLE / "nodes.yaml").read_text())["items"]
    return items


@pytest.fixture(scope="module")
def workloads() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((SAMPLE / "workloads.yaml").read_text()))


def test_every_file_is_generated(generated: Path) -> None:
    assert sorted(path.name for path in generated.iterdir()) == FILES
    assert sorted(path.name for path in SAMPLE.glob("*.yaml")) == FILES


@pytest.mark.parametrize("name", FILES)
def test_generator_writes_the_committed_bytes(generated: Path, name: str) -> None:
    assert (SAMPLE / name).read_bytes() == (generated / name).read_bytes(), "run generate.py, or undo by hand"


def test_two_hundred_nodes_in_three_zones(nodes: list[dict[str, Any]]) -> None:
    assert len({node["metadata"]["name"] for node in nodes}) == 200
    assert len({node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes}) == 3


def test_two_thousand_pods(nodes: list[dict[str, Any]], workloads: list[dict[str, Any]]) -> None:
    assert sum(number_of_pods(manifest, nodes) for manifest in workloads) == 2000


def number_of_pods(manifest: dict[str, Any], nodes: list[dict[str, Any]]) -> int:
    match manifest["kind"]:
        case "Pod":
            return 1
        case "Deployment" | "StatefulSet":
            return int(manifest["spec"]["replicas"])
        case "Job":
            return int(manifest["spec"]["parallelism"])
        case "DaemonSet":
            wanted = manifest["spec"]["template"]["spec"].get("nodeSelector", {}).items()
            return sum(wanted <= node["metadata"]["labels"].items() for node in nodes)
        case _:
            return 0


def test_selectors_match_their_templates(workloads: list[dict[str, Any]]) -> None:
    for manifest in workloads:
        if manifest["apiVersion"] == "apps/v1":
            selector = manifest["spec"]["selector"]["matchLabels"].items()
            assert selector <= manifest["spec"]["template"]["metadata"]["labels"].items(), manifest[
                "metadata"
            ]


def test_names_are_unique(workloads: list[dict[str, Any]]) -> None:
    names = [(m["kind"], m["metadata"]["namespace"], m["metadata"]["name"]) for m in workloads]
    assert len(set(names)) == len(names)
