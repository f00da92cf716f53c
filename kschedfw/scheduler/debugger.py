"""Comparison and dump of the scheduler's cache and queue (kube-scheduler's cache debugger)."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import Protocol

import attrs

from kschedfw.api import Node, Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.cluster_client import ClusterClient
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.scheduler.cache import Cache

_log = logging.getLogger(__name__)


class PendingPodsSource(Protocol):
    """The part of a queue that the debugger calls."""

    def pending_pods(self) -> tuple[Sequence[Pod], str]:
        """Return the waiting pods, and a summary of their number by place."""
        ...


@frozen
class Discrepancies:
    """Names and uids that only the cache or only the cluster has; all are empty if these agree."""

    missed_nodes: tuple[str, ...] = ()
    redundant_nodes: tuple[str, ...] = ()
    missed_pods: tuple[str, ...] = ()
    redundant_pods: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(attrs.astuple(self))

    def __str__(self) -> str:
        found = [
            f"{name.replace('_', ' ')}: {', '.join(what)}"
            for name, what in attrs.asdict(self).items()
            if what
        ]
        return "; ".join(found) or "cache and cluster agree"


@define(eq=False)
class CacheDebugger:
    """Inspects the cache and the queue of a running scheduler."""

    _cluster: ClusterClient
    _cache: Cache
    _queue: PendingPodsSource

    def compare(self) -> Discrepancies:
        """Return the differences between cache and cluster.

        Assumed pods aren't reported: the cluster can't know of them yet.
        """
        dump = self._cache.dump()
        pending, _ = self._queue.pending_pods()
        nodes = self._cluster.list(Node)
        pods = [pod for pod in self._cluster.list(Pod) if not pod.is_terminal]
        known = {pod.uid for pod in dump.pods} | {pod.uid for pod in pending}
        confirmed = {pod.uid for pod in dump.pods} - dump.assumed
        return Discrepancies(
            missed_nodes=_missing((node.name for node in nodes), {node.name for node in dump.nodes}),
            redundant_nodes=_missing((node.name for node in dump.nodes), {node.name for node in nodes}),
            missed_pods=_missing((pod.uid for pod in pods if pod.node_name), known),
            redundant_pods=_missing(confirmed, {pod.uid for pod in pods}),
        )

    def dump(self) -> str:
        """Return cache and queue as text."""
        dump = self._cache.dump()
        # The scheduler's own snapshot belongs to the thread of its cycles.
        snapshot = Snapshot()
        self._cache.update_snapshot(snapshot)
        lines = ["Dump of cached NodeInfo"]
        for info in snapshot.node_infos:
            lines.append(
                f"Node name: {info.name}; requested: {info.requested}; allocatable: {info.allocatable}; "
                f"pods: {len(info.pods)}"
            )
            lines += [
                f"  {pod_info.pod.key} uid={pod_info.pod.uid}{' (assumed)' if pod_info.pod.uid in dump.assumed else ''}"
                for pod_info in info.pods
            ]
        pending, summary = self._queue.pending_pods()
        lines.append(f"Dump of scheduling queue ({summary})")
        lines += [f"  {pod.key} uid={pod.uid}" for pod in pending]
        return "\n".join(lines)

    def install_signal_handler(
        self, signum: int | None = None, write: Callable[[str], object] | None = None
    ) -> Callable[[], None]:
        """Write `compare` and `dump` whenever the process gets the signal; returns a function that uninstalls the
        handler.

        Args:
            signum: SIGUSR2 if none is given; systems without that signal need another one.
            write: is called with each of the two texts, without a newline at the end; by default prints to standard
                error. It is called on a thread of its own, which lives as long as the handler: a signal handler could
                interrupt the scheduler while cache and queue are being changed.

        Exceptions there are logged (`kschedfw.scheduler.debugger`). Only the main thread can install and uninstall
        handlers.

        Raises:
            ValueError: this isn't the main thread, or there is no such signal.
        """
        number = getattr(signal, "SIGUSR2", None) if signum is None else signum
        if number is None:
            raise ValueError("this system has no SIGUSR2; name another signal")
        to_write = _to_stderr if write is None else write
        # The only queue whose put may be called by a signal handler that interrupts it.
        requests = SimpleQueue[bool]()
        before = signal.signal(number, lambda _number, _frame: requests.put(True))

        def serve() -> None:
            while requests.get():
                try:
                    to_write(str(self.compare()))
                    to_write(self.dump())
                except Exception:
                    _log.exception("the debugger failed")

        thread = threading.Thread(target=serve, name="kschedfw-debugger", daemon=True)
        thread.start()

        def uninstall() -> None:
            signal.signal(number, before)
            requests.put(False)
            thread.join()

        return uninstall


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _missing(wanted: Iterable[str], present: set[str]) -> tuple[str, ...]:
    return tuple(sorted(set(wanted) - present))
