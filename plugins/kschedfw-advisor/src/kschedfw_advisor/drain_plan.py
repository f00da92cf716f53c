"""Plans to drain nodes: where their pods go, in which order, and what stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import attrs

from kschedfw import Pod, Transaction, WhatIf
from kschedfw.api import Finding
from kschedfw.cluster import belongs_to_its_node
from kschedfw.what_if import Progress
from kschedfw_advisor.budgets import Budgets
from kschedfw_advisor.settling import settle

MOST_ROUNDS: Final = 1000
"""The number of times that evictions refused by a disruption budget are retried."""


class Move(StrEnum):
    """The ends that an evicted pod can have."""

    MOVES = "moves"
    NO_PLACE = "no place"
    """The pod finds no place on another node."""
    RETURNS = "returns"
    """The pod comes back to a drained node, since it tolerates the taint of a cordon."""
    DISPLACED = "displaced"
    """The pod loses its place on another node to a pod of higher priority, and finds no other."""
    LOST = "lost"
    """The pod has no controller, so nothing makes it anew."""
    PREEMPTED = "preempted"
    """The pod loses its place on another node to a pod of higher priority, and has no controller."""


_TROUBLES: Final = {
    Move.NO_PLACE: "finds no other place",
    Move.RETURNS: "comes back to a drained node, since it tolerates node.kubernetes.io/unschedulable",
    Move.DISPLACED: "loses its place to a pod of higher priority, and finds no other",
    Move.PREEMPTED: "loses its place to a pod of higher priority, and has no controller: nothing would make it anew",
    Move.LOST: "has no controller: nothing would make it anew, and kubectl drain wants --force",
}


@attrs.frozen
class Step:
    """The end of one pod: in which round it is evicted, and where its successor goes.

    `message` says why it finds no place, in kube-scheduler's words.
    """

    round: int
    pod: Pod
    from_node: str
    to_node: str | None
    move: Move
    message: str = ""

    @property
    def is_refused(self) -> bool:
        """Tell whether the pod is pending in the end."""
        return self.move in (Move.NO_PLACE, Move.DISPLACED)

    @property
    def trouble(self) -> str:
        """Return why the pod is in the way; empty if it moves."""
        return str(self.finding)

    @property
    def finding(self) -> Finding:
        """Return the pod's end as a finding, whose text is the trouble."""
        code = self.move.value.replace(" ", "-")
        text = _TROUBLES.get(self.move, "") + (": {message}" if self.message else "")
        return Finding.of(f"pod-{code}", text, message=self.message, node=self.to_node)


@attrs.frozen
class Blocked:
    """A pod that can't be evicted, and why."""

    pod: Pod
    finding: Finding

    @property
    def reason(self) -> str:
        """Return why, in words."""
        return str(self.finding)


@attrs.frozen
class DrainPlan:
    """The result of draining nodes.

    `steps` are in their order. Pods of one round can be evicted at the same time; those of the next round must wait
    until the successors of these run, for the sake of a disruption budget. `staying` are pods of DaemonSets and mirror
    pods. `ending` are other pods that are being deleted: the nodes are empty once they have ended.
    """

    nodes: tuple[str, ...]
    steps: tuple[Step, ...]
    blocked: tuple[Blocked, ...]
    staying: tuple[Pod, ...]
    ending: tuple[Pod, ...] = ()

    @property
    def succeeds(self) -> bool:
        """Tell whether the nodes can be drained, and all pods find another place."""
        return not self.blocked and all(step.move is Move.MOVES for step in self.steps)

    @property
    def rounds(self) -> int:
        """Return the number of rounds in which the pods are evicted."""
        return max((step.round for step in self.steps), default=0)


def emptydir_data(pod: Pod) -> Finding | None:
    """Return the reason why `kubectl drain` needs --delete-emptydir-data for the pod; None if it doesn't."""
    volumes = tuple(volume.name for volume in pod.spec.volumes if volume.empty_dir is not None)
    text = "has data in emptyDir volumes ({volumes}); kubectl drain wants --delete-emptydir-data"
    return Finding.of("local-data", text, volumes=volumes) if volumes else None


