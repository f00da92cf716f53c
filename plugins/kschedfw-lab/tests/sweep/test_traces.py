"""Traces that other distributions read, as clusters of sweeps and as workloads of environments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
from kschedfw_lab import Environment, Sweep, Trace, run_one, trace_workload
from kschedfw_lab.sweep import traces
from kschedfw_lab.sweep.draws import Draw, drawn
from kschedfw_lab.sweep.errors import SweepError
from kschedfw_lab.sweep.inputs import read_source

from kschedfw import InMemoryCluster, Pod, make_node, make_pod
from kschedfw.api import FrozenDict, Named, how_to_install
from kschedfw.api.distributions import entry_points_of
from kschedfw.simulator import Arrivals, Simulation

DAY = 86_400.0
READ: list[tuple[Path, float, float]] = []


def with_times(pod: Pod, arrival: float | None, duration: float) -> Pod:
    created = None if arrival is None else datetime.fromtimestamp(arrival, UTC)
    annotations = FrozenDict({"kschedfw/duration-seconds": str(duration)})
    return pod.with_metadata(attrs.evolve(pod.metadata, creation_timestamp=created, annotations=annotations))


def read(path: Path, since: float, until: float) -> Trace:
    """A node that is full until second 100, and a pod that arrives at second 10."""
    READ.append((path, since, until))
    node = make_node("n").capacity(cpu=1, pods=5).build()
    first = make_pod("first").requests(cpu=1).node("n").build()
    p = with_times(make_pod("p").requests(cpu=1).build(), 10.0, 7.0)
    q = with_times(make_pod("q").requests(cpu=1).build(), 0.0, 7.0)
    return Trace([node, with_times(first, None, 100.0), p, q])


class Offer:
    """An entry point of a distribution that isn't installed."""

    name = "tape"
    value = "tapes:read"
    dist = None

    def load(self) -> traces.TraceReader:
        return read


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install one kind of traces, which this module reads."""

    def offers(groups: Iterable[str]) -> Sequence[object]:
        # Other groups are read meanwhile, too, if no test before this one has read them.
        asked = list(groups)
        return [Offer()] if traces.TRACES.group in asked else entry_points_of(asked)

    monkeypatch.setattr("kschedfw.api.extensions.entry_points_of", offers)
    # Which looks again.
    monkeypatch.setattr(traces, "TRACES", attrs.evolve(traces.TRACES))
    READ.clear()


def test_run_of_a_trace_has_its_pods_come_and_go_at_their_own_times(tmp_path: Path) -> None:
    (tmp_path / "t.tape").write_bytes(b"1")
    window = {"from": "1970-01-01T00:00:00Z", "to": "1970-01-02T01:00:00+01:00"}
    sweep = Sweep({"cluster": {"tape": "t.tape", **window}, "seed": [0, 1]}, folder=tmp_path)
    first, second = sweep.plan().runs
    assert [(tmp_path / "t.tape", 0.0, DAY)] == READ
    metrics = run_one(first)
    assert metrics["placed"] == metrics["departed"] == 2
    assert metrics["wait_seconds.max"] == 100.0  # of the first one, for the node
    assert (
        metrics["wait_seconds.p50"] == 97.0
    )  # of the other one, which arrives 10 seconds later: 100 + 7 - 10
    assert metrics["makespan_seconds"] == 114.0
    assert first.key != second.key


def test_key_of_a_run_depends_on_the_window_and_on_the_content(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    segment = tmp_path / "d" / "segment"
    keys = set()
    for content, since in ((b"1", "1970-01-01T00:00:00Z"), (b"1", "1970-01-01T00:00:01Z"), (b"2", None)):
        segment.write_bytes(content)
        (tmp_path / "d" / ".lock").write_bytes(content * 2)
        given = {"tape": "d"} if since is None else {"tape": "d", "from": since}
        keys.add(Sweep({"cluster": given}, folder=tmp_path).plan().runs[0].key)
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tape": "t", "from": "yesterday"}, "from: expected a time with a zone"),
        ({"tape": "t", "from": datetime(2026, 1, 1)}, "from: expected a time with a zone"),  # noqa: DTZ001
        ({"tape": "t", "to": 5}, "to: expected a time with a zone"),
        (
            {"tape": "t", "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
            "from: expected a time before the one of `to`",
        ),
        (
            {"manifests": "t", "to": "2026-01-01T00:00:00Z"},
            "to: is for recording and tape and reader, not manifests",
        ),
        ({"tape": "missing"}, "tape: missing: no such file or directory"),
    ],
)
def test_wrong_trace_is_refused_with_its_place(given: dict[str, object], why: str, tmp_path: Path) -> None:
    (tmp_path / "t").touch()
    with pytest.raises(SweepError) as error:
        read_source(given, tmp_path)
    assert why in str(error.value)


READER = """\
from kschedfw import make_node, make_pod
from kschedfw_lab import Trace


def week(path, since, until):
    cpus = [int(line) for line in path.read_text().split()]
    pods = [make_pod(f"p{number}").requests(cpu=cpu).build() for number, cpu in enumerate(cpus)]
    return Trace([make_node("n").capacity(cpu=4, pods=9).build(), *pods])


def nothing(path, since, until):
    return []


def broken(path, since, until):
    raise KeyError("cpu")
