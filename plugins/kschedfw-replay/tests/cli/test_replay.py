"""`kschedfw replay`, from its options to its output."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from kschedfw_lab import read_results
from kschedfw_replay import RecordingWriter, SegmentLimits, open_recording
from replaying.scenes import START, Arrival, RecordedCluster, nodes, pod

from kschedfw import Registry, VirtualClock, make_node, make_pod
from kschedfw.cli.app import run


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of several segments, in which twelve pods come and go."""
    path = tmp_path_factory.mktemp("recordings") / "recording"
    coming = [Arrival(START + 5 * index, pod(f"p{index}"), duration=20.0) for index in range(12)]
    limits, clock = SegmentLimits(seconds=20.0), VirtualClock(START)
    with RecordingWriter(path, cluster="test", limits=limits, clock=clock) as writer:
        for record in RecordedCluster(nodes(2), Registry()).run(coming, START + 90):
            writer.write(record)
    return path


def replay(recording: Path, *options: str) -> int:
    return run(["replay", str(recording), "--no-progress", *options])


def test_table_has_what_really_happened_beside_each_configuration(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        replay(recording, "--config", "default", "--config", "ClusterAutoscalerProvider", "--fidelity") == 0
    )
    out = capsys.readouterr().out
    rows = {" ".join(line.split()) for line in out.splitlines()}
    assert "12 pods in 90 seconds from 1970-01-01 00:16:40 UTC" in rows
    assert "recorded default ClusterAutoscalerProvider" in rows
    assert "bound 12 12 12" in rows
    assert "12 recorded decisions beside default decisions share why" in rows
    assert "same or tied 100.00%" in rows


def test_json_has_the_same_in_numbers(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(recording, "--fidelity", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (default,) = found["configurations"]
    assert (found["pods"], default["label"], default["bound"]) == (12, "default", 12)
    assert default["utilisation"] == found["recorded"]["utilisation"]
    assert default["same"] + default["moved"] == 12
    assert (found["fidelity"]["decisions"], found["fidelity"]["agreeing"]) == (12, 1.0)


def test_cost_is_that_of_nodes_in_use_by_the_prices_of_a_file(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "priceLabel: kubernetes.io/hostname\nprices:\n"
        + "".join(f"- {{value: {name}, hourlyPrice: 36}}\n" for name in ("n0", "n1", "late"))
    )
    assert replay(recording, "--prices", str(prices), "--json") == 0
    (default,) = json.loads(capsys.readouterr().out)["configurations"]
    assert default["cost"] == pytest.approx(36 * default["nodeHours"], rel=1e-4)
    assert 0 < default["nodeHours"] <= 2 * 90 / 3600
    assert default["costOfAllNodes"] == pytest.approx(36 * 2 * 90 / 3600)
    prices.write_text("prices: [{value: small, hourlyPrice: 1}]")
    assert replay(recording, "--prices", str(prices), "--json") == 2
    assert "node n0: there is no price for it: it has no label node.kubernetes.io/" in capsys.readouterr().err
    prices.write_text("prices: [{value: a, hourlyPrice: cheap}]")
    assert replay(recording, "--prices", str(prices)) == 2
    error = f'--prices {prices}: prices[0].hourlyPrice: expected a decimal number from 0 to 1000000, found "cheap"'
    assert error in capsys.readouterr().err
    assert replay(recording, "--json", "--fail-on", "fragmentation.cpu <= baseline.fragmentation.cpu") == 3
    (default,) = json.loads(capsys.readouterr().out)["configurations"]
    assert default["fragmentation"] == {"cpu": 0.0}
    assert default["cost"] is None


def test_window_is_told_by_times_with_a_zone(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = "--from", "1970-01-01T00:17:01Z", "--to", "1970-01-01T01:17:20+01:00"
    assert replay(recording, *window, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["begins"], found["ends"]) == (1021.0, 1040.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "yesterday"), "is no time with a time zone, such as 2026-01-31T12:00:00Z"),
        (("--from", "1970-01-01T00:17:01"), "is no time with a time zone, such as 2026-01-31T12:00:00Z"),
        (
            ("--from", "1970-01-02T00:00:00Z", "--to", "1970-01-01T00:00:00Z"),
            "--from: expected a time before --to",
        ),
        (("--config", "nowhere.yaml"), "--config nowhere.yaml: no such file; give "),
        (
            ("--to", "1970-01-01T00:00:00Z"),
            "nothing was recorded in that time; the recording begins at 1970-01-01T00:16:40Z",
        ),
        (
            ("--from", "2030-01-01T00:00:00Z"),
            "nothing was recorded in that time; the last record is of 1970-01-01T00:18:10Z",
        ),
    ],
)
def test_bad_option_is_refused_by_its_name(
    recording: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert replay(recording, *options) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", "").split())


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("wait.p95 >= baseline.wait.p95", "wait.p95 is 0.000 s, baseline.wait.p95 is 0.000 s"),
        ("moved <= 100% and bound == 12", "moved is {moved} of 12 pods, bound is 12"),
        ("utilisation.cpu > 10%", "utilisation.cpu is {cpu:.1%}"),
    ],
)
def test_condition_that_holds_fails_the_command_and_is_told_with_its_values(
    recording: Path, capsys: pytest.CaptureFixture[str], condition: str, told: str
) -> None:
    assert replay(recording, "--json", "--fail-on", condition, "--fail-on", "wait.max > 1 or lost") == 3
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    (default,) = document["configurations"]
    values = told.format(moved=default["moved"], cpu=default["utilisation"]["cpu"])
    assert f"--fail-on {condition}: default: {values}" in captured.err
    assert [each["condition"] for each in document["failed"]] == [condition]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("waits.p95 > 1", "there is no metric 'waits.p95'; did you mean wait.p95?"),
        ("wait.p95 > 5%", "a percentage can't be compared with seconds"),
        ("wait.p95 > bound", "a count and seconds can't be compared"),
        ("baseline.moved", "moved is what differs from the baseline, so the baseline has none"),
    ],
)
def test_condition_that_makes_no_sense_is_refused_before_anything_is_read(
    recording: Path, capsys: pytest.CaptureFixture[str], condition: str, message: str
) -> None:
    assert replay(recording, "--fail-on", condition) == 2
    assert message in capsys.readouterr().err


