"""What `kschedfw fit` prints, and its exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kschedfw.testing import Command

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 300m, memory: 256Mi}}}]}
"""
DB = """\
apiVersion: v1
kind: Pod
metadata: {name: db}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 600m}}}]}
"""


@pytest.fixture
def web(tmp_path: Path) -> Path:
    path = tmp_path / "web.yaml"
    path.write_text(WEB, encoding="utf-8")
    return path


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "db.yaml"
    path.write_text(DB, encoding="utf-8")
    return path


class TestAnswers:
    """The cluster has 500 millicores on one node and 1 CPU on the other, once its pending pod is placed."""

    def test_how_many_where_and_what_stops_the_next(
        self, kschedfw_command: Command, cluster_dir: Path, web: Path
    ) -> None:
        result = kschedfw_command("fit", cluster_dir, "--pod", web)
        assert (result.code, result.err) == (0, "")
        assert result.out == (
            "default/web (cpu 300m, memory 256Mi): 8 more replicas fit, on 2 of 2 nodes\n"
            "\n"
            "replicas on each  nodes  which\n"
            "               5      1  n1\n"
            "               3      1  n2\n"
            "\n"
            "what stops the next: 0/2 nodes are available: 2 Insufficient cpu.\n"
            "\n"
            "note: pending pods were scheduled first (--ignore-pending leaves them out): 1 found a place, 1 found\n"
            "none (kschedfw pending says why)\n"
        )

    def test_as_json(self, kschedfw_command: Command, cluster_dir: Path, web: Path) -> None:
        document = kschedfw_command("fit", cluster_dir, "--pod", web, "--json").json
        (cause,) = document["pods"][0].pop("causes")
        assert (cause["code"], cause["closestNode"], cause["decisive"]) == (
            "insufficient-resource",
            "n2",
            True,
        )
        assert cause["parameters"]["short"] == 200
        assert document["pods"] == [
            {
                "pod": "default/web",
                "replicas": 8,
                "outcome": "fits",
                "byNode": {"n1": 5, "n2": 3},
                "stoppedBy": "0/2 nodes are available: 2 Insufficient cpu.",
                "quota": None,
            }
        ]
        assert (document["nodes"], document["together"]) == (2, None)

    def test_pending_pods_may_be_left_out(
        self, kschedfw_command: Command, cluster_dir: Path, web: Path
    ) -> None:
        result = kschedfw_command("fit", cluster_dir, "--pod", web, "--ignore-pending")
        assert "11 more replicas fit" in result.out
        assert "note: 2 pending pods left out" in result.out

    def test_several_pods_each_by_itself_and_together(
        self, kschedfw_command: Command, cluster_dir: Path, web: Path, db: Path
    ) -> None:
        result = kschedfw_command("fit", cluster_dir, "--pod", web, "--pod", db)
        assert result.code == 0
        assert "default/db (cpu 600m): 3 more replicas fit" in result.out
        table = result.out.partition("Together, in turns\n")[2].splitlines()
        assert table[:3] == [
            "pod          together  by itself",
            "default/web         4          8",
            "default/db          2          3",
        ]

    def test_what_else_is_in_the_file_comes_into_the_cluster(
        self, kschedfw_command: Command, cluster_dir: Path, db: Path
    ) -> None:
        db.write_text(
            DB.replace(
                "spec: {",
                "spec: {priorityClassName: high, resourceClaims: [{name: gpu, "
                "resourceClaimTemplateName: gpu}], ",
            )
            + """\
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
""",
            encoding="utf-8",
        )
        result = kschedfw_command("fit", cluster_dir, "--pod", db)
        assert result.code == 1
        assert result.out.startswith("default/db (cpu 600m): no replica fits on 2 nodes\n")
        assert "device class gpu does not exist" in result.out, "the claim was made from its template"

    @pytest.mark.parametrize(
        ("kind", "version", "spec"),
        [
            ("Job", "batch/v1", "{suspend: true, template: TEMPLATE}"),
            ("Job", "batch/v1", "{parallelism: 0, template: TEMPLATE}"),
            ("CronJob", "batch/v1", '{schedule: "@daily", jobTemplate: {spec: {template: TEMPLATE}}}'),
            ("DaemonSet", "apps/v1", "{selector: {matchLabels: {app: web}}, template: TEMPLATE}"),
            (
                "StatefulSet",
                "apps/v1",
                "{replicas: 0, selector: {matchLabels: {app: web}}, template: TEMPLATE}",
            ),
            (
                "Deployment",
                "apps/v1",
                "{paused: true, selector: {matchLabels: {app: web}}, template: TEMPLATE}",
            ),
        ],
    )
    def test_the_template_of_a_workload_counts_though_it_makes_no_pods_now(
        self, kschedfw_command: Command, cluster_dir: Path, tmp_path: Path, kind: str, version: str, spec: str
    ) -> None:
        path = tmp_path / "workload.yaml"
        restarts = "restartPolicy: Never, " if "Job" in kind else ""
        container = "{name: main, resources: {requests: {cpu: 300m}}}"
        template = f"{{metadata: {{labels: {{app: web}}}}, spec: {{{restarts}containers: [{container}]}}}}"
        path.write_text(
            f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: web}}, "
            f"spec: {spec.replace('TEMPLATE', template)}}}",
            encoding="utf-8",
        )
        result = kschedfw_command("fit", cluster_dir, "--pod", path)
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith("default/web (cpu 300m): 8 more replicas fit, on 2 of 2 nodes\n")

    def test_pods_of_a_custom_object_are_told_apart(
        self, kschedfw_command: Command, cluster_dir: Path, tmp_path: Path
    ) -> None:
        path = tmp_path / "ray.yaml"
        path.write_text(
            """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: main, resources: {requests: {cpu: 300m}}}]}}}
  workerGroupSpecs:
  - {groupName: gpu, replicas: 2, template: {spec: {containers: [{name: main, resources: {requests: {cpu: 600m}}}]}}}
""",
            encoding="utf-8",
        )
        out = kschedfw_command("fit", cluster_dir, "--pod", path, "--expand-custom").out
        assert "default/ray (cpu 300m): 8 more replicas fit" in out
        assert "default/ray-gpu-worker (cpu 600m): 3 more replicas fit" in out

    @pytest.mark.parametrize(
        ("storage", "answer"),
        [
            # Each replica has a disk of its own, and a node attaches one of them.
            ("fast", "default/db (cpu 100m): 2 more replicas fit, on 2 of 2 nodes\n"),
            ("missing", "default/db (cpu 100m): no replica fits on 2 nodes\n"),
        ],
    )
    def test_each_replica_of_a_stateful_set_has_claims_of_its_own(
        self, kschedfw_command: Command, cluster_dir: Path, tmp_path: Path, storage: str, answer: str
    ) -> None:
        (cluster_dir / "storage.yaml").write_text(
            """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.org
volumeBindingMode: WaitForFirstConsumer
"""
            + "".join(
                f"""\
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {{name: {name}}}
spec: {{drivers: [{{name: example.org, nodeID: {name}, allocatable: {{count: 1}}}}]}}
"""
                for name in ("n1", "n2")
            ),
            encoding="utf-8",
        )
        path = tmp_path / "db.yaml"
        path.write_text(
            f"""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec: {{containers: [{{name: main, resources: {{requests: {{cpu: 100m}}}}}}]}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], storageClassName: {storage}, resources: {{requests: {{storage: 1Gi}}}}}}
""",
            encoding="utf-8",
        )
        assert kschedfw_command("fit", cluster_dir, "--pod", path).out.startswith(answer)

    def test_a_pod_of_options_alone(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("fit", cluster_dir, "--cpu", "400m", "--memory", "512Mi", "--image", "app")
        assert result.out.startswith("pod (cpu 400m, memory 512Mi): 5 more replicas fit")

    def test_options_change_the_pod_of_a_file(
        self, kschedfw_command: Command, cluster_dir: Path, web: Path
    ) -> None:
        result = kschedfw_command("fit", cluster_dir, "--pod", web, "--cpu", "1")
        assert result.out.startswith("default/web (cpu 1, memory 256Mi): 2 more replicas fit")

    def test_none_fits(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("fit", cluster_dir, "--cpu", "64")
        assert result.code == 1
        assert result.out.startswith(
            "pod (cpu 64): no replica fits on 2 nodes\n\n0/2 nodes are available: 2 Insufficient cpu.\n"
        )

    def test_it_stops_at_a_number(self, kschedfw_command: Command, cluster_dir: Path) -> None:
        result = kschedfw_command("fit", cluster_dir, "--cpu", "1m", "--at-most", 3)
        assert result.out.startswith("pod (cpu 1m): at least 3 more replicas fit")
        assert "stopped at 3 replicas; --at-most says after how many" in result.out

    def test_it_is_readable_in_40_columns(
        self, kschedfw_command: Command, cluster_dir: Path, web: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        out = kschedfw_command("fit", cluster_dir, "--pod", web).out
        assert max(map(len, out.splitlines())) <= 40

    def test_the_configuration_counts(
        self, kschedfw_command: Command, cluster_dir: Path, tmp_path: Path, web: Path
    ) -> None:
        """Nodes are filled one by one, so one of the two stays empty."""
        config = tmp_path / "config.yaml"
        config.write_text(
            "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{plugins: "
            "{filter: {disabled: [{name: NodeResourcesFit}]}}}]}"
        )
        result = kschedfw_command("fit", cluster_dir, "--pod", web, "--config", config, "--at-most", 100)
        assert "at least 100 more replicas fit" in result.out


class TestErrors:
    """One clear line each, and nothing on stdout."""

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ([], "which pod? Give --pod FILE, or --cpu, --memory, --image"),
            (["--cpu", "much"], "--cpu 'much': quantities must match the regular expression"),
            (["--memory", "0"], "--memory 0: expected an amount above 0"),
            (["--pod", "none.yaml"], "none.yaml: can't be read: No such file or directory"),
        ],
    )
    def test_of_options(
        self, kschedfw_command: Command, cluster_dir: Path, arguments: list[str], problem: str
    ) -> None:
        result = kschedfw_command("fit", cluster_dir, *arguments)
        assert (result.code, result.out) == (2, "")
        assert problem in result.err

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "there is no pod in it, and no workload with a template of one"),
            (WEB.replace("300m", "lots"), "spec.template.spec.containers[0].resources.requests.cpu: Invalid value"),
            (WEB.replace("template", "templte"), 'unknown field "spec.templte"; did you mean "template"?'),
            ("{{ .Values.pod }}", "contains template syntax"),
        ],
    )  # fmt: skip
    def test_of_templates(
        self, kschedfw_command: Command, cluster_dir: Path, web: Path, text: str, problem: str
    ) -> None:
        web.write_text(text, encoding="utf-8")
        result = kschedfw_command("fit", cluster_dir, "--pod", web)
        assert (result.code, result.out) == (2, "")
        assert problem in result.err

    def test_options_for_several_pods(
        self, kschedfw_command: Command, cluster_dir: Path, web: Path, db: Path
    ) -> None:
        result = kschedfw_command("fit", cluster_dir, "--pod", web, "--pod", db, "--cpu", "1")
        assert result.err == (
            "kschedfw: --cpu, --memory and --image change one pod, and there are 2: default/web, default/db\n"
        )

    def test_a_pod_for_a_scheduler_that_there_is_not(
        self, kschedfw_command: Command, cluster_dir: Path, db: Path
    ) -> None:
        db.write_text(DB.replace("spec: {", "spec: {schedulerName: other, "), encoding="utf-8")
        result = kschedfw_command("fit", cluster_dir, "--pod", db)
        assert result.code == 2
        assert "spec.schedulerName: no profile is named other; there is default-scheduler" in result.err


