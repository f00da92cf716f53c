"""Clusters and traces: how they are named, cut, and read once."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab import SweepError
from kschedfw_lab.sweep import inputs
from kschedfw_lab.sweep.draws import Draw, drawn
from kschedfw_lab.sweep.inputs import WHOLE, ClusterSource, Size, objects_of, read_source
from sweep.scenes import cluster_file

from kschedfw import make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.simulator import Arrivals

OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,32000,262144,2,T4\n"
OPENB_PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p1,4000,8192,1,1000,,LS,Running,0,100,5\n"
)


def read(given: object, folder: Path = Path(), size: Size = WHOLE) -> tuple[list[str], list[str]]:
    """The names of the nodes and of the pods."""
    objects = objects_of(read_source(given, folder).digested(), size)
    nodes = [each.name for each in objects if isinstance(each, Node)]
    return nodes, [each.name for each in objects if isinstance(each, Pod)]


def test_a_file_a_directory_and_a_list_of_files(tmp_path: Path) -> None:
    path = cluster_file(tmp_path)
    everything = (["n1", "n2"], ["bound", "fits", "too-big"])
    for value in (
        path,
        str(path),
        "cluster.json",
        ".",
        {"manifests": "cluster.json"},
        {"manifests": [str(path)]},
    ):
        assert read(value, tmp_path) == everything


def test_the_tables_of_an_openb_trace(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(OPENB_NODES)
    (tmp_path / "pods.csv").write_text(OPENB_PODS)
    assert read({"openb": {"nodes": "nodes.csv", "pods": ["pods.csv"]}}, tmp_path) == (["n1"], ["p1"])


def test_a_workload_in_its_size() -> None:
    nodes, pods = read({"workload": "basic"}, size=Size(nodes=3, pods=5, initial_pods=2))
    assert (len(nodes), len(pods)) == (3, 7)


def test_of_files_the_first_nodes_and_pending_pods_are_taken(tmp_path: Path) -> None:
    cluster_file(tmp_path)
    assert read(".", tmp_path, Size(nodes=1)) == (["n1"], ["bound", "fits", "too-big"])
    assert read(".", tmp_path, Size(pods=1)) == (["n1", "n2"], ["bound", "fits"])


def test_a_name_of_its_own() -> None:
    assert read_source({"workload": "basic", "name": "small"}, Path()).label == "small"


class TestOnce:
    def test_a_file_is_read_once(self, tmp_path: Path) -> None:
        source = read_source(cluster_file(tmp_path), tmp_path).digested()
        assert objects_of(source, WHOLE) is objects_of(source, WHOLE)
        cut = Size(pods=1)
        assert objects_of(source, cut) is objects_of(source, cut)

    def test_the_digest_is_that_of_the_content(self, tmp_path: Path) -> None:
        path = cluster_file(tmp_path)
        first = read_source(path, tmp_path).digested()
        copied = tmp_path / "copy.json"
        copied.write_bytes(path.read_bytes())
        assert read_source(copied, tmp_path).digested().digest == first.digest
        copied.write_text(path.read_text() + "\n")
        assert read_source(copied, tmp_path).digested().digest != first.digest

    def test_a_file_that_has_changed_since_the_plan_is_refused(self, tmp_path: Path) -> None:
        path = cluster_file(tmp_path)
        source = read_source(path, tmp_path).digested()
        path.write_text(path.read_text() + "\n")
        inputs._read.cache_clear()
        inputs._part_of.cache_clear()
        with pytest.raises(SweepError, match="isn't what it was when the sweep was planned"):
            objects_of(source, WHOLE)

    def test_few_clusters_are_kept(self, tmp_path: Path) -> None:
        source = read_source(cluster_file(tmp_path), tmp_path).digested()
        for index in range(10):
            objects_of(attrs.evolve(source, label=str(index)), WHOLE)
        assert inputs._read.cache_info().currsize <= 2


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("nosuch/", "nosuch/: no such file or directory"),
        ("basic", "no such file or directory; the workload is written {workload: basic}"),
        (
            3,
            "expected a path, or one of manifests, openb (nodes, pods), workload, reader and recording, found 3",
        ),
        ({}, "found none of them"),
        ({"workload": "basic", "manifests": "."}, "found manifests and workload"),
        ({"workload": "basci"}, "workload: there is no workload 'basci'; did you mean 'basic'?"),
        ({"workload": 3}, "workload: expected a name, found 3"),
        ({"worklod": "basic"}, "worklod: unknown field; did you mean workload?"),
        ({"manifests": []}, "manifests: expected a path or a list of paths, found []"),
        ({"manifests": ["nosuch"]}, "manifests: nosuch: no such file or directory"),
        ({"openb": "x"}, 'openb: expected nodes and pods, found "x"'),
        ({"openb": {"nodes": "nosuch", "pods": "."}}, "openb.nodes: nosuch: no such file or directory"),
        ({"workload": "basic", "name": ""}, 'name: expected a text, found ""'),
    ],
)
def test_what_is_no_cluster(wrong: object, why: str) -> None:
    with pytest.raises(SweepError) as caught:
        read_source(wrong, Path())
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("kind: [", "is not valid YAML"),
        ("{apiVersion: v1, kind: Node, metadata: {nam: x}}", "metadata"),
    ],
)
def test_invalid_manifests_are_one_line(content: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(content)
    with pytest.raises(SweepError) as caught:
        read("wrong.yaml", tmp_path)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("size", "why"),
    [
        (Size(nodes=3), "has 2 nodes, and 3 are asked for"),
        (Size(pods=3), "has 2 pending pods, and 3 are asked for"),
        (Size(initial_pods=0), "initialPods is for workloads"),
    ],
)
def test_sizes_that_files_do_not_have(size: Size, why: str, tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=why):
        read(str(cluster_file(tmp_path)), size=size)


def test_a_directory_without_manifests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="no manifest in this directory"):
        read_source(str(tmp_path), Path()).digested()


def test_a_source_says_what_it_is_without_its_path(tmp_path: Path) -> None:
    source = read_source(cluster_file(tmp_path), tmp_path)
    assert isinstance(source, ClusterSource)
    assert str(tmp_path) not in str({**source.to_json(), "label": ""})


def jobs(count: int) -> list[Pod]:
    """Pods that arrive a second after one another, the one of number n for n + 1 seconds."""
    return [
        make_pod(f"job-{number}")
        .requests(cpu=number + 1)
        .annotations(
            {
                "openb.trace/creation-time": str(number),
                "openb.trace/scheduled-time": str(number + 5),
                "openb.trace/deletion-time": str(2 * number + 6),
            }
        )
        .build()
        for number in range(count)
    ]


@given(count=st.integers(0, 8), seed=st.integers(0, 3), draw=st.sampled_from([Draw.SHUFFLE, Draw.RESAMPLE]))
def test_drawn_pods_stay_as_long_as_before_and_places_keep_their_arrivals(
    count: int, seed: int, draw: Draw
) -> None:
    pods = jobs(count)
    others = [make_node("n").build(), make_pod("job-1.2").node("n").build()]
    found = drawn([*others, *pods], draw, seed)
    assert list(found[:2]) == others
    again = [each for each in found[2:] if isinstance(each, Pod)]
    assert len({pod.key for pod in again} | {"default/job-1.2"}) == count + 1
    assert len({pod.uid for pod in again}) == count
    stays = list(Arrivals().plan(again, 0).values())
    assert [stay.arrival for stay in stays] == list(range(count))
    cpus = [pod.requests.amounts.milli_cpu // 1000 for pod in again]
    assert [stay.duration for stay in stays] == cpus
    if draw is Draw.SHUFFLE:
        assert sorted(cpus) == [number + 1 for number in range(count)]
    assert drawn([*others, *pods], draw, seed) == found


def test_seeds_draw_differently() -> None:
    for draw in (Draw.SHUFFLE, Draw.RESAMPLE):
        assert len({tuple(str(obj) for obj in drawn(jobs(8), draw, seed)) for seed in range(4)}) == 4
