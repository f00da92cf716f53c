"""The health and the endpoint contents of a running scheduler."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from prometheus_client import Counter, Gauge, Metric, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kschedfw import Clock, Scheduler, SchedulerConfiguration, format_duration
from kschedfw.api import EMPTY
from kschedfw.config import effective
from kschedfw_kubernetes.cluster import KubernetesCluster, LeaderElector
from kschedfw_kubernetes.prometheus_metrics import CONTENT_TYPE, Registry
from kschedfw_kubernetes.prometheus_resources import PodResources
from kschedfw_kubernetes.serve.build_info import BuildInfo
from kschedfw_kubernetes.serve.health import PING, Check, HealthEndpoint
from kschedfw_kubernetes.serve.profiling import Profiling
from kschedfw_kubernetes.serve.shared_cluster import SharedCluster
from kschedfw_kubernetes.serve.slow_attempts import TracingMetrics
from kschedfw_kubernetes.serve.zpages import Status, flagz, statusz
from kschedfw_kubernetes.web.asgi import Content, Page, Response, as_json, text

LOOP_SECONDS: Final = 20.0
"""Seconds without progress after which a scheduling loop counts as hanging, in addition to the extenders' timeouts."""
_CALLS_OF_AN_EXTENDER: Final = 3
"""Calls of an extender in one attempt: filter, prioritize, preempt."""


class Report:
    """The health and the contents of endpoints, read from cluster, scheduler and leader election.

    Checks are fast; contents take a while.

    `flags` are the command line's, as `/flagz` shows them. With `profiling`, `/debug/pprof` has profiles. `disabled`
    are the names of metrics that aren't exposed; `metrics` already leaves them out.

    `loop_seconds` are the seconds of one attempt after which the scheduling loop counts as hanging; by default 20 plus
    the sum of the extenders' timeouts in one attempt. `claiming` is passed if several schedulers are active.
    """

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        cluster: KubernetesCluster,
        scheduler: Scheduler,
        elector: LeaderElector | None,
        metrics: TracingMetrics,
        clock: Clock,
        *,
        loop_seconds: float | None = None,
        shared: SharedCluster | None = None,
        flags: Mapping[str, str] = EMPTY,
        profiling: bool = False,
        disabled: Collection[str] = (),
    ) -> None:
        self._configuration = configuration
        self._cluster = cluster
        self._scheduler = scheduler
        self._elector = elector
        self._metrics = metrics
        self._clock = clock
        calls = _CALLS_OF_AN_EXTENDER * sum(extender.timeout for extender in configuration.extenders)
        self._loop_seconds = LOOP_SECONDS + calls if loop_seconds is None else loop_seconds
        self.synced = False
        """True if cache and queue have all objects that existed when the cluster was listed."""
        self.stopping = False
        self._scheduling_since: float | None = None
        self._flags = flags
        self._started = clock.now()
        self._profiling = Profiling(clock, lambda: self.stopping) if profiling else None
        self._checks = HealthMetrics(self._started, disabled)
        self._add_metrics(disabled)
        if shared is not None:
            metrics.registry.register(shared.collector())

    def begin_scheduling(self) -> None:
        self._scheduling_since = self._clock.monotonic()

    def end_scheduling(self) -> None:
        self._scheduling_since = None

    # --- health ---

    def health(self) -> Sequence[HealthEndpoint]:
        """Return the endpoints `/livez`, `/readyz` and `/healthz`.

        `/livez` fails if only a new process would help. `/readyz` fails as long as this process isn't useful.
        """
        loop = Check("scheduling-loop", self._loop_problem)
        leader = (
            ()
            if self._elector is None
            else (Check("leaderElection", self._leader_problem, self._standing_by),)
        )
        ready = (
            *leader,
            Check("shutdown", self._shutdown_problem),
            Check("informer-sync", self._sync_problem),
            Check("sched-handler-sync", self._handler_problem),
            loop,
        )
        return (
            HealthEndpoint("healthz", (PING, loop), self._checks.observe),
            HealthEndpoint("livez", (PING, loop), self._checks.observe),
            HealthEndpoint("readyz", ready, self._checks.observe),
        )

    def _loop_problem(self) -> str | None:
        since = self._scheduling_since
        if since is None:
            return None
        silent = self._clock.monotonic() - max(since, self._scheduler.last_tick)
        if silent <= self._loop_seconds:
            return None
        return f"the scheduling loop hasn't come round for {format_duration(round(silent, 1))}"

    def _leader_problem(self) -> str | None:
        assert self._elector is not None
        return None if self._elector.leader else "it isn't known who holds the lease"

    def _standing_by(self) -> str | None:
        return None if self._elector is None else self._elector.standing_by

    def _shutdown_problem(self) -> str | None:
        return "process is shutting down" if self.stopping else None

    def _sync_problem(self) -> str | None:
        if self._waits_for_lease:
            return None
        missing = [
            f"{kind} ({status.last_error})" if status.last_error else kind
            for kind, status in self._cluster.sync_status().items()
            if not status.synced
        ]
        return f"{len(missing)} informers not synced yet: {', '.join(missing)}" if missing else None

    def _handler_problem(self) -> str | None:
        return None if self.synced or self._waits_for_lease else "handlers are not fully synchronized"

    @property
    def _waits_for_lease(self) -> bool:
        """Return whether this process is a standby that is configured not to follow the cluster."""
        return (
            self._configuration.delay_cache_until_active
            and self._elector is not None
            and not self._elector.is_leader
        )

    # --- contents ---

    def contents(self) -> Mapping[str, Content]:
        """Return the contents of endpoints by path."""
        return {
            "/metrics": lambda: Response(200, self._metrics.exposition(), CONTENT_TYPE),
            "/metrics/resources": self._resources,
            "/metrics/slis": lambda: Response(200, self._checks.exposition(), CONTENT_TYPE),
            "/configz": lambda: as_json({"componentconfig": effective(self._configuration)}),
            "/debug/cache": self._cache,
        }

    def pages(self) -> Mapping[str, Page]:
        """Return the endpoints by path whose response depends on the request."""
        pages: dict[str, Page] = {
            "/flagz": lambda asked: flagz(asked, self._flags),
            **({} if self._profiling is None else self._profiling.pages()),
        }
        # As in Kubernetes, `/statusz` lists all other paths.
        paths = (*self.contents(), *pages, *(f"/{endpoint.name}" for endpoint in self.health()))
        return {**pages, "/statusz": lambda asked: statusz(asked, self._status(paths))}

    def _status(self, paths: tuple[str, ...]) -> Status:
        leads = "nobody is elected" if self._elector is None else "this process leads"
        if self._elector is not None and not self._elector.is_leader:
            leads = self._standing_by() or "it isn't known who holds the lease"
        return Status(self._started, self._clock.now(), paths, {"Leader election": leads})

    def _resources(self) -> Response:
        """Return the pods' resources if this process leads; otherwise nothing, as in kube-scheduler.

        If every replica exposed them, each pod would be counted several times.
        """
        leads = self._elector is None or self._elector.is_leader
        return Response(200, PodResources(self._cluster).exposition() if leads else b"", CONTENT_TYPE)

    def _cache(self) -> Response:
        debugger = self._scheduler.debugger
        return text(f"{debugger.compare()}\n{debugger.dump()}\n")

    def _add_metrics(self, disabled: Collection[str]) -> None:
        registry = self._metrics.registry
        ProcessCollector(registry=registry)
        registry.register(BuildInfo(self._configuration.gates))
        Counter("disabled_metrics", "Metrics that --disabled-metrics names.", registry=registry).inc(
            len(set(disabled))
        )
        registry.register(_Unreadable(self._cluster))
        if self._elector is not None:
            elector = self._elector
            status = Gauge(
                "leader_election_master_status",
                "Whether this process holds the lease (1) or stands by (0).",
                ["name"],
                registry=registry,
            )
            name = self._configuration.leader_election.resource_name
            status.labels(name).set_function(lambda: float(elector.is_leader))


