"""What `kschedfw scale-up` prints, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_nodes import NODES

from kschedfw.api import how_to_install
from kschedfw.testing import Command

GROUPS = """\
name: small
price: 0.5
template: {status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}}
---
name: large
max: 2
price: 0.8
template: {status: {allocatable: {cpu: 8, memory: 32Gi, pods: 10}}}
"""


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    path = tmp_path / "groups.yaml"
    path.write_text(GROUPS, encoding="utf-8")
    return path


def test_how_many_nodes_of_which_group_and_what_they_cost(
    kschedfw_command: Command, cluster_dir: Path, groups: Path
) -> None:
    """Of the two pending pods one fits; the other needs 3 CPUs."""
    result = kschedfw_command("scale-up", cluster_dir, "--node-group", groups)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "1 new node, for 0.8: the pod without a place gets one\n"
        "1 pending pod had a place without new nodes\n"
        "\n"
        "New nodes\n"
        "group  nodes  pods on them  price\n"
        "large      1             1    0.8\n"
        "\n"
        "Each group alone\n"
        "group  nodes  at most  pods placed  price\n"
        "small      0    1,000       0 of 1      0\n"
        "large      1        2       1 of 1    0.8\n"
    )


def test_pods_that_no_group_helps(kschedfw_command: Command, cluster_dir: Path, groups: Path) -> None:
    groups.write_text(GROUPS.partition("---")[0], encoding="utf-8")
    result = kschedfw_command("scale-up", cluster_dir, "--node-group", groups)
    assert result.code == 1
    assert result.out.startswith("No new node of these groups helps: 1 pod without a place\n")
    assert (
        "Still without a place:\ndefault/too-big: 0/2 nodes are available: 2 Insufficient cpu." in result.out
    )


def test_as_json(kschedfw_command: Command, cluster_dir: Path, groups: Path) -> None:
    document = kschedfw_command("scale-up", cluster_dir, "--node-group", groups, "--json").json
    assert document["best"] == {
        "nodes": {"large": 1},
        "price": "0.8",
        "placed": [{"pod": "default/too-big", "node": "large-1"}],
        "refused": [],
    }
    assert document["alone"]["small"]["nodes"] == {}
    assert document["groups"]["large"] == {"min": 0, "max": 2, "price": "0.8", "nodesThatCanBeAdded": 2}
    assert (document["placedWithoutNewNodes"], document["waiting"]) == (1, 1)


def test_nothing_pending(kschedfw_command: Command, tmp_path: Path, groups: Path) -> None:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(NODES, encoding="utf-8")
    result = kschedfw_command("scale-up", nodes, "--node-group", groups)
    assert (result.code, result.out) == (0, "No new node is needed: no pod is pending\n")


def test_it_is_readable_in_40_columns(
    kschedfw_command: Command, cluster_dir: Path, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = kschedfw_command("scale-up", cluster_dir, "--node-group", groups).out
    assert max(map(len, out.splitlines())) <= 40


class TestErrors:
    """One clear line each, and nothing on stdout."""

    def test_no_group(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("scale-up", cluster_dir)
        assert (result.code, result.out) == (2, "")
        assert result.err == "kschedfw: which nodes could be added? Give --node-group FILE\n"

    def test_one_problem_is_one_line(
        self, kschedfw_command: Command, cluster_dir: Path, groups: Path
    ) -> None:
        groups.write_text("name: a", encoding="utf-8")
        result = kschedfw_command("scale-up", cluster_dir, "--node-group", groups)
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            f"kschedfw: {groups}: document 1: template: Required value: the Node that new nodes are like\n"
        )

    def test_several_problems_are_a_line_each(
        self, kschedfw_command: Command, cluster_dir: Path, groups: Path
    ) -> None:
        groups.write_text("name: a\n---\nname: b", encoding="utf-8")
        result = kschedfw_command(
            "scale-up", cluster_dir, "--node-group", groups, "--node-group", "none.yaml"
        )
        assert result.code == 2
        *problems, last = result.err.splitlines()
        assert len(problems) == 3
        assert last == "kschedfw: 3 problems in the node groups, so nothing was done"


class TestMixtures:
    @pytest.fixture
    def asked(self, cluster_dir: Path, groups: Path) -> tuple[str, Path, str, Path]:
        """Both groups help, and the small one does for less."""
        groups.write_text(GROUPS.replace("cpu: 2,", "cpu: 4,"), encoding="utf-8")
        return "scale-up", cluster_dir, "--node-group", groups

    def test_that_there_is_no_better_one_is_said(
        self, kschedfw_command: Command, asked: tuple[str, Path, str, Path]
    ) -> None:
        assert "\nno mixture of these groups is cheaper\n" in kschedfw_command(*asked).out
        assert kschedfw_command(*asked, "--json").json["search"] == {
            "cost": 0.5,
            "lowerBound": 0.5,
            "gap": 0.0,
        }

    def test_without_scipy_it_is_said_what_the_extra_would_do(
        self, kschedfw_command: Command, asked: tuple[str, Path, str, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kschedfw_advisor.scale_up.is_installed", lambda: False)
        install = how_to_install("kschedfw-advisor", "optimal")
        told = f"a mixture that is cheaper may exist; with {install} all are searched"
        # The line is wrapped, perhaps within the path of the checkout.
        assert "".join(told.split()) in "".join(kschedfw_command(*asked).out.split())
        assert kschedfw_command(*asked, "--json").json["search"] is None
