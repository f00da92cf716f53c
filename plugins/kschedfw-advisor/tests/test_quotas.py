"""What ResourceQuotas and LimitRanges let be created."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_advisor.quotas import allowances

from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.api import object_from_manifest
from kschedfw.testing import Command

QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: default}
spec: {hard: {requests.cpu: "4", pods: "10"}}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 16, memory: 64Gi, pods: 110}}
"""
WEB = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: default, uid: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}]}
"""
RUNNING = """\
apiVersion: v1
kind: Pod
metadata:
  {name: web-%d, namespace: default, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet,
   name: web, uid: web, controller: true}]}
spec: {nodeName: n1, containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}]}
"""
GROUP = "{name: g, template: {status: {allocatable: {cpu: 8, memory: 8Gi, pods: 10}}}}"


@given(cpu=st.integers(1, 3), used=st.integers(0, 6), hard=st.integers(0, 8), most=st.integers(0, 9))
def test_as_many_replicas_are_allowed_as_the_quota_has_left(
    cpu: int, used: int, hard: int, most: int
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": str(hard)}},
    }
    there = make_pod("there").requests(cpu=used).node("n").build()
    cluster = InMemoryCluster([object_from_manifest(quota), make_node("n").build(), there])
    wanted = [[make_pod("w").requests(cpu=cpu).build()], [make_pod("x").namespace("other").build()]]
    allowed, other = allowances(wanted, cluster, most)
    assert other is None
    assert allowed is not None
    left = max(0, hard - used) // cpu
    assert allowed.count == min(left, most)
    assert bool(allowed.refusal) is (left < most)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A quota of four CPUs, of which a ReplicaSet uses three; it wants six."""
    path = tmp_path / "cluster.yaml"
    path.write_text("---\n".join([NODE, QUOTA, WEB, *(RUNNING % number for number in range(3))]))
    return path


def test_fit_says_how_many_the_quota_allows(kschedfw_command: Command, cluster: Path) -> None:
    result = kschedfw_command("fit", cluster, "--no-expand", "--cpu", 1)
    assert result.code == 0
    assert "13 more replicas fit, on 1 of 1 node; the quota allows 1\n" in result.out
    assert "the namespace's quota allows 1 more replica: exceeded quota: team" in " ".join(result.out.split())
    (pod,) = json.loads(kschedfw_command("fit", cluster, "--no-expand", "--cpu", 1, "--json").out)["pods"]
    assert pod["quota"]["replicas"] == 1
    assert kschedfw_command("fit", cluster, "--no-expand", "--cpu", 2).code == 1


def test_pending_names_the_pods_that_the_quota_refuses(kschedfw_command: Command, cluster: Path) -> None:
    out = " ".join(kschedfw_command("pending", cluster).out.split())
    assert "2 pods can't be created, so no node helps" in out
    assert "2 pods of ReplicaSet default/web: exceeded quota: team" in out
    (told,) = json.loads(kschedfw_command("pending", cluster, "--json").out)["notCreated"]
    assert (told["workload"], told["pods"]) == ("ReplicaSet default/web", 2)


def test_pods_that_lack_because_of_a_class_that_is_not_there_are_told_with_the_one_that_may_be_meant(
    kschedfw_command: Command, tmp_path: Path
) -> None:
    gold = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: gold}\nvalue: 5\n"
    wanting = WEB.replace("spec: {containers", "spec: {priorityClassName: golf, containers")
    path = tmp_path / "cluster.yaml"
    path.write_text("---\n".join([NODE, gold, wanting, RUNNING % 1]), encoding="utf-8")
    out = kschedfw_command("pending", path, "--no-expand").out
    reason = "no PriorityClass with name golf was found (did you mean gold?)"
    assert f"5 pods of ReplicaSet default/web: {reason}" in out
    path.write_text("---\n".join([NODE, wanting, RUNNING % 1]), encoding="utf-8")
    assert "can't be created" not in kschedfw_command("pending", path, "--no-expand").out


