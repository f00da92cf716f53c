"""Reports: what load-watcher's JSON means, recordings, and how long a report is good for."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from kschedfw_loadaware import (
    FileSource,
    Load,
    LoadReport,
    MetricsError,
    MetricsSource,
    NodeLoad,
    StaticSource,
)
from kschedfw_loadaware.collector import Collector
from kschedfw_loadaware.report import report_from_json

from kschedfw.testing import FakeClock

CPU = "CPU"


def metric(type: str, operator: str, value: object) -> dict[str, object]:
    return {"name": "", "type": type, "operator": operator, "rollup": "AVG", "value": value}


def watcher_metrics(end: float, **nodes: list[dict[str, object]]) -> dict[str, object]:
    """A report as load-watcher writes it."""
    return {
        "timestamp": int(end),
        "window": {"duration": "15m", "start": end - 900, "end": end},
        "source": "Prometheus",
        "data": {
            "NodeMetricsMap": {
                name: {"metrics": metrics, "tags": {}, "metadata": {}} for name, metrics in nodes.items()
            }
        },
    }


def node_load(*metrics: dict[str, object]) -> NodeLoad:
    return report_from_json(watcher_metrics(0, a=list(metrics))).nodes["a"]


def test_a_report_of_load_watcher_is_read() -> None:
    report = report_from_json(
        watcher_metrics(
            1556987522,
            a=[metric("CPU", "AVG", 20), metric("CPU", "STD", 16.5), metric("Memory", "AVG", 5)],
            b=[],
        )
    )
    assert report == LoadReport(
        1556986622.0,
        1556987522.0,
        {"a": NodeLoad(Load(20.0, 16.5), Load(5.0)), "b": NodeLoad()},
    )


@pytest.mark.parametrize(
    ("operators", "mean", "last"),
    [
        # A mean before all others, and of several the last; else the last one that is the latest, or doesn't say.
        (["AVG", "Latest", ""], 0, 1),
        (["Latest", "AVG", "AVG"], 2, 2),
        (["", "Latest"], 1, 1),
        (["Latest", ""], 1, 0),
        (["Latest", "Latest", "P99"], 1, 1),
        # TargetLoadPacking wants to know what it is.
        ([""], 0, None),
        (["", "STD", "P99"], 0, None),
    ],
)
def test_of_several_figures_each_plugin_takes_what_the_original_takes(
    operators: list[str], mean: float, last: float | None
) -> None:
    metrics = [metric(CPU, operator, place) for place, operator in enumerate(operators)]
    load = node_load(*metrics).cpu
    assert load is not None
    assert (load.mean, load.last) == (mean, last)


def test_of_several_deviations_the_last_one_counts() -> None:
    assert node_load(*(metric(CPU, *each) for each in (("STD", 1), ("AVG", 2), ("STD", 3)))).cpu == Load(2, 3)


def test_figures_that_arent_how_much_is_used_are_no_load() -> None:
    assert (
        node_load(metric(CPU, "STD", 1), metric(CPU, "P99", 2), metric("Bandwidth", "AVG", 3)) == NodeLoad()
    )


@pytest.mark.parametrize("gap", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_is_a_gap(gap: float) -> None:
    assert node_load(metric(CPU, "AVG", gap)) == NodeLoad()
    assert node_load(metric(CPU, "AVG", 1), metric(CPU, "STD", gap)) == NodeLoad(Load(1))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[", "Expecting value"),
        ("3", "a report: must be an object, not int"),
        ("[]", "must have at least one report"),
        ("{}", "window: must be an object, not NoneType"),
        ('{"window": {"start": 0}}', "window.end: must be a number, not None"),
        ('[{"window": {"start": true, "end": 0}}]', "[0].window.start: must be a number, not True"),
        ('{"window": {"start": 0, "end": 0}, "data": {}}', "data.NodeMetricsMap: must be an object"),
        ('{"window": {"start": 0, "end": NaN}}', "window.end: must be a time in seconds, not nan"),
        ('{"window": {"start": 1' + 400 * "0" + "}}", "window.start: must be a time in seconds, not inf"),
        (5000 * "9", "Exceeds the limit (4300 digits)"),
        (100_000 * "[", "is nested too deeply"),
        (
            json.dumps(watcher_metrics(0, **{"\ud800\x1b": [metric(CPU, "AVG", [])]})),
            "data.NodeMetricsMap['\\ud800\\x1b'].metrics[0].value: must be a number, not a list",
        ),
        (
            json.dumps(watcher_metrics(0, a=[metric(CPU, "AVG", "lots")])),
            "data.NodeMetricsMap.a.metrics[0].value: must be a number, not 'lots'",
        ),
        (json.dumps([watcher_metrics(9), watcher_metrics(3)]), "must be in the order of window.end"),
    ],
)
def test_a_wrong_file_is_one_clear_error(content: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MetricsError) as raised:
        FileSource(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert text in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MetricsError, match=r"nothing\.json: No such file or directory"):
        FileSource(tmp_path / "nothing.json")


def test_a_recording_is_replayed_from_when_it_is_first_read(tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    recording = [watcher_metrics(end, a=[metric(CPU, "AVG", end % 100)]) for end in (7010, 7040, 7100)]
    path.write_text(json.dumps(recording), encoding="utf-8")
    source = FileSource(path)
    read = [source.read(now) for now in (50, 79, 80, 139, 140, 9999)]
    assert [report.nodes["a"].cpu for report in read] == [Load(mean) for mean in (10, 10, 40, 40, 0, 0)]
    assert [report.end for report in read] == [50, 50, 80, 80, 140, 140]
    assert all(report.end - report.start == 900 for report in read)


# --- the collector ---


class Flaky:
    """Tells its time; raises when it has been told to."""

    def __init__(self) -> None:
        self.reads: list[float] = []
        self.broken = False

    def read(self, now: float) -> LoadReport:
        self.reads.append(now)
        if self.broken:
            raise MetricsError("out of order")
        return LoadReport(0, now, {})


def test_sources_are_told_by_what_they_can_do() -> None:
    assert isinstance(StaticSource({}), MetricsSource)
    assert isinstance(Flaky(), MetricsSource)


def test_a_source_is_read_at_once_and_then_every_half_minute() -> None:
    clock, source = FakeClock(100), Flaky()
    collector = Collector(source, clock.now)
    for _ in range(9):
        clock.advance(10)
        collector.latest()
    assert source.reads == [100, 130, 160, 190]


def test_what_was_read_stays_while_the_source_fails(caplog: pytest.LogCaptureFixture) -> None:
    clock, source = FakeClock(100), Flaky()
    collector = Collector(source, clock.now)
    source.broken = True
    clock.advance(3600)
    with caplog.at_level(logging.WARNING, "kschedfw_loadaware"):
        collected = collector.latest()
    assert (collected.report, collected.number) == (LoadReport(0, 100, {}), 1)
    assert caplog.messages == ["no new metrics: out of order"]


def test_a_source_that_never_told_anything_leaves_no_report() -> None:
    source = Flaky()
    source.broken = True
    collected = Collector(source, FakeClock().now).latest()
    assert (collected.report, collected.number) == (None, 0)


def test_an_equal_report_isnt_a_new_one() -> None:
    clock = FakeClock()
    collector = Collector(StaticSource({"a": NodeLoad(Load(1))}), clock.now)
    clock.advance(60)
    assert collector.latest().number == 1
