"""What `kschedfw pending` prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.test_scale_up import GROUPS
from two_nodes import NODES

from kschedfw import Transaction
from kschedfw.cli import EXPORT
from kschedfw.testing import Command

MORE = """\
---
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: example.com/quota}], containers: [{name: main, image: app}]}
---
apiVersion: v1
kind: Pod
metadata: {name: claiming}
spec:
  containers: [{name: main, image: app}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: absent}}]
"""


def test_the_pods_by_what_keeps_them_pending_with_what_helps(
    kschedfw_command: Command, cluster_dir: Path
) -> None:
    result = kschedfw_command("pending", cluster_dir)
    assert (result.code, result.err) == (1, "")
    assert result.out == (
        "1 pod pending without a place\n"
        "1 other pending pod has a place, once scheduled\n"
        "\n"
        "workload         pods  why                              what helps first                   places\n"
        "default/too-big     1  cpu: 3 requested (2 of 2 nodes)  request 1500m of cpu instead of 3  1 of 1\n"
        "\n"
        "1. 1 pod: default/too-big\n"
        "   cpu: 3 requested: keeps it off 2 of 2 nodes; n1: 1500m free of 2 allocatable, 1500m short\n"
        "   Insufficient cpu\n"
        "   no node has 3 of cpu even when empty; the largest has 2 (n1)\n"
        "   what helps (2 changes tried), and how many pods it places\n"
        "   request 1500m of cpu instead of 3; placed on n1  1 of 1\n"
    )


def test_a_table_first_names_each_workload_with_its_cause_and_what_helps(
    kschedfw_command: Command, cluster_dir: Path
) -> None:
    pods = cluster_dir / "pods.yaml"
    pods.write_text(pods.read_text() + MORE, encoding="utf-8")
    out = kschedfw_command("pending", cluster_dir).out
    table = [" ".join(line.split()) for line in out.split("\n\n")[1].splitlines()]
    assert table[0] == "workload pods why what helps first places"
    rows = " ".join(table[1:])
    assert (
        "default/too-big 1 cpu: 3 requested (2 of 2 nodes) request 1500m of cpu instead of 3 1 of 1" in rows
    )
    assert "default/gated 1 waiting for scheduling gates:" in rows
    assert "default/claiming 1 claim default/absent" in rows
    assert "nothing found" in rows
    short = " ".join(kschedfw_command("pending", cluster_dir, "--kinds", "0").out.split("\n\n")[1].split())
    assert "default/too-big 1 Insufficient cpu not looked at" in short


def test_where_nothing_helps_that_is_said(kschedfw_command: Command, cluster_dir: Path) -> None:
    pods = cluster_dir / "pods.yaml"
    pods.write_text(pods.read_text() + MORE, encoding="utf-8")
    out = kschedfw_command("pending", cluster_dir).out
    assert "3 pods pending without a place, of 3 kinds\n" in out
    (gated,) = [part for part in out.split("\n\n") if "1 pod: default/gated\n" in part]
    assert "   waiting for scheduling gates: [example.com/quota]\n" in gated
    assert "   remove the scheduling gate example.com/quota; placed on n" in gated
    assert (
        '1 pod: default/claiming\n   persistentvolumeclaim "absent" not found\n'
        "   claim default/absent doesn't exist\n   nothing found that helps" in out
    )
    assert "PersistentVolumeClaim default/absent: default/claiming" in out


CLAIM = """\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
CLAIMING = """\
---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: "%s"
  containers: [{name: main, image: app}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: %s}}]
"""
CLASS = """\
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: ebs.csi.aws.com
"""


