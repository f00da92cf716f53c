"""Outcomes of a scheduler's claims, for Prometheus and for the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from kschedfw_kubernetes.cluster import ClaimingCluster
from kschedfw_kubernetes.cluster.claim_book import Reason
from kschedfw_kubernetes.cluster.claim_commits import RETRIED


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


def in_words(cluster: ClaimingCluster) -> Mapping[str, int]:
    """Return the counts by name, such as `claims` and `conflicts_room`, without reasons that never occurred."""
    figures = cluster.figures
    return {
        "claims": figures.claims,
        "writes": figures.writes,
        "expiries": figures.expired,
        "foreign": cluster.foreign,
        **{f"retries_{reason}": count for reason, count in figures.retries.items()},
        **{f"conflicts_{reason}": count for reason, count in figures.conflicts.items()},
    }