def plan_drain(
    what_if: WhatIf,
    trial: Transaction,
    nodes: Sequence[str],
    progress: Progress | None = None,
    *,
    budgets: Budgets | None = None,
    held_back: Callable[[Pod], Finding | None] = emptydir_data,
    preempt: bool = True,
) -> DrainPlan:
    """Drain the nodes, all of which are cordoned first, as `kubectl drain` does, and schedule the evicted pods.

    With `preempt`, pods may be evicted from other nodes for them, as by kube-scheduler. `trial` has the resulting state
    afterwards. Pods for which `held_back` has a reason aren't evicted. `budgets` are those of the cluster as it was
    before anything was evicted from it; by default, as it is now.

    Raises:
        WhatIfError: there is no node of that name.
    """
    budgets = Budgets(what_if.cluster) if budgets is None else budgets
    steps: list[Step] = []
    # Budgets without a status get the computed one: evictions are checked against it.
    budgets.update(trial, ())
    trial.cordon(*nodes)
    leaving, held, staying, ending = _sorted_out(trial, nodes, held_back)
    # An evicted pod has lost its node. With preemption, pods of other nodes may be evicted, too.
    home = {pod.key: pod.node_name for pod in (what_if.pods if preempt else leaving)}
    for number in range(1, MOST_ROUNDS + 1):
        evictions = trial.evict(*leaving)
        steps += _steps(what_if, trial, number, evictions.evicted, home, frozenset(nodes), preempt=preempt)
        leaving = [pod for pod, _ in evictions.blocked]
        # Without an eviction, the next round would find the same budgets.
        if not evictions.evicted or not leaving:
            break
        budgets.update(trial, (step.pod for step in steps if step.to_node is None))
        if progress is not None:
            progress(len(steps), len(steps) + len(leaving))
    blocked = (*held, *(Blocked(pod, _by_budget(reason)) for pod, reason in evictions.blocked))
    return DrainPlan(tuple(nodes), tuple(steps), blocked, staying, ending)


def _by_budget(reason: str) -> Finding:
    """Return the refusal of an eviction: only disruption budgets refuse one."""
    return Finding.of("disruption-budget", "{reason}", reason=reason)


def _sorted_out(
    trial: Transaction, nodes: Sequence[str], held_back: Callable[[Pod], Finding | None]
) -> tuple[list[Pod], list[Blocked], tuple[Pod, ...], tuple[Pod, ...]]:
    """The pods of the nodes: those to be evicted, held back, never evicted, and those that end anyway."""
    leaving: list[Pod] = []
    held: list[Blocked] = []
    staying: list[Pod] = []
    ending: list[Pod] = []
    for pod in (pod for name in nodes for pod in trial.pods_on(name)):
        if belongs_to_its_node(pod):
            staying.append(pod)
        elif pod.is_terminating:
            ending.append(pod)
        elif (reason := held_back(pod)) is not None:
            held.append(Blocked(pod, reason))
        else:
            leaving.append(pod)
    return leaving, held, tuple(staying), tuple(ending)


def _steps(
    what_if: WhatIf,
    trial: Transaction,
    number: int,
    evicted: Sequence[Pod],
    home: Mapping[str, str],
    drained: Collection[str],
    *,
    preempt: bool,
) -> Iterator[Step]:
    """Schedule the successors of pods that were evicted in a round; the pods are pending."""
    followed = []
    for pod in evicted:
        if pod.metadata.controller is None:
            trial.delete(pod)
            yield Step(number, pod, home[pod.key], None, Move.LOST)
        else:
            followed.append(pod)
    settled = settle(what_if, trial, followed, preempt=preempt)
    own = {pod.key for pod in followed}
    for each in settled.placed:
        move = Move.RETURNS if each.node_name in drained else Move.MOVES
        yield Step(number, each.pod, home[each.pod.key], each.node_name, move)
    for refusal in settled.refused:
        move = Move.NO_PLACE if refusal.pod.key in own else Move.DISPLACED
        yield Step(number, refusal.pod, home[refusal.pod.key], None, move, refusal.message)
    for victim in settled.evicted:
        if victim.metadata.controller is None:
            yield Step(number, victim, home[victim.key], None, Move.PREEMPTED)