def test_readable_part_of_a_damaged_recording_is_replayed_with_one_error(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    segments = sorted(path for path in recording.iterdir() if path.is_file() and path.stat().st_size)
    for path in segments:
        content = path.read_bytes()
        (damaged / path.name).write_bytes(content[: len(content) // 2] if path == segments[1] else content)
    assert replay(damaged, "--json") == 0
    captured = capsys.readouterr()
    assert 0 < json.loads(captured.out)["pods"] < 12
    (line,) = captured.err.splitlines()
    assert segments[1].name in line
    assert line.endswith("; what comes before was replayed")


def test_recording_that_an_error_ended_is_replayed_and_told_to_be_unfinished(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "unfinished"

    def record_half() -> None:
        with RecordingWriter(path, clock=VirtualClock(START)) as writer:
            for record in itertools.islice(open_recording(recording), 20):
                writer.write(record)
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        record_half()
    assert replay(path, "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["unfinished"] is True
    (line,) = captured.err.splitlines()
    assert "ends without its end mark; the recording is unfinished" in line
    assert replay(path, "--json", "--to", "1970-01-01T00:16:42Z") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["unfinished"] is False, "the window ends before the recording does"
    assert not captured.err


def test_directory_that_is_no_recording_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(tmp_path) == 2
    assert "it is no recording" in capsys.readouterr().err


def test_results_have_what_really_happened_as_a_policy(recording: Path, tmp_path: Path) -> None:
    assert replay(recording, "--config", "default", "--fidelity", "--results", str(tmp_path)) == 0
    found = read_results(tmp_path)
    recorded, default = found.runs()
    assert recorded.factors == {"policy": "recorded", "seed": 0}
    assert default.factors == {"policy": "default", "seed": 0}
    assert recorded.metrics["bound"] == default.metrics["bound"] == 12
    assert {
        "wait.p95",
        "utilisation.cpu",
        "fragmentation.cpu",
        "node_hours",
        "pending",
    } <= recorded.metrics.keys()
    assert default.metrics.keys() - recorded.metrics.keys() == {"moved", "gained", "lost", "fidelity"}
    assert default.metrics["fidelity"] == 1


@pytest.fixture(scope="module")
def with_image_volume(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a pod whose image volume is on a node that is rather full: v1.37 counts that for less."""
    path = tmp_path_factory.mktemp("recordings") / "recording"
    holder = make_node("n0").capacity(cpu=10, memory="10Gi", pods=20).image("model:1", size=1000 << 20)
    other = make_node("n1").capacity(cpu=10, memory="10Gi", pods=20)
    full = make_pod("old").requests(cpu="3600m", memory="3686Mi").node("n0").build()
    arriving = make_pod("new").requests(cpu="100m", memory="100Mi").image("app:1")
    arriving.volume("model", {"image": {"reference": "model:1"}})
    with RecordingWriter(path, cluster="test", clock=VirtualClock(START)) as writer:
        cluster = RecordedCluster([holder.build(), other.build(), full], Registry())
        for record in cluster.run([Arrival(START + 5, arriving.build(), duration=20.0)], START + 90):
            writer.write(record)
    return path


class TestVersions:
    """`--kube-version`: what an upgrade would have changed, and by which gate or rule."""

    VERSIONS = ("--kube-version", "1.36", "--kube-version", "1.37")

    def test_a_pod_that_moves_has_the_change_that_it_comes_from(
        self, with_image_volume: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert replay(with_image_volume, *self.VERSIONS, "--json") == 0
        (upgrade,) = json.loads(capsys.readouterr().out)["upgrades"]
        assert (upgrade["baseline"], upgrade["label"]) == ("default@1.36", "default@1.37")
        assert upgrade["reasons"] == [{"reason": "ImageVolumes (kubernetes/kubernetes#138951)", "pods": 1}]
        (move,) = upgrade["moves"]
        assert (move["pod"], move["before"], move["after"]) == ("default/new", "n0", "n1")

    def test_the_reasons_are_in_the_table(
        self, with_image_volume: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert replay(with_image_volume, *self.VERSIONS) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "default@1.37: by which change not the node of default@1.36 pods" in out
        assert "ImageVolumes (kubernetes/kubernetes#138951) 1" in out

    def test_a_version_that_changes_nothing_says_so(
        self, recording: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert replay(recording, "--kube-version", "1.35", "--kube-version", "1.36") == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "default@1.36: every pod has the node that it has under default@1.35" in out

    def test_one_version_is_too_few_and_so_are_two_configurations(
        self, recording: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert replay(recording, "--kube-version", "1.37") == 2
        assert "give --kube-version at least twice" in capsys.readouterr().err
        assert replay(recording, "--kube-version", "1.36", "--kube-version", "1.99") == 2
        assert "--kube-version 1.99: there are no defaults of it; known: 1.34" in capsys.readouterr().err
        assert replay(recording, *self.VERSIONS, "--config", "default", "--config", "default@1.35") == 2
        assert "--kube-version compares versions of one --config" in capsys.readouterr().err
