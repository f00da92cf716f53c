"""What a scheduler decides on a pod, as a value, and a new scheduler that decides on the same state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random

import attrs

from kschedfw import (
    CycleState,
    Evaluation,
    FitError,
    Framework,
    GenericScheduler,
    InMemoryCluster,
    NoNodesAvailableError,
    Pod,
    Profile,
    Registry,
    Scheduler,
    ScheduleResult,
    SchedulingError,
    Status,
    VolumeController,
)
from kschedfw.api.meta import Named
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.framework.clock import Clock

_REGISTRY = Registry()


@attrs.frozen
class Setup:
    """What a scheduler is made with, besides its luck."""

    profiles: Sequence[Profile]
    clock: Clock
    percentage: int
    """The percentage of nodes to score, of profiles that have none of their own."""
    has_volumes: bool

    def with_arguments_of(self, scheduler: Scheduler) -> Setup:
        """Return the same with the plugins' arguments as they were read: reading them takes longer than a decision."""
        read = [
            attrs.evolve(profile, args={name: plugin.args for name, plugin in framework.plugins.items()})
            for profile, framework in zip(self.profiles, scheduler.frameworks.values(), strict=True)
        ]
        return attrs.evolve(self, profiles=read)


@attrs.frozen
class Decision:
    """One decision with all that it says. Two schedulers decide alike if these are equal."""

    result: ScheduleResult | None = None
    text: str = ""
    """The text of the error, with what preemption says."""
    statuses: Mapping[str, str] = attrs.field(factory=dict)
    """The answer about each node that refused the pod, by its name; empty for those that aren't listed."""
    plugins: frozenset[str] = frozenset()
    """The plugins that refused the pod; with a `!` those that wait for something outside the cluster."""
    evicted: tuple[str, ...] = ()
    """The keys of pods that were evicted, in order."""
    pod: tuple[object, ...] = ()
    """The pod's node, nomination and condition in the cluster afterwards."""


class Deciding:
    """A scheduler that binds at once, and of whose decisions everything is known."""

    def __init__(
        self,
        objects: Sequence[Named],
        setup: Setup,
        random: Random,
        evaluation: Evaluation = Evaluation.MEMO,
    ) -> None:
        self.cluster = InMemoryCluster(objects)
        self.random = random
        self.scheduler = Scheduler(
            self.cluster,
            setup.profiles,
            registry=_REGISTRY,
            clock=setup.clock,
            random=random,
            percentage_of_nodes_to_score=setup.percentage,
            evaluation=evaluation,
        )
        if setup.has_volumes:
            VolumeController(self.cluster)
        self.setup = setup.with_arguments_of(self.scheduler)
        assert isinstance(self.scheduler.algorithm, GenericScheduler)
        self.algorithm = self.scheduler.algorithm
        self.scheduler.algorithm = self
        self._answer: ScheduleResult | Exception | None = None
        self._evicted: list[str] = []
        self.cluster.watch(self._note)

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        """Schedule as the algorithm does, and keep what it says: the scheduler's `Algorithm`."""
        try:
            self._answer = answer = self.algorithm.schedule(framework, state, pod)
        except Exception as error:
            self._answer = error
            raise
        return answer

    def _note(self, event: WatchEvent) -> None:
        if event.type is EventType.DELETED and isinstance(event.object, Pod):
            self._evicted.append(event.object.key)

    # Deciding

    def take_next(self) -> tuple[Pod, Decision] | None:
        """Decide on the next pod of the queue, and bind it; None if no pod is active."""
        attempt = self.scheduler.begin_attempt()
        if attempt is None:
            return None
        pod = attempt.pod
        return pod, self._decision(pod, lambda: self.scheduler.make_attempt(attempt))

    def place(self, pod: Pod, *, keep: bool = True) -> Decision:
        """Decide on a pod out of turn. Bind it, or give its place up again unless it is to be kept."""

        def attempt() -> None:
            with self.scheduler.place(pod) as placement:
                if keep:
                    placement.commit()

        return self._decision(pod, attempt)

    def _decision(self, pod: Pod, attempt: Callable[[], None]) -> Decision:
        self._answer = None
        self._evicted.clear()
        # An attempt of the queue's next pod raises nothing. What failed after the algorithm is in the pod's condition.
        with suppress(FitError, NoNodesAvailableError, SchedulingError):
            attempt()
        answer, evicted, outcome = self._answer, tuple(self._evicted), self._outcome(pod)
        if isinstance(answer, ScheduleResult):
            return Decision(answer, evicted=evicted, pod=outcome)
        if isinstance(answer, FitError):
            found = answer.diagnosis
            statuses = {name: _shown(status) for name, status in found.node_to_status}
            plugins = found.unschedulable_plugins | {f"{name}!" for name in found.pending_plugins}
            absent = (
                {"": _shown(found.node_to_status.absent)} if len(statuses) < answer.number_of_nodes else {}
            )
            return Decision(None, str(answer), statuses | absent, frozenset(plugins), evicted, outcome)
        return Decision(None, f"{type(answer).__name__}: {answer}", evicted=evicted, pod=outcome)

    def _outcome(self, pod: Pod) -> tuple[object, ...]:
        now = self.cluster.get(Pod, pod.key)
        if now is None:
            return ()
        conditions = [(each.type, each.status, each.reason, each.message) for each in now.status.conditions]
        return now.node_name, now.status.nominated_node_name, *conditions

    # The state

    def nominations(self) -> Mapping[str, Sequence[str]]:
        """The keys of pods that are nominated, in their order, by node."""
        nominator = self.scheduler.nominator
        return {
            name: [info.pod.key for info in nominator.nominated_pods_for_node(name)]
            for name in sorted(nominator.nominated_nodes())
        }

    def pods(self) -> Mapping[str, tuple[object, ...]]:
        """What has become of all pods."""
        return {pod.key: self._outcome(pod) for pod in self.cluster.list(Pod)}

    def renewed(self, evaluation: Evaluation) -> Deciding:
        """Return a new scheduler over a cluster with the same objects, as lucky as this one.

        What can't be told from the objects is this scheduler's: the order of nodes, and of the pods on each, the
        order of nominations, and where the next search begins.
        """
        dump = self.scheduler.cache.dump()
        nominated = [info.pod for info in self.scheduler.nominator.nominated_pods()]
        order = {each.uid: position for position, each in enumerate((*dump.nodes, *dump.pods, *nominated))}
        objects: list[Named] = []
        self.cluster.watch(lambda event: objects.append(event.object))()
        # Pods that nobody has an order of come last, what pods refer to comes first.
        last = len(order)
        objects.sort(key=lambda each: order.get(each.uid, last if isinstance(each, Pod) else -1))
        luck = Random()
        luck.setstate(self.random.getstate())
        made = Deciding(objects, self.setup, luck, evaluation)
        made.algorithm.next_start_node_index = self.algorithm.next_start_node_index
        return made

    def close(self) -> None:
        self.scheduler.close()


def _shown(status: Status) -> str:
    return f"{status.code.name} {status.plugin}: {status.message}"
