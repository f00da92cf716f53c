"""Plugins that watch the scheduler from inside, and those that make trouble for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.preemption import PreemptionPlan
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.status import Status
from kschedfw.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs

Fingerprint = tuple[object, ...]


@attrs.define(eq=False)
class Journal:
    """What the watching plugins saw. Given to every plugin here as its arguments.

    Hooks can't raise: the framework would take it for the plugin's failure. So what they find goes to
    `violations`, and the world raises it.
    """

    random: Random
    """Of the trouble; a generator of its own, so that it can be switched off without changing anything else."""
    trouble: bool = True
    holds: bool = True
    """Whether the Porter has pods wait."""
    meddle: Callable[[], None] = lambda: None
    """Changes something in the cluster, and has the scheduler told at once."""
    on_pre_filter: Callable[[Snapshot], None] = lambda snapshot: None
    on_reserve: Callable[[Snapshot, Pod, str], None] = lambda snapshot, pod, node: None
    on_preemption: Callable[
        [DefaultPreemption, CycleState, Pod, NodeToStatus, PreemptionPlan], tuple[str, frozenset[str]]
    ] = lambda plugin, state, pod, statuses, plan: ("", frozenset())
    """Looks at a plan that is about to be carried out; gives what `victims` has for the pod if that succeeds."""
    reservations: dict[int, tuple[CycleState, str, list[str]]] = attrs.field(factory=dict)
    """Per attempt (by its state's id): the state, the pod's uid, and the hooks that were called since reserve."""
    before_cycle: Fingerprint = ()
    meddled: bool = False
    attempts: dict[str, int] = attrs.field(factory=dict)
    """How often a pod (by uid) has reached pre_filter."""
    victims: dict[str, tuple[str, frozenset[str]]] = attrs.field(factory=dict)
    """By uid of the pod that preempted last: the node, and the uids of its victims."""
    violations: list[str] = attrs.field(factory=list)

    def happens(self, probability: float) -> bool:
        return self.trouble and self.random.random() < probability

    def called(self, state: CycleState, pod: Pod, hook: str) -> None:
        entry = self.reservations.setdefault(id(state), (state, pod.uid, []))
        entry[2].append(hook)


def fingerprint(snapshot: Snapshot) -> Fingerprint:
    """All that filters and scores can see of a snapshot, as a value."""
    return tuple(
        (
            info.node,
            tuple(pod_info.pod for pod_info in info.pods),
            attrs.astuple(info.requested),
            attrs.astuple(info.non_zero_requested),
            attrs.astuple(info.allocatable),
            len(info.used_ports),
            [pod_info.pod.uid for pod_info in info.pods_with_affinity],
            [pod_info.pod.uid for pod_info in info.pods_with_required_anti_affinity],
            dict(info.image_states),
        )
        for info in snapshot.node_infos
    )


class _Observer(Plugin[Journal]):
    args_type: ClassVar[type[object] | None] = Journal


class First(_Observer):
    """Stands first: sees the snapshot as the cycle begins, and records what is reserved."""

    name: ClassVar[str] = "First"

    @hookimpl
    def pre_filter(self, pod: Pod) -> None:
        journal = self.args
        journal.attempts[pod.uid] = journal.attempts.get(pod.uid, 0) + 1
        journal.before_cycle = fingerprint(self.handle.snapshot)
        journal.meddled = False
        journal.on_pre_filter(self.handle.snapshot)

    @hookimpl
    def post_filter(self) -> tuple[None, Status]:
        self._compare()
        return None, Status.unschedulable()

    @hookimpl
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._compare()
        self.args.called(state, pod, "reserve First")
        self.args.on_reserve(self.handle.snapshot, pod, node_name)

    @hookimpl
    def unreserve(self, state: CycleState, pod: Pod) -> None:
        self.args.called(state, pod, "unreserve First")

    @hookimpl
    def post_bind(self, state: CycleState, pod: Pod) -> None:
        self.args.called(state, pod, "post_bind First")

    def _compare(self) -> None:
        if fingerprint(self.handle.snapshot) != self.args.before_cycle:
            self.args.violations.append("mid_cycle_changes_do_not_count: the snapshot changed during a cycle")


class Last(_Observer):
    """Stands last: the other end of what is reserved."""

    name: ClassVar[str] = "Last"

    @hookimpl
    def reserve(self, state: CycleState, pod: Pod) -> None:
        self.args.called(state, pod, "reserve Last")

    @hookimpl
    def unreserve(self, state: CycleState, pod: Pod) -> None:
        self.args.called(state, pod, "unreserve Last")

    @hookimpl
    def post_bind(self, state: CycleState, pod: Pod) -> None:
        self.args.called(state, pod, "post_bind Last")


class Troublemaker(_Observer):
    """Raises now and then, answers nonsense, refuses at late points, and changes the cluster under the cycle."""

    name: ClassVar[str] = "Troublemaker"

    @hookimpl
    def pre_enqueue(self) -> None:
        self._raise(0.01)

    @hookimpl
    def pre_filter(self) -> None:
        self._raise(0.01)

    @hookimpl
    def filter(self) -> None:
        journal = self.args
        if not journal.meddled and journal.happens(0.02):
            journal.meddled = True
            journal.meddle()
        self._raise(0.002)

    @hookimpl
    def post_filter(self) -> tuple[None, Status]:
        self._raise(0.02)
        return None, Status.unschedulable()

    @hookimpl
    def pre_score(self) -> None:
        self._raise(0.01)

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        self._raise(0.003)
        if self.args.happens(0.003):
            return 101 if self.args.happens(0.5) else -1
        return len(node_info.pods) % 101

    @hookimpl
    def reserve(self) -> Status | None:
        self._raise(0.03)
        return Status.unschedulable("no luck") if self.args.happens(0.02) else None

    @hookimpl
    def unreserve(self) -> None:
        self._raise(0.1)

    @hookimpl
    def pre_bind(self) -> Status | None:
        self._raise(0.03)
        if self.args.happens(0.05):
            self.args.meddle()
        return Status.unschedulable("no luck") if self.args.happens(0.02) else None

    @hookimpl
    def post_bind(self) -> None:
        self._raise(0.05)

    def _raise(self, probability: float) -> None:
        if self.args.happens(probability):
            raise RuntimeError("a plugin failed")


class Doorkeeper(_Observer):
    """Lets pods in at permit, refuses them, or has them wait for what the world decides."""

    name: ClassVar[str] = "Doorkeeper"

    @hookimpl
    def permit(self) -> Status | None:
        if not self.args.trouble:
            return None
        fate = self.args.random.random()
        if fate < 0.03:
            raise RuntimeError("a plugin failed")
        if fate < 0.06:
            return Status.unschedulable("the Doorkeeper refuses")
        if fate < 0.3:
            return Status.wait(self.args.random.choice([1.0, 20.0, 400.0, 5000.0]))
        return None


class Porter(_Observer):
    """Has some pods wait at permit; in the Doorkeeper's place where nothing fails."""

    name: ClassVar[str] = "Doorkeeper"

    @hookimpl
    def permit(self) -> Status | None:
        return Status.wait(400.0) if self.args.holds and self.args.random.random() < 0.2 else None


@attrs.frozen
class WatchedArgs(DefaultPreemptionArgs):
    """Arguments of DefaultPreemption, and who watches."""

    journal: Journal | None = None


class WatchedPreemption(DefaultPreemption):
    """DefaultPreemption that shows its plan before it carries it out, without troublemakers in its dry runs."""

    name: ClassVar[str] = "WatchedPreemption"
    args_type: ClassVar[type[object] | None] = WatchedArgs

    @hookimpl
    def post_filter(
        self, state: CycleState, pod: Pod, node_to_status: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        assert isinstance(self.args, WatchedArgs)
        journal = self.args.journal
        assert journal is not None
        trouble, journal.trouble = journal.trouble, False
        victims = "", frozenset[str]()
        try:
            present = self.handle.cluster.get(Pod, pod.key)
            if present is not None:
                luck = self.handle.random.getstate()
                plan = self.plan(state, present, node_to_status)
                self.handle.random.setstate(luck)
                victims = journal.on_preemption(self, state, present, node_to_status, plan)
            result, status = super().post_filter(state, pod, node_to_status)
            if status.is_success:
                journal.victims[pod.uid] = victims
            return result, status
        finally:
            journal.trouble = trouble


WATCHED: Sequence[type[Plugin[Journal]]] = (First, Last, Troublemaker, Doorkeeper)
