"""Placements: pods' nodes, on which their resources are reserved until the placement is committed or given up."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Self

import attrs

from kschedfw.api import KschedfwError, Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.diagnosis import FitError, NoNodesAvailableError
from kschedfw.framework.parts import Parts
from kschedfw.framework.status import Status
from kschedfw.framework.waiting_pods import PodInPreBind
from kschedfw.scheduler.attempt import Attempt, MemberRefusal
from kschedfw.scheduler.binding_cycle import BindingCycle, take_place
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.generic_scheduler import ScheduleResult
from kschedfw.scheduler.queue import SchedulingQueue


@define(eq=False)
class PlacementEndedError(KschedfwError):
    """A placement that was committed or given up can't be committed."""

    pod: Pod

    def __str__(self) -> str:
        return f"the placement of pod {self.pod.key} on node {self.pod.node_name} has ended"


class Placement:
    """A pod that is assumed, reserved and permitted on a node, but not bound yet.

    Its resources aren't available to other pods. `commit` binds the pod, `give_up` releases the resources. As a
    context manager it gives up at the end of the block, unless it was committed:

        with scheduler.place(pod) as placement:
            if is_acceptable(placement.node_name):
                placement.commit()

    Both may be called from any thread, and by several at a time; the first one counts.
    """

    def __init__(
        self,
        attempt: Attempt,
        cycle: BindingCycle,
        on_end: Callable[[Placement], bool],
        on_hold: Callable[[Placement], Status],
    ) -> None:
        """`on_end` is called before the placement is committed or given up; it returns False if it has ended
        already. `on_hold` takes the place again.
        """
        assert attempt.assumed is not None
        assert attempt.result is not None
        self.attempt = attempt
        self._cycle = cycle
        self._on_end = on_end
        self._on_hold = on_hold
        self.pod = attempt.assumed
        """The pod, bound to its node."""
        self.result: ScheduleResult = attempt.result
        """The numbers of evaluated and of feasible nodes."""
        self.preempted: str | None = None
        """The reason for which a pod of higher priority took the resources; None if none did."""

    @property
    def node_name(self) -> str:
        return self.pod.node_name

    @property
    def is_waiting(self) -> bool:
        """True if the pod waits for a permit plugin; `commit` would wait for it, too."""
        waiting = self.attempt.framework.waiting_pods.get(self.pod.uid)
        return waiting is not None and waiting.poll() is None

    def commit(self) -> None:
        """Bind the pod: wait for permission, then run pre_bind, bind and post_bind, on this thread.

        If that fails, the pod's resources are released, and the pod goes back to the queue, as after any failed
        attempt.

        Raises:
            PlacementEndedError: the placement was committed or given up before.
            FitError: permission was refused, or didn't come in time.
            SchedulingError: a plugin failed, or the pod was preempted meanwhile.
        """
        if not self._on_end(self):
            if self.preempted is not None:
                raise SchedulingError(Status.from_error(self.preempted))
            raise PlacementEndedError(self.pod)
        status = self._bind()
        if not status.is_success:
            raise as_exception(status)

    def _bind(self) -> Status:
        try:
            status = self._cycle.begin(self.attempt)
            if status.is_success:
                return self._cycle.run(self.attempt)
        except BaseException as error:
            # Ctrl-C included: otherwise the place would stay taken, and nothing would end it.
            self._cycle.give_up(self.attempt, Status.from_error(error))
            raise
        self._cycle.give_up(self.attempt, status)
        return status

    def _prepare(self) -> bool:
        status = self._cycle.begin(self.attempt)
        if status.is_success:
            status = self._cycle.prepare(self.attempt)
        return self._give_up_unless(status)

    def _finish(self) -> bool:
        return self._give_up_unless(self._cycle.finish(self.attempt))

    def _give_up_unless(self, status: Status) -> bool:
        if not status.is_success:
            self._cycle.give_up(self.attempt, status)
        return status.is_success

    def give_up(self) -> None:
        """Release the resources: unreserve, and forget the pod. It is requeued if it is pending in the cluster.

        Does nothing if the placement has ended.
        """
        if self._on_end(self):
            self._cycle.withdraw(self.attempt)

    def preempt(self, message: str) -> None:
        """Give up in favour of a pod of higher priority; `preempted` says for whom."""
        if self._on_end(self):
            self.preempted = message
            self._cycle.withdraw(self.attempt)

    def hold_again(self) -> Status:
        """Take the same place once more, after `give_up` or `preempt`, with the same reservations.

        The caller knows that the room is still there, so the node isn't checked, and that the scheduler isn't busy with
        another pod. A status other than success comes from a plugin that refuses what it reserved before: then the pod
        has the place, and nothing is reserved for it.
        """
        self.preempted = None
        return self._on_hold(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_up()


@frozen(eq=False)
class GroupPlaces:
    """The result of placing pods together: the places that are held, and the pods without a place, by uid."""

    placements: tuple[Placement, ...]
    refused: Mapping[str, MemberRefusal]


@define(eq=False)
class Placements:
    """The placements that a scheduler holds. Thread-safe."""

    _parts: Parts
    _cycle: BindingCycle
    _cache: Cache
    _queue: SchedulingQueue
    _held: set[Placement] = attrs.field(factory=set, init=False)

    def __iter__(self) -> Iterator[Placement]:
        """Iterate over the placements that are held at this moment."""
        # A copy, made in one step: other threads end placements meanwhile.
        return iter(tuple(self._held))

    def hold(self, attempt: Attempt) -> Placement:
        """The placement of an attempt that has taken its place."""
        placement = Placement(attempt, self._cycle, self._end, self._hold_again)
        self._hold(placement)
        return placement

    def _hold(self, placement: Placement) -> None:
        self._held.add(placement)
        # From now on a preemption may take its resources.
        self._parts.pods_in_pre_bind.add(PodInPreBind(placement.pod, placement.preempt))

    def _hold_again(self, placement: Placement) -> Status:
        attempt = placement.attempt
        self._queue.take(attempt.pod)
        self._cache.update_snapshot(self._parts.snapshot, attempt.pod)
        status = take_place(attempt, self._cache, self._parts.nominator)
        is_reserved = status.is_success or status.is_wait
        if not is_reserved:
            # `take_place` has undone everything, but the caller relies on the place being taken.
            self._cache.assume_pod(placement.pod)
        self._hold(placement)
        return Status.success() if is_reserved else status

    def _end(self, placement: Placement) -> bool:
        try:
            # One atomic step, so that one thread ends it if several want to.
            self._held.remove(placement)
        except KeyError:
            return False
        return True


def commit_together(
    placements: Iterable[Placement], bind: Callable[[Sequence[Pod]], Container[str]]
) -> list[Placement]:
    """Commit several placements as one transaction, and return those whose pods are bound.

    All wait for permission and run pre_bind, one after another. Then `bind` is called once, with the pods that got so
    far, and tells by their uids which of them it has bound. These finish their binding cycles, in which the bind
    plugins have to take the binding that is there for their own. The others are given up as by `Placement.give_up`.

    A placement that has ended before, or whose preparation fails, isn't among those that `bind` is called with.
    """
    ready: list[Placement] = []
    for placement in placements:
        if placement._on_end(placement) and placement._prepare():
            ready.append(placement)
    try:
        bound = bind([placement.pod for placement in ready])
    except BaseException:
        for placement in ready:
            placement._cycle.withdraw(placement.attempt)
        raise
    committed = []
    for placement in ready:
        if placement.pod.uid not in bound:
            placement._cycle.withdraw(placement.attempt)
        elif placement._finish():
            committed.append(placement)
    return committed


def as_exception(status: Status) -> FitError | NoNodesAvailableError | SchedulingError:
    """The exception for a status that ended an attempt."""
    error = status.error
    return error if isinstance(error, FitError | NoNodesAvailableError) else SchedulingError(status)