RACKS = "---\n".join(
    f"""\
apiVersion: v1
kind: Node
metadata: {{name: n{number}, labels: {{rack: {"ab"[number // 2]}}}}}
status: {{allocatable: {{cpu: {cpu}, memory: 16Gi, pods: 20}}}}
"""
    for number, cpu in enumerate((4, 4, 4, 2))
)
GANG = """\
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: train}
spec:
  schedulingPolicy: {gang: {minCount: 3}}
  schedulingConstraints: {topology: [{key: rack}]}
"""
WORKER = """\
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  schedulingGroup: {podGroupName: train}
  containers: [{name: main, image: train, resources: {requests: {cpu: 2}}}]
"""
DRIVER = WORKER.replace("worker", "driver").replace("cpu: 2", "cpu: 1")


class TestGroups:
    """Under the gates for groups the pods of a PodGroup are asked about together; there are two racks."""

    GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"

    @pytest.fixture
    def racks(self, tmp_path: Path) -> Path:
        path = tmp_path / "racks.yaml"
        path.write_text(RACKS, encoding="utf-8")
        return path

    @pytest.fixture
    def job(self, tmp_path: Path) -> Path:
        """A gang of three workers."""
        path = tmp_path / "job.yaml"
        worker = WORKER.partition("spec:\n")[2].replace("\n", "\n    ")
        path.write_text(
            f"{GANG}---\n"
            "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\n"
            f"spec:\n  parallelism: 3\n  template:\n    spec:\n      restartPolicy: Never\n    {worker}",
            encoding="utf-8",
        )
        return path

    def test_without_the_gate_for_them_constraints_do_not_count(
        self, kschedfw_command: Command, racks: Path, job: Path
    ) -> None:
        bare = racks.with_name("bare.yaml")
        bare.write_text(re.sub(r"rack: ?\w+", "other: label", racks.read_text()), encoding="utf-8")
        result = kschedfw_command("fit", bare, "--pod", job, self.GATES.rpartition(",")[0])
        assert (result.code, result.err) == (0, "")
        assert "the nearest" not in result.out
        assert result.out.startswith("PodGroup default/train (3 pods of cpu 2): ")

    def test_how_many_copies_where_and_what_stops_the_next(
        self, kschedfw_command: Command, racks: Path, job: Path
    ) -> None:
        result = kschedfw_command("fit", racks, "--pod", job, self.GATES)
        assert (result.code, result.err) == (0, "")
        assert result.out == (
            "PodGroup default/train (3 pods of cpu 2): 2 more copies fit, on 4 of 4 nodes\n"
            "\n"
            "copies in each  values of rack  which\n"
            "             1               2  a, b\n"
            "\n"
            "what stops the next: 1 of its 3 pods fits with rack=a, the nearest; default/train-0-1-3,\n"
            "default/train-0-2-3: 0/2 nodes are available: 2 Insufficient cpu.\n"
        )

    def test_as_json(self, kschedfw_command: Command, racks: Path, job: Path) -> None:
        document = kschedfw_command("fit", racks, "--pod", job, self.GATES, "--json").json
        (group,) = document["podGroups"]
        assert document["pods"] == []
        assert (group["podGroup"], group["members"], group["copies"]) == ("default/train", 3, 2)
        assert (sum(group["byNode"].values()), group["byDomain"]) == (6, {"a": 1, "b": 1})
        assert group["stoppedBy"] == "0/2 nodes are available: 2 Insufficient cpu."
        cause = group["next"].pop("groupCause")
        assert (cause["code"], cause["parameters"]["nearest"]) == ("group-members", "a")
        assert group["outcome"] == "fits"
        assert group["next"] == {
            "wouldRun": 0,
            "nearest": "a",
            "withoutPlace": [
                {"pod": f"default/train-0-{number}-3", "message": group["stoppedBy"]} for number in (1, 2)
            ],
        }

    def test_without_the_gates_the_answer_is_for_each_pod(
        self, kschedfw_command: Command, racks: Path, job: Path
    ) -> None:
        assert kschedfw_command("fit", racks, "--pod", job).out.startswith(
            "default/train (cpu 2): 7 more replicas fit, on 4 of 4 nodes\n"
        )

    def test_members_of_several_kinds_are_one_copy(
        self, kschedfw_command: Command, racks: Path, tmp_path: Path
    ) -> None:
        kinds = tmp_path / "kinds.yaml"
        second = WORKER.replace("name: worker", "name: worker-2")
        kinds.write_text("---\n".join((GANG, DRIVER, WORKER, second)), encoding="utf-8")
        out = kschedfw_command("fit", racks, "--pod", kinds, self.GATES).out
        assert out.startswith(
            "PodGroup default/train (1 pod of cpu 1; 2 pods of cpu 2): 2 more copies fit, on 4 of 4 nodes\n"
        )

    def test_a_group_of_the_cluster_has_as_many_members_of_one_kind_as_it_needs(
        self, kschedfw_command: Command, racks: Path, tmp_path: Path
    ) -> None:
        racks.write_text(f"{GANG}---\n{RACKS}", encoding="utf-8")
        worker = tmp_path / "worker.yaml"
        worker.write_text(WORKER, encoding="utf-8")
        assert kschedfw_command("fit", racks, "--pod", worker, self.GATES).out.startswith(
            "PodGroup default/train (3 pods of cpu 2): 2 more copies fit"
        )

    def test_no_copy_fits(self, kschedfw_command: Command, racks: Path, job: Path) -> None:
        result = kschedfw_command("fit", racks, "--pod", job, "--cpu", 3, self.GATES)
        assert result.code == 1
        assert result.out.startswith("PodGroup default/train (3 pods of cpu 3): no copy fits on 4 nodes\n")

    def test_the_quota_counts_the_pods_of_copies(
        self, kschedfw_command: Command, racks: Path, job: Path
    ) -> None:
        quota = (
            "{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, namespace: default}, "
            'spec: {hard: {pods: "5"}}}\n'
        )
        racks.write_text(f"{quota}---\n{RACKS}", encoding="utf-8")
        out = kschedfw_command("fit", racks, "--pod", job, self.GATES).out
        assert "2 more copies fit, on 4 of 4 nodes; the quota allows 1\n" in out
        assert "the namespace's quota allows 1 more copy: exceeded quota: team" in " ".join(out.split())

    def test_groups_and_pods_together(
        self, kschedfw_command: Command, racks: Path, job: Path, db: Path
    ) -> None:
        result = kschedfw_command("fit", racks, "--pod", job, "--pod", db, self.GATES)
        assert result.code == 0
        table = result.out.partition("Together, in turns\n")[2].splitlines()
        assert [line.split()[-2:] for line in table[1:3]] == [["2", "2"], ["3", "21"]]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (
                WORKER,
                (
                    "pod default/worker: spec.schedulingGroup.podGroupName: there is no PodGroup default/train, "
                    "neither in the cluster nor in the files"
                ),
            ),
            (
                f"{GANG}---\n{WORKER}---\n{DRIVER}",
                (
                    "PodGroup default/train: spec.schedulingPolicy.gang.minCount is 3, and the files have 2 pods of "
                    "it, of 2 kinds"
                ),
            ),
            (
                GANG.replace("3", "1")
                + "---\n"
                + WORKER.replace("spec:\n", "spec:\n  schedulerName: other\n"),
                "PodGroup default/train: spec.schedulerName: no profile is named other",
            ),
        ],
    )
    def test_a_group_that_cannot_run_is_refused(
        self, kschedfw_command: Command, racks: Path, db: Path, text: str, problem: str
    ) -> None:
        db.write_text(text, encoding="utf-8")
        result = kschedfw_command("fit", racks, "--pod", db, self.GATES)
        assert (result.code, result.out) == (2, "")
        assert problem in result.err
