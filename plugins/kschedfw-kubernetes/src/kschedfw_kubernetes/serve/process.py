"""A scheduler process: it follows the cluster, becomes the leader, schedules, and ends after a signal."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import socket
import threading
import uuid
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from types import FrameType
from typing import TYPE_CHECKING, Final

import attrs

from kschedfw import Clock, Registry, SchedulerConfiguration, scheduler_from_configuration
from kschedfw.api import EMPTY, without_collections
from kschedfw.cluster import Cluster
from kschedfw.metrics import MetricsRecorder
from kschedfw.scheduler import Structured, profiles_of
from kschedfw_kubernetes.cluster import (
    Client,
    KubernetesCluster,
    LeaderElector,
    scheduler_kinds,
)
from kschedfw_kubernetes.cluster.leader_election import LeaderElectionConfigError
from kschedfw_kubernetes.serve.access import Access
from kschedfw_kubernetes.serve.binding_threads import BindingThreads
from kschedfw_kubernetes.serve.certificates import DEFAULT_TLS, ServerCertificate, TlsSettings, self_signed
from kschedfw_kubernetes.serve.client_metrics import RestClientMetrics
from kschedfw_kubernetes.serve.dry_run import DryRunCluster, without_writes
from kschedfw_kubernetes.serve.hook_watch import HookWatch
from kschedfw_kubernetes.serve.recorders import all_of
from kschedfw_kubernetes.serve.report import Report
from kschedfw_kubernetes.serve.shared_cluster import SharedCluster, Sharing
from kschedfw_kubernetes.serve.slow_attempts import TracingMetrics

if TYPE_CHECKING:
    from kschedfw_kubernetes.serve.client_certificates import ClientCertificates
    from kschedfw_kubernetes.serve.server import EndpointServer

_log = logging.getLogger(__name__)

BINDING_SECONDS: Final = 10.0
"""Seconds that binding cycles have to end after the first signal."""
EVENT_SECONDS: Final = 5.0
"""Seconds that events then have to be sent."""
RELEASE_SECONDS: Final = 5.0
"""Seconds that releasing the lease may take."""

_LISTING_SECONDS: Final = 120.0
"""Seconds after which garbage is collected even if some kind couldn't be listed."""
_SYNC_POLL: Final = 0.2
_SIGNAL_POLL: Final = 0.5
"""Seconds between two checks for a signal."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_EXIT_FAILED: Final = 1
_AT_ONCE: Final = 1e-3
"""A timer's delay in seconds that means "at once". 0 would disable the timer."""


@attrs.frozen(kw_only=True)
class ServingOptions:
    """The settings of the endpoints. Port 0 means that there are none. For `loop_seconds` see `Report`."""

    bind_address: str = "0.0.0.0"
    secure_port: int = 10259
    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    cert_dir: Path | None = None
    always_allow_paths: Sequence[str] = ("/healthz", "/readyz", "/livez")
    loop_seconds: float | None = None
    dry_run: bool = False
    sharing: Sharing | None = None
    tls: TlsSettings = DEFAULT_TLS
    flags: Mapping[str, str] = EMPTY
    profiling: bool = False
    disabled_metrics: Sequence[str] = ()
    recorders: Mapping[str, MetricsRecorder] = EMPTY


@attrs.frozen
class _Ending:
    """The exit code of the process. With `at_once` it ends without waiting, since it may not write any more."""

    code: int
    at_once: bool = False


