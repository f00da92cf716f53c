"""One of several schedulers on a shared state. It syncs its copy, decides, and commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

import attrs

from kschedfw import (
    Clock,
    FitError,
    NoNodesAvailableError,
    Placement,
    Pod,
    Profile,
    Registry,
    Scheduler,
    SchedulingError,
    SystemClock,
)
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.scheduler import commit_together
from kschedfw_lab.cell.accounts import Accounts
from kschedfw_lab.cell.local_copy import LocalCopy
from kschedfw_lab.cell.shared_state import Claim, CommitMode, CommitOutcome, Detection, State


@attrs.frozen(eq=False)
class OptimisticDecision:
    """Uncommitted placements: what a scheduler decides between two syncs.

    `placements` are held in the scheduler's cache. `unplaced` pods fit nowhere in its copy. `started` is on the clock's
    monotonic scale, in seconds.
    """

    pods: tuple[Pod, ...]
    placements: tuple[Placement, ...]
    claims: tuple[Claim, ...]
    unplaced: tuple[Pod, ...]
    started: float


class OptimisticScheduler:
    """A `Scheduler` with a queue, a cache and a snapshot of its own, on a private copy of a shared state.

    `decide` updates the copy and finds places. `commit` requests these places in one transaction. Other schedulers may
    act between the two calls; the caller determines how much time passes. Pods with a conflict return to the queue.
    `schedule_next` does both at once.

    Args:
        state: the shared state.
        name: the scheduler's name in messages.
        profiles, registry, random: as of `Scheduler`.
        detection: how conflicts are detected.
        mode: what happens to the rest of a decision if a part of it conflicts.
        delay: the seconds by which the copy lags behind at least.
        is_mine: returns whether this scheduler takes a pending pod. By default it takes the pods whose scheduler name
            it has a profile for. If several schedulers take a pod, the first one to commit gets it.
        group_of: returns the name of a pod's gang, or None. All pending pods of a gang are decided on together.
    """

    def __init__(
        self,
        state: State,
        *,
        name: str = "scheduler",
        profiles: Iterable[Profile] | None = None,
        registry: Registry | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        detection: Detection = Detection.FINE,
        mode: CommitMode = CommitMode.INCREMENTAL,
        delay: float = 0.0,
        is_mine: Callable[[Pod], bool] = lambda _: True,
        group_of: Callable[[Pod], str | None] = lambda _: None,
    ) -> None:
        self.name = name
        self.mode = mode
        self._clock = SystemClock() if clock is None else clock
        self._group_of = group_of
        self.accounts = Accounts()
        self.copy = LocalCopy(
            state, now=self._clock.monotonic, delay=delay, detection=detection, is_mine=is_mine
        )
        self.scheduler = Scheduler(
            # Without a backoff: after a conflict, a pod is decided on again at once, as in Omega.
            self.copy,
            profiles,
            registry=registry,
            clock=self._clock,
            random=random,
            initial_backoff=0.0,
        )
        self._arrived: dict[str, float] = {}
        """The time at which each undecided pod first arrived in the copy, by uid."""
        self.copy.watch(self._note_arrival)

    def close(self) -> None:
        """Release all held placements, and stop following the shared state."""
        self.scheduler.close()
        self.copy.close()

    def next_pods(self) -> Sequence[Pod]:
        """Return the queue's next pod with all pending pods of its gang; empty if no pod is active."""
        first = self.scheduler.queue.next_pod()
        if first is None:
            return ()
        gang = self._group_of(first)
        if gang is None:
            return (first,)
        return [pod for pod in self.copy.list(Pod) if not pod.node_name and self._group_of(pod) == gang]

    def decide(self, pods: Iterable[Pod]) -> OptimisticDecision:
        """Sync the copy, and find a place for each pod, given the places of the pods before it.

        A pod that fits nowhere returns to the queue until something changes. With `ALL_OR_NOTHING`, all pods then do.

        Raises:
            ProfileError, PodInFlightError: as of `Scheduler.place`.
        """
        self.copy.sync()
        started, pods = self._clock.monotonic(), tuple(pods)
        for pod in pods:
            # Only the first decision ends a job's wait.
            if (arrived := self._arrived.pop(pod.uid, None)) is not None:
                self.accounts.waits.append(started - arrived)
        placed: list[Placement] = []
        unplaced: list[Pod] = []
        for pod in pods:
            try:
                placed.append(self.scheduler.place(pod))
            except (FitError, NoNodesAvailableError, SchedulingError):
                unplaced.append(pod)
        if unplaced and self.mode is CommitMode.ALL_OR_NOTHING:
            for placement in placed:
                placement.give_up()
            placed = []
        claims = tuple(Claim(each.pod, each.node_name, self.copy.sequence(each.node_name)) for each in placed)
        return OptimisticDecision(pods, tuple(placed), claims, tuple(unplaced), started)

    def commit(self, decision: OptimisticDecision) -> CommitOutcome:
        """Request the decision's places in one transaction. Pods that don't get theirs return to the queue."""
        outcome = CommitOutcome()
        claims = {claim.pod.uid: claim for claim in decision.claims}

        def bind(prepared: Sequence[Pod]) -> frozenset[str]:
            nonlocal outcome
            # A permit plugin may have refused one of the pods.
            if len(prepared) < len(claims) and self.mode is CommitMode.ALL_OR_NOTHING:
                return frozenset()
            outcome = self.copy.commit([claims[pod.uid] for pod in prepared], self.mode)
            return frozenset(claim.pod.uid for claim in outcome.accepted)

        commit_together(decision.placements, bind)
        self.accounts.note_decision(
            self._clock.monotonic() - decision.started,
            len(decision.claims),
            len(outcome.accepted),
            conflicts=bool(outcome.conflicts),
        )
        return outcome

    def schedule_next(self) -> bool:
        """Decide on the next pods and commit at once. Return False if no pod is active."""
        self.copy.sync()
        self.scheduler.tick()
        pods = self.next_pods()
        if not pods:
            return False
        self.commit(self.decide(pods))
        return True

    def _note_arrival(self, event: WatchEvent) -> None:
        pod = event.object
        if not isinstance(pod, Pod):
            return
        if pod.node_name or event.type is EventType.DELETED:
            self._arrived.pop(pod.uid, None)
        elif event.type is EventType.ADDED and pod.spec.scheduler_name in self.scheduler.frameworks:
            self._arrived[pod.uid] = self._clock.monotonic()
