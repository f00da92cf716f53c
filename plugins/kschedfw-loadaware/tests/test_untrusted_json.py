"""Whatever an answer says in JSON, it is a report, or one error in one line."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_loadaware import (
    LoadReport,
    LoadWatcherSource,
    MetricsError,
    MetricsServerSource,
    PrometheusSource,
)
from kschedfw_loadaware.report import json_of

from kschedfw import make_node
from kschedfw.testing.properties import examples

FIELDS = (
    *("window", "start", "end", "data", "NodeMetricsMap", "a", "metrics", "type", "operator", "value"),
    *(
        "resultType",
        "result",
        "metric",
        "node",
        "kind",
        "items",
        "metadata",
        "name",
        "usage",
        "cpu",
        "memory",
    ),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300, max_value=10**400)
    | st.floats()
    | st.text(st.characters(codec=None), max_size=5)
    | st.sampled_from(["CPU", "AVG", "100m", "1e9999999", "vector", "NodeMetricsList"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS) | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


class Saying:
    """In the place of an endpoint: what came over HTTP and could be read as JSON."""

    address = "http://a"

    def __init__(self, said: object) -> None:
        self.said = json_of(json.dumps(said).encode())

    def deadline(self) -> None: ...

    def get(self, path: str, deadline: object = None) -> object:
        return self.said


def shaped(inner: object) -> list[object]:
    """The same where each kind of source looks for it."""
    metrics = {"a": {"metrics": [{"type": "CPU", "operator": "AVG", "value": inner}, inner]}, "b": inner}
    return [
        inner,
        {"window": {"start": 0, "end": inner}, "data": {"NodeMetricsMap": metrics}},
        {"window": {"start": 0, "end": 1}, "data": {"NodeMetricsMap": metrics}},
        {
            "data": {
                "resultType": "vector",
                "result": [{"metric": {"node": inner}, "value": [0, inner]}, inner],
            }
        },
        {"data": {"resultType": "vector", "result": [{"metric": inner, "value": [0, "1"]}]}},
        {"kind": "NodeMetricsList", "items": [{"metadata": {"name": "a"}, "usage": {"cpu": inner}}]},
        {"kind": "NodeMetricsList", "items": [{"metadata": {"name": inner}, "usage": inner}]},
    ]


@settings(max_examples=examples(300))
@given(JSON)
def test_whatever_json_says_is_a_report_or_one_error(inner: object) -> None:
    nodes = [make_node("a").capacity(cpu=1).build()]
    for said in shaped(inner):
        endpoint: object = Saying(said)
        for source in (
            LoadWatcherSource(endpoint),  # type: ignore[arg-type]  # it has what is needed of an endpoint
            PrometheusSource(endpoint),  # type: ignore[arg-type]  # the same
            MetricsServerSource(endpoint, lambda: nodes),  # type: ignore[arg-type]  # the same
        ):
            report = LoadReport(0, 0, {})
            message = ""
            try:
                report = source.read(0)
            except MetricsError as error:
                message = str(error)
            assert len(message) < 1500
            assert message.isprintable()
            assert all(isinstance(name, str) for name in report.nodes)
            assert abs(report.end) <= 1e12
