"""What is imported of damaged files: one clear error, or a recording that can be read and replayed."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing.damage import FORMATS, Format
from importing.test_importing import audit_event, deployment, simkube_trace, simulator_line
from importing.test_traces import alibaba_2018, google_2011, task_2011
from kschedfw_replay import open_recording
from kschedfw_replay.importing import observations
from kschedfw_replay.recording.blocks import RecordingError

from kschedfw.cli.app import run
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import damaged


def command(*arguments: str) -> tuple[int, str]:
    """The exit code of a command, and what it writes on standard error."""
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        code = run(arguments)
    return code, error.getvalue()


@pytest.mark.slow
@given(
    st.sampled_from(FORMATS).flatmap(lambda each: st.tuples(st.just(each), damaged(each.content))),
    st.integers(0, 4),
)
@settings(max_examples=examples(500, usual=40))
def test_damaged_file_is_refused_with_its_name_or_what_is_imported_of_it_can_be_read_and_replayed(
    drawn: tuple[Format, Any], turn: int
) -> None:
    format, content = drawn
    with tempfile.TemporaryDirectory() as directory:
        file, out = Path(directory) / "file", Path(directory) / "recording"
        format.write(file, content)
        code, error = command("record", "--from", str(file), "--format", format.name, "--out", str(out))
        assert code in (0, 2), error
        if code:
            assert error.splitlines()[-1].startswith(f"kschedfw: {file}"), error
            # What came before the error is a recording, too, unless it was the first object.
            with contextlib.suppress(RecordingError):
                assert list(open_recording(out))
            return
        assert list(open_recording(out))
        # A replay takes longer than all else here.
        if not turn:
            code, error = command("replay", str(out), "--no-progress")
            assert code == 0, error


def binding(**fields: Any) -> dict[str, Any]:
    return audit_event(1, "create", {"kind": "Status"}, reference={"subresource": "binding"}, **fields)


@pytest.mark.parametrize(
    ("format", "content", "why"),
    [
        ("audit", binding(), "line 1: an event without requestObject; the level RequestResponse is needed"),
        ("audit", binding(requestObject={"target": {}}), "line 1: requestObject: target: Object missing"),
        ("audit", audit_event(1, ["create"]), "line 1: verb: Expected `str`, got `array`"),  # type: ignore[arg-type]
        (
            "audit",
            audit_event(1, "delete", {}, stageTimestamp="0001-01-01T00:00:00Z"),
            "line 1: stageTimestamp: time -6.21356e+10 is out of range",
        ),
        (
            "simulator",
            {**json.loads(simulator_line(1, "Add", {})), "time": "9999-12-31T23:59:59Z"},
            "line 1: time 2.53402e+11 is out of range; expected seconds since 1970, up to 6e+10",
        ),
    ],
)
def test_event_that_would_become_wrong_data_is_refused_with_its_field(
    format: str, content: object, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(msgspec.json.encode(content))
    code, error = command("record", "--from", str(file), "--format", format, "--out", str(tmp_path / "r"))
    assert (code, error.startswith(f"kschedfw: {file}: {why}")) == (2, True), error


@pytest.mark.parametrize("number", ["9" * 400, str(1 << 63), str(10**18)])
def test_number_of_a_table_that_is_no_time_is_refused_with_its_cell(number: str, tmp_path: Path) -> None:
    row = task_2011(0, 0)
    row[0] = number
    batch = ("M1", 1, "j", "A", "Running", 1, number, 1, 1)
    for trace, format, cell in (
        (google_2011(tmp_path / "google", [row]), "google-2011", "time"),
        (alibaba_2018(tmp_path / "alibaba", [batch]), "alibaba-2018", "end_time"),
    ):
        out = str(tmp_path / format)
        code, error = command("record", "--from", str(trace), "--format", format, "--out", out)
        assert code == 2
        assert f".csv.gz: line 1: {cell}: expected a " in error
        assert len(error) < 400


def test_end_of_a_pod_that_is_no_time_is_refused_with_its_workload(tmp_path: Path) -> None:
    events = [{"ts": 1, "applied_objs": [deployment(1)], "deleted_objs": []}]
    lifecycles = {("apps/v1.Deployment", "x/web"): {1: [{"Finished": [0, 1 << 62]}]}}
    file = simkube_trace(tmp_path / "t.sktrace", events, lifecycles)
    code, error = command("record", "--from", str(file), "--format", "simkube", "--out", str(tmp_path / "r"))
    assert code == 2
    assert "pod_lifecycles of apps/v1.Deployment x/web: the end of pod 0: time 4.61169e+18 is out" in error


def test_line_with_too_many_values_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "MOST_VALUES", 1000)
    file = tmp_path / "file"
    file.write_bytes(b"[" + b"[]," * 1000 + b"0]")
    code, error = command("record", "--from", str(file), "--format", "audit", "--out", str(tmp_path / "r"))
    assert (code, error) == (2, f"kschedfw: {file}: line 1: has more than 1,000 values\n")


@pytest.mark.slow
@pytest.mark.parametrize("format", ["audit", "simkube", "simulator", "google-2011"])
def test_file_that_unpacks_to_much_more_is_refused(format: str, tmp_path: Path) -> None:
    # Rows of a table with nothing but blanks are refused for that; lines of JSON are read faster if they are few.
    line = b"\n" if "-" in format else b" " * 1023 + b"\n"
    bomb = gzip.compress(line * ((8 << 20) // len(line)))
    path = tmp_path / "file.json.gz"
    if "-" in format:
        path = tmp_path / "tables"
        path.mkdir()
        (path / "task_events.csv.gz").write_bytes(bomb)
    else:
        path.write_bytes(bomb)
    code, error = command("record", "--from", str(path), "--format", format, "--out", str(tmp_path / "r"))
    assert code == 2
    assert "unpacks to more than 200 times its size; if that is right, unpack it first" in error


def test_objects_without_a_name_are_left_out_and_a_file_without_others_tells_of_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(simulator_line(1, "Add", {"apiVersion": "v1", "kind": "Pod", "metadata": {}}))
    out = str(tmp_path / "r")
    code, error = command("record", "--from", str(file), "--format", "simulator", "--out", out)
    assert code == 2
    assert f"{file}: Pod: 1 left out" in error
    assert f"{file}: tells of no object that scheduling reads" in error
