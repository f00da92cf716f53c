"""The requests and limits of pods, for Prometheus (kube-scheduler's endpoint `/metrics/resources`).

Needs the extra `metrics`; nothing else in the package imports this module. Semantics: kube-scheduler v1.36
`metrics/resources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kschedfw import ClusterClient, Pod, Quantity
from kschedfw.api import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    STORAGE,
    how_to_install,
    is_attachable_volumes,
    is_huge_pages,
    spec_limits,
    spec_requests,
)
from kschedfw.scheduler import MissingExtraError

try:
    from prometheus_client import CollectorRegistry, Metric, generate_latest
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingExtraError(
        "Prometheus metrics need prometheus-client; install it with: "
        f"{how_to_install('kschedfw-kubernetes', 'metrics')}"
    ) from error

_LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_UNITS: Final = {CPU: "cores", MEMORY: "bytes", STORAGE: "bytes", EPHEMERAL_STORAGE: "bytes"}


class PodResources(Collector):
    """The gauges `kube_pod_resource_request` and `kube_pod_resource_limit` of all pods in a cluster.

    They are computed for every scrape: a series for each pod and resource, without pods that have ended on a node
    and without amounts of 0. Serve `exposition()` over HTTP (as `prometheus_metrics.CONTENT_TYPE`), or register this
    object with a registry of prometheus-client's.

    Raises:
        MissingExtraError: on import of this module, where prometheus-client isn't installed.
    """

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster

    def collect(self) -> Iterable[Metric]:
        requests = GaugeMetricFamily(
            "kube_pod_resource_request",
            "What pods request of each resource as scheduler and kubelet see it, in the resource's unit if it has one.",
            labels=_LABELS,
        )
        limits = GaugeMetricFamily(
            "kube_pod_resource_limit",
            "The pods' limits of each resource as scheduler and kubelet see it, in the resource's unit if it has one.",
            labels=_LABELS,
        )
        for pod in self._cluster.list(Pod):
            if pod.node_name and pod.is_terminal:
                continue
            for family, resources in ((requests, spec_requests(pod)), (limits, spec_limits(pod))):
                for labels, amount in _series(pod, resources):
                    family.add_metric(labels, amount)
        return requests, limits

    def exposition(self) -> bytes:
        """Return both metrics in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)


def _series(pod: Pod, resources: Mapping[str, Quantity]) -> Iterator[tuple[list[str], float]]:
    """Yield the labels and values of the resources whose amount isn't 0."""
    spec = pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    for name, amount in resources.items():
        if amount.sign:
            whose = [pod.namespace, pod.name, pod.node_name, spec.scheduler_name, priority]
            yield [*whose, name, _unit(name)], float(amount)


def _unit(resource: str) -> str:
    if is_huge_pages(resource):
        return "bytes"
    return "integer" if is_attachable_volumes(resource) else _UNITS.get(resource, "")
