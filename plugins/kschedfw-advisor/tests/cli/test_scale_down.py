"""What `kschedfw scale-down` prints, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.test_drain import BUDGET, NODE, POD, written

from kschedfw.testing import Command

PRICED = """\
apiVersion: v1
kind: Node
metadata: {name: %s, annotations: {kschedfw/price: "%s"}}
status: {allocatable: {cpu: %s, memory: 4Gi, pods: 10}}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A node with two pods, a smaller and cheaper one for just these, and a naked pod on a third."""
    naked = (
        "{apiVersion: v1, kind: Pod, metadata: {name: naked}, spec: {nodeName: n3, containers: [{name: c}]}}"
    )
    nodes = PRICED % ("n1", "3", 8), PRICED % ("n2", "1.5", 2), PRICED % ("n3", "2", 1)
    return written(tmp_path / "c.yaml", *nodes, POD % "a", POD % "b", naked)


def test_the_nodes_that_can_go_and_why_the_others_cannot(kschedfw_command: Command, cluster: Path) -> None:
    result = kschedfw_command("scale-down", cluster)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "1 of 3 nodes can go, which saves 3 of 6.5\n"
        "\n"
        "1. remove n1, which saves 3\n"
        "\n"
        "   Where the pods go\n"
        "   round  pod        to\n"
        "       1  default/a  n2\n"
        "       1  default/b  n2\n"
        "\n"
        "Nodes that stay\n"
        "n2\n"
        "  default/b: finds no other place: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were\n"
        "  unschedulable.\n"
        "n3\n"
        "  default/naked: has no controller: nothing would make it anew\n"
    )


def test_a_cheaper_node_comes_first(kschedfw_command: Command, cluster: Path, tmp_path: Path) -> None:
    written(cluster, PRICED % ("n1", "3", 8), POD % "a", POD % "b")
    groups = written(
        tmp_path / "groups.yaml",
        "{name: spot, price: 1.5, template: {status: {allocatable: {cpu: 2, pods: 9}}}}",
    )
    result = kschedfw_command("scale-down", cluster, "--node-group", groups, "--json")
    assert result.code == 0
    document = result.json
    (removal,) = document["removals"]
    assert (removal["nodes"], removal["replacedBy"]) == (["n1"], {"group": "spot", "node": "spot-1"})
    assert [(step["pod"], step["to"]) for step in removal["steps"]] == [
        ("default/a", "spot-1"),
        ("default/b", "spot-1"),
    ]
    assert (document["cost"], document["saved"], document["kept"]) == ("3", "1.5", {})
    assert kschedfw_command("scale-down", cluster, "--node-group", groups).out.startswith(
        "1 of 1 node can go, with 1 cheaper new node, which saves 1.5 of 3\n"
        "\n"
        "1. add spot-1 of group spot, then remove n1, which saves 1.5\n"
    )


def test_of_many_nodes_each_is_a_line(kschedfw_command: Command, tmp_path: Path) -> None:
    """Six nodes can go. Of six others each is full, of other sizes, so the messages about their pods differ."""
    pod = (
        "{apiVersion: v1, kind: Pod, metadata: {name: p-%d, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, "
        "name: web, uid: u, controller: true}]}, spec: {nodeName: full-%d, containers: [{name: c, resources: "
        "{requests: {cpu: %d}}}]}}"
    )
    small = [NODE % (f"small-{number}", 1) for number in range(6)]
    full = [NODE % (f"full-{number}", number + 10) for number in range(6)]
    pods = [pod % (number, number, number + 10) for number in range(6)]
    out = kschedfw_command("scale-down", written(tmp_path / "c.yaml", *small, *full, *pods)).out
    assert "1. remove 6 nodes\n" in out
    assert "   node     pods  to nodes\n   small-0     0         0\n" in out
    assert "\nfull-0, full-1, full-2, full-3, full-4, 1 more\n  each of default/p-0" in out


def test_no_node_can_go(kschedfw_command: Command, cluster: Path, tmp_path: Path) -> None:
    written(cluster, NODE % ("n1", 4), POD % "a")
    budget = written(tmp_path / "budget.yaml", BUDGET % "minAvailable: 1")
    result = kschedfw_command("scale-down", cluster, "--pods", budget)
    assert result.code == 1
    assert result.out == (
        "No node can go: each of 1 node is needed\n"
        "\n"
        "Nodes that stay\n"
        "n1\n"
        "  default/a: its eviction would violate PodDisruptionBudget web\n"
    )


def test_a_wrong_price_is_one_line(kschedfw_command: Command, cluster: Path) -> None:
    written(cluster, PRICED % ("n1", "cheap", 4))
    result = kschedfw_command("scale-down", cluster)
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        'kschedfw: node n1: metadata.annotations[kschedfw/price]: Invalid value: "cheap": '
        "must be a decimal number, 0 or more\n"
    )


def test_where_nodes_have_no_price_savings_and_costs_are_bounds(
    kschedfw_command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "nodes.yaml"
    # `n3` runs a pod that fits nowhere else.
    busy = "{resources: {requests: {cpu: 3}}, name: main, image: app}"
    pod = (
        f"kind: Pod\napiVersion: v1\nmetadata: {{name: big}}\nspec: {{nodeName: n3, containers: [{busy}]}}\n"
    )
    for prices, told in (
        ((3, None, None), "which saves at least 3: 1 node has no price"),
        ((3, 2, None), "which saves 5 of at least 5: 1 node has no price"),
        ((None, None, 4), "which saves at least 0: 2 nodes have no price"),
        ((None, None, None), "2 of 3 nodes can go"),
    ):
        nodes = [
            f"kind: Node\napiVersion: v1\nmetadata: {{name: n{number}{_annotated(price)}}}\n"
            f"status: {{allocatable: {{cpu: {1 + number}, memory: 4Gi, pods: 10}}}}\n"
            for number, price in enumerate(prices, 1)
        ]
        path.write_text("---\n".join([*nodes, pod]), encoding="utf-8")
        assert kschedfw_command("scale-down", path).out.splitlines()[0].endswith(told)


def _annotated(price: int | None) -> str:
    return "" if price is None else f', annotations: {{kschedfw/price: "{price}"}}'