def test_what_the_answer_calls_misspelt_is_not_missing(kschedfw_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    claims = [CLAIM % ("orders", "gp33"), CLAIM % ("invoices", "unheard"), CLASS]
    pods = [CLAIMING % ("a", "", "oders"), CLAIMING % ("b", "", "orders"), CLAIMING % ("c", "", "invoices")]
    path.write_text("".join([NODES, *claims, *pods]), encoding="utf-8")
    out = " ".join(kschedfw_command("pending", path).out.split())
    assert "claim default/oders doesn't exist (did you mean orders?)" in out
    assert "there is no StorageClass gp33 to make it a volume (did you mean gp3?)" in out
    assert kschedfw_command("pending", path, "--json").json["missing"] == [
        {"kind": "StorageClass", "name": "unheard", "pods": ["default/c"]}
    ]
    assert "though pods refer to it: StorageClass unheard: default/c kubectl get storageclasses" in out


def test_a_misspelt_claim_is_missing_for_pods_of_which_nothing_is_told(
    kschedfw_command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.yaml"
    pods = [CLAIMING % ("waits", "", "oders"), CLAIMING % ("runs", "n1", "oders")]
    path.write_text("".join([NODES, CLAIM % ("orders", "gp3"), CLASS, *pods]), encoding="utf-8")
    (missing,) = kschedfw_command("pending", path, "--json").json["missing"]
    assert (missing["name"], missing["pods"]) == ("default/oders", ["default/runs"])
    (missing,) = kschedfw_command("pending", path, "--json", "--kinds", 0).json["missing"]
    assert missing["pods"] == ["default/waits", "default/runs"]


def test_node_groups_are_tried(kschedfw_command: Command, cluster_dir: Path, tmp_path: Path) -> None:
    groups = tmp_path / "groups.yaml"
    groups.write_text(GROUPS, encoding="utf-8")
    out = kschedfw_command("pending", cluster_dir, "--node-group", groups).out
    assert "1 more node of group large; placed on large-1" in out
    assert "group small" not in out, "it was tried, and doesn't help"


def test_as_json(kschedfw_command: Command, cluster_dir: Path) -> None:
    document = kschedfw_command("pending", cluster_dir, "--json").json
    assert document["pending"] == 1
    (group,) = document["groups"]
    assert (group["reasons"], group["pods"]) == (["Insufficient cpu"], 1)
    (kind,) = group["kinds"]
    assert kind["pods"] == ["default/too-big"]
    assert kind["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert kind["helps"][0] == {
        "changes": ["request 1500m of cpu instead of 3"],
        "actions": [
            {
                "code": "request-less",
                "parameters": {"resource": "cpu", "request": 1500, "insteadOf": 3000, "where": []},
                "text": "request 1500m of cpu instead of 3",
            }
        ],
        "edits": [
            {
                "object": "Pod default/too-big",
                "path": "/spec/containers/0/resources/requests/cpu",
                "from": "3",
                "to": "1500m",
            }
        ],
        "placed": 1,
        "nodes": ["n1"],
        "displaced": [],
    }
    assert kind["changesTried"] >= len(kind["helps"])
    (too_large,) = (each for each in kind["findings"] if each["code"] == "request-too-large")
    assert too_large == {
        "code": "request-too-large",
        "parameters": {"resource": "cpu", "requested": 3000, "largest": 2000, "node": "n1"},
        "text": "no node has 3 of cpu even when empty; the largest has 2 (n1)",
    }


def test_nothing_pending(kschedfw_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(NODES, encoding="utf-8")
    result = kschedfw_command("pending", path)
    assert (result.code, result.out) == (0, "No pod is pending\n")


def test_an_empty_file_is_no_answer(kschedfw_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.touch()
    result = kschedfw_command("pending", path)
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "kschedfw: nothing to ask about: the input has no nodes and no pods;"
        f" this exports what scheduling reads: {EXPORT}\n"
    )


def test_only_the_pods_of_a_namespace_or_a_workload_are_told_of_if_wanted(
    kschedfw_command: Command, cluster_dir: Path
) -> None:
    pods = cluster_dir / "pods.yaml"
    job = """\
---
apiVersion: batch/v1
kind: Job
metadata: {name: large, namespace: batch}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: "9"}}}]}
"""
    pods.write_text(pods.read_text() + job, encoding="utf-8")
    for only in (["--namespace", "batch"], ["--workload", "job/large"], ["--workload", "job/batch/large"]):
        document = kschedfw_command("pending", cluster_dir, *only, "--json").json
        kinds = [kind["workload"] for group in document["groups"] for kind in group["kinds"]]
        assert (document["pending"], kinds, document["placed"]) == (1, ["Job batch/large"], [])
    result = kschedfw_command("pending", cluster_dir, "--workload", "job/larg")
    assert (result.code, result.err) == (
        2,
        "kschedfw: job 'larg': there is none of this name; did you mean large?\n",
    )
    result = kschedfw_command("pending", cluster_dir, "--workload", "large")
    assert (result.code, "expected KIND/NAME" in result.err) == (2, True)


def test_pods_for_other_schedulers_are_named(kschedfw_command: Command, cluster_dir: Path) -> None:
    pods = cluster_dir / "pods.yaml"
    pods.write_text(pods.read_text().replace("spec: {containers", "spec: {schedulerName: other, containers"))
    result = kschedfw_command("pending", cluster_dir)
    assert result.code == 0
    assert "for other schedulers: default/fits, default/too-big\n" in result.out


def test_few_kinds_are_looked_at_if_wanted(kschedfw_command: Command, cluster_dir: Path) -> None:
    out = kschedfw_command("pending", cluster_dir, "--kinds", 0).out
    assert "\n1 pod of 1 kind: default/too-big; not looked at: a greater --kinds has it\n" in out


def test_it_is_readable_in_40_columns(
    kschedfw_command: Command, cluster_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = kschedfw_command("pending", cluster_dir).out
    assert max(map(len, out.splitlines())) <= 40
    assert "…" not in out


def test_interrupted(kschedfw_command: Command, cluster_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explain(self: Transaction, pod: object, pods: object = ()) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Transaction, "explain", explain)
    result = kschedfw_command("pending", cluster_dir)
    assert (result.code, result.out) == (130, "")


def test_a_note_says_that_groups_are_without_effect_without_their_gate(
    kschedfw_command: Command, cluster_dir: Path
) -> None:
    group = (
        "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: g}, "
        "spec: {schedulingPolicy: {basic: {}}}}"
    )
    (cluster_dir / "group.yaml").write_text(group, encoding="utf-8")
    note = "note: without effect, since the feature gate GenericWorkload is off: 1 PodGroup"
    assert note in kschedfw_command("pending", cluster_dir).out
    assert note not in kschedfw_command("pending", cluster_dir, "--feature-gates", "GenericWorkload=true").out


def test_lint_names_memory_of_a_few_bytes_wherever_it_stands(
    kschedfw_command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "pod.yaml"
    running = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: n1
  containers: [{name: main, image: i, resources: {requests: {memory: 512m, cpu: 512m}, limits: {memory: 512Mi}}}]
"""
    path.write_text(NODES + "---" + running, encoding="utf-8")
    assert "512m" not in kschedfw_command("pending", path).out
    line = "default/web, container main: requests memory: 512m is 1 byte (did you mean 512Mi?): 1 pod"
    assert line in kschedfw_command("pending", path, "--lint").out
    (odd,) = json.loads(kschedfw_command("pending", path, "--lint", "--json").out)["oddAmounts"]
    assert (odd["written"], odd["meant"], odd["pods"]) == ("512m", "512Mi", ["default/web"])
    assert odd["finding"] == {
        "code": "odd-amount",
        "parameters": {
            "object": "default/web",
            "workload": None,
            "pod": "default/web",
            "container": "main",
            "field": "requests",
            "resource": "memory",
            "written": "512m",
            "bytes": 1,
            "meant": "512Mi",
        },
        "text": line.rpartition(":")[0],
    }


def test_lint_reads_templates_without_pods_claims_limits_and_quotas(
    kschedfw_command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "odd.yaml"
    objects = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: idle, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app: idle}}
  template:
    metadata: {labels: {app: idle}}
    spec:
      containers: [{name: main, image: i, resources: {limits: {memory: 512m}}}]
      volumes:
      - {name: cache, emptyDir: {medium: Memory, sizeLimit: 256m}}
      - {name: scratch, emptyDir: {sizeLimit: 256Mi}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: default}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: i, resources: {requests: {memory: 64m}}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5m}}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: other}
spec: {limits: [{type: Container, defaultRequest: {memory: 300m, cpu: 300m}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: all, namespace: other}
spec: {hard: {requests.memory: 10m, gold.storageclass.storage.k8s.io/requests.storage: 20m, pods: 10}}
"""
    path.write_text(NODES + "---" + objects, encoding="utf-8")
    found = json.loads(kschedfw_command("pending", path, "--lint", "--json").out)["oddAmounts"]
    assert [each["finding"]["text"].partition(" is ")[0] for each in found] == [
        "Deployment default/idle, container main: requests memory: 512m",
        "Deployment default/idle, container main: limits memory: 512m",
        "Deployment default/idle: emptyDir cache sizeLimit: 256m",
        "CronJob default/nightly, container main: requests memory: 64m",
        "PersistentVolumeClaim default/data: requests storage: 5m",
        "LimitRange other/small: defaultRequest memory: 300m",
        "ResourceQuota other/all: hard requests.memory: 10m",
        "ResourceQuota other/all: hard gold.storageclass.storage.k8s.io/requests.storage: 20m",
    ]
    assert [each["pods"] for each in found] == [[]] * len(found)