class _Unreadable(Collector):
    """A count of the API server's objects that can't be parsed and so don't affect decisions."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster

    def collect(self) -> Iterable[Metric]:
        objects = GaugeMetricFamily(
            "kschedfw_unreadable_objects",
            "Objects of a kind that can't be read, and so don't count in decisions; the log says why.",
            labels=("kind",),
        )
        for kind, status in self._cluster.sync_status().items():
            objects.add_metric((kind,), status.unreadable)
        yield objects


class HealthMetrics:
    """The outcomes of health checks, for `/metrics/slis` (component-base `metrics/prometheus/slis`)."""

    def __init__(self, started: float, disabled: Collection[str] = ()) -> None:
        """Make empty metrics. `started` is in seconds since the epoch."""
        self._registry = Registry(disabled)
        self._last = Gauge(
            "kubernetes_healthcheck",
            "Whether a health check passed (1) or not (0) when it was last made.",
            ("name", "type"),
            registry=self._registry,
        )
        self._outcomes = Counter(
            "kubernetes_healthchecks_total",
            "Outcomes of health checks.",
            ("name", "type", "status"),
            registry=self._registry,
        )
        Gauge(
            "process_start_time_seconds",
            "When the process began, in seconds since the epoch.",
            registry=self._registry,
        ).set(started)

    def observe(self, check: str, endpoint: str, passed: bool) -> None:
        """Count a check's outcome."""
        self._last.labels(check, endpoint).set(float(passed))
        self._outcomes.labels(check, endpoint, "success" if passed else "error").inc()

    def exposition(self) -> bytes:
        """Return both metrics in Prometheus' text format."""
        return generate_latest(self._registry)
