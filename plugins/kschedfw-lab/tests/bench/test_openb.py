"""The workload of the OpenB trace, with it and without."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.openb import NODES, NODES_FILE, PODS, PODS_FILE, openb
from kschedfw_lab.bench.shapes import made
from kschedfw_lab.bench.stage import Case
from kschedfw_lab.bench.workload import Workload
from kschedfw_lab.bench.workloads import find_workload
from kschedfw_lab.openb import GPU, OpenbError

from kschedfw import Registry
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / NODES_FILE).write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,96000,524288,0,\n"
    )
    (tmp_path / PODS_FILE).write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p-0,12000,16384,1,1000,,LS,Running,0,9,0\n"
        "p-1,6000,12288,0,0,,BE,Running,4,9,5\n"
    )
    return tmp_path


def gpus(workload: Workload, pods: int) -> Counter[int]:
    found = [made(workload.measured_pod(index)) for index in range(pods)]
    return Counter(each.requests.amounts.get(GPU) for each in found if isinstance(each, Pod))


def test_without_the_trace_pods_ask_for_gpus_as_often_as_its_pods_do() -> None:
    found = gpus(openb(), PODS)
    share = {number: count / PODS for number, count in found.items()}
    assert share == pytest.approx({0: 0.133, 1: 0.857, 2: 0.002, 4: 0.002, 8: 0.005}, abs=0.002)


def test_with_and_without_it_a_cluster_has_about_the_same_resources(
    shared_data: Callable[[str], Path],
) -> None:
    trace = shared_data(f"openb/{NODES_FILE}").parent

    def total(workload: Workload) -> tuple[float, float, float]:
        nodes = [made(workload.node(index)) for index in range(NODES)]
        amounts = [each.status.allocatable for each in nodes if isinstance(each, Node)]
        return (
            sum(each["cpu"].milli_value() for each in amounts) / 1e6,
            sum(each["memory"].value() for each in amounts) / 2**50,
            float(sum(each[GPU].value() for each in amounts if GPU in each)),
        )

    assert total(openb()) == pytest.approx(total(openb(trace)), rel=0.03)
    assert gpus(openb(trace), PODS) == pytest.approx(gpus(openb(), PODS), rel=0.1)


def test_with_the_trace_its_objects_come_in_turns(folder: Path) -> None:
    workload = find_workload("openb", folder)
    pods = [made(workload.measured_pod(index)) for index in (0, 1, 2)]
    assert [each.name for each in pods] == ["pod-0", "pod-1", "pod-2"]
    cpus = [each.requests.amounts.milli_cpu for each in pods if isinstance(each, Pod)]
    assert cpus == [12_000, 6_000, 12_000]
    nodes = [made(workload.node(index)) for index in (0, 3)]
    assert [(each.name, each.labels["kubernetes.io/hostname"]) for each in nodes] == [
        ("node-0", "node-0"),
        ("node-3", "node-3"),
    ]


def test_what_is_no_trace_is_refused(folder: Path) -> None:
    (folder / PODS_FILE).write_text("name\np-0\n")
    with pytest.raises(OpenbError, match=r"openb_pod_list_default.csv:1: .*column cpu_milli is missing"):
        find_workload("openb", folder)


def test_it_can_be_measured_either_way(folder: Path) -> None:
    for trace in (None, folder):
        case = attrs.evolve(Case("openb", 10, 2, 4), trace=trace)
        assert measure(case, time.perf_counter, registry=Registry()).placed == 4
