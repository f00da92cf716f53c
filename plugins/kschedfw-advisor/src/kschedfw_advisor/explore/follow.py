"""Follows a live cluster: reads it again and again, and hands it over when scheduling could see a difference."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import attrs

from kschedfw import InMemoryCluster, KschedfwError
from kschedfw.api import KINDS, CustomObject, Named

_LOG = logging.getLogger("kschedfw.advisor.explore")


class Follower:
    """Reads a cluster every so many seconds, on a thread of its own.

    Args:
        read: reads the cluster; a KschedfwError says why it can't.
        take: called with a cluster that differs from the one before; a KschedfwError says why it isn't taken, and the
            next reading is handed over again.
        tell: called after each reading with what went wrong, or with an empty text.
        first: the cluster as it was read at the start.
    """

    def __init__(
        self,
        read: Callable[[], InMemoryCluster],
        take: Callable[[InMemoryCluster], None],
        tell: Callable[[str], None],
        first: InMemoryCluster,
        seconds: float,
    ) -> None:
        self._read, self._take, self._tell = read, take, tell
        self._content = _content(first)
        self._seconds = seconds
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
            cluster = self._read()
            content = _content(cluster)
            if content != self._content and not self._ended.is_set():
                self._take(cluster)
                self._content = content
        except KschedfwError as error:
            self._tell(f"what is shown isn't up to date: {error}")
        else:
            self._tell("")


def _content(cluster: InMemoryCluster) -> dict[tuple[type[Named], str], Named]:
    """Return the objects by kind and key, without their versions: a heartbeat of a node changes nothing else."""
    kinds: tuple[type[Named], ...] = (*(kind.cls for kind in KINDS.values()), CustomObject)
    return {
        (type(obj), obj.key): obj.with_metadata(attrs.evolve(obj.metadata, resource_version=""))
        for kind in kinds
        for obj in cluster.list(kind)
    }
