"""The arguments, named as in the original."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import attrs

from kschedfw import FieldError
from kschedfw_loadaware.http import Endpoint, LoadWatcherSource, PrometheusSource
from kschedfw_loadaware.report import MetricsError
from kschedfw_loadaware.sources import FileSource, MetricsSource


class ProviderType(StrEnum):
    """What kind of thing gives the metrics."""

    FILE = "File"
    PROMETHEUS = "Prometheus"


@attrs.frozen
class MetricProvider:
    """A file, or a Prometheus: `address` is the path of the one, the URL of the other."""

    type: ProviderType = ProviderType.FILE
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool = False


@attrs.frozen(kw_only=True)
class SourceArgs:
    """Where the metrics come from: a load-watcher's URL or a provider."""

    watcher_address: str = ""
    metric_provider: MetricProvider = MetricProvider()

    def validate(self) -> Iterator[FieldError]:
        if self.watcher_address and self.metric_provider.address:
            yield FieldError.forbidden("metricProvider.address", "the metrics come from watcherAddress")
        urls = {"watcherAddress": self.watcher_address}
        if self.metric_provider.type is ProviderType.PROMETHEUS:
            urls["metricProvider.address"] = self.metric_provider.address
        for path, url in urls.items():
            if url and not url.startswith(("http://", "https://")):
                yield FieldError.invalid(path, url, "must begin with http:// or https://")

    def make_source(self) -> MetricsSource:
        """Raises MetricsError: none is named, or it is a file that can't be used."""
        provider = self.metric_provider
        if self.watcher_address:
            return LoadWatcherSource(Endpoint(self.watcher_address))
        if not provider.address:
            raise MetricsError(
                "watcherAddress or metricProvider.address must say where the metrics come from"
            )
        if provider.type is ProviderType.FILE:
            return FileSource(Path(provider.address))
        return PrometheusSource(Endpoint(provider.address, provider.token, provider.insecure_skip_verify))
