"""A cluster in virtual time that real schedulers share, in one of the architectures."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from random import Random

from kschedfw import InMemoryCluster, Node, Pod, Profile, Registry, VirtualClock
from kschedfw.scheduler import StillFits
from kschedfw_lab.cell.architecture import Architecture, NodeShares
from kschedfw_lab.cell.optimistic import OptimisticDecision, OptimisticScheduler
from kschedfw_lab.cell.shared_state import CommitMode, Detection, SharedState
from kschedfw_lab.cell.turns import ThinkTime, Turns


class Cell:
    """A cluster that is scheduled by one of the architectures, in virtual time.

    Args:
        truth: the cluster. Its nodes at this moment are partitioned or offered.
        architecture: which nodes each scheduler may use.
        think_times: the think time of each kind of pods. The architecture has one scheduler per kind, or one for all.
        kind_of: returns the kind of a pod, a key of `think_times`. Pods of other kinds are ignored.
        profiles, registry: as of `Scheduler`, the same for all schedulers.
        detection, mode, delay, group_of: as of `OptimisticScheduler`.
        seed: the seed of all random numbers. Each scheduler has its own generator.

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
        """Plan an event, such as the arrival of pods: `at(time, event)`, in seconds of virtual time."""
        self.run = self._turns.run
        """Run until nothing is left to do, or until the time `until`."""

    def close(self) -> None:
        """Close all schedulers."""
        for scheduler in self.schedulers:
            scheduler.close()


class _Thinking:
    """A scheduler as a `Member` of `Turns`."""

    def __init__(self, scheduler: OptimisticScheduler, seconds: Callable[[Pod, int], float]) -> None:
        self._scheduler = scheduler
        self._seconds = seconds
        self._decision: OptimisticDecision | None = None

    @property
    def has_work(self) -> bool:
        self._scheduler.copy.sync()
        self._scheduler.scheduler.tick()
        return bool(self._scheduler.next_pods())

    def begin(self, nodes: frozenset[str]) -> float:
        self._scheduler.copy.offer(nodes)
        pods = self._scheduler.next_pods()
        # A pod may have become active by nodes that are no longer offered.
        if not pods:
            return 0.0
        self._decision = self._scheduler.decide(pods)
        return self._seconds(pods[0], len(pods))

    def end(self) -> None:
        decision, self._decision = self._decision, None
        if decision is not None:
            self._scheduler.commit(decision)
