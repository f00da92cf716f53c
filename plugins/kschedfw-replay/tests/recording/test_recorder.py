"""A recorder's recording tells what happened in the cluster, whatever happens to its connections."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
from holding import held
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes import Anonymizer, KubernetesCluster, NotSyncedError, connect
from kschedfw_replay import ChangeType, Gap, Record, RecordedChange, RecordingWriter, State, open_recording
from kschedfw_replay.recording.lines import Key, key_of
from kschedfw_replay.recording.recorder import RECORDED_KINDS, Fields, Recorder
from recording.clusters import as_added, change_something, new_pod, served_state, with_a_node

from kschedfw import FrozenDict, InMemoryCluster, Node, Pod, SystemClock
from kschedfw.api import Named, object_from_manifest
from kschedfw.simulator import Simulation
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import node_manifests, pod_manifests
from kschedfw.testing.waiting import eventually


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(with_a_node()) as server:
        yield server


class Recorded:
    """A recorder of a server, and what it has written."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self._server, self._out = server, folder / "recording"
        self._client = connect(server.kubeconfig(folder / "kubeconfig"), qps=-1, chance=Random(0))
        self.cluster = KubernetesCluster(self._client, RECORDED_KINDS).start()
        self._writer = RecordingWriter(self._out, cluster="test")
        self.recorder = Recorder(self.cluster, self._writer, SystemClock())
        assert self.recorder.begin(60) == {}

    def records(self) -> list[Record]:
        self.recorder.step()
        return list(open_recording(self._out))

    def is_up_to_date(self) -> bool:
        now = after(self.records())
        return {key: as_added(manifest) for key, manifest in now.items()} == served_state(self._server)

    def close(self) -> None:
        self.cluster.close()
        self._writer.close()
        self._client.close()


@pytest.fixture
def recorded(server: ApiServer, tmp_path: Path) -> Iterator[Recorded]:
    recorded = Recorded(server, tmp_path)
    yield recorded
    recorded.close()


def after(records: list[Record]) -> Mapping[Key, Any]:
    """The objects after the records; each change fits what there was before it."""
    objects: dict[Key, Any] = {}
    for record in records:
        match record:
            case State():
                objects = {key_of(each): each for each in record.manifests}
            case RecordedChange():
                key = key_of(record.manifest)
                assert (key in objects) is (record.type is not ChangeType.ADDED)
                if record.type is ChangeType.DELETED:
                    del objects[key]
                else:
                    assert objects.get(key) != record.manifest
                    objects[key] = record.manifest
    return objects


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["none", "cut", "restarts"])
def test_the_records_amount_to_the_cluster_whatever_happens_to_the_connections(
    server: ApiServer, recorded: Recorded, trouble: str
) -> None:
    random = Random(1)
    for step in range(90):
        change_something(server.cluster, random)
        if step % 30 == 15:
            recorded.recorder.step()
            if trouble == "cut":
                server.cut_connections()
            elif trouble == "restarts":
                server.stop()
                server.start()
    eventually(recorded.is_up_to_date)
    first, *rest = recorded.records()
    assert isinstance(first, State)
    # The server remembered all changes, so none was missed.
    assert all(isinstance(record, RecordedChange) for record in rest)


@pytest.mark.slow
def test_changes_that_the_server_forgot_are_a_gap_with_the_state_after_it(
    server: ApiServer, recorded: Recorded
) -> None:
    server.cluster.add(new_pod("before"))
    eventually(recorded.is_up_to_date)
    server.stop()
    server.cluster.add(new_pod("missed"))
    server.cluster.delete(server.cluster.add(new_pod("never-seen")))
    server.compact()
    server.start()
    eventually(recorded.is_up_to_date)
    server.cluster.add(new_pod("after"))
    eventually(recorded.is_up_to_date)
    records = recorded.records()
    gap = next(record for record in records if isinstance(record, Gap) and " pods" in record.reason)
    assert "no longer had all changes of " in gap.reason
    assert isinstance(records[records.index(gap) + 1], State)
    # Whether the last pod comes as a change or in a state depends on when the other kinds are watched again.
    names = {manifest["metadata"]["name"] for manifest in after(records).values()}
    assert {"before", "missed", "after"} <= names
    assert "never-seen" not in names
    assert recorded.recorder.gaps >= 1


def test_the_cluster_s_own_decision_is_recorded(server: ApiServer, recorded: Recorded) -> None:
    pod = server.cluster.add(new_pod("p"))
    server.cluster.bind(pod, "n")
    eventually(recorded.is_up_to_date)
    *_, bound = recorded.records()
    assert isinstance(bound, RecordedChange)
    manifest: Any = bound.manifest
    assert manifest["spec"]["nodeName"] == "n"
    assert manifest["status"]["conditions"] == [{"type": "PodScheduled", "status": "True"}]


