"""A cluster with its schedulers, in virtual time: any of the architectures, with real schedulers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from random import Random

from kschedfw import InMemoryCluster, Node, Pod, Profile, Registry, VirtualClock
from kschedfw.cluster import CommitMode, Detection, SharedState
from kschedfw.scheduler import StillFits
from kschedfw_lab.cell.architecture import Architecture, NodeShares
from kschedfw_lab.cell.optimistic import Decision, OptimisticScheduler
from kschedfw_lab.cell.think_time import ThinkTime
from kschedfw_lab.cell.turns import Turns


class Cell:
    """A cluster that is scheduled by one of the architectures, in virtual time.

    Args:
        truth: the cluster. Its nodes at this moment are the ones that are partitioned or offered.
        architecture: who sees which nodes.
        think_times: of each kind of pods. There is a scheduler per kind, or one for all, as the architecture says.
        kind_of: the kind of a pod: one of the keys of `think_times`; pods of other kinds are left alone.
        profiles, registry: as of `Scheduler`, the same for all.
        detection, mode, delay, group_of: as of `OptimisticScheduler`.
        seed: of all random numbers; each scheduler has a generator of its own.

    Raises:
        ValueError: there are no kinds.
        PluginError, ProfileError: a profile can't run.
    """

    def __init__(
        self,
        truth: InMemoryCluster,
        architecture: Architecture,
        think_times: Mapping[str, ThinkTime],
        *,
        kind_of: Callable[[Pod], str],
        profiles: Iterable[Profile] | None = None,
        registry: Registry | None = None,
        detection: Detection = Detection.FINE,
        mode: CommitMode = CommitMode.INCREMENTAL,
        delay: float = 0.0,
        group_of: Callable[[Pod], str | None] = lambda _: None,
        seed: int = 0,
    ) -> None:
        if not think_times:
            raise ValueError("think_times: expected at least one kind of pods, found none")
        self.clock = VirtualClock()
        self.state = SharedState(truth, StillFits(truth, profiles, registry=registry))

        def is_of(kinds: Container[str], pod: Pod) -> bool:
            return kind_of(pod) in kinds

        kinds = [[kind] for kind in think_times] if architecture.per_kind else [list(think_times)]
        self.schedulers = [
            OptimisticScheduler(
                self.state,
                name=", ".join(taken),
                profiles=profiles,
                registry=registry,
                clock=self.clock,
                random=Random(seed + number),
                detection=detection,
                mode=mode,
                delay=delay,
                is_mine=partial(is_of, taken),
                group_of=group_of,
            )
            for number, taken in enumerate(kinds)
        ]

        def seconds(pod: Pod, tasks: int) -> float:
            if architecture.one_path:
                return max(each.of(tasks) for each in think_times.values())
            return think_times[kind_of(pod)].of(tasks)

        shares = NodeShares(architecture.access, [node.name for node in truth.list(Node)], len(kinds))
        members = [_Thinking(scheduler, seconds) for scheduler in self.schedulers]
        self._turns = Turns[str](members, shares, self.clock)
        self.at = self._turns.at
        """Plan an event, such as pods that come or go: `at(time, event)`, in seconds of virtual time."""
        self.run = self._turns.run
        """Go on until nothing is left to do, or `until` a time."""

    def close(self) -> None:
        """End all schedulers."""
        for scheduler in self.schedulers:
            scheduler.close()


class _Thinking:
    """A scheduler as a member of turns."""

    def __init__(self, scheduler: OptimisticScheduler, seconds: Callable[[Pod, int], float]) -> None:
        self._scheduler = scheduler
        self._seconds = seconds
        self._decision: Decision | None = None

    @property
    def has_work(self) -> bool:
        self._scheduler.copy.sync()
        self._scheduler.scheduler.tick()
        return bool(self._scheduler.next_pods())

    def begin(self, nodes: frozenset[str]) -> float:
        self._scheduler.copy.offer(nodes)
        pods = self._scheduler.next_pods()
        if not pods:  # what isn't offered any more had made one active
            return 0.0
        self._decision = self._scheduler.decide(pods)
        return self._seconds(pods[0], len(pods))

    def end(self) -> None:
        decision, self._decision = self._decision, None
        if decision is not None:
            self._scheduler.commit(decision)
