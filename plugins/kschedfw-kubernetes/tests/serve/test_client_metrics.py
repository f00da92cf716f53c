"""What `rest_client_*` says of requests that were really made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cluster import ApiError, Client, CredentialsError, UnavailableError, connect
from kschedfw_kubernetes.cluster.kubeconfig import ClusterSection, ConnectionConfig, ExecPlugin, UserSection
from kschedfw_kubernetes.cluster.request_metrics import PluginCall
from kschedfw_kubernetes.prometheus_metrics import Registry
from kschedfw_kubernetes.serve.client_metrics import RestClientMetrics

from kschedfw.testing import FakeClock

PODS = "/api/v1/pods"
# name (without _total), type, labels, and for histograms the first and last bound and how many there are; as of
# component-base v1.36, metrics/prometheus/restclient
TABLE = [
    ("request_duration_seconds", "histogram", {"verb", "host"}, (0.005, 60.0, 12)),
    ("request_size_bytes", "histogram", {"verb", "host"}, (64, 16777216, 11)),
    ("response_size_bytes", "histogram", {"verb", "host"}, (64, 16777216, 11)),
    ("rate_limiter_duration_seconds", "histogram", {"verb", "host"}, (0.005, 60.0, 12)),
    ("requests", "counter", {"code", "method", "host"}, None),
    ("request_retries", "counter", {"code", "verb", "host"}, None),
    ("exec_plugin_call", "counter", {"code", "call_status"}, None),
    ("exec_plugin_ttl_seconds", "gauge", set(), None),
    ("exec_plugin_certificate_rotation_age", "histogram", set(), (600, 124416000, 11)),
]


class Subject:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metrics = RestClientMetrics(self.clock)
        self.registry = Registry()
        self.registry.register(self.metrics)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"rest_client_{name}", labels)


@pytest.fixture
def subject() -> Subject:
    return Subject()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as served:
        yield served


@pytest.fixture
def client(server: ApiServer, subject: Subject, tmp_path: Path) -> Iterator[Client]:
    with connect(server.kubeconfig(tmp_path / "kubeconfig"), metrics=subject.metrics) as connected:
        yield connected


def test_names_types_labels_and_buckets_are_client_gos(subject: Subject) -> None:
    metrics = subject.metrics
    metrics.attempted("GET", "h", "200", is_retry=True)
    for tell in (metrics.sent, metrics.received, metrics.finished, metrics.waited):
        tell("GET", "h", 1)
    metrics.plugin_called(PluginCall.NO_ERROR, 0)
    families = {family.name: family for family in subject.registry.collect()}
    assert families.keys() == {f"rest_client_{name}" for name, *_ in TABLE}
    for name, kind, labels, bounds in TABLE:
        family = families[f"rest_client_{name}"]
        assert family.type == kind
        assert {label for sample in family.samples for label in sample.labels} - {"le"} == labels
        if bounds is not None:
            buckets = [float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels]
            assert (buckets[0], buckets[-2], len(buckets) - 1) == bounds


def test_requests_count_by_status_and_host(server: ApiServer, client: Client, subject: Subject) -> None:
    host = server.url.removeprefix("http://")
    client.get(PODS)
    with pytest.raises(ApiError):
        client.get("/api/v1/namespaces/default/pods/none")
    stream = client.watch(PODS, {})
    stream.close()
    assert subject.value("requests_total", code="200", method="GET", host=host) == 2
    assert subject.value("requests_total", code="404", method="GET", host=host) == 1
    for name in ("request_duration_seconds", "request_size_bytes", "response_size_bytes"):
        assert subject.value(f"{name}_count", verb="GET", host=host) == 2  # a watch has no end, and no size
    assert subject.value("rate_limiter_duration_seconds_count", verb="GET", host=host) == 3
    assert (subject.value("response_size_bytes_sum", verb="GET", host=host) or 0) > 100


def test_attempts_after_the_first_are_retries(server: ApiServer, client: Client, subject: Subject) -> None:
    host = server.url.removeprefix("http://")
    server.faults.failed_before = 1.0
    with pytest.raises(ApiError):
        client.get(PODS)
    assert subject.value("requests_total", code="500", method="GET", host=host) == 5
    assert subject.value("request_retries_total", code="500", verb="GET", host=host) == 4
    assert subject.value("request_duration_seconds_count", verb="GET", host=host) == 1


def test_requests_without_an_answer_have_a_code_of_their_own(subject: Subject) -> None:
    config = ConnectionConfig(ClusterSection(server="http://127.0.0.1:1"), UserSection(), source="config")
    with Client(config, metrics=subject.metrics) as client, pytest.raises(UnavailableError):
        client.get_once(PODS, 1)
    assert subject.value("requests_total", code="<error>", method="GET", host="127.0.0.1:1") == 1


@pytest.mark.parametrize(
    ("command", "code", "status"),
    [
        ("exit 3", "3", "plugin_execution_error"),
        (None, "1", "plugin_not_found_error"),
        ("true", "0", "no_error"),  # although it prints nothing of use
    ],
)
def test_exec_plugins_count_by_how_they_ended(
    subject: Subject, command: str | None, code: str, status: str
) -> None:
    plugin = ExecPlugin(
        api_version="client.authentication.k8s.io/v1",
        command="/missing/plugin" if command is None else "/bin/sh",
        args=() if command is None else ("-c", command),
    )
    config = ConnectionConfig(
        ClusterSection(server="http://127.0.0.1:1"), UserSection(exec=plugin), source="config"
    )
    with Client(config, metrics=subject.metrics) as client, pytest.raises(CredentialsError):
        client.get_once(PODS, 1)
    assert subject.value("exec_plugin_call_total", code=code, call_status=status) == 1


def test_certificates_of_plugins_are_followed_until_they_expire(subject: Subject) -> None:
    assert subject.value("exec_plugin_ttl_seconds") == float("inf")
    now = datetime.fromtimestamp(subject.clock.now(), UTC)
    authority = trustme.CA()
    first, second, others = (
        authority.issue_cert("client", not_before=now, not_after=now + timedelta(hours=hours))
        .cert_chain_pems[0]
        .bytes()
        for hours in (1, 2, 3)
    )
    subject.metrics.plugin_certificate(first, former=b"")
    subject.metrics.plugin_certificate(others, former=b"")  # another client's
    assert subject.value("exec_plugin_ttl_seconds") == 3600
    subject.clock.advance(1200)
    subject.metrics.plugin_certificate(second, former=first)
    subject.metrics.plugin_certificate(others, former=others)  # no new one
    assert subject.value("exec_plugin_ttl_seconds") == 6000
    assert subject.value("exec_plugin_certificate_rotation_age_count") == 1
    assert subject.value("exec_plugin_certificate_rotation_age_sum") == 1200
