"""Reports from a load-watcher or a Prometheus, over HTTP with what Python brings along."""

from __future__ import annotations

import json
import math
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping

import attrs

from kschedfw_loadaware.report import Load, LoadReport, MetricsError, NodeLoad, report_from_json

TIMEOUT = 5.0
"""Seconds; the scheduler waits for the answer."""

_WINDOW = 15 * 60
_RATIOS = {"cpu": "instance:node_cpu:ratio", "memory": "instance:node_memory_utilisation:ratio"}
"""The recording rules of the node-exporter mixin, which load-watcher asks for, too."""


@attrs.frozen
class Endpoint:
    """An HTTP(S) address that answers in JSON."""

    address: str
    token: str = ""
    insecure_skip_verify: bool = False
    timeout: float = TIMEOUT

    def get(self, path: str) -> object:
        """Raises MetricsError: no answer, not a good one, or no JSON; names the address."""
        url = self.address.rstrip("/") + path
        request = urllib.request.Request(url, headers={"Accept": "application/json"})
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        context = ssl.create_default_context() if url.startswith("https:") else None
        if context is not None and self.insecure_skip_verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(request, timeout=self.timeout, context=context) as answer:
                content: object = json.loads(answer.read())
                return content
        except urllib.error.HTTPError as error:
            with error:
                raise MetricsError(f"{url}: HTTP {error.code} {error.reason}") from error
        except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors
            raise MetricsError(f"{url}: {getattr(error, 'reason', error)}") from error


@attrs.frozen
class LoadWatcherSource:
    """The service load-watcher (github.com/paypal/load-watcher)."""

    endpoint: Endpoint

    def read(self, now: float) -> LoadReport:  # noqa: ARG002  # load-watcher has a clock of its own
        try:
            return report_from_json(self.endpoint.get("/watcher"))
        except MetricsError as error:
            raise MetricsError(f"load-watcher at {self.endpoint.address}: {error}") from error


@attrs.frozen
class PrometheusSource:
    """A Prometheus with the node-exporter mixin's recording rules: utilisation over the last 15 minutes.

    A series belongs to the node that its label `node` names, or else `instance`, without the port.
    """

    endpoint: Endpoint

    def read(self, now: float) -> LoadReport:
        try:
            means = {name: self._over_time("avg", ratio, now) for name, ratio in _RATIOS.items()}
            deviations = {name: self._over_time("stddev", ratio, now) for name, ratio in _RATIOS.items()}
        except MetricsError as error:
            raise MetricsError(f"Prometheus at {self.endpoint.address}: {error}") from error

        def load(resource: str, node: str) -> Load | None:
            mean = means[resource].get(node)
            return None if mean is None else Load(mean, deviations[resource].get(node, 0.0))

        nodes = sorted({node for by_node in means.values() for node in by_node})
        return LoadReport(
            now - _WINDOW, now, {node: NodeLoad(load("cpu", node), load("memory", node)) for node in nodes}
        )

    def _over_time(self, function: str, ratio: str, now: float) -> dict[str, float]:
        """Percent by node."""
        query = {"query": f"{function}_over_time({ratio}[{_WINDOW}s])", "time": f"{now:.3f}"}
        answer = self.endpoint.get(f"/api/v1/query?{urllib.parse.urlencode(query)}")
        try:
            return dict(_samples(answer))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise MetricsError(f"the answer to {query['query']} is no vector") from error


def _samples(answer: object) -> Iterator[tuple[str, float]]:
    """Node and percentage of each series with a finite value. Raises the like of KeyError if there is no vector."""
    if not isinstance(answer, Mapping) or answer["data"]["resultType"] != "vector":
        raise ValueError(answer)
    for series in answer["data"]["result"]:
        labels, ratio = series["metric"], float(series["value"][1])
        node = labels.get("node") or labels.get("instance", "").rpartition(":")[0] or labels.get("instance")
        if node and math.isfinite(ratio):
            yield node, 100 * ratio
