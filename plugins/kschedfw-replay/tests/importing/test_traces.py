"""Recordings that are made of the traces that Google and Alibaba have published."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kschedfw_replay import Record, RecordedChange, State, open_recording, replay_recording
from kschedfw_replay.importing import alibaba, tables
from kschedfw_replay.importing.tables import Row, sort_rows
from recording.histories import folded

from kschedfw.cli import candidates_of
from kschedfw.cli.app import run

SECOND = 1_000_000
GI = 1 << 30
START_2011 = 1304290200.0  # 2011-05-01T22:50:00Z
AFTER = 2**63 - 1


def imported(tmp_path: Path, directory: Path, format: str) -> list[Record]:
    out = tmp_path / "recording"
    assert run(["record", "--from", str(directory), "--format", format, "--out", str(out)]) == 0
    recording = open_recording(out)
    records = list(recording)
    assert not recording.unfinished
    return records


def told(records: Sequence[Record], zero: float) -> list[tuple[float, str, str, str]]:
    """The time in the trace, type, name and node of each change."""
    found = []
    for record in records:
        if isinstance(record, RecordedChange):
            manifest: Any = record.manifest
            node = manifest.get("spec", {}).get("nodeName", "")
            found.append((record.at - zero, record.type.value, manifest["metadata"]["name"], node))
    return found


def names(record: Record) -> set[str]:
    assert isinstance(record, State)
    return {each["metadata"]["name"] for each in record.manifests}  # type: ignore[index]


def write_table(path: Path, rows: Sequence[Sequence[object]], header: Sequence[str] = ()) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(",".join(map(str, each)) + "\n" for each in ([header] if header else []) + list(rows))
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


# --- Google, 2011 ---


def task_2011(at: float, kind: int, index: int = 0, machine: object = "", **fields: object) -> list[object]:
    time = at if at == AFTER else round(at * SECOND)
    priority, cpus, different = (fields.get(each, "") for each in ("priority", "cpus", "different"))
    return [
        time,
        "",
        7,
        index,
        machine,
        kind,
        "u",
        0,
        priority or 0,
        cpus or 0.5,
        0.25,
        0.001,
        different or 0,
    ]


def google_2011(path: Path, tasks: Sequence[Sequence[object]]) -> Path:
    machines = [[0, 5, 0, "Hof/+=", 1, 0.5], [0, 6, 0, "x", 0.5, 0.5], [80 * SECOND, 6, 1, "", "", ""]]
    write_table(path / "machine_events" / "part-00000-of-00001.csv.gz", machines)
    write_table(path / "task_events" / "part-00000-of-00002.csv.gz", tasks[:2])
    write_table(path / "task_events" / "part-00001-of-00002.csv", tasks[2:])
    return path


def test_googles_trace_of_2011_is_read_in_parts_with_what_became_of_tasks(tmp_path: Path) -> None:
    tasks = [
        task_2011(0, 0, 0),
        task_2011(0, 1, 0, 5),
        task_2011(10, 0, 1, priority=9, different=1),
        task_2011(12, 1, 1, 6, priority=9, different=1),
        task_2011(15, 8, 1, 6, priority=9, cpus=0.25),
        task_2011(20, 2, 1, 6),
        task_2011(21, 0, 1),
        task_2011(30, 4, 0, 5),
        task_2011(40, 5, 3),
        task_2011(AFTER, 5, 1),
    ]
    records = imported(tmp_path, google_2011(tmp_path / "trace", tasks), "google-2011")
    assert names(records[0]) == {"machine-5", "machine-6", "7-0", "priority-0"}
    assert told(records, START_2011) == [
        (10, "ADDED", "priority-9", ""),
        (10, "ADDED", "7-1", ""),
        (12, "MODIFIED", "7-1", "machine-6"),
        (15, "MODIFIED", "7-1", "machine-6"),
        (20, "MODIFIED", "7-1", "machine-6"),
        (20, "DELETED", "7-1", "machine-6"),
        (21, "ADDED", "7-1", ""),
        (30, "DELETED", "7-0", "machine-5"),
        (80, "DELETED", "machine-6", ""),
    ]
    there = folded(records)
    assert there["machine-5"]["status"]["allocatable"] == {"cpu": "64", "memory": str(128 * GI), "pods": "1k"}
    assert there["machine-5"]["metadata"]["labels"]["platform"] == "Hof"
    changes = [record for record in records if isinstance(record, RecordedChange)]
    waiting: Any = changes[1].manifest
    assert waiting["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "32", "memory": str(64 * GI)}
    assert waiting["spec"]["priority"] == 9
    (term,) = waiting["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"] == {"job": "7"}
    evicted: Any = changes[4].manifest
    assert [each["type"] for each in evicted["status"]["conditions"]] == ["DisruptionTarget"]


def test_imported_trace_is_replayed_as_it_was(tmp_path: Path) -> None:
    """Three tasks of half a machine each: the third one waits, on the only machine that stays, for the first."""
    tasks = [
        task_2011(100, 0, 0),
        task_2011(101, 1, 0, 5),
        task_2011(102, 0, 1),
        task_2011(103, 1, 1, 5),
        task_2011(110, 0, 2),
        task_2011(150, 4, 0, 5),
        task_2011(150, 1, 2, 5),
        task_2011(200, 2, 1, 5),
        task_2011(210, 4, 2, 5),
    ]
    imported(tmp_path, google_2011(tmp_path / "trace", tasks), "google-2011")
    (setup,) = candidates_of(["default"], at_least=1, option="CONFIG")
    since = START_2011 + 90
    comparison = replay_recording(open_recording(tmp_path / "recording"), [setup], since=since)
    recorded, (replayed,) = comparison.recorded, comparison.runs
    assert (recorded.bound, recorded.evictions, recorded.waits.max) == (3, 1, 40.0)
    # The pods of the replay are bound at once, so the first ends 49 seconds after its arrival.
    assert (replayed.same, replayed.measures.waits.max) == (3, 39.0)


# --- Google, 2019 ---


def task_2019(at: float, kind: object, index: int, machine: int = 0, **fields: object) -> dict[str, object]:
    return {
        "time": str(round(at * SECOND)),
        "type": kind,
        "collection_id": "9",
        "instance_index": str(index),
        "priority": "200",
        "machine_id": str(machine),
        "collection_type": "0",
        "resource_request": {"cpus": 0.125, "memory": 0.25},
        **fields,
    }


START_2019 = 1556693400.0  # 2019-05-01T06:50:00Z


def test_googles_trace_of_2019_is_sorted_and_tasks_arrive_when_they_are_enabled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace"
    machine = {
        "time": "0",
        "machine_id": "3",
        "type": 1,
        "capacity": {"cpus": 1.0, "memory": 0.5},
        "switch_id": None,
    }
    write_json(trace / "machine_events-000000000000.json.gz", [machine])
    events = [
        task_2019(700, "FINISH", 1, 3),
        task_2019(600, "SUBMIT", 1),
        task_2019(600, 1, 1),
        task_2019(640, 2, 1),
        task_2019(645, "SCHEDULE", 1, 3),
        task_2019(650, "ENABLE", 2, alloc_collection_id="4"),
        task_2019(651, "SCHEDULE", 2, 3, alloc_collection_id="4"),
        task_2019(650, 2, 4),
        task_2019(652, 3, 4, -1),
    ]
    shuffled = Random(1).sample(events, len(events))
    shuffled.sort(key=lambda each: each["time"] == "600000000", reverse=True)
    write_json(trace / "instance_events-000000000000.json", shuffled[:4])
    write_json(trace / "instance_events-000000000001.json.gz", shuffled[4:])
    records = imported(tmp_path, trace, "google-2019")
    assert [each for each in told(records, START_2019) if each[2] != "priority-200"] == [
        (640, "ADDED", "9-1", ""),
        (645, "MODIFIED", "9-1", "machine-3"),
        (650, "ADDED", "9-4", ""),
        (652, "DELETED", "9-4", ""),
        (700, "DELETED", "9-1", "machine-3"),
    ]
    error = capsys.readouterr().err
    assert "left out: tasks in the reservation of an alloc set" in error
    assert "left out: tasks on machines that aren't in the trace" in error
    assert "Task: 2 left out" in error


def test_flattened_csv_of_2019_is_read_by_its_header(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    header = (
        "resource_request_memory",
        "time",
        "type",
        "collection_id",
        "instance_index",
        "resource_request_cpus",
    )
    write_table(trace / "instance_events.csv", [(0.5, 600 * SECOND, "ENABLE", 1, 0, 0.25)], header)
    (state,) = imported(tmp_path, trace, "google-2019")
    pod = folded([state])["1-0"]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "16", "memory": str(128 * GI)}


def write_json(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


# --- Alibaba, 2018 ---


def alibaba_2018(path: Path, tasks: Sequence[Sequence[object]] = ()) -> Path:
    write_table(
        path / "machine_meta.csv", [("m_2", 0, 3, 1, 96, 100, "USING"), ("m_1", 0, 4, 1, 96, 50, "USING")]
    )
    write_table(
        path / "container_meta.csv",
        [
            ("c_1", "m_1", 0, "app_9", "started", 400, 800, 1.5625),
            ("c_1", "m_1", 40, "app_9", "started", 400, 800, 1.5625),
            ("c_1", "m_2", 90, "app_9", "started", 400, 800, 1.5625),
            ("c_2", "m_2", 20, "app_9", "allocated", 100, 100, 0.5),
            ("c_2", "m_2", 60, "app_9", "stopped", 100, 100, 0.5),
        ],
    )
    write_table(path / "batch_task.csv.gz", tasks)
    return path


def test_alibabas_trace_of_2018_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [
        ("R2_1", 1, "j_1", "A", "Terminated", 80, 100, 50, 0.39),
        ("M1", 2, "j_1", "A", "Terminated", 10, 80, 100, 0.39),
        ("M1", 1, "j_2", "A", "Running", 70, 0, "", ""),
        ("M1", 1, "j_3", "A", "Failed", 70, 60, 1, 1),
        ("M1", 1, "j_4", "A", "Waiting", "", "", 1, 1),
    ]
    records = imported(tmp_path, alibaba_2018(tmp_path / "trace", tasks), "alibaba-2018")
    assert names(records[0]) == {"m-1", "m-2", "c-1"}
    assert told(records, alibaba.ZERO) == [
        (10, "ADDED", "j-1-m1-0", ""),
        (10, "ADDED", "j-1-m1-1", ""),
        (20, "ADDED", "c-2", ""),
        (20, "MODIFIED", "c-2", "m-2"),
        (60, "DELETED", "c-2", "m-2"),
        (70, "ADDED", "j-2-m1-0", ""),
        (80, "DELETED", "j-1-m1-0", ""),
        (80, "DELETED", "j-1-m1-1", ""),
        (80, "ADDED", "j-1-r2-1-0", ""),
        (90, "DELETED", "c-1", "m-1"),
        (90, "ADDED", "c-1", ""),
        (90, "MODIFIED", "c-1", "m-2"),
        (100, "DELETED", "j-1-r2-1-0", ""),
    ]
    there = folded(records)
    assert there["m-1"]["status"]["allocatable"] == {"cpu": "96", "memory": str(256 * GI), "pods": "1k"}
    assert there["m-1"]["metadata"]["labels"]["topology.kubernetes.io/zone"] == "domain-4"
    assert there["c-1"]["spec"]["containers"][0]["resources"]["requests"] == {
        "cpu": "4",
        "memory": str(8 * GI),
    }
    assert "batch tasks that have no begin, or one after their end" in capsys.readouterr().err


# --- what can be wrong ---


def trace_2011(row: str) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        path.mkdir()
        (path / "task_events.csv").write_bytes(row.encode("latin-1"))
        return path

    return make


def tasks_2018(*rows: Sequence[object]) -> Callable[[Path], Path]:
    return lambda path: alibaba_2018(path, rows)


def nothing(path: Path) -> Path:
    path.mkdir()
    return path


def archive(path: Path) -> Path:
    path.mkdir()
    (path / "batch_task.tar.gz").touch()
    return path


@pytest.mark.parametrize(
    ("format", "make", "why"),
    [
        (
            "google-2011",
            nothing,
            "trace: expected a directory with the tables machine_events and task_events",
        ),
        (
            "google-2019",
            nothing,
            "trace: expected a directory with the tables machine_events and instance_events",
        ),
        ("alibaba-2018", nothing, "trace: expected a directory with the tables machine_meta, container_meta"),
        ("alibaba-2018", archive, "batch_task.tar.gz: an archive; unpack it first"),
        ("google-2011", trace_2011("1,2\n"), "task_events.csv: line 1: 2 cells; task_events has 13: time, "),
        (
            "google-2011",
            trace_2011("x,,7,0,,0,u,0,0,,,,\n"),
            "line 1: time: expected a whole number, found 'x'",
        ),
        ("google-2011", trace_2011("-1,,7,0,,0,u,0,0,,,,\n"), "line 1: time: expected microseconds from 0"),
        (
            "google-2011",
            trace_2011("1,,7,0,,9,u,0,0,,,,\n"),
            "type: expected 0 to 8, or one of SUBMIT, SCHEDULE",
        ),
        (
            "google-2011",
            trace_2011("1,,7,,,0,u,0,0,,,,\n"),
            "line 1: instance_index: expected a name, found ''",
        ),
        (
            "google-2011",
            trace_2011("1,,7,0,,0,u,0,0,nan,,,\n"),
            "resource_request.cpus: expected a number from 0",
        ),
        (
            "google-2011",
            trace_2011("\n".join(f"{at},,7,0,,0,u,0,0,1,1,," for at in (9, 8))),
            "time 8 after 9",
        ),
        ("google-2011", trace_2011('"1,\n'), "line 1: not CSV: unexpected end of data"),
        ("google-2011", trace_2011("\xff\n"), "line 1: not UTF-8"),
        ("google-2011", trace_2011("1" * 70_000), "line 1: has more than 65536 bytes"),
        (
            "alibaba-2018",
            tasks_2018(("M1", 10**9, "j", "A", "Running", 1, 2, 1, 1)),
            "instance_num: expected a number from 0 to 200,000, found '1000000000'",
        ),
    ],
)
def test_trace_that_is_wrong_is_refused_with_its_place(
    format: str, make: Callable[[Path], Path], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = make(tmp_path / "trace")
    out = str(tmp_path / "recording")
    assert run(["record", "--from", str(trace), "--format", format, "--out", out]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"kschedfw: {trace}")
    assert why in error


def test_more_tasks_at_a_time_than_memory_is_for_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alibaba, "MOST_AT_A_TIME", 3)
    trace = alibaba_2018(tmp_path / "trace", [("M1", 3, "j", "A", "Running", 1, 2, 1, 1)])
    assert (
        run(["record", "--from", str(trace), "--format", "alibaba-2018", "--out", str(tmp_path / "r")]) == 2
    )
    assert "more than 3 pods exist at this time" in capsys.readouterr().err


def test_rows_are_sorted_on_the_disk_and_those_of_one_time_stay_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "_BATCH", 7)
    random = Random(3)
    rows = [(random.randrange(10), Row(Path("p"), line, {"a": str(line)})) for line in range(50)]
    assert list(sort_rows(rows)) == sorted(rows, key=lambda each: (each[0], each[1].line))
    assert list(sort_rows(())) == []
