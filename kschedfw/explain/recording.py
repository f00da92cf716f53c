"""Explains the decisions of a scheduler, or what would be decided on a pod in a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.cluster import Cluster
from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.explain.decision_record import DecisionRecord, ProfileOrder, gated
from kschedfw.explain.explanation import Explanation
from kschedfw.explain.group_record import GroupRecords
from kschedfw.framework.clock import Clock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import FitError, NoNodesAvailableError
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.errors import SchedulingError
from kschedfw.scheduler.generic_scheduler import GenericScheduler, ScheduleResult
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.select import HostSelector
from kschedfw.scheduler.setup import scheduler_from_configuration


def _every(_: Pod) -> bool:
    return True


@frozen
class Explaining:
    """The attempts to explain, and the function that takes the explanations, in the order of the attempts.

    Only pods for which `wanted` is true are explained. With `beyond`, every filter is called for every node, which
    the decision doesn't need. `beyond_on` has the names of the only nodes for which that is done for a pod; other
    nodes than the chosen one are meant, and nothing is done if there are none.
    """

    take: Callable[[Explanation], None]
    wanted: Callable[[Pod], bool] = _every
    beyond: bool = False
    beyond_on: Callable[[Pod], Collection[str]] | None = None


class ExplainingScheduler:
    """Decides as a `GenericScheduler` does, by asking it, and explains its decisions.

    Use it as the `algorithm` of a `Scheduler`, around the one that this has. Call `explanation` after an attempt has
    ended, when the outcome of preemption and binding is known, and before the next attempt begins, which changes the
    snapshot. `explain` gives the decision that would be made on a pod now, and changes nothing.

    Pods for which `wanted` is false are scheduled without an explanation. With `beyond`, plugins are called more
    often than decisions need: all filters for all nodes, and score plugins even if only one node is feasible. For
    `beyond_on` see `Explaining`. These calls are made in the context `beside`.
    """

    def __init__(
        self,
        scheduler: GenericScheduler,
        *,
        wanted: Callable[[Pod], bool] = _every,
        beyond: bool = False,
        beyond_on: Callable[[Pod], Collection[str]] | None = None,
        beside: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._scheduler = scheduler
        self._beside = beside
        self._wanted = wanted
        self._beyond = beyond
        self._beyond_on = beyond_on
        self._latest: DecisionRecord | None = None
        self._attempts: Counter[str] = Counter()
        self._orders: dict[Framework, ProfileOrder] = {}

    def schedule(self, framework: Framework, state: CycleState, pod: Pod) -> ScheduleResult:
        """The node to put the pod on; raises what `GenericScheduler.schedule` does."""
        if not self._wanted(pod):
            self._latest = None
            return self._scheduler.schedule(framework, state, pod)
        self._attempts[pod.uid] += 1
        self._latest = DecisionRecord(
            framework, state, pod, self._order_of(framework), self._attempts[pod.uid]
        )
        return self._recorded(self._latest)

    def explanation(self) -> Explanation | None:
        """The explanation of the latest attempt; None if there was none, or if it was returned before."""
        record, self._latest = self._latest, None
        return None if record is None else record.explanation()

    def explain(self, framework: Framework, pod: Pod) -> Explanation:
        """Return the decision on the pod as of now, with what preemption would do; later decisions don't change."""
        gate = framework.run_pre_enqueue_plugins(pod)
        if not gate.is_success:
            return gated(framework, pod, gate)
        chance = framework.handle.random
        # Plugins draw from it, too, and `trial` knows only the algorithm's draws.
        before = chance.getstate()
        record = DecisionRecord(
            framework, CycleState(), pod, self._order_of(framework), is_decision_only=True
        )
        try:
            with self._scheduler.trial():
                self._recorded(record)
        except FitError as error:
            record.plan_preemption(error)
        except (NoNodesAvailableError, SchedulingError):
            # The record keeps the failure.
            pass
        finally:
            chance.setstate(before)
        return record.explanation()

    def groups(self, take: Callable[[Explanation], None], *, placed: bool = True) -> GroupRecords:
        """The observer of the cycles of groups (`GroupCycle.observer`). It gives `take` the explanations of members.

        Unless `placed`, decisions on members that get a node aren't kept, which takes less time.
        """
        return GroupRecords(
            take, self._wanted, self._order_of, self._attempts, beyond=self._beyond, follows_placed=placed
        )

    def _order_of(self, framework: Framework) -> ProfileOrder:
        order = self._orders.get(framework)
        if order is None:
            order = self._orders[framework] = ProfileOrder(framework)
        return order

    def _recorded(self, record: DecisionRecord) -> ScheduleResult:
        try:
            result = self._scheduler.schedule(record.framework, record.state, record.pod, observer=record)
        except Exception as error:
            record.error = error
            raise
        else:
            record.host = result.suggested_host
            return result
        finally:
            # Now, while the snapshot and the state are those of the decision; also if it failed.
            with self._beside():
                if self._beyond:
                    record.go_beyond(self._scheduler.score_nodes)
                elif self._beyond_on is not None:
                    record.go_beyond_on(self._beyond_on(record.pod))


class NoProfileError(KschedfwError):
    """Raised when no profile has the scheduler name that a pod asks for."""

    def __init__(self, pod: Pod, names: Sequence[str]) -> None:
        wanted, known = pod.spec.scheduler_name, ", ".join(names)
        super().__init__(f"pod {pod.key}: spec.schedulerName: no profile has {wanted!r}; there is {known}")


def explain_pod(
    cluster: Cluster,
    pod: Pod,
    configuration: SchedulerConfiguration | None = None,
    *,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    selector: HostSelector | None = None,
    seed: int = 0,
    clock: Clock | None = None,
    evaluation: Evaluation = Evaluation.MEMO,
    beyond: bool = True,
) -> Explanation:
    """The decision of a scheduler that has just started, if this pod were its first; the cluster doesn't change.

    A configuration has profiles, extenders, sampling and gates of its own. For the other arguments see `Scheduler`; for
    `beyond` see `Explaining`.

    Raises:
        NoProfileError: the pod is for another scheduler.
        ProfileError, PluginError: a profile can't run.
    """
    if configuration is not None:
        scheduler = scheduler_from_configuration(
            attrs.evolve(configuration, parallelism=1),
            cluster,
            registry=registry,
            clock=clock,
            random=Random(seed),
            selector=selector,
        )
    else:
        scheduler = Scheduler(
            cluster,
            profiles,
            registry=registry,
            clock=clock,
            random=Random(seed),
            selector=selector,
            evaluation=evaluation,
        )
    try:
        framework = scheduler.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            raise NoProfileError(pod, list(scheduler.frameworks))
        assert isinstance(scheduler.algorithm, GenericScheduler)
        return ExplainingScheduler(scheduler.algorithm, beyond=beyond).explain(framework, pod)
    finally:
        scheduler.close()