def test_a_change_of_nothing_that_scheduling_reads_is_not_recorded(
    server: ApiServer, recorded: Recorded
) -> None:
    pod = server.cluster.add(new_pod("p"))
    with_note = attrs.evolve(pod.metadata, annotations=FrozenDict({"a.b/note": "x"}))
    server.cluster.update(pod.with_metadata(with_note))
    server.cluster.add(new_pod("q"))
    eventually(recorded.is_up_to_date)
    changes = [record for record in recorded.records() if isinstance(record, RecordedChange)]
    assert [each.type for each in changes] == [ChangeType.ADDED] * 2


def test_a_server_whose_nodes_cannot_be_listed_is_not_recorded(server: ApiServer, tmp_path: Path) -> None:
    client = connect(server.kubeconfig(tmp_path / "kubeconfig"), qps=-1, chance=Random(0))
    server.faults.failed_before = 1.0
    with (
        client,
        KubernetesCluster(client, RECORDED_KINDS) as cluster,
        RecordingWriter(tmp_path / "r") as writer,
        pytest.raises(NotSyncedError, match=r"nodes: not listed after 0\.1 s"),
    ):
        Recorder(cluster, writer, SystemClock()).begin(0.1)


JUNK: Mapping[str, Any] = {
    "metadata": {"managedFields": [{"manager": "x"}], "selfLink": "/x", "annotations": {"a.b/c": "secret"}},
    "spec": {"serviceAccountName": "secret", "hostAliases": [{"ip": "1.1.1.1"}], "dnsPolicy": "Default"},
    "status": {"podIP": "1.1.1.1", "nodeInfo": {"kernelVersion": "secret"}, "qosClass": "BestEffort"},
}


def grown(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with what an API server adds that scheduling doesn't read."""
    whole = {**manifest, **{field: {**manifest.get(field, {}), **junk} for field, junk in JUNK.items()}}
    for container in whole["spec"].get("containers", ()):
        container["env"] = [{"name": "TOKEN", "value": "secret"}]
    return whole


@st.composite
def cluster_manifests(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Nodes, bound pods and pending ones, as an API server has them."""
    nodes = [f"node-{index}" for index in range(draw(st.integers(1, 4)))]
    hosts = draw(st.lists(st.sampled_from([*nodes, ""]), min_size=1, max_size=6))
    return [grown(draw(node_manifests(name))) for name in nodes] + [
        grown(draw(pod_manifests(f"pod-{index}", host))) for index, host in enumerate(hosts)
    ]


def decisions(objects: list[Named]) -> list[tuple[str, str, str]]:
    """The outcome, node and message for each pod."""
    report = Simulation(InMemoryCluster(objects), seed=1).run()
    return [(str(each.outcome), each.node or "", each.message) for each in report.decisions]


@settings(max_examples=examples(25))
@given(cluster_manifests())
def test_decisions_on_what_is_recorded_are_those_on_the_whole_objects(
    manifests: list[dict[str, Any]],
) -> None:
    whole = [object_from_manifest(manifest, check=False) for manifest in manifests]
    fields = Fields()
    recorded = [fields.manifest(fields.of(obj)) for obj in whole]
    assert "secret" not in json.dumps(recorded)
    assert decisions([object_from_manifest(each) for each in recorded]) == decisions(whole)


@settings(max_examples=examples(25))
@given(cluster_manifests())
def test_decisions_on_pseudonyms_are_the_same_up_to_the_names(manifests: list[dict[str, Any]]) -> None:
    whole = [object_from_manifest(manifest, check=False) for manifest in manifests]
    fields = Fields(anonymizer=Anonymizer(b"secret"))
    renamed = [object_from_manifest(fields.manifest(fields.of(obj))) for obj in whole]
    names = {old.name: new.name for old, new in zip(whole, renamed, strict=True) if isinstance(old, Node)}
    assert not set(names.values()) & set(names)
    assert not {obj.name for obj in whole if isinstance(obj, Pod)} & {obj.name for obj in renamed}
    expected = [(outcome, names.get(node, node)) for outcome, node, _ in decisions(whole)]
    assert [(outcome, node) for outcome, node, _ in decisions(renamed)] == expected


def test_nothing_is_kept_of_pods_that_are_gone(server: ApiServer, recorded: Recorded) -> None:
    def come_and_go(numbers: range) -> int:
        """What the recorder holds, with the cluster that it follows, after pods with these numbers."""
        for number in numbers:
            name = f"p{number}"
            server.cluster.add(new_pod(name))
            pod = server.cluster.get(Pod, f"default/{name}")
            assert pod is not None
            server.cluster.bind(pod, "n")
            server.cluster.delete(pod)
        label_node(server, str(numbers.stop))
        eventually(recorded.is_up_to_date)
        return held(recorded.recorder)

    before = come_and_go(range(100))
    assert come_and_go(range(100, 300)) <= before + 20


def label_node(server: ApiServer, text: str) -> None:
    node = server.cluster.get(Node, "n")
    assert node is not None
    labels = FrozenDict({**node.labels, "step": text})
    server.cluster.update(node.with_metadata(attrs.evolve(node.metadata, labels=labels)))
