"""`kschedfw run --recorder`: recorders of other distributions are told beside Prometheus', and may fail."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import attrs
import pytest
from kschedfw_kubernetes.prometheus_metrics import PrometheusMetrics
from kschedfw_kubernetes.serve import recorders
from kschedfw_kubernetes.serve.recorders import all_of, made_recorders

from kschedfw import InMemoryCluster, KschedfwError, Registry, Scheduler, default_profile, make_node, make_pod
from kschedfw.framework.plugin_metrics import RecordValue
from kschedfw.metrics import RECORDERS, MetricKind, MetricsRecorder, NoMetrics, OfferedRecorder, PluginMetric


class Noted(NoMetrics):
    """Notes the names of pods' attempts, and the values of plugins' metrics."""

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.values: list[float] = []

    def scheduling_attempt(self, result: str, profile: str, seconds: float) -> None:
        self.attempts.append(result)

    def plugin_metric(self, metric: PluginMetric) -> RecordValue | None:
        return lambda value, labels: self.values.append(value)


class Failing(NoMetrics):
    calls = 0
    error: BaseException = RuntimeError("no route to the collector")

    def scheduling_attempt(self, result: str, profile: str, seconds: float) -> None:
        self.calls += 1
        raise self.error


def refuse() -> MetricsRecorder:
    raise KschedfwError("STATSD_HOST isn't set")


class Deaf:
    """No recorder, whatever its entry point says."""


NOTED = OfferedRecorder(Noted)
DEAF = OfferedRecorder(Deaf)  # type: ignore[arg-type]
REFUSING = OfferedRecorder(refuse)


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = [
        SimpleNamespace(name=name, value=name, dist=None, load=lambda recorder=recorder: recorder)
        for name, recorder in (("NOTED", NOTED), ("REFUSING", REFUSING), ("DEAF", DEAF))
    ]
    monkeypatch.setattr("kschedfw.api.extensions.entry_points_of", lambda _groups: offers)
    monkeypatch.setattr(recorders, "RECORDERS", attrs.evolve(RECORDERS))


def schedule_two(metrics: MetricsRecorder) -> None:
    cluster = InMemoryCluster([make_node("a").build(), make_pod("p").build(), make_pod("q").build()])
    scheduler = Scheduler(cluster, [default_profile()], registry=Registry(), metrics=metrics)
    scheduler.run_until_idle()
    scheduler.close()


@pytest.mark.usefixtures("_installed")
def test_each_name_is_made_once() -> None:
    made = made_recorders(["NOTED", "NOTED"])
    assert [(name, type(recorder)) for name, recorder in made.items()] == [("NOTED", Noted)]


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("STATSD", "no installed distribution offers recorder of metrics 'STATSD'"),
        ("REFUSING", "STATSD_HOST isn't set"),
        ("DEAF", "recorder of metrics 'DEAF' of an unknown distribution: it made a Deaf, which lacks "),
    ],
)
def test_a_recorder_that_cannot_be_had_is_an_error_of_the_user(name: str, problem: str) -> None:
    with pytest.raises(KschedfwError, match=problem):
        made_recorders([name])


def test_all_recorders_are_told_what_prometheus_is() -> None:
    own, noted = PrometheusMetrics(), Noted()
    schedule_two(all_of(own, {"noted": noted}))
    assert noted.attempts == ["scheduled", "scheduled"]
    counted = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 2.0'
    assert counted in own.exposition().decode()


@pytest.mark.parametrize("error", [RuntimeError("no route to the collector"), SystemExit(0)], ids=repr)
def test_one_that_fails_is_reported_once_and_the_others_go_on(
    error: BaseException, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "error", error)
    failing, noted = Failing(), Noted()
    with caplog.at_level(logging.ERROR):
        schedule_two(all_of(NoMetrics(), {"failing": failing, "noted": noted}))
    assert failing.calls == 1
    assert noted.attempts == ["scheduled", "scheduled"]
    (record,) = [each for each in caplog.records if each.name == "kschedfw_kubernetes.serve.recorders"]
    assert record.getMessage() == "The recorder of metrics 'failing' failed, and is told nothing more"


def test_a_plugins_own_metric_goes_to_each_that_wants_it() -> None:
    own, noted = PrometheusMetrics(), Noted()
    record = all_of(own, {"deaf": NoMetrics(), "noted": noted}).plugin_metric(
        PluginMetric(MetricKind.COUNTER, "rack_refusals_total", "Nodes refused.")
    )
    assert record is not None
    record(2.0, ("default-scheduler",))
    assert noted.values == [2.0]
    assert 'rack_refusals_total{profile="default-scheduler"} 2.0' in own.exposition().decode()


def test_a_metric_that_no_recorder_wants_costs_nothing() -> None:
    metric = PluginMetric(MetricKind.COUNTER, "rack_refusals_total", "Nodes refused.")
    assert all_of(NoMetrics(), {"deaf": NoMetrics()}).plugin_metric(metric) is None


def test_every_method_of_a_recorder_reaches_the_others() -> None:
    class Counting(NoMetrics):
        def __getattribute__(self, name: str) -> object:
            asked.add(name)
            return super().__getattribute__(name)

    asked: set[str] = set()
    all_of(NoMetrics(), {"counting": Counting()})
    told = {name for name in vars(MetricsRecorder) if not name.startswith("_")}
    assert told - {"plugin_metric", "before_reading"} <= asked  # these return something
