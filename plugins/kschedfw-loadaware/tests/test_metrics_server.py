"""Kubernetes' Metrics Server as a source of metrics: what nodes use just now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kschedfw_loadaware import (
    Endpoint,
    Load,
    LoadReport,
    LoadVariationRiskBalancing,
    MetricsError,
    MetricsServerSource,
    NodeLoad,
    TargetLoadPacking,
)
from kschedfw_loadaware import http as sources
from tests.test_http import Server

from kschedfw import make_node, make_pod
from kschedfw.testing import FakeClock, FrameworkHarness

NODES = [
    make_node("a").capacity(cpu=4, memory="8Gi").build(),
    make_node("b").capacity(cpu="2500m", memory="1Gi").build(),
    make_node("c").capacity(cpu=4, memory="8Gi").build(),
    make_node("bare").build(),
]
USAGE = {
    "a": {"cpu": "1000000000n", "memory": "2097152Ki"},
    "b": {"cpu": "499999999n"},
    "bare": {"cpu": "1", "memory": "1"},
    "gone": {"cpu": "1", "memory": "1Gi"},
}


def node_metrics(**more: object) -> str:
    items = [
        {"metadata": {"name": name}, "timestamp": "2026-01-01T00:00:00Z", "window": "20s", "usage": usage}
        for name, usage in {**USAGE, **more}.items()
    ]
    return json.dumps({"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items})


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    server.answer = lambda path, query: (
        (200, node_metrics()) if path == "/apis/metrics.k8s.io/v1beta1/nodes" else (404, "")
    )
    yield server
    server.close()


def test_usage_is_a_share_of_what_the_node_has(server: Server) -> None:
    source = MetricsServerSource(Endpoint(server.address, "secret"), lambda: NODES)
    assert source.read(1000) == LoadReport(
        100,
        1000,
        {
            "a": NodeLoad(Load(25), Load(25)),
            "b": NodeLoad(Load(20)),  # 500 of 2,500 millicores: a part of one is a whole one
            "bare": NodeLoad(),
        },
    )
    assert server.seen == [("/apis/metrics.k8s.io/v1beta1/nodes", "Bearer secret")]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("{}", "the answer is no NodeMetricsList"),
        ('{"kind": "NodeList", "items": []}', "the answer is no NodeMetricsList"),
        (node_metrics(a={"cpu": "lots"}), "the answer is no NodeMetricsList: \"'lots'"),
    ],
)
def test_another_answer_is_an_error(server: Server, answer: str, text: str) -> None:
    server.answer = lambda path, query: (200, answer)
    with pytest.raises(MetricsError) as raised:
        MetricsServerSource(Endpoint(server.address), lambda: NODES).read(0)
    assert str(raised.value).startswith(f"Metrics Server at {server.address}: the answer")
    assert text in str(raised.value)


@pytest.mark.parametrize("given", [{"type": "KubernetesMetricsServer"}, {"type": ""}, {}])
def test_it_is_the_provider_unless_another_one_is_named(server: Server, given: dict[str, object]) -> None:
    provider = {**given, "address": server.address}
    pod = make_pod().requests(cpu=1).limits(cpu=1).build()

    def scores(plugin: type[TargetLoadPacking | LoadVariationRiskBalancing]) -> dict[str, int]:
        args = {plugin.name: {"metricProvider": provider}}
        harness = FrameworkHarness(plugin, nodes=NODES, args=args, clock=FakeClock())
        return harness.score(pod)

    # 50 % of a's four CPUs: 40 * 50 / 60; 60 % of b's; c and bare weren't measured.
    assert scores(TargetLoadPacking) == {"a": 33, "b": 27, "c": 0, "bare": 0}
    # The mean alone: (1 - 0.5 / 2) * 100, and a's memory is less used.
    assert scores(LoadVariationRiskBalancing) == {"a": 75, "b": 70, "c": 0, "bare": 0}


class TestInAPod:
    def account(self, where: Path, monkeypatch: pytest.MonkeyPatch, host: str = "10.0.0.1") -> Path:
        monkeypatch.setattr(sources, "_SERVICE_ACCOUNT", where)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
        return where / "token"

    def test_the_api_server_is_asked_as_the_service_account(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = self.account(tmp_path, monkeypatch)
        for text in ("first", "second"):  # Kubernetes replaces it every hour
            token.write_text(text + "\n")
            expected = Endpoint("https://10.0.0.1:6443", text, ca_file=str(tmp_path / "ca.crt"))
            assert sources.in_cluster_endpoint() == expected
        self.account(tmp_path, monkeypatch, "fd00::1")
        assert sources.in_cluster_endpoint().address == "https://[fd00::1]:6443"

    def test_without_a_token_it_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        token = self.account(tmp_path, monkeypatch)
        with pytest.raises(MetricsError, match=f"{token}: .*No such file or directory"):
            sources.in_cluster_endpoint()

    def test_elsewhere_it_is_said_what_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        with pytest.raises(MetricsError, match=r"metricProvider\.address must name an API server"):
            sources.in_cluster_endpoint()
