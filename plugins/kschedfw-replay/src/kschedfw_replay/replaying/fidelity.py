"""Fidelity: each recorded decision beside that of a configuration, on the recorded state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from enum import StrEnum
from random import Random
from typing import Final

import attrs
from kschedfw_lab.compare import Ground, against

from kschedfw import GenericScheduler, InMemoryCluster, Pod, Registry, Scheduler, VirtualClock
from kschedfw.api import Named
from kschedfw.explain import ExplainingScheduler, Explanation
from kschedfw.scheduler import Setup, make_extenders, num_feasible_nodes_to_find
from kschedfw_replay.replaying.history import Happening

EXAMPLES: Final = 5
"""How many decisions of each kind of difference are kept."""


class Agreement(StrEnum):
    """How a recorded decision compares with the configuration's, which looks at all nodes."""

    SAME = "same"
    """The same node, or none."""
    TIED = "tied"
    """The recorded node has as many points as the one that was drawn here."""
    UNSEEN = "not all looked at"
    """The recorded node has fewer points, but more nodes fit than the scheduler looks for in a cluster of this size."""
    DIFFERS = "differs"
    """The recorded node fits and has fewer points."""
    REFUSED_HERE = "refused here"
    """The pod was bound to a node that refuses it here."""
    REFUSED_THERE = "refused there"
    """The pod was refused, and fits here."""


@attrs.frozen
class Compared:
    """One recorded decision, and why the configuration decides otherwise."""

    pod: str
    at: float
    agreement: Agreement
    recorded: str | None
    """The node; None if the pod was refused."""
    here: str | None
    why: str = ""


@attrs.frozen
class FidelityReport:
    """How often a configuration decides as the recorded scheduler did."""

    counts: Mapping[Agreement, int]
    examples: tuple[Compared, ...]
    """The first ones of each difference."""

    @property
    def decisions(self) -> int:
        return sum(self.counts.values())

    @property
    def agreeing(self) -> float:
        """The share of decisions that are the same or tied; 1 without decisions."""
        agreeing = self.counts.get(Agreement.SAME, 0) + self.counts.get(Agreement.TIED, 0)
        return agreeing / self.decisions if self.decisions else 1.0


class Fidelity:
    """Follows a history as it was, and asks a configuration for each decision before its outcome is taken over.

    Decisions on pods of other schedulers aren't compared. Close it in the end.
    """

    def __init__(self, setup: Setup, registry: Registry | None = None) -> None:
        self._percentage = setup.percentage_of_nodes_to_score
        self._own_percentage = {
            each.scheduler_name: each.percentage_of_nodes_to_score for each in setup.profiles
        }
        self._only = setup.profiles[0].scheduler_name if setup.takes_every_pod else None
        self._cluster = InMemoryCluster(events_limit=1)
        self._clock = VirtualClock()
        # A search that ends early begins somewhere in the order of the nodes, which a recording doesn't tell.
        everywhere = [attrs.evolve(each, percentage_of_nodes_to_score=100) for each in setup.profiles]
        self._scheduler = Scheduler(
            self._cluster,
            everywhere,
            registry=registry,
            clock=self._clock,
            random=Random(0),
            extenders=make_extenders(setup.extenders, clock=self._clock),
            feature_gates=setup.feature_gates,
            idle=True,
        )
        generic = self._scheduler.algorithm
        assert isinstance(generic, GenericScheduler)
        self._explainer = ExplainingScheduler(generic)
        self._counts: Counter[Agreement] = Counter()
        self._examples: defaultdict[Agreement, list[Compared]] = defaultdict(list)

    def take(self, happening: Happening) -> None:
        """Compare the decision that this happening is the outcome of, if it is one, and follow it."""
        self._clock.advance_to(happening.at)
        if (decided := _decided(happening)) is not None:
            self._compare(happening.at, decided)
        follow(self._cluster, happening.old, happening.new)

    def report(self) -> FidelityReport:
        examples = tuple(each for kind in Agreement for each in self._examples[kind])
        return FidelityReport({kind: self._counts[kind] for kind in Agreement}, examples)

    def close(self) -> None:
        self._scheduler.close()

    def _compare(self, at: float, decision: _Decision) -> None:
        pod = decision.pod
        framework = self._scheduler.frameworks.get(self._only or pod.spec.scheduler_name)
        if framework is None:
            return
        explanation = self._explainer.explain(framework, pod)
        # A refusal is written when room has been made for the pod: its victims may be gone already, and it fits there.
        recorded = decision.node or (explanation.node and decision.nominated)
        agreement, why = self._agreement(explanation, recorded)
        self._counts[agreement] += 1
        if agreement is not Agreement.SAME and len(self._examples[agreement]) < EXAMPLES:
            compared = Compared(pod.key, at, agreement, recorded, explanation.node, why)
            self._examples[agreement].append(compared)

    def _agreement(self, explanation: Explanation, recorded: str | None) -> tuple[Agreement, str]:
        if explanation.node == recorded:
            return Agreement.SAME, ""
        if recorded is None:
            return Agreement.REFUSED_THERE, ""
        difference = against(explanation, recorded)
        if difference is None:
            return Agreement.REFUSED_HERE, explanation.message
        why = str(difference)
        match difference.ground:
            case Ground.TIED:
                return Agreement.TIED, why
            case Ground.REFUSED:
                return Agreement.REFUSED_HERE, why
            case Ground.UNSEEN:
                return Agreement.DIFFERS, why
            case Ground.OUTSCORED:
                percentage = self._own_percentage[explanation.profile]
                wanted = num_feasible_nodes_to_find(
                    self._percentage if percentage is None else percentage, len(explanation.nodes)
                )
                is_partial = len(explanation.feasible) > wanted
                return (Agreement.UNSEEN if is_partial else Agreement.DIFFERS), why


def follow(cluster: InMemoryCluster, old: Named | None, new: Named | None) -> None:
    """Make a change in the cluster that has happened to an object; the cluster may know the object already or not."""
    if new is None:
        assert old is not None
        if cluster.get(type(old), old.key) is not None:
            cluster.delete(old.with_metadata(attrs.evolve(old.metadata, uid="", resource_version="")))
    elif cluster.get(type(new), new.key) is None:
        cluster.add(new)
    else:
        cluster.update(new.with_metadata(attrs.evolve(new.metadata, resource_version="")))


@attrs.frozen
class _Decision:
    """A recorded decision: the pod before it, its node if it got one, and the one where room was made for it."""

    pod: Pod
    node: str | None
    nominated: str | None = None


def _decided(happening: Happening) -> _Decision | None:
    """The decision that the happening is the outcome of; None if it is none.

    A refusal that is repeated with the same message changes nothing, so it isn't recorded.
    """
    old, new = happening.old, happening.new
    if not isinstance(old, Pod) or not isinstance(new, Pod) or old.node_name:
        return None
    if new.node_name:
        return _Decision(old, new.node_name)
    refusal = _refusal(new)
    if refusal is None or refusal == _refusal(old):
        return None
    return _Decision(old, None, new.status.nominated_node_name or None)


def _refusal(pod: Pod) -> str | None:
    for each in pod.status.conditions:
        if (each.type, each.status, each.reason) == ("PodScheduled", "False", "Unschedulable"):
            return each.message
    return None
