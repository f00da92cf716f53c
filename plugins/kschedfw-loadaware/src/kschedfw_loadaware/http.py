"""Sources of reports over HTTP: load-watcher, Prometheus and the Kubernetes Metrics Server."""

from __future__ import annotations

import math
import os
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from kschedfw import KschedfwError, Node, Quantity
from kschedfw_loadaware.endpoint import Deadline, Endpoint
from kschedfw_loadaware.report import Load, LoadReport, MetricsError, NodeLoad, report_from_json, shown

_WINDOW: Final = 15 * 60
_RATIOS: Final = {"cpu": "instance:node_cpu:ratio", "memory": "instance:node_memory_utilisation:ratio"}
"""The recording rules of the node-exporter mixin. load-watcher queries the same rules."""

_NOT_AS_EXPECTED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors that reading JSON of an unexpected shape may raise."""

_NODE_METRICS: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@attrs.frozen
class LoadWatcherSource:
    """A load-watcher service (github.com/paypal/load-watcher)."""

    endpoint: Endpoint

    def read(self, now: float) -> LoadReport:  # noqa: ARG002  # load-watcher has a clock of its own
        try:
            return report_from_json(self.endpoint.get("/watcher"))
        except MetricsError as error:
            raise MetricsError(f"load-watcher at {self.endpoint.address}: {error}") from error


@attrs.frozen
class PrometheusSource:
    """A Prometheus with the node-exporter mixin's recording rules. Measures utilisation over the last 15 minutes.

    The node of a series is its label `node`, or else its label `instance` without the port.
    """

    endpoint: Endpoint

    def read(self, now: float) -> LoadReport:
        deadline = self.endpoint.deadline()
        try:
            means, deviations = (
                {name: self._over_time(function, ratio, now, deadline) for name, ratio in _RATIOS.items()}
                for function in ("avg", "stddev")
            )
        except MetricsError as error:
            raise MetricsError(f"Prometheus at {self.endpoint.address}: {error}") from error

        def load(resource: str, node: str) -> Load | None:
            mean = means[resource].get(node)
            return None if mean is None else Load(mean, deviations[resource].get(node, 0.0))

        nodes = sorted({node for by_node in means.values() for node in by_node})
        return LoadReport(
            now - _WINDOW, now, {node: NodeLoad(load("cpu", node), load("memory", node)) for node in nodes}
        )

    def _over_time(self, function: str, ratio: str, now: float, deadline: Deadline) -> dict[str, float]:
        """Return percentages by node name."""
        query = {"query": f"{function}_over_time({ratio}[{_WINDOW}s])", "time": f"{now:.3f}"}
        answer = self.endpoint.get(f"/api/v1/query?{urllib.parse.urlencode(query)}", deadline)
        try:
            return dict(_samples(answer))
        except _NOT_AS_EXPECTED as error:
            raise MetricsError(f"the answer to {query['query']} is no vector") from error


@attrs.frozen
class MetricsServerSource:
    """The Kubernetes Metrics Server (`metrics.k8s.io/v1beta1`). It reports current usage, without deviations.

    `nodes` returns the nodes whose capacity is 100 percent. `endpoint` is an API server or `kubectl proxy`. None means
    the API server of the cluster in which this process runs, with its pod's service account.
    """

    endpoint: Endpoint | None
    nodes: Callable[[], Iterable[Node]]

    def read(self, now: float) -> LoadReport:
        endpoint = in_cluster_endpoint() if self.endpoint is None else self.endpoint
        try:
            usage = dict(_usages(endpoint.get(_NODE_METRICS)))
        except MetricsError as error:
            raise MetricsError(f"Metrics Server at {endpoint.address}: {error}") from error
        by_node = {
            node.name: NodeLoad(*(_share(node, usage[node.name], name) for name in ("cpu", "memory")))
            for node in self.nodes()
            if node.name in usage
        }
        return LoadReport(now - _WINDOW, now, by_node)


def in_cluster_endpoint() -> Endpoint:
    """Return the API server that a pod reaches, with its service account's token.

    Raises MetricsError: this process doesn't run in a pod, or the pod has no service account.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    if not host:
        raise MetricsError(
            "metricProvider.address must name an API server, since this doesn't run in a pod of a cluster; "
            "or let watcherAddress or another metricProvider.type say where the metrics come from"
        )
    try:
        # Read the token each time, since the kubelet replaces it before it expires.
        token = (_SERVICE_ACCOUNT / "token").read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise MetricsError(f"{_SERVICE_ACCOUNT / 'token'}: {error}") from error
    # An IPv6 address needs brackets in a URL.
    host = f"[{host}]" if ":" in host else host
    return Endpoint(f"https://{host}:{port or 443}", token, ca_file=str(_SERVICE_ACCOUNT / "ca.crt"))


def _samples(answer: object) -> Iterator[tuple[str, float]]:
    """Yield the node and the percentage of each series with a finite value.

    Raises one of `_NOT_AS_EXPECTED` if the answer isn't a vector.
    """
    if not isinstance(answer, Mapping) or answer["data"]["resultType"] != "vector":
        raise ValueError(answer)
    for series in answer["data"]["result"]:
        labels, ratio = series["metric"], float(series["value"][1])
        node = labels.get("node") or labels.get("instance", "").rpartition(":")[0] or labels.get("instance")
        if isinstance(node, str) and node and math.isfinite(ratio):
            yield node, 100 * ratio


def _usages(answer: object) -> Iterator[tuple[str, Mapping[str, Quantity]]]:
    """Yield each node's name and usage.

    Raises MetricsError: the answer isn't a NodeMetricsList.
    """
    try:
        if not isinstance(answer, Mapping) or answer["kind"] != "NodeMetricsList":
            raise ValueError(answer)
        for item in answer["items"]:
            name, usage = item["metadata"]["name"], item["usage"]
            if not isinstance(name, str):
                raise TypeError(name)
            yield name, {each: Quantity.parse(usage[each]) for each in ("cpu", "memory") if each in usage}
    except _NOT_AS_EXPECTED as error:
        why = f": {shown(str(error))}" if isinstance(error, KschedfwError) else ""
        raise MetricsError(f"the answer is no NodeMetricsList{why}") from error


def _share(node: Node, usage: Mapping[str, Quantity], resource: str) -> Load | None:
    """Return the usage in percent of the machine's capacity.

    If a node has no capacity, use its allocatable amount: manifests written for simulations may have only that.
    """
    status = node.status
    capacity = status.capacity.get(resource) or status.allocatable.get(resource)
    if capacity is None or capacity.sign <= 0 or resource not in usage:
        return None
    return Load(100 * usage[resource].milli_value() / capacity.milli_value())
