"""Outcomes of a scheduler's claims, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from kschedfw_kubernetes.claims.claim_book import Reason
from kschedfw_kubernetes.claims.claim_commits import RETRIED

if TYPE_CHECKING:
    from kschedfw_kubernetes.claims.claiming_cluster import ClaimingCluster


class ClaimMetrics(Collector):
    """A collector of the cluster's counts of claims. docs/metrics.md describes them."""

    def __init__(self, cluster: ClaimingCluster) -> None:
        self._cluster = cluster

    def collect(self) -> Iterable[CounterMetricFamily]:
        figures = self._cluster.figures
        for name, text, value in (
            ("claims", "Pods whose place was claimed.", figures.claims),
            ("claim_writes", "Updates of nodes' records with claims of this scheduler.", figures.writes),
            ("claim_expiries", "Claims of the dead that this scheduler has taken back.", figures.expired),
            ("foreign_bindings", "Pods bound without a claim, by other schedulers.", self._cluster.foreign),
        ):
            yield CounterMetricFamily(f"kschedfw_{name}", text, value)
        retries = CounterMetricFamily(
            "kschedfw_claim_retries",
            "Updates of nodes' records that had to be made again or to wait, as others had changed something.",
            labels=("reason",),
        )
        for reason in RETRIED:
            retries.add_metric((reason,), figures.retries[reason])
        conflicts = CounterMetricFamily(
            "kschedfw_claim_conflicts",
            "Pods that had to be decided on again, since others were faster.",
            labels=("reason",),
        )
        for reason in Reason:
            conflicts.add_metric((reason,), figures.conflicts[reason])
        yield from (retries, conflicts)
