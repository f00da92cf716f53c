"""What a PodGroup's status says, as its pods come, run and end."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from kschedfw_coscheduling import POD_GROUP_LABEL, PodGroup, PodGroupController, PodGroupPhase, PodGroupStatus
from tests.gang_stage import Stage, gang, group, node, pod

from kschedfw import CustomObject, FrozenDict, InMemoryCluster, ObjectMeta, Pod
from kschedfw.api.meta import OwnerReference
from kschedfw.testing.properties import examples


def status(cluster: InMemoryCluster, key: str = "default/train") -> PodGroupStatus:
    found = cluster.get(PodGroup, key)
    assert found is not None
    return found.status


def becomes(cluster: InMemoryCluster, name: str, phase: str) -> None:
    present = cluster.get(Pod, f"default/{name}")
    assert present is not None
    cluster.update(present.with_status(attrs.evolve(present.status, phase=type(present.status.phase)(phase))))


def controlled(*objects: PodGroup | Pod) -> InMemoryCluster:
    cluster = InMemoryCluster(objects)
    PodGroupController(cluster)
    return cluster


class TestThePhase:
    def test_is_pending_until_there_are_enough_pods(self) -> None:
        cluster = controlled(group("train", 2), *gang("train", 1))
        assert status(cluster) == PodGroupStatus(PodGroupPhase.PENDING)
        cluster.add(pod("train-1", "train"))
        assert status(cluster) == PodGroupStatus(PodGroupPhase.SCHEDULING)

    def test_is_running_when_enough_run_and_finished_when_enough_have_succeeded(self) -> None:
        cluster = controlled(group("train", 2), *gang("train", 3))
        becomes(cluster, "train-0", "Running")
        assert status(cluster) == PodGroupStatus(PodGroupPhase.SCHEDULING, running=1)
        becomes(cluster, "train-1", "Running")
        assert status(cluster) == PodGroupStatus(PodGroupPhase.RUNNING, running=2)
        becomes(cluster, "train-0", "Succeeded")
        assert status(cluster) == PodGroupStatus(PodGroupPhase.RUNNING, running=1, succeeded=1)
        becomes(cluster, "train-1", "Succeeded")
        finished = PodGroupStatus(PodGroupPhase.FINISHED, succeeded=2)
        assert status(cluster) == finished
        becomes(cluster, "train-2", "Running")
        assert status(cluster) == finished

    def test_is_failed_when_one_has_failed_after_enough_had_begun(self) -> None:
        cluster = controlled(group("train", 2), *gang("train", 2))
        becomes(cluster, "train-0", "Failed")
        assert status(cluster) == PodGroupStatus(PodGroupPhase.SCHEDULING, failed=1)
        becomes(cluster, "train-1", "Running")
        assert status(cluster) == PodGroupStatus(PodGroupPhase.FAILED, running=1, failed=1)

    def test_is_pending_again_when_pods_go(self) -> None:
        cluster = controlled(group("train", 2), *gang("train", 2))
        for each in ("train-0", "train-1"):
            becomes(cluster, each, "Running")
        present = cluster.get(Pod, "default/train-0")
        assert present is not None
        cluster.delete(present)
        assert status(cluster) == PodGroupStatus(PodGroupPhase.PENDING, running=1)

    def test_goes_on_where_another_controller_has_left_off(self) -> None:
        begun = attrs.evolve(
            group("train", 1), status=PodGroupStatus("Unknown", schedule_start_time="2026-01-01T00:00:00Z")
        )
        cluster = controlled(begun, *gang("train", 1))
        assert status(cluster) == PodGroupStatus(
            PodGroupPhase.SCHEDULING, schedule_start_time="2026-01-01T00:00:00Z"
        )


def test_the_owners_of_the_first_pod_occupy_the_group() -> None:
    made = pod("train-0", "train")
    owners = tuple(OwnerReference(kind, kind.lower()) for kind in ("Job", "Batch"))
    owned = made.with_metadata(attrs.evolve(made.metadata, owner_references=owners))
    assert status(controlled(group("train", 1), owned)).occupied_by == "default/batch,default/job"


def test_a_pod_counts_where_its_label_says() -> None:
    cluster = controlled(group("train", 1), group("other", 1), *gang("train", 1))
    becomes(cluster, "train-0", "Running")
    present = cluster.get(Pod, "default/train-0")
    assert present is not None
    labels = FrozenDict({POD_GROUP_LABEL: "other"})
    cluster.update(present.with_metadata(attrs.evolve(present.metadata, labels=labels)))
    assert status(cluster) == PodGroupStatus(PodGroupPhase.PENDING)
    assert status(cluster, "default/other") == PodGroupStatus(PodGroupPhase.RUNNING, running=1)


def test_one_that_cant_be_read_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    broken = CustomObject(PodGroup.kind, ObjectMeta(name="train"), FrozenDict({"spec": 3}))
    cluster = InMemoryCluster([broken, *gang("train", 1)])
    PodGroupController(cluster)
    cluster.add(group("other", 1))
    assert status(cluster, "default/other").phase == "Pending"
    assert not caplog.records


def test_after_close_nothing_is_written() -> None:
    cluster = InMemoryCluster([group("train", 1)])
    PodGroupController(cluster).close()
    cluster.add(pod("train-0", "train"))
    assert status(cluster).phase == "Pending"


def test_writing_it_wakes_no_pod() -> None:
    stage = Stage(node("n", 1), group("train", 2), *gang("train", 2))
    controller = PodGroupController(stage.cluster)
    stage.run()
    assert status(stage.cluster).phase == "Scheduling"
    assert stage.run(after=60) == 0
    controller.close()


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "gone"])),
    max_size=12,
)


def follow(cluster: InMemoryCluster, steps: Iterable[tuple[int, str]]) -> None:
    for number, phase in steps:
        present = cluster.get(Pod, f"default/train-{number}")
        if present is None:
            cluster.add(pod(f"train-{number}", "train"))
        elif phase == "gone":
            cluster.delete(present)
        else:
            becomes(cluster, f"train-{number}", phase)


@settings(max_examples=examples(250))
@given(min_member=st.integers(1, 4), steps=STEPS)
def test_a_controller_that_comes_later_has_nothing_to_write(
    min_member: int, steps: list[tuple[int, str]]
) -> None:
    cluster = controlled(group("train", min_member))
    follow(cluster, steps)
    version = cluster.resource_version
    PodGroupController(cluster)
    assert cluster.resource_version == version