class SchedulerProcess:
    """A process that schedules the cluster of `client`, from `run` until a signal or until the lease is lost.

    No other code may use `client`: its writes stop while this process isn't the leader. `access` and `callers` decide
    who may use the endpoints, with clients of their own; without `callers` there are no endpoints. `requests` are the
    metrics of all these clients.

    Raises:
        CertificateError, ListenError, OSError: the endpoints can't be served.
        PluginError, ProfileError, MissingExtraError: the configuration can't be run.
    """

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        client: Client,
        access: Access,
        options: ServingOptions,
        *,
        callers: ClientCertificates | None,
        requests: RestClientMetrics,
    ) -> None:
        self._clock = client.clock
        self._is_dry_run = options.dry_run
        self._configuration = without_writes(configuration) if self._is_dry_run else configuration
        # Only this kind of queue allows a signal handler to interrupt a `put` by another `put`.
        self._endings = SimpleQueue[_Ending]()
        self._stopping = False
        self._is_scheduling = False
        self._lock = threading.Lock()
        """Held to decide whether scheduling begins before the process ends, or not at all."""
        self._scheduled = threading.Event()
        self._client = client
        self._cluster = KubernetesCluster(client, scheduler_kinds(configuration.gates))
        self._metrics = TracingMetrics(self._clock, options.disabled_metrics)
        self._metrics.registry.register(requests)
        self._bindings = BindingThreads(self._clock, lambda: client.unanswered)
        written: Cluster = DryRunCluster(self._cluster) if self._is_dry_run else self._cluster
        self._shared: SharedCluster | None = None
        if options.sharing is not None and not self._is_dry_run:
            profiles = profiles_of(self._configuration)
            written = self._shared = options.sharing.shared(self._cluster, client, _identity(), profiles)
        self._hook_watch: HookWatch | None = None
        if configuration.hook_timeout:
            self._hook_watch = HookWatch(
                self._clock, configuration.hook_timeout, fail=configuration.fail_on_hook_timeout
            )
        self._scheduler = scheduler_from_configuration(
            self._configuration,
            written,
            registry=None if self._hook_watch is None else Registry(guard=self._hook_watch.guard),
            clock=self._clock,
            random=Random(),
            executor=self._bindings,
            metrics=all_of(self._metrics, options.recorders),
        )
        self._scheduler.algorithm = self._metrics.following(self._scheduler.algorithm)
        self._elector = self._make_elector()
        self._report = Report(
            self._configuration,
            self._cluster,
            self._scheduler,
            self._elector,
            self._metrics,
            self._clock,
            loop_seconds=options.loop_seconds,
            shared=self._shared,
            flags=options.flags,
            profiling=options.profiling,
            disabled=options.disabled_metrics,
        )
        self._server: EndpointServer | None = None
        if callers is not None:
            # Imported here: a process without endpoints needs neither cryptography nor asyncio and uvicorn.
            from kschedfw_kubernetes.serve.endpoints import Endpoints
            from kschedfw_kubernetes.serve.server import EndpointServer

            certificate = _certificate(options, self._clock)
            self._server = EndpointServer(
                options.bind_address, options.secure_port, certificate, callers, options.tls
            )
            self._endpoints = Endpoints(
                self._report.health(),
                self._report.contents(),
                access,
                callers,
                pages=self._report.pages(),
                always_allow=options.always_allow_paths,
            )

    def run(self) -> int:
        """Schedule. Return the exit code: 0 after a signal, 1 if the lease was lost or scheduling broke off.

        Must be called on the main thread, which gets the signals. A second signal ends the process at once. When it
        returns, some threads may still run: end the process without waiting for them.
        """
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)
        if self._elector is not None:
            # The default action: the kernel ends the process, without running any Python code of it.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            if os.getpid() == 1:
                _log.warning(
                    "this is process 1, which no alarm ends: if it is paused beyond its lease, a write may leave late; "
                    "run it under an init process, or with shareProcessNamespace"
                )
        close_debugger = self._scheduler.debugger.install_signal_handler(write=_log_lines)
        _log.info(Structured("Starting kschedfw", version=version("kschedfw"), pid=os.getpid()))
        if self._is_dry_run:
            # The lines about decisions are those of a real run, so they alone would tell of bindings that there aren't.
            _log.info("dry run: nothing is written; a pod that is said to be bound stays pending")
        if self._server is not None:
            self._server.start(self._endpoints)
        if self._hook_watch is not None:
            self._hook_watch.start()
        threading.Thread(target=self._work, name="kschedfw-scheduler", daemon=True).start()
        ending = self._wait_for_ending()
        self._stopping = True
        self._report.stopping = True
        # The lease is lost: neither bindings nor events may be written any more.
        if ending.at_once:
            return ending.code
        self._end()
        close_debugger()
        _log.info(Structured("Ended", code=ending.code))
        return ending.code

    def _wait_for_ending(self) -> _Ending:
        # The system may deliver a signal to another thread. That doesn't interrupt a wait of this thread, on which
        # Python runs the handler. So waits are short.
        while True:
            with contextlib.suppress(Empty):
                return self._endings.get(timeout=_SIGNAL_POLL)

    # --- work on threads beside the main one ---

    def _work(self) -> None:
        try:
            delayed = self._elector is not None and self._configuration.delay_cache_until_active
            if not delayed:
                self._follow()
            if self._stopping:
                return
            if self._elector is None:
                self._schedule()
            else:
                self._elector.run()
        except Exception:
            _log.exception("the scheduler broke off")
            self._endings.put(_Ending(_EXIT_FAILED))

    def _follow(self) -> None:
        """Follow the cluster, and wait until all objects are listed and in cache and queue."""
        listed_by = self._clock.monotonic() + _LISTING_SECONDS
        self._cluster.start()
        with without_collections():
            while not self._is_synced() and self._clock.monotonic() < listed_by:
                pass
            # The listed objects stay in memory, so the garbage collector needn't traverse them. Collections begin again
            # after this block: the first one would look at all of them.
            gc.freeze()
        while not self._is_synced():
            pass
        if self._shared is not None:
            self._shared.start()
            while not self._stopping and not self._shared.wait_for_sync(_SYNC_POLL):
                pass
        if not self._stopping:
            self._report.synced = True
            _log.info("the caches are synced")

    def _is_synced(self) -> bool:
        """Wait for a short time. Return whether everything is listed."""
        return self._stopping or self._cluster.wait_for_sync(_SYNC_POLL)

    def _lead(self) -> None:
        try:
            if not self._report.synced:
                self._follow()
            self._schedule()
        except Exception:
            _log.exception("the scheduler broke off")
            self._endings.put(_Ending(_EXIT_FAILED))

    def _schedule(self) -> None:
        with self._lock:
            if self._stopping:
                return
            self._is_scheduling = True
        self._report.begin_scheduling()
        try:
            self._scheduler.run()
        finally:
            self._report.end_scheduling()
            self._scheduled.set()
            if not self._stopping:
                self._endings.put(_Ending(_EXIT_FAILED))

    def _stopped_leading(self) -> None:
        if not self._stopping:
            _log.error("Leaderelection lost")
            self._endings.put(_Ending(_EXIT_FAILED, at_once=True))

    def _make_elector(self) -> LeaderElector | None:
        election = self._configuration.leader_election
        if not election.leader_elect:
            return None
        if not hasattr(signal, "setitimer"):
            # On Windows there is no alarm that could end a process after a pause.
            raise LeaderElectionConfigError(
                "leaderElection: leaders need Linux or macOS, where an alarm ends a process that lost its lease; here "
                "set leaderElect to false, or give --leader-elect=false"
            )
        return LeaderElector(
            self._client,
            identity=_identity(),
            namespace=election.resource_namespace,
            name=election.resource_name,
            lease_duration=election.lease_duration,
            renew_deadline=election.renew_deadline,
            retry_period=election.retry_period,
            on_started_leading=self._lead,
            on_stopped_leading=self._stopped_leading,
            on_held=self._end_at,
        )

    def _end_at(self, moment: float) -> None:
        """Have the kernel end this process at this time of the monotonic clock, when another process may lead.

        The fence can't help if this process is suspended between the check and the write, and continued after its
        lease. The signal is due then, and ends the process before the write.
        """
        signal.setitimer(signal.ITIMER_REAL, max(moment - self._clock.monotonic(), _AT_ONCE))

    # --- the end of the process ---

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._stopping:
            os._exit(128 + number)
        self._stopping = True
        self._endings.put(_Ending(0))

    def _end(self) -> None:
        """Shut down: start no new cycles, finish binding cycles, send events, release the lease.

        Each step has a timeout.
        """
        _log.info("no new scheduling cycles; binding cycles have %g s to end", BINDING_SECONDS)
        self._scheduler.stop()
        if self._hook_watch is not None:
            self._hook_watch.close()
        with self._lock:
            is_scheduling = self._is_scheduling
        if not is_scheduling:
            self._scheduler.close()
        elif not self._scheduled.wait(BINDING_SECONDS):
            _log.warning("binding cycles are still at work after %g s; they are left alone", BINDING_SECONDS)
        if self._shared is not None:
            self._shared.close()
            _log.info(Structured("Claims", **self._shared.counts()))
        self._cluster.close(EVENT_SECONDS)
        if self._elector is not None:
            # After the last write. Then another process may lead, and the alarm is no longer needed.
            self._elector.stop(release=True, timeout=RELEASE_SECONDS)
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._server is not None:
            # After the shutdown's other steps, so that `/readyz` answers during them.
            self._server.close()
        self._client.close()
        self._bindings.shutdown()


def _identity() -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _certificate(options: ServingOptions, clock: Clock) -> ServerCertificate:
    if options.tls_cert_file is not None and options.tls_private_key_file is not None:
        return ServerCertificate(options.tls_cert_file, options.tls_private_key_file)
    return self_signed(clock, ("localhost", "127.0.0.1"), options.cert_dir)


def _log_lines(text: str) -> None:
    for line in text.splitlines():
        _log.info("%s", line)