def test_scale_up_says_that_nodes_do_not_help_them(
    kschedfw_command: Command, cluster: Path, tmp_path: Path
) -> None:
    group = tmp_path / "group.yaml"
    group.write_text(GROUP)
    out = " ".join(kschedfw_command("scale-up", cluster, "--node-group", group).out.split())
    assert (
        "2 pods of ReplicaSet default/web can't be created, whatever nodes there are: exceeded quota" in out
    )


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: default}
spec:
  parallelism: 6
  completions: 6
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}
"""
DAEMON_SET = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 5}}}]}
"""


@pytest.mark.parametrize(
    ("workload", "told", "lacking"),
    [
        (JOB % "work", "Job default/work", 2),
        (JOB % "backup-29384710", "CronJob default/backup", 2),
        (DAEMON_SET, "DaemonSet default/agent", 1),
    ],
)
def test_pods_of_jobs_and_daemon_sets_that_the_quota_refuses_are_told_by_workload(
    kschedfw_command: Command, tmp_path: Path, workload: str, told: str, lacking: int
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("---\n".join([NODE, QUOTA, workload]))
    (found,) = json.loads(kschedfw_command("pending", path, "--json").out)["notCreated"]
    assert (found["workload"], found["pods"]) == (told, lacking)
    assert found["reason"].startswith("exceeded quota: team")
    group = tmp_path / "group.yaml"
    group.write_text(GROUP)
    out = " ".join(kschedfw_command("scale-up", path, "--node-group", group).out.split())
    pods = "1 pod" if lacking == 1 else f"{lacking} pods"
    assert f"{pods} of {told} can't be created, whatever nodes there are: exceeded quota" in out


ALONE = """\
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 5}}}]}
"""
ORPHAN = """\
apiVersion: v1
kind: Pod
metadata:
  {name: web-9, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: gone, uid: u, controller: true}]}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 5}}}]}
"""


@pytest.mark.parametrize("command", ["pending", "scale-up"])
@pytest.mark.parametrize(
    ("refused", "noted"),
    [
        ([WEB, *(RUNNING % number for number in range(3))], []),
        ([JOB % "work"], []),
        ([DAEMON_SET], []),
        ([ALONE], ["alone"]),
        ([ORPHAN], ["web-9"]),
    ],
    ids=["ReplicaSet", "Job", "DaemonSet", "a pod alone", "a pod whose ReplicaSet isn't in the input"],
)
def test_a_pod_that_the_quota_refuses_is_told_by_workload_or_else_in_a_note(
    kschedfw_command: Command, tmp_path: Path, command: str, refused: list[str], noted: list[str]
) -> None:
    path, group = tmp_path / "cluster.yaml", tmp_path / "group.yaml"
    path.write_text("---\n".join([NODE, QUOTA, *refused]))
    group.write_text(GROUP)
    arguments = command, path, "--node-group", group
    notes = [
        each
        for each in kschedfw_command(*arguments, "--json").json["notes"]
        if each.startswith("not created")
    ]
    assert [note.split('"')[1] for note in notes] == noted
    assert " ".join(kschedfw_command(*arguments).out.split()).count("exceeded quota: team") == 1


def test_more_replicas_of_a_job_fit_only_as_far_as_the_quota_allows(
    kschedfw_command: Command, tmp_path: Path
) -> None:
    path, job = tmp_path / "cluster.yaml", tmp_path / "job.yaml"
    path.write_text("---\n".join([NODE, QUOTA, *(RUNNING % number for number in range(3))]))
    job.write_text(JOB % "work")
    (pod,) = json.loads(kschedfw_command("fit", path, "--pod", job, "--json").out)["pods"]
    assert (pod["pod"], pod["replicas"], pod["quota"]["replicas"]) == ("default/work", 13, 1)