"""


def test_function_in_a_file_reads_a_trace_without_a_distribution(tmp_path: Path) -> None:
    (tmp_path / "readers.py").write_text(READER)
    (tmp_path / "t.txt").write_text("1 2 3")
    given: dict[str, object] = {"cluster": {"reader": "readers.py:week", "trace": "t.txt"}}
    (run,) = Sweep(given, folder=tmp_path).plan().runs
    assert run_one(run)["placed"] == 2
    (tmp_path / "readers.py").write_text(READER.replace("cpu=4", "cpu=6"))
    (other,) = Sweep(given, folder=tmp_path).plan().runs
    assert run.key != other.key, "the reader's text counts as part of the trace"
    assert run_one(other)["placed"] == 3


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"reader": "week", "trace": "t.txt"}, 'reader: expected FILE.py:FUNCTION, found "week"'),
        ({"reader": "other.py:week", "trace": "t.txt"}, "reader: other.py: no such file or directory"),
        ({"reader": "readers.py:week"}, "trace: expected the path that readers.py:week reads"),
        (
            {"reader": "readers.py:weak", "trace": "t.txt"},
            "readers.py has no function 'weak'; there is broken, nothing, week",
        ),
    ],
)
def test_reader_that_is_none_is_refused_with_its_place(
    given: dict[str, object], why: str, tmp_path: Path
) -> None:
    (tmp_path / "readers.py").write_text(READER)
    (tmp_path / "t.txt").touch()
    with pytest.raises(SweepError) as error:
        read_source(given, tmp_path)
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("nothing", "readers.py:nothing: expected a Trace of kschedfw_lab, found list"),
        ("broken", "readers.py:broken: KeyError: 'cpu'"),
    ],
)
def test_reader_that_fails_is_told(function: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "readers.py").write_text(READER)
    (tmp_path / "t.txt").touch()
    with pytest.raises(SweepError) as error:
        traces.read_trace(f"{tmp_path / 'readers.py'}:{function}", tmp_path / "t.txt", 0.0, DAY)
    assert why in str(error.value)


def test_environment_takes_a_function_that_reads_a_trace() -> None:
    objects = trace_workload(read, "t.tape")(0)
    assert [obj.name for obj in objects] == ["n", "first", "p", "q"]


def test_trace_is_shown_with_the_number_of_its_objects() -> None:
    assert repr(Trace([make_node("a").build()])) == "Trace(objects=<1 objects>, left_out={})"


def test_trace_of_a_distribution_that_is_not_installed_is_told_with_its_home(tmp_path: Path) -> None:
    with pytest.raises(SweepError) as error:
        trace_workload("recording", tmp_path)
    assert str(error.value).endswith(
        f"kschedfw-replay, which isn't installed: {how_to_install('kschedfw-replay')}"
    )


def test_environment_replays_a_trace() -> None:
    workload = trace_workload("tape", "t.tape", draw="resample")
    environment = Environment(workload, arrivals=Arrivals())
    _, info = environment.reset(seed=1)
    bound, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, info = environment.step(0)
        bound, ended = bound + reward, terminated or truncated
    assert bound == 2
    assert info["time"] == 114.0
    environment.close()


# --- days ---


def days(count: int) -> list[Named]:
    """Three pods on each even day and one on each odd one, at the same times of day."""
    return [
        make_node("n").capacity(cpu=1, pods=5).build(),
        *(
            with_times(make_pod(f"p{day}-{hour}").build(), day * DAY + hour * 3600.0, float(day + 1))
            for day in range(count)
            for hour in (range(0, 24, 8) if day % 2 == 0 else (0,))
        ),
    ]


def test_drawn_days_are_whole_days_of_the_trace() -> None:
    objects = days(6)
    seen = set()
    for seed in range(8):
        found = [obj for obj in drawn(objects, Draw.DAYS, seed) if isinstance(obj, Pod)]
        assert found == [obj for obj in drawn(objects, Draw.DAYS, seed) if isinstance(obj, Pod)]
        assert len({pod.key for pod in found}) == len({pod.uid for pod in found}) == len(found)
        stays = Arrivals().plan(found, 0)
        by_day: dict[int, list[tuple[float, float | None]]] = {}
        for pod in found:
            stay = stays[pod.uid]
            by_day.setdefault(int(stay.arrival // DAY), []).append((stay.arrival % DAY, stay.duration))
        for of_day in by_day.values():
            original = round(of_day[0][1] or 0) - 1
            hours = range(0, 24, 8) if original % 2 == 0 else (0,)
            assert of_day == [(hour * 3600.0, original + 1.0) for hour in hours]
        seen.add(tuple(sorted(len(each) for each in by_day.values())))
    assert len(seen) > 1


def test_days_of_less_than_two_are_refused() -> None:
    with pytest.raises(SweepError, match="arrive within one day"):
        drawn(days(1), Draw.DAYS, 0)


def test_bound_pod_without_a_duration_stays_for_good() -> None:
    objects = [
        make_node("n").capacity(cpu=1, pods=5).build(),
        make_pod("b").requests(cpu=1).node("n").build(),
    ]
    cluster = InMemoryCluster([*objects, with_times(make_pod("p").requests(cpu=1).build(), 0.0, 1.0)])
    report = Simulation(cluster, arrivals=Arrivals()).run()
    assert (report.pods, report.placed) == (1, 0)


def test_reader_that_exits_is_an_error_that_names_its_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(path: Path, since: float, until: float) -> Trace:
        raise SystemExit(0)

    monkeypatch.setattr(Offer, "load", lambda _self: ends)
    with pytest.raises(
        SweepError, match=r"^trace 'tape' of an unknown distribution: SystemExit: 0 \(test_traces\.py"
    ):
        traces.read_trace("tape", tmp_path, 0.0, 1.0)
