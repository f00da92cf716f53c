"""What has happened in open transactions, so that it can be undone."""

from __future__ import annotations

import logging
from typing import TypeAlias

import attrs

from kschedfw.cluster import RevertibleCluster
from kschedfw.scheduler.cache import Cache, RestorePoint
from kschedfw.scheduler.placement import Placement
from kschedfw.what_if.errors import WhatIfError

_log = logging.getLogger(__name__)


@attrs.frozen(eq=False)
class Mark:
    """A moment to which one can go back: how much had happened by then."""

    steps: int
    position: int
    point: RestorePoint


@attrs.frozen(eq=False)
class _Taken:
    """A place was taken. `position` is the cluster's after that."""

    position: int
    placement: Placement

    def undo(self) -> None:
        self.placement.give_up()


@attrs.frozen(eq=False)
class _GivenUp:
    """A place was given up. `position` is the cluster's after that."""

    position: int
    placement: Placement

    def undo(self) -> None:
        hold_again(self.placement)


def hold_again(placement: Placement) -> None:
    """Take a place again that was given up."""
    status = placement.hold_again()
    if not status.is_success:
        _log.warning(
            "plugin %s doesn't reserve again for pod %s on node %s what it had reserved: %s",
            status.plugin,
            placement.pod.key,
            placement.node_name,
            status.message,
        )


_Step: TypeAlias = _Taken | _GivenUp


class History:
    """The places that were taken and given up, and in between, in the log of the cluster, its writes.

    To undo a step is to do the inverse, in reverse order. So plugins see reserve and unreserve, and events, as they do
    when it happens in earnest, and whoever keeps a state by them is where it was. The orders that this doesn't restore,
    of pods on a node and of nodes, are kept by the cache.
    """

    def __init__(self, cluster: RevertibleCluster, cache: Cache) -> None:
        self._cluster = cluster
        self._cache = cache
        self._steps: list[_Step] = []
        self.held: dict[str, Placement] = {}
        """The places that are taken, by the pod's uid, the earliest first."""

    def mark(self) -> Mark:
        """Marks are given up in reverse order, by `revert` or `merge`."""
        return Mark(len(self._steps), self._cluster.position, self._cache.restore_point())

    def take(self, placement: Placement) -> None:
        """Note that a place was taken."""
        self.held[placement.pod.uid] = placement
        self._steps.append(_Taken(self._cluster.position, placement))

    def note_preempted(self) -> list[Placement]:
        """Note which places were given up to preemption; returns them."""
        lost = [placement for placement in self.held.values() if placement.preempted is not None]
        for placement in lost:
            self._note_given_up(placement)
        return lost

    def take_again(self, placement: Placement) -> None:
        """Take a place that was given up, and note that."""
        hold_again(placement)
        self.take(placement)

    def give_up(self, placement: Placement) -> None:
        """Give a place up."""
        placement.give_up()
        self._note_given_up(placement)

    def _note_given_up(self, placement: Placement) -> None:
        del self.held[placement.pod.uid]
        self._steps.append(_GivenUp(self._cluster.position, placement))

    def merge(self, mark: Mark) -> None:
        """Give the mark up, and leave what has happened since."""
        self._cache.drop(mark.point)

    def revert(self, mark: Mark) -> None:
        """Undo what has happened since the mark."""
        while len(self._steps) > mark.steps:
            step = self._steps.pop()
            self._cluster.revert_to(step.position)
            step.undo()
            if isinstance(step, _Taken):
                self.held.pop(step.placement.pod.uid, None)
            else:
                self.held[step.placement.pod.uid] = step.placement
        self._cluster.revert_to(mark.position)
        self._cache.restore(mark.point)

    def commit(self) -> list[tuple[Placement, Exception]]:
        """Bind what is held, and make everything final. Returns the places whose binding failed."""
        failed: list[tuple[Placement, Exception]] = []
        for placement in tuple(self.held.values()):
            try:
                if placement.is_waiting:  # for something that won't come any more
                    placement.give_up()
                    raise WhatIfError("it still waits for permission")
                placement.commit()
            except Exception as error:  # whatever a plugin does, the others are bound
                failed.append((placement, error))
        self.held.clear()
        self._steps.clear()
        self._cluster.forget_log()
        return failed
