"""Arguments for the source of metrics, named as in kubernetes-sigs/scheduler-plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

import attrs

from kschedfw import FieldError, Node
from kschedfw_loadaware.endpoint import Endpoint, address_problem, masked, without_password
from kschedfw_loadaware.http import (
    LoadWatcherSource,
    MetricsServerSource,
    PrometheusSource,
    in_cluster_endpoint,
)
from kschedfw_loadaware.report import MetricsError
from kschedfw_loadaware.sources import FileSource, MetricsSource

NOT_THERE: Final = 'see "Configurations of the original" in the README of kschedfw-loadaware'
"""The end of error messages about arguments that scheduler-plugins accepts and these plugins don't."""


class ProviderType(StrEnum):
    """The kind of service or file that metrics are read from."""

    KUBERNETES_METRICS_SERVER = "KubernetesMetricsServer"
    PROMETHEUS = "Prometheus"
    SIGNAL_FX = "SignalFx"
    FILE = "File"


@attrs.frozen
class MetricProvider:
    """A Metrics Server, a Prometheus or a file. `address` is a URL, or the path of the file."""

    type: ProviderType = attrs.field(
        default=ProviderType.KUBERNETES_METRICS_SERVER, metadata={"zero_is_unset": True}
    )
    address: str = ""
    token: str = attrs.field(default="", repr=masked, metadata={"shown": lambda token: token and "***"})
    insecure_skip_verify: bool = False


@attrs.frozen(kw_only=True)
class SourceArgs:
    """The source of metrics: the URL of a load-watcher, or else a provider."""

    watcher_address: str = ""
    metric_provider: MetricProvider = MetricProvider()

    def validate(self) -> Iterator[FieldError]:
        provider = self.metric_provider
        if self.watcher_address and provider.address:
            yield FieldError.forbidden(
                "metricProvider.address", f"the metrics come from watcherAddress; {NOT_THERE}"
            )
        if provider.type is ProviderType.SIGNAL_FX:
            yield FieldError.forbidden("metricProvider.type", NOT_THERE)
        urls = {"watcherAddress": self.watcher_address}
        if provider.type is not ProviderType.FILE:
            urls["metricProvider.address"] = provider.address
        for path, url in urls.items():
            if url and (problem := address_problem(url)):
                yield FieldError.invalid(path, without_password(url), problem)

    def make_source(self, nodes: Callable[[], Iterable[Node]]) -> MetricsSource:
        """Return the source that the arguments name. `nodes` returns the nodes whose load is measured.

        Raises MetricsError: no source is named, or it can't be used.
        """
        provider = self.metric_provider
        if self.watcher_address:
            return LoadWatcherSource(Endpoint(self.watcher_address))
        if provider.type is ProviderType.KUBERNETES_METRICS_SERVER and not provider.address:
            # Only to fail at once outside of a cluster. The source makes its endpoint at each read, since the token
            # changes.
            in_cluster_endpoint()
            return MetricsServerSource(None, nodes)
        if not provider.address:
            raise MetricsError(f"metricProvider.address must say where the {provider.type.value} is")
        if provider.type is ProviderType.FILE:
            return FileSource(Path(provider.address))
        endpoint = Endpoint(provider.address, provider.token, provider.insecure_skip_verify)
        if provider.type is ProviderType.PROMETHEUS:
            return PrometheusSource(endpoint)
        return MetricsServerSource(endpoint, nodes)
