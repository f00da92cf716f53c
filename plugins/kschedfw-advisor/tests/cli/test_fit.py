"""What `kschedfw fit` prints, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_app import Kschedfw, kschedfw

__all__ = ["kschedfw"]  # the fixture

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
        self, kschedfw: Kschedfw, cluster_dir: Path, web: Path
    ) -> None:
        result = kschedfw("fit", cluster_dir, "--pod", web)
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

    def test_as_json(self, kschedfw: Kschedfw, cluster_dir: Path, web: Path) -> None:
        document = kschedfw("fit", cluster_dir, "--pod", web, "--json").json
        assert document["pods"] == [
            {
                "pod": "default/web",
                "replicas": 8,
                "byNode": {"n1": 5, "n2": 3},
                "stoppedBy": "0/2 nodes are available: 2 Insufficient cpu.",
                "quota": None,
            }
        ]
        assert (document["nodes"], document["together"]) == (2, None)

    def test_pending_pods_may_be_left_out(self, kschedfw: Kschedfw, cluster_dir: Path, web: Path) -> None:
        result = kschedfw("fit", cluster_dir, "--pod", web, "--ignore-pending")
        assert "11 more replicas fit" in result.out
        assert "note: 2 pending pods left out" in result.out

    def test_several_pods_each_by_itself_and_together(
        self, kschedfw: Kschedfw, cluster_dir: Path, web: Path, db: Path
    ) -> None:
        result = kschedfw("fit", cluster_dir, "--pod", web, "--pod", db)
        assert result.code == 0
        assert "default/db (cpu 600m): 3 more replicas fit" in result.out
        table = result.out.partition("Together, in turns\n")[2].splitlines()
        assert table[:3] == [
            "pod          together  by itself",
            "default/web         4          8",
            "default/db          2          3",
        ]

    def test_what_else_is_in_the_file_comes_into_the_cluster(
        self, kschedfw: Kschedfw, cluster_dir: Path, db: Path
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
        result = kschedfw("fit", cluster_dir, "--pod", db)
        assert result.code == 1
        assert result.out.startswith("default/db (cpu 600m): no replica fits on 2 nodes\n")
        assert "device class gpu does not exist" in result.out, "the claim was made from its template"

    def test_a_pod_of_options_alone(self, kschedfw: Kschedfw, cluster_dir: Path) -> None:
        result = kschedfw("fit", cluster_dir, "--cpu", "400m", "--memory", "512Mi", "--image", "app")
        assert result.out.startswith("pod (cpu 400m, memory 512Mi): 5 more replicas fit")

    def test_options_change_the_pod_of_a_file(self, kschedfw: Kschedfw, cluster_dir: Path, web: Path) -> None:
        result = kschedfw("fit", cluster_dir, "--pod", web, "--cpu", "1")
        assert result.out.startswith("default/web (cpu 1, memory 256Mi): 2 more replicas fit")

    def test_none_fits(self, kschedfw: Kschedfw, cluster_dir: Path) -> None:
        result = kschedfw("fit", cluster_dir, "--cpu", "64")
        assert result.code == 1
        assert result.out.startswith(
            "pod (cpu 64): no replica fits on 2 nodes\n\n0/2 nodes are available: 2 Insufficient cpu.\n"
        )

    def test_it_stops_at_a_number(self, kschedfw: Kschedfw, cluster_dir: Path) -> None:
        result = kschedfw("fit", cluster_dir, "--cpu", "1m", "--at-most", 3)
        assert result.out.startswith("pod (cpu 1m): at least 3 more replicas fit")
        assert "stopped at 3 replicas; --at-most says after how many" in result.out

    def test_it_is_readable_in_40_columns(
        self, kschedfw: Kschedfw, cluster_dir: Path, web: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        out = kschedfw("fit", cluster_dir, "--pod", web).out
        assert max(map(len, out.splitlines())) <= 40

    def test_the_configuration_counts(
        self, kschedfw: Kschedfw, cluster_dir: Path, tmp_path: Path, web: Path
    ) -> None:
        """Nodes are filled one by one, so one of the two stays empty."""
        config = tmp_path / "config.yaml"
        config.write_text(
            "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{plugins: "
            "{filter: {disabled: [{name: NodeResourcesFit}]}}}]}"
        )
        result = kschedfw("fit", cluster_dir, "--pod", web, "--config", config, "--at-most", 100)
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
        self, kschedfw: Kschedfw, cluster_dir: Path, arguments: list[str], problem: str
    ) -> None:
        result = kschedfw("fit", cluster_dir, *arguments)
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
        self, kschedfw: Kschedfw, cluster_dir: Path, web: Path, text: str, problem: str
    ) -> None:
        web.write_text(text, encoding="utf-8")
        result = kschedfw("fit", cluster_dir, "--pod", web)
        assert (result.code, result.out) == (2, "")
        assert problem in result.err

    def test_options_for_several_pods(
        self, kschedfw: Kschedfw, cluster_dir: Path, web: Path, db: Path
    ) -> None:
        result = kschedfw("fit", cluster_dir, "--pod", web, "--pod", db, "--cpu", "1")
        assert result.err == (
            "kschedfw: --cpu, --memory and --image change one pod, and there are 2: default/web, default/db\n"
        )

    def test_a_pod_for_a_scheduler_that_there_is_not(
        self, kschedfw: Kschedfw, cluster_dir: Path, db: Path
    ) -> None:
        db.write_text(DB.replace("spec: {", "spec: {schedulerName: other, "), encoding="utf-8")
        result = kschedfw("fit", cluster_dir, "--pod", db)
        assert result.code == 2
        assert "spec.schedulerName: no profile is named other; there is default-scheduler" in result.err
