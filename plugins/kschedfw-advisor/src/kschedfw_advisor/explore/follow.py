"""Follows a live cluster: reads it again and again, and hands it over when the answer could be another one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import attrs

from kschedfw import InMemoryCluster, KschedfwError
from kschedfw.api import KINDS, CustomObject, Named
from kschedfw_advisor.reports import NO_REPORTS, Reports

_LOG = logging.getLogger("kschedfw.advisor.explore")


@attrs.frozen
class Reading:
    """A cluster as it was read, and what the reading says of pods that aren't there or don't start."""

    cluster: InMemoryCluster
    reports: Reports = NO_REPORTS


class Follower:
    """Reads a cluster every so many seconds, on a thread of its own.

    Args:
        read: reads the cluster; a KschedfwError says why it can't.
        take: called with a reading that differs from the one before; a KschedfwError says why it isn't taken, and the
            next reading is handed over again.
        tell: called after each reading with what went wrong, or with an empty text.
        first: the cluster as it was read at the start.
    """

    def __init__(
        self,
        read: Callable[[], Reading],
        take: Callable[[Reading], None],
        tell: Callable[[str], None],
        first: Reading,
        seconds: float,
    ) -> None:
        self._read, self._take, self._tell = read, take, tell
        self._content = _content(first)
        # No thread can wait for longer.
        self._seconds = min(seconds, threading.TIMEOUT_MAX)
        self._ended = threading.Event()
        # A daemon, as nothing can interrupt a request to an API server that doesn't answer.
        self._thread = threading.Thread(target=self._follow, name="kschedfw-follow", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Begin no other reading."""
        self._ended.set()

    def _follow(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self.look()
            except Exception:
                # An error of the source. The page goes on with what it has.
                _LOG.exception("the cluster can't be read again")
                self._tell("the cluster can't be read again; the log says why")

    def look(self) -> None:
        """Read the cluster once, and hand it over if it differs."""
        try:
            reading = self._read()
            content = _content(reading)
            if content != self._content and not self._ended.is_set():
                self._take(reading)
                self._content = content
        except KschedfwError as error:
            self._tell(f"what is shown isn't up to date: {error}")
        else:
            self._tell("")


def _content(reading: Reading) -> tuple[object, ...]:
    """Return the objects by kind and key, and the reports, as far as the answer depends on them.

    Versions are left out, since a heartbeat of a node changes nothing else, and so are warnings about scheduling.
    """
    reports = reading.reports
    return _objects(reading.cluster), reports.failures, reports.of_pods, reports.without_pods


def _objects(cluster: InMemoryCluster) -> dict[tuple[type[Named], str], Named]:
    kinds: tuple[type[Named], ...] = (*(kind.cls for kind in KINDS.values()), CustomObject)
    return {
        (type(obj), obj.key): obj.with_metadata(attrs.evolve(obj.metadata, resource_version=""))
        for kind in kinds
        for obj in cluster.list(kind)
    }
