"""The OpenB CSVs become the same objects as the trace's manifests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kschedfw_lab.openb import OpenbError, openb_notes, read_openb_nodes, read_openb_pods

from kschedfw.api.containers import RestartPolicy
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.meta import Named
from kschedfw.api.pod import PodPhase
from kschedfw.api.quantity import Quantity
from kschedfw.testing import Command

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
openb-node-0000,64000,262144,2,P100
openb-node-0001,32000,131072,0,
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0000,12000,16384,1,460,,LS,Running,427061,12902960,427070
openb-pod-0001,1500,1024,0,0,,BE,Pending,10,20,
openb-pod-0002,96000,8192,8,1000,G2|G3,LS,Running,0,5,0
"""


@pytest.fixture
def nodes_csv(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text(NODES)
    return path


@pytest.fixture
def pods_csv(tmp_path: Path) -> Path:
    path = tmp_path / "pods.csv"
    path.write_text(PODS)
    return path


class TestNodes:
    def test_with_gpus(self, nodes_csv: Path) -> None:
        node = read_openb_nodes(nodes_csv)[0]
        assert node.name == "openb-node-0000"
        assert node.labels == {
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/hostname": "openb-node-0000",
            "kubernetes.io/os": "linux",
            "alibabacloud.com/gpu-card-model": "P100",
        }
        assert node.status.allocatable == node.status.capacity
        assert dict(node.status.allocatable) == {
            "cpu": Quantity.parse("64"),
            "memory": Quantity.parse("256Gi"),
            "pods": Quantity.parse("1001"),
            "nvidia.com/gpu": Quantity.parse("2"),
            "alibabacloud.com/gpu-count": Quantity.parse("2"),
            "alibabacloud.com/gpu-milli": Quantity.parse("2000"),
        }

    def test_without_gpus(self, nodes_csv: Path) -> None:
        node = read_openb_nodes(nodes_csv)[1]
        assert set(node.status.allocatable) == {"cpu", "memory", "pods"}
        assert "alibabacloud.com/gpu-card-model" not in node.labels


class TestPods:
    def test_a_part_of_a_gpu_takes_a_whole_one(self, pods_csv: Path) -> None:
        pod = read_openb_pods(pods_csv)[0]
        assert pod.key == "openb/openb-pod-0000"
        (container,) = pod.spec.containers
        assert dict(container.resources.requests) == {
            "cpu": Quantity.parse("12"),
            "memory": Quantity.parse("16Gi"),
            "nvidia.com/gpu": Quantity.parse("1"),
        }
        assert dict(container.resources.limits) == {"nvidia.com/gpu": Quantity.parse("1")}
        assert pod.annotations["alibabacloud.com/gpu-milli"] == "460"
        assert pod.annotations["alibabacloud.com/gpu-count"] == "1"

    def test_times_and_phase_are_annotations(self, pods_csv: Path) -> None:
        running, waiting, _ = read_openb_pods(pods_csv)
        assert running.metadata.creation_timestamp == datetime(2023, 1, 5, 22, 37, 41, tzinfo=UTC)
        trace = {key: value for key, value in running.annotations.items() if key.startswith("openb.trace/")}
        assert trace == {
            "openb.trace/creation-time": "427061",
            "openb.trace/deletion-time": "12902960",
            "openb.trace/scheduled-time": "427070",
            "openb.trace/pod-phase": "Running",
        }
        assert "openb.trace/scheduled-time" not in waiting.annotations

    def test_all_are_pending_and_end_for_good(self, pods_csv: Path) -> None:
        for pod in read_openb_pods(pods_csv):
            assert pod.status.phase is PodPhase.PENDING
            assert not pod.node_name
            assert pod.spec.restart_policy is RestartPolicy.NEVER
        assert [pod.labels["openb.trace/qos"] for pod in read_openb_pods(pods_csv)] == ["LS", "BE", "LS"]

    def test_without_gpus(self, pods_csv: Path) -> None:
        pod = read_openb_pods(pods_csv)[1]
        assert set(pod.spec.containers[0].resources.requests) == {"cpu", "memory"}
        assert not any(key.startswith("alibabacloud.com/") for key in pod.annotations)

    def test_guaranteed_ones_may_not_exceed_their_requests(self, pods_csv: Path) -> None:
        pods_csv.write_text(PODS.replace(",BE,", ",Guaranteed,"))
        others, guaranteed, _ = (pod.spec.containers[0].resources for pod in read_openb_pods(pods_csv))
        assert guaranteed.limits == guaranteed.requests
        assert set(others.limits) == {"nvidia.com/gpu"}

    def test_allowed_models(self, pods_csv: Path) -> None:
        assert read_openb_pods(pods_csv)[2].annotations["alibabacloud.com/gpu-card-model"] == "G2|G3"

    def test_what_the_default_plugins_cannot_see_is_noted(self, pods_csv: Path) -> None:
        pods = read_openb_pods(pods_csv)
        assert openb_notes(pods) == [
            "1 pod with a request for a part of a GPU; each takes a whole one",
            "1 pod with GPU models to run on; no default plugin looks at that",
        ]
        assert openb_notes([pods[1]]) == []


NOT_NODES = ":1: expected OpenB's table of nodes"


class TestBadFiles:
    """One error that says where and what; nothing is guessed."""

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            ("32000", "", ":3: column cpu_milli: expected a whole number, found ''"),
            ("32000", "many", ":3: column cpu_milli: expected a whole number, found 'many'"),
            ("32000", "-1", ":3: column cpu_milli: expected a whole number, found '-1'"),
            ("32000", "²", ":3: column cpu_milli: expected a whole number, found '²'"),
            ("32000", "9" * 19, f":3: column cpu_milli: expected a whole number, found '{'9' * 19}'"),
            ("openb-node-0001", "", ":3: column sn: expected a name, found ''"),
            (
                "openb-node-0001",
                "openb-node-0000",
                ":3: column sn: expected every name once, found 'openb-node-0000'",
            ),
            (
                ",gpu,",
                ",gpus,",
                f"{NOT_NODES}: column gpu is missing; found sn, cpu_milli, memory_mib, gpus, model",
            ),
            (",131072,0,", "", ":3: column memory_mib: expected 5 cells in the line, found 2"),
            ("131072,0,", "131072,0,,", ":3: column after model: expected 5 cells in the line, found 6"),
            (NODES, "", f"{NOT_NODES}: column sn is missing; found nothing"),
            ("131072", '"131072', ":3: unexpected end of data"),
        ],
    )
    def test_are_refused(self, nodes_csv: Path, before: str, after: str, message: str) -> None:
        nodes_csv.write_text(NODES.replace(before, after))
        with pytest.raises(OpenbError) as caught:
            read_openb_nodes(nodes_csv)
        assert str(caught.value) == f"{nodes_csv}{message}"

    def test_times_that_no_calendar_has(self, pods_csv: Path) -> None:
        pods_csv.write_text(PODS.replace(",427061,", ",999999999999999,"))
        with pytest.raises(OpenbError, match=":2: column creation_time: expected seconds"):
            read_openb_pods(pods_csv)

    def test_binary_files(self, nodes_csv: Path) -> None:
        nodes_csv.write_bytes(b"sn,cpu_milli\xff\xfe\n")
        with pytest.raises(OpenbError, match="not a text file in UTF-8"):
            read_openb_nodes(nodes_csv)

    def test_a_byte_order_mark_and_empty_lines_do_no_harm(self, nodes_csv: Path) -> None:
        nodes_csv.write_text("\ufeff" + NODES + "\n\n", encoding="utf-8")
        assert len(read_openb_nodes(nodes_csv)) == 2

    def test_a_path_may_be_a_string(self, nodes_csv: Path, pods_csv: Path) -> None:
        assert read_openb_nodes(str(nodes_csv)) == read_openb_nodes(nodes_csv)
        assert read_openb_pods(str(pods_csv)) == read_openb_pods(pods_csv)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            read_openb_pods(tmp_path / "none.csv")


