"""At 60, 80 and 100 columns no name is broken, and no message is repeated for each pod."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from large import export

from kschedfw.cli import EXPORT
from kschedfw.testing import Command

WIDTHS = (60, 80, 100)

NAME = re.compile(r"ip-10-\d+-\d+-\d+\.eu-central-1\.compute\.internal(-\d+)?")
BEGUN = re.compile(r"ip-10-[\w.-]*|\S*(?:compute|internal)[\w.-]*")
"""A piece of such a name, whole or not."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster whose nodes have the long names that EKS gives, full but for two pods that wait for room."""
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    objects = [*export(nodes=20, pods=80, pending=20)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("group") / "group.yaml"
    path.write_text(
        "name: general-purpose-nodes-of-zone-a\nprice: 1\n"
        "template: {apiVersion: v1, kind: Node, metadata: {labels: {pool: general}},"
        " status: {allocatable: {cpu: 16, memory: 64Gi, pods: 58}}}\n",
        encoding="utf-8",
    )
    return path


NODES = [f"ip-10-0-0-{number}.eu-central-1.compute.internal" for number in (0, 1)]

COMMANDS = (
    ("pending", "--kinds=20"),
    ("fit", "--image=app", "--cpu=1"),
    ("drain", *NODES),
    ("scale-up", "--node-group=GROUP"),
    ("scale-down",),
    ("simulate",),
    ("explain", "shop/no-toleration-00005"),
)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_no_name_of_a_node_is_broken(
    kschedfw_command: Command,
    cluster: Path,
    group: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    name, *arguments = (each.replace("GROUP", str(group)) for each in command)
    result = kschedfw_command(name, cluster, *arguments)
    assert result.code in (0, 1), result.err
    lines = result.out.splitlines()
    assert max(map(len, lines)) <= width
    broken = [piece for piece in BEGUN.findall(result.out) if not NAME.fullmatch(piece.strip("(.,:;)"))]
    assert not broken
    if name != "simulate":
        assert NAME.search(result.out) or name == "scale-up"


@pytest.mark.parametrize("width", [40, *WIDTHS])
def test_what_helps_is_said_once_for_each_kind_of_pods(
    kschedfw_command: Command, cluster: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    document = kschedfw_command("pending", cluster, "--json").json
    helped = sum(bool(kind["helps"]) for why in document["groups"] for kind in why["kinds"])
    assert kschedfw_command("pending", cluster).out.count("what helps (") == helped


@pytest.mark.parametrize("command", [("drain", *NODES), ("scale-down",)], ids=lambda command: str(command[0]))
def test_what_holds_for_several_pods_is_said_once(
    kschedfw_command: Command, cluster: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    name, *arguments = command
    told = [
        line.partition(": ")[2]
        for line in kschedfw_command(name, cluster, *arguments).out.splitlines()
        if "finds no other place" in line or "has no controller" in line
    ]
    assert len(told) == len(set(told))


@pytest.mark.parametrize("command", ["pending", "fit", "scale-down"])
def test_without_nodes_it_is_said_how_to_export_them(
    kschedfw_command: Command, tmp_path: Path, command: str
) -> None:
    pods = tmp_path / "pods.yaml"
    pods.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n",
        encoding="utf-8",
    )
    result = kschedfw_command(command, pods, *(["--image=app", "--cpu=1"] if command == "fit" else []))
    assert "the input has no nodes" in result.out
    assert f"the input has no nodes; this exports what scheduling reads: {EXPORT}\n" in result.err
