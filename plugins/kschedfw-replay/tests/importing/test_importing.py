"""Recordings that are made of what other tools wrote."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_kubernetes import Anonymizer
from kschedfw_replay import Record, RecordedChange, State, open_recording
from kschedfw_replay.importing.observations import Binding, Importer, Observation
from kschedfw_replay.recording.recorder import Fields
from recording.histories import folded, pod

from kschedfw.api import make_node
from kschedfw.cli.app import run

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
CONTAINERS = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    return pod(name, containers=CONTAINERS, **spec)


def imported(tmp_path: Path, file: Path, format: str, *options: str) -> list[Record]:
    out = tmp_path / "recording"
    assert run(["record", "--from", str(file), "--format", format, "--out", str(out), *options]) == 0
    recording = open_recording(out)
    records = list(recording)
    assert not recording.unfinished
    return records


def told(records: list[Record]) -> list[tuple[float, str, str]]:
    """The time, type and name of each change."""
    changes = [record for record in records if isinstance(record, RecordedChange)]
    return [(each.at, each.type.value, each.manifest["metadata"]["name"]) for each in changes]  # type: ignore[index]


@given(
    st.lists(
        st.tuples(
            st.floats(0, 100), st.sampled_from("abc"), st.sampled_from(["", "n", "gone", "bind", "ended"])
        )
    )
)
def test_observations_in_any_order_become_changes_that_fit_one_another(
    observed: list[tuple[float, str, str]],
) -> None:
    observations: list[Observation | Binding] = []
    expected: dict[str, str] = {}
    for at, name, what in observed:
        if what == "bind":
            observations.append(Binding(at, "default", name, "m"))
            expected.update({name: "m"} if name in expected else {})
            continue
        ended = {"status": {"phase": "Succeeded"}} if what == "ended" else {}
        node_name = what if what == "n" else ""
        observations.append(
            Observation(at, {**a_pod(name, nodeName=node_name), **ended}, gone=what == "gone")
        )
        if what in ("gone", "ended"):
            expected.pop(name, None)
        else:
            expected[name] = node_name
    records = list(Importer(Fields()).records(observations))
    assert {name: each["spec"].get("nodeName", "") for name, each in folded(records).items()} == expected
    times = [record.at for record in records]  # type: ignore[union-attr]
    assert times == sorted(times)
    assert [isinstance(record, State) for record in records] == [True, *[False] * len(records)][
        : len(records)
    ]
    present = {each["metadata"]["name"] for each in records[0].manifests} if records else set()  # type: ignore[union-attr, index]
    for _, type_, name in told(records):
        assert (name in present) is (type_ != "ADDED")
        present ^= {name} if type_ != "MODIFIED" else set()


def test_what_is_there_from_the_beginning_is_in_the_state() -> None:
    importer = Importer(Fields(anonymizer=Anonymizer(b"s")), [make_node("acme").build()])
    (state,) = importer.records(
        [Observation(5.0, NODE), Observation(5.0, {"kind": "Secret", "apiVersion": "v1"})]
    )
    assert isinstance(state, State)
    assert len(state.manifests) == 2
    assert "acme" not in str(state)
    assert importer.left_out == {"Secret": 1}


# --- kube-scheduler-simulator ---


def simulator_line(seconds: int, event: str, resource: Mapping[str, Any]) -> str:
    return json.dumps({"time": f"1970-01-01T00:00:{seconds:02}.5Z", "event": event, "resource": resource})


def test_a_recording_of_the_simulator_is_read(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl.gz"
    lines = [
        simulator_line(1, "Add", NODE),
        simulator_line(2, "Add", a_pod("p")),
        simulator_line(3, "Update", a_pod("p", nodeName="n")),
        simulator_line(4, "Update", a_pod("p", nodeName="n", hostname="x")),
        simulator_line(5, "Delete", pod("p")),
    ]
    with gzip.open(file, "wt") as output:
        output.write("\n".join(lines))
    records = imported(tmp_path, file, "simulator")
    assert told(records) == [(2.5, "ADDED", "p"), (3.5, "MODIFIED", "p"), (5.5, "DELETED", "p")]
    last = records[-1]
    assert isinstance(last, RecordedChange)
    assert last.manifest["spec"]["nodeName"] == "n"  # type: ignore[index]


def test_a_snapshot_of_the_simulator_is_a_state(tmp_path: Path) -> None:
    def without_kind(manifest: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}

    file = tmp_path / "snapshot.json"
    pods = [without_kind(a_pod(name)) for name in "ab"]
    file.write_text(
        json.dumps({"nodes": [without_kind(NODE)], "pods": pods, "pvs": None, "schedulerConfig": {}})
    )
    (state,) = imported(tmp_path, file, "simulator")
    assert isinstance(state, State)
    assert sorted(str(each["kind"]) for each in state.manifests) == ["Node", "Pod", "Pod"]


# --- audit logs ---


def audit_event(seconds: int, verb: str, response: object = None, **fields: Any) -> dict[str, Any]:
    reference = {"resource": "pods", "namespace": "default", "name": "p", "apiVersion": "v1"}
    reference |= fields.pop("reference", {})
    if reference["resource"] == "nodes":
        del reference["namespace"]
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": "1",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/default/pods",
        "verb": verb,
        "objectRef": reference,
        "responseStatus": {"code": fields.pop("code", 200)},
        "responseObject": response,
        "stageTimestamp": f"1970-01-01T00:00:{seconds:02}.000000Z",
        **fields,
    }


STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
TERMINATING = {"deletionTimestamp": "1970-01-01T00:00:00Z", "name": "p", "namespace": "default"}


def test_an_audit_log_is_read(tmp_path: Path) -> None:
    bound = {"requestObject": {"target": {"name": "n"}}, "reference": {"subresource": "binding"}}
    graceful = {**a_pod("p", nodeName="n"), "metadata": {**TERMINATING, "deletionGracePeriodSeconds": 30}}
    gone = {**graceful, "metadata": {**TERMINATING, "deletionGracePeriodSeconds": 0}}
    listed = {
        "kind": "PodList",
        "apiVersion": "v1",
        "items": [{"metadata": {"name": "q", "namespace": "default"}}],
    }
    events = [
        audit_event(1, "create", NODE, reference={"resource": "nodes"}),
        audit_event(2, "create", a_pod("p"), code=201),
        audit_event(2, "create", a_pod("dry"), requestURI="/api/v1/namespaces/default/pods?dryRun=All"),
        audit_event(3, "create", STATUS, code=409, **bound),
        audit_event(4, "create", STATUS, code=201, **bound),
        audit_event(5, "get", a_pod("unread")),
        audit_event(6, "delete", graceful),
        audit_event(7, "delete", gone),
        audit_event(8, "create", a_pod("q")),
        audit_event(9, "deletecollection", listed),
        audit_event(10, "update", {}, reference={"resource": "secrets"}),
        audit_event(11, "delete", STATUS, reference={"resource": "nodes", "name": "n"}),
    ]
    file = tmp_path / "audit.log"
    batch = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": events[6:]}
    file.write_text("\n".join(map(json.dumps, [*events[:6], batch])))
    records = imported(tmp_path, file, "audit")
    assert told(records) == [
        (2, "ADDED", "p"),
        (4, "MODIFIED", "p"),
        (6, "MODIFIED", "p"),
        (7, "DELETED", "p"),
        (8, "ADDED", "q"),
        (9, "DELETED", "q"),
        (11, "DELETED", "n"),
    ]
    binding = records[2]
    assert isinstance(binding, RecordedChange)
    manifest: Any = binding.manifest
    assert manifest["spec"]["nodeName"] == "n"
    assert manifest["status"]["conditions"] == [{"type": "PodScheduled", "status": "True"}]


def test_the_audit_policy_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["record", "--audit-policy"]) == 0
    assert "kind: Policy" in capsys.readouterr().out


# --- SimKube ---


def simkube_trace(path: Path, events: list[dict[str, Any]], lifecycles: Mapping[Any, Any]) -> Path:
    trace = {
        "version": 2,
        "config": {"trackedObjects": {}},
        "events": events,
        "index": {},
        "pod_lifecycles": lifecycles,
    }
    path.write_bytes(msgspec.msgpack.encode(trace))
    return path


def deployment(replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": replicas, "selector": selector, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "x"},
        "spec": spec,
    }


def test_a_trace_of_simkube_is_read_with_the_pods_of_its_workloads_and_how_long_they_ran(
    tmp_path: Path,
) -> None:
    lifecycles = {
        ("apps/v1.Deployment", "x/web"): {2**63 + 1: [{"Finished": [3, 8]}, {"Running": 3}, "Empty"]}
    }
    cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "namespace": "x"}}
    events = [
        {"ts": 1, "applied_objs": [], "deleted_objs": []},
        {"ts": 2, "applied_objs": [deployment(1), cron_job], "deleted_objs": []},
        {"ts": 4, "applied_objs": [deployment(3)], "deleted_objs": []},
        {"ts": 5, "applied_objs": [deployment(2)], "deleted_objs": []},
        {"ts": 9, "applied_objs": [], "deleted_objs": [deployment(2)]},
    ]
    file = simkube_trace(tmp_path / "a.sktrace", events, lifecycles)
    node = tmp_path / "node.json"
    node.write_text(json.dumps(NODE))
    records = imported(tmp_path, file, "simkube", "--start", str(node))
    assert {each["kind"] for each in folded(records[:1]).values()} == {"Node", "Pod", "ReplicaSet"}
    pods = [(at, type_, name[-2:]) for at, type_, name in told(records) if name[-2] == "-"]
    assert pods == [
        (4, "ADDED", "-1"),
        (4, "ADDED", "-2"),
        (5, "DELETED", "-2"),
        (7, "DELETED", "-0"),
        (9, "DELETED", "-1"),
    ]


def test_a_workload_of_simkube_that_cannot_be_expanded_is_told_by_its_name_and_stays_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        {"ts": 1, "applied_objs": [], "deleted_objs": []},
        {"ts": 2, "applied_objs": [deployment(1)], "deleted_objs": []},
        {"ts": 3, "applied_objs": [deployment(2_000_000)], "deleted_objs": []},
        {"ts": 4, "applied_objs": [deployment(-1), deployment(-1)], "deleted_objs": []},
    ]
    file = simkube_trace(tmp_path / "a.sktrace", events, {})
    records = imported(tmp_path, file, "simkube")
    assert sum(each["kind"] == "Pod" for each in folded(records).values()) == 1
    many, negative, count, *_ = capsys.readouterr().err.splitlines()
    left_out = f"{file}: left out: Deployment x/web: spec.replicas: "
    assert many == f"{left_out}stands for 2,000,000 more pods, but only 200000 may still be made"
    assert negative == f"{left_out}Invalid value: -1: must be greater than or equal to 0"
    assert count == f"{file}: Deployment: 3 left out"


# --- what can be wrong ---


@pytest.mark.parametrize(
    ("format", "content", "why"),
    [
        ("simulator", b"{", "line 1: not JSON"),
        ("simulator", b"[" * 100_000, "line 1: not JSON"),
        ("simulator", b"{}", "line 1: expected time, event (Add, Update or Delete) and resource"),
        ("simulator", b'{"nodes": {}}', "line 1: nodes: expected a list of objects"),
        ("simulator", b'{"time": 3, "event": "Add", "resource": {}}', "line 1: 3 is no time such as"),
        (
            "simulator",
            b'{"time": "2026-01-31T12:00:00", "event": "Add", "resource": {}}',
            'line 1: "2026-01-31T12:00:00" has no time zone; expected a time such as 2026-01-31T12:00:00Z',
        ),
        ("simulator", b"", "tells of no object"),
        (
            "simulator",
            b'{"time": "1970-01-01T00:00:00Z", "event": ["Add"], "resource": {}}',
            "expected time, event",
        ),
        ("audit", b'{"kind": "EventList", "items": 5}', "line 1: items: expected a list"),
        ("audit", b'\n{"kind": "Pod"}', "line 2: not an event of audit.k8s.io/v1"),
        ("audit", json.dumps(audit_event(1, "create")).encode(), "the level RequestResponse is needed"),
        ("simkube", b"{}", "not a trace of SimKube of version 2"),
        ("simkube", b"\x91" * 100_000, "not a trace of SimKube of version 2"),
        (
            "simkube",
            msgspec.msgpack.encode({"version": 1, "events": [], "pod_lifecycles": {}}),
            "a trace of version 1; version 2 is read",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_place(
    format: str, content: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    out = str(tmp_path / "recording")
    assert run(["record", "--from", str(file), "--format", format, "--out", out]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"kschedfw: {file}: ")
    assert why in error


def test_what_comes_before_an_error_is_kept_as_a_recording_that_is_unfinished(tmp_path: Path) -> None:
    file, out = tmp_path / "file", tmp_path / "recording"
    lines = [simulator_line(second, "Add", a_pod(f"p{second}")) for second in (1, 2, 3)]
    file.write_text("\n".join([*lines, "{"]))
    assert run(["record", "--from", str(file), "--format", "simulator", "--out", str(out)]) == 2
    recording = open_recording(out)
    assert folded(recording).keys() == {"p1", "p2", "p3"}
    assert "ends without its end mark" in recording.unfinished


@pytest.mark.parametrize("format", ["audit", "simkube", "simulator"])
@pytest.mark.parametrize("damage", ["cut", "changed", "never packed"])
def test_a_file_that_cannot_be_unpacked_is_refused(
    format: str, damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = gzip.compress(Random(1).randbytes(5000))
    file = tmp_path / "file.gz"
    damaged = {
        "cut": packed[:-100],
        "changed": packed[:40] + b"\xff" * 40 + packed[80:],
        "never packed": b"plain",
    }
    file.write_bytes(damaged[damage])
    assert run(["record", "--from", str(file), "--format", format, "--out", str(tmp_path / "r")]) == 2
    assert capsys.readouterr().err.startswith(f"kschedfw: {file}: ")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--from", "f"], "by --from FILE together with --format"),
        (["--format", "audit"], "by --from FILE together with --format"),
        (["--from", "f", "--format", "audit", "--context", "c"], "--context is for a live cluster"),
        (["--start", "f"], "--start is for --from"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["record", "--out", str(tmp_path / "r"), *options]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
