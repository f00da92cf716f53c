"""`--reschedule` and missing input, in every command that takes a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from kschedfw.testing import Command

CLUSTER = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
- {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}, spec: {nodeName: n1, containers: [
    {name: m, image: i, resources: {requests: {cpu: 1}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: b, labels: {app: db}}, spec: {nodeName: n1, containers: [
    {name: m, image: i, resources: {requests: {cpu: 1}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: c, labels: {app: web}}, spec: {nodeName: gone, containers: [
    {name: m, image: i, resources: {requests: {cpu: 1}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: logs, labels: {app: logs}, ownerReferences: [
    {apiVersion: apps/v1, kind: DaemonSet, name: logs, uid: u, controller: true}]},
    spec: {nodeName: n1, containers: [{name: m, image: i}]}}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("what", "pods"),
    [
        (["all"], ["a", "b", "c"]),
        (["app=web"], ["a", "c"]),
        (["node:n1"], ["a", "b"]),
        (["node:gone"], ["c"]),
        (["app in (db)", "node:gone"], ["b", "c"]),
    ],
)
def test_all_by_selector_or_by_node(
    what: list[str], pods: list[str], kschedfw_command: Command, cluster: Path
) -> None:
    given = [part for value in what for part in ("--reschedule", value)]
    report = kschedfw_command("simulate", cluster, *given, "--json").json
    assert sorted(each["pod"] for each in report["decisions"]) == [f"default/{name}" for name in pods]
    assert report["pods"]["boundBefore"] == 4 - len(pods)
    (note,) = report["notes"]
    assert note.startswith(f"{len(pods)} bound pod{'s' * (len(pods) > 1)} freed first (--reschedule ")
    assert note.endswith("1 of DaemonSets or mirror pods stay") == ("all" in what or "node:n1" in what)


def test_a_node_is_drained_if_it_takes_no_pods_any_more(
    kschedfw_command: Command, cluster: Path, tmp_path: Path
) -> None:
    """As docs/simulate.md says: alone, --reschedule node:NAME leaves it to the scheduler."""

    def nodes(file: Path) -> set[str]:
        arguments = ("--reschedule", "node:n1", "--select-host", "first-by-name", "--json")
        return {each["node"] for each in kschedfw_command("simulate", file, *arguments).json["decisions"]}

    assert "n1" in nodes(cluster)
    cordoned = CLUSTER.replace("metadata: {name: n1},", "metadata: {name: n1}, spec: {unschedulable: true},")
    without = "".join(
        line for line in CLUSTER.splitlines(keepends=True) if "Node, metadata: {name: n1}" not in line
    )
    for name, text in (("cordoned.yaml", cordoned), ("without.yaml", without)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert nodes(tmp_path / name) == {"n2"}


def test_explain_says_where_the_pod_would_go_now_and_was_before(
    kschedfw_command: Command, cluster: Path
) -> None:
    result = kschedfw_command(
        "explain", cluster, "b", "--reschedule", "app=db", "--select-host", "first-by-name"
    )
    assert result.code == 0
    assert result.out.startswith("default/b: placed on n2 ")
    assert "before it was taken off: on n1" in result.out
    assert kschedfw_command("explain", cluster, "b", "--reschedule", "app=db", "--json").json["wasOn"] == "n1"


def test_explain_of_a_bound_pod_says_how_to_take_it_off(kschedfw_command: Command, cluster: Path) -> None:
    result = kschedfw_command("explain", cluster, "a")
    assert (result.code, result.out) == (2, "")
    assert "--reschedule takes it off first (all, node:n1 or a label selector)" in result.err


def test_compare_moves_bound_pods(kschedfw_command: Command, cluster: Path) -> None:
    given = ["--profile", "default", "--profile", "ClusterAutoscalerProvider", "--reschedule", "all"]
    comparison = kschedfw_command("compare", cluster, *given, "--json").json
    assert comparison["runs"][0]["pods"]["placed"] == 3
    assert comparison["moves"][0]["counts"]["moved"] >= 1


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("node:gon", "--reschedule node:gon: there is no node of this name; did you mean gone?"),
        ("app=none", "--reschedule app=none: no pod to free: no bound pod matches"),
        ("app=logs", "no pod to free: the 1 that match are of DaemonSets or mirror pods"),
        ("app=", "no bound pod matches"),
        ("app==web==x", "give all, node:NAME or a label selector; 'app==web==x' is no label selector"),
        ("", "give all, node:NAME or a label selector"),
    ],
)
def test_a_wrong_value_is_one_clear_error(
    what: str, problem: str, kschedfw_command: Command, cluster: Path
) -> None:
    result = kschedfw_command("simulate", cluster, "--reschedule", what)
    assert (result.code, result.out) == (2, "")
    assert problem in " ".join(result.err.split())
    assert len(result.err.splitlines()) == 1


def test_each_value_has_to_free_something(kschedfw_command: Command, cluster: Path) -> None:
    result = kschedfw_command("simulate", cluster, "--reschedule", "app=web", "--reschedule", "app=dbs")
    assert (result.code, result.out) == (2, "")
    assert "--reschedule app=dbs: no pod to free: no bound pod matches" in result.err
    overlapping = ["--reschedule", "all", "--reschedule", "app=web"]
    assert kschedfw_command("simulate", cluster, *overlapping).code == 0


class TestMissingInput:
    @pytest.fixture
    def dump(self, cluster: Path) -> Path:
        claim = "{name: v, persistentVolumeClaim: {claimName: data}}"
        cluster.write_text(
            CLUSTER
            + "".join(
                f"- {{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{volumes: [{claim}], "
                "containers: [{name: m, image: i}]}}\n"
                for name in ("p", "q")
            )
        )
        return cluster

    def test_simulate_says_it_once_next_to_the_verdict(self, kschedfw_command: Command, dump: Path) -> None:
        out = kschedfw_command("simulate", dump).out
        assert out.count("PersistentVolumeClaim default/data: default/p, default/q\n") == 1
        assert "Node gone: default/c\n" in out
        assert "kubectl get nodes,persistentvolumeclaims -A -o yaml dumps it" in out
        assert (
            out.index("Why pods were not placed")
            < out.index("Missing from the input")
            < out.index("Pods per")
        )

    def test_and_as_data(self, kschedfw_command: Command, dump: Path) -> None:
        missing = kschedfw_command("simulate", dump, "--json").json["missing"]
        assert missing == [
            {"kind": "Node", "name": "gone", "pods": ["default/c"]},
            {"kind": "PersistentVolumeClaim", "name": "default/data", "pods": ["default/p", "default/q"]},
        ]

    def test_explain_says_what_this_pod_lacks(self, kschedfw_command: Command, dump: Path) -> None:
        result = kschedfw_command("explain", dump, "p")
        assert result.code == 1
        head = result.out.split("Why no node would do")[0]
        assert "PersistentVolumeClaim default/data: default/p\n" in head
        assert "Node gone" not in result.out
        assert kschedfw_command("explain", dump, "p", "--json").json["missing"] == [
            {"kind": "PersistentVolumeClaim", "name": "default/data", "pods": ["default/p"]}
        ]

    def test_compare_says_it_once_for_all(self, kschedfw_command: Command, dump: Path) -> None:
        given = ["--profile", "default", "--profile", "ClusterAutoscalerProvider"]
        assert kschedfw_command("compare", dump, *given).out.count("PersistentVolumeClaim default/data:") == 1
        comparison = kschedfw_command("compare", dump, *given, "--json").json
        assert [each["kind"] for each in comparison["missing"]] == ["Node", "PersistentVolumeClaim"]
        assert not any("missing" in run for run in comparison["runs"])