class TestCommand:
    """`--format openb` of the commands that ask about a cluster."""

    def test_tables_are_simulated(self, kschedfw_command: Command, tmp_path: Path) -> None:
        (tmp_path / "nodes.csv").write_text(NODES)
        (tmp_path / "pods.csv").write_text(PODS)
        result = kschedfw_command(
            "simulate", "--format", "openb", tmp_path / "nodes.csv", "--pods", tmp_path / "pods.csv", "--json"
        )
        report = result.json
        assert result.code == 0
        assert (report["nodes"], report["pods"]["placed"], report["pods"]["unschedulable"]) == (2, 2, 1)
        assert "1 pod with a request for a part of a GPU; each takes a whole one" in report["notes"]

    def test_table_given_twice_is_refused(self, kschedfw_command: Command, tmp_path: Path) -> None:
        (tmp_path / "nodes.csv").write_text(NODES)
        result = kschedfw_command(
            "simulate", "--format", "openb", tmp_path / "nodes.csv", tmp_path / "nodes.csv"
        )
        assert (result.code, result.err) == (2, "kschedfw: Node openb-node-0000 already exists\n")

    def test_nodes_alone_leave_nothing_to_do(self, kschedfw_command: Command, tmp_path: Path) -> None:
        (tmp_path / "nodes.csv").write_text(NODES)
        assert kschedfw_command("simulate", "--format", "openb", tmp_path / "nodes.csv").code == 1

    def test_pods_arrive_and_end_at_the_times_of_the_trace(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        (tmp_path / "nodes.csv").write_text(NODES)
        (tmp_path / "pods.csv").write_text(PODS)
        result = kschedfw_command(
            *("simulate", "--format", "openb", tmp_path / "nodes.csv", "--pods", tmp_path / "pods.csv"),
            *("--arrivals", "--json"),
        )
        arrived = {each["pod"]: each["arrivedAt"] for each in result.json["decisions"]}
        assert arrived == {
            "openb/openb-pod-0000": 427061,
            "openb/openb-pod-0001": 10,
            "openb/openb-pod-0002": 0,
        }
        assert result.json["replay"]["makespanSeconds"] == 427061 + 12902960 - 427070

    def test_drawn_times_take_the_place_of_the_trace_s(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        (tmp_path / "nodes.csv").write_text(NODES)
        (tmp_path / "pods.csv").write_text(PODS)
        trace = ("simulate", "--format", "openb", tmp_path / "nodes.csv", "--pods", tmp_path / "pods.csv")
        drawn = ("--arrival-rate", 1, "--mean-duration", 500, "--json")
        idle = "all 3 pods have times of their own; --arrival-rate and --mean-duration change none"
        own = kschedfw_command(*trace, *drawn).json
        assert sum(note.startswith(idle) for note in own["notes"]) == 1
        assert own["decisions"] == kschedfw_command(*trace, "--arrivals", "--json").json["decisions"]
        report = kschedfw_command(*trace, *drawn, "--ignore-own-times").json
        assert not any("times of their own" in note for note in report["notes"])
        assert 0 < report["replay"]["makespanSeconds"] < 10_000

    def test_file_that_is_not_there_is_refused(self, kschedfw_command: Command, tmp_path: Path) -> None:
        result = kschedfw_command("simulate", "--format", "openb", tmp_path / "none.csv")
        assert (result.code, result.err) == (
            2,
            f"kschedfw: {tmp_path / 'none.csv'}: No such file or directory\n",
        )

    def test_broken_cell_is_named(self, kschedfw_command: Command, tmp_path: Path) -> None:
        (tmp_path / "nodes.csv").write_text(NODES.replace("64000", "x"))
        result = kschedfw_command("simulate", "--format", "openb", tmp_path / "nodes.csv")
        assert result.code == 2
        assert len(result.err.splitlines()) == 1
        assert "nodes.csv:2: column cpu_milli" in result.err

    def test_directory_is_refused(self, kschedfw_command: Command, tmp_path: Path) -> None:
        result = kschedfw_command("simulate", tmp_path, "--format", "openb")
        assert (result.code, result.out) == (2, "")
        assert f"{tmp_path} is a directory, expected a CSV" in result.err


def objects_in(path: Path) -> list[Named]:
    with gzip.open(path) as file:
        return [object_from_manifest(item) for item in json.load(file)["items"]]


class TestPublishedFiles:
    """The CSVs and the manifests that were made from them hold the same cluster."""

    def test_nodes(self, shared_data: Callable[[str], Path]) -> None:
        nodes = read_openb_nodes(shared_data("openb/openb_node_list_gpu_node.csv"))
        assert nodes == objects_in(shared_data("openb/nodes_gpu.json.gz"))

    def test_pods(self, shared_data: Callable[[str], Path]) -> None:
        pods = read_openb_pods(shared_data("openb/openb_pod_list_default.csv"))
        assert pods == objects_in(shared_data("openb/pods.json.gz"))

    def test_all_of_them_can_be_read(self, shared_data: Callable[[str], Path]) -> None:
        assert len(read_openb_nodes(shared_data("openb/openb_node_list_all_node.csv"))) == 1523
        pods = read_openb_pods(shared_data("openb/openb_pod_list_gpuspec33.csv"))
        assert sum("alibabacloud.com/gpu-card-model" in pod.annotations for pod in pods) == 2388
