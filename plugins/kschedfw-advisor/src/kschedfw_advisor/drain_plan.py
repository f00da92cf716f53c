"""Whether nodes can be drained: where their pods go, in which order, and what stands in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import attrs

from kschedfw import Pod, Transaction, WhatIf
from kschedfw.what_if import Progress
from kschedfw_advisor.budgets import Budgets
from kschedfw_advisor.settling import settle

MOST_ROUNDS: Final = 1000
"""How often evictions are tried that a disruption budget held back."""


class Move(StrEnum):
    """What becomes of a pod that is evicted."""

    MOVES = "moves"
    NO_PLACE = "no place"
    """It finds no place on another node."""
    DISPLACED = "displaced"
    """It loses its place on another node to a pod of higher priority, and finds no other."""
    LOST = "lost"
    """It has no controller, so nothing makes it anew."""
    PREEMPTED = "preempted"
    """It loses its place on another node to a pod of higher priority, and has no controller."""


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


@attrs.frozen
class Blocked:
    """A pod that can't be evicted, and why."""

    pod: Pod
    reason: str


@attrs.frozen
class DrainPlan:
    """How the drain of nodes ends.

    `steps` are in their order. Pods of one round can be evicted at the same time; those of the next round must wait
    until the successors of these run, for the sake of a disruption budget. `staying` are pods of DaemonSets and mirror
    pods, and pods that are being deleted.
    """

    nodes: tuple[str, ...]
    steps: tuple[Step, ...]
    blocked: tuple[Blocked, ...]
    staying: tuple[Pod, ...]

    @property
    def succeeds(self) -> bool:
        """Whether the nodes can be drained, and all pods find another place."""
        return not self.blocked and all(step.move is Move.MOVES for step in self.steps)

    @property
    def rounds(self) -> int:
        """In how many rounds the pods are evicted."""
        return max((step.round for step in self.steps), default=0)


def plan_drain(
    what_if: WhatIf,
    trial: Transaction,
    nodes: Sequence[str],
    progress: Progress | None = None,
) -> DrainPlan:
    """Drain the nodes, all of which are cordoned first, as `kubectl drain` does, and schedule the evicted pods.

    Pods may be evicted from other nodes for them, as by kube-scheduler. `trial` has the resulting state afterwards.

    Raises:
        WhatIfError: there is no node of that name.
    """
    budgets = Budgets(what_if.cluster)
    home = {pod.key: pod.node_name for pod in what_if.cluster.list(Pod) if pod.node_name}
    steps: list[Step] = []
    budgets.update(trial, ())
    for number in range(1, MOST_ROUNDS + 1):
        drain = trial.drain(*nodes)
        steps += _steps(what_if, trial, number, drain.evicted, home)
        if not drain.evicted or not drain.blocked:
            break
        budgets.update(trial, (step.pod for step in steps if step.to_node is None))
        if progress is not None:
            progress(len(steps), len(steps) + len(drain.blocked))
    blocked = tuple(Blocked(pod, reason) for pod, reason in drain.blocked)
    return DrainPlan(tuple(nodes), tuple(steps), blocked, drain.staying)


def _steps(
    what_if: WhatIf, trial: Transaction, number: int, evicted: Sequence[Pod], home: Mapping[str, str]
) -> Iterator[Step]:
    """Schedule the successors of pods that were evicted in a round; the pods are pending."""
    followed = []
    for pod in evicted:
        if pod.metadata.controller is None:
            trial.delete(pod)
            yield Step(number, pod, home[pod.key], None, Move.LOST)
        else:
            followed.append(pod)
    settled = settle(what_if, trial, followed, preempt=True)
    own = {pod.key for pod in followed}
    for each in settled.placed:
        yield Step(number, each.pod, home[each.pod.key], each.node_name, Move.MOVES)
    for refusal in settled.refused:
        move = Move.NO_PLACE if refusal.pod.key in own else Move.DISPLACED
        yield Step(number, refusal.pod, home[refusal.pod.key], None, move, refusal.message)
    for victim in settled.evicted:
        if victim.metadata.controller is None:
            yield Step(number, victim, home[victim.key], None, Move.PREEMPTED)
