"""The history of open transactions, so that they can be undone."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from kschedfw.api.records import frozen
from kschedfw.cluster import RevertibleCluster
from kschedfw.framework.status import Status
from kschedfw.framework.waiting_pods import WaitingPod, Waits
from kschedfw.scheduler.placement import Placement
from kschedfw.scheduler.restore_points import RestorePoint
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.what_if.checks import WhatIfError

_log = logging.getLogger(__name__)


@frozen(eq=False)
class Mark:
    """A moment to go back to: the lengths of the logs, and copies of state that the logs don't restore."""

    steps: int
    position: int
    point: RestorePoint
    waits: Waits
    states: Mapping[str, Mapping[str, object]]
    """The tokens of plugins' states, by profile and plugin."""


@frozen(eq=False)
class LostPlace:
    """A place that was lost because its wait for permission ended with this status."""

    placement: Placement
    status: Status


@frozen(eq=False)
class _PlaceChange:
    """A place that was taken or given up. `position` is the length of the cluster's log afterwards."""

    position: int
    placement: Placement
    is_taken: bool


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


class History:
    """The places that were taken and given up, and in the log of the cluster, the writes between them.

    A step is undone by its inverse, in reverse order. So plugins see reserve and unreserve, and events, as in a
    real scheduler, and state that depends on them is restored. Three things don't come back in this way, and
    are restored last: the orders of nodes and of pods on a node, by the cache; waits for permission that have
    ended; and what plugins remember beside reservations, by their `restore_state`.
    """

    def __init__(self, cluster: RevertibleCluster, scheduler: Scheduler) -> None:
        self._cluster = cluster
        self._cache = scheduler.cache
        self._waiting_pods = scheduler.waiting_pods
        self._frameworks = scheduler.frameworks
        self._steps: list[_PlaceChange] = []
        self._ended: list[tuple[Placement, WaitingPod]] = []
        """The waits for permission that have ended since `give_up_refused` looked."""
        self.held: dict[str, Placement] = {}
        """The places that are taken, by the pod's uid, the earliest first."""

    def mark(self) -> Mark:
        """Return a mark of this moment. Marks are given up in reverse order, by `revert` or `merge`."""
        states = {name: framework.save_states() for name, framework in self._frameworks.items()}
        point = self._cache.restore_point()
        return Mark(len(self._steps), self._cluster.position, point, self._waiting_pods.save(), states)

    def take(self, placement: Placement) -> None:
        """Record that a place was taken."""
        self.held[placement.pod.uid] = placement
        self._steps.append(_PlaceChange(self._cluster.position, placement, is_taken=True))
        if (waiting := self._waiting_pods.get(placement.pod.uid)) is not None:
            waiting.on_settled(partial(self._ended.append, (placement, waiting)))

    def note_preempted(self) -> list[Placement]:
        """Record the places that were given up to preemption. Return them."""
        lost = [placement for placement in self.held.values() if placement.preempted is not None]
        # Without `give_up`: the preemption has released what they held.
        for placement in lost:
            self._note_given_up(placement)
        return lost

    def give_up_refused(self) -> Sequence[LostPlace]:
        """Give up the places whose wait for permission was ended by a refusal or a preemption. Return them.

        In a running scheduler the binding cycle does this at once. A plugin may refuse others for it, such as
        the rest of a gang.
        """
        lost: list[LostPlace] = []
        while self._ended:
            placement, waiting = self._ended.pop(0)
            status = waiting.poll()
            # A place that was given up since has been recorded then.
            if status is None or status.is_success or self.held.get(placement.pod.uid) is not placement:
                continue
            lost.append(LostPlace(placement, status))
            self._give_up(placement)
        return lost

    def take_again(self, placement: Placement) -> None:
        """Take a place that was given up, and record that."""
        hold_again(placement)
        self.take(placement)

    def give_up(self, placement: Placement) -> None:
        """Give a place up, and the places that plugins refuse because of it."""
        self._give_up(placement)
        self.give_up_refused()

    def _give_up(self, placement: Placement) -> None:
        placement.give_up()
        self._note_given_up(placement)

    def _note_given_up(self, placement: Placement) -> None:
        del self.held[placement.pod.uid]
        self._steps.append(_PlaceChange(self._cluster.position, placement, is_taken=False))

    def merge(self, mark: Mark) -> None:
        """Give the mark up, and keep all later steps."""
        self._cache.drop(mark.point)

    def revert(self, mark: Mark) -> None:
        """Undo all steps since the mark."""
        while len(self._steps) > mark.steps:
            step = self._steps.pop()
            # The writes after the step first, so that its inverse meets the state that the step left.
            self._cluster.revert_to(step.position)
            if step.is_taken:
                step.placement.give_up()
                self.held.pop(step.placement.pod.uid, None)
            else:
                hold_again(step.placement)
                self.held[step.placement.pod.uid] = step.placement
        self._cluster.revert_to(mark.position)
        self._cache.restore(mark.point)
        # Giving places up ends waits, too; those are restored next, and are no news.
        self._ended.clear()
        self._waiting_pods.restore(mark.waits)
        for name, framework in self._frameworks.items():
            framework.restore_states(mark.states[name])

    def forget_attempts(self) -> None:
        """Have plugins forget the traces of failed attempts, as if the scheduler had just started."""
        for framework in self._frameworks.values():
            framework.forget_attempts()

    def commit(self) -> list[tuple[Placement, Exception]]:
        """Bind the held places, and make everything final. Return the places whose binding failed."""
        failed: list[tuple[Placement, Exception]] = []
        for placement in tuple(self.held.values()):
            try:
                if placement.is_waiting:
                    # Nothing will grant permission any more.
                    placement.give_up()
                    raise WhatIfError("its permit plugins still wait, and nothing will end the wait")
                placement.commit()
            except Exception as error:
                # Whatever a plugin raises, the other pods get bound.
                failed.append((placement, error))
        self.held.clear()
        self._steps.clear()
        self._ended.clear()
        self._cluster.forget_log()
        return failed
