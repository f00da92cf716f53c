"""The decisions of a simulation: the outcome for each pod, and the reasons."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import attrs

from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import group_key
from kschedfw.api.records import frozen
from kschedfw.cluster import Cluster
from kschedfw.explain import Cause, ExplainingScheduler, causes_of
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.runtime.framework import Framework
from kschedfw.scheduler import GenericScheduler
from kschedfw.scheduler.failure import REASON_UNSCHEDULABLE
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.simulator.arrivals import Stay
from kschedfw.simulator.ledger import Entry, Ledger


class Outcome(StrEnum):
    """The outcomes for a pod. A pod that has left at the end of its stay keeps the outcome that it had then."""

    PLACED = "placed"
    PREEMPTED = "preempted"
    DELETED = "deleted"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    FAILED = "failed"

    @property
    def meaning(self) -> str:
        """Return what it says of the pod."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    Outcome.PLACED: "the pod has a node",
    Outcome.PREEMPTED: "the pod had a node, and was evicted for another pod",
    Outcome.DELETED: "somebody deleted the pod",
    Outcome.UNSCHEDULABLE: "the pod fits on no node; `causes` say why",
    Outcome.GATED: "a plugin keeps the pod from being tried, such as for its scheduling gates",
    Outcome.FAILED: "a plugin failed, or binding was refused",
}


@frozen
class Decision:
    """The final outcome for one pod (by its key), and the reasons.

    `node` is the node where it was placed, even if it was preempted or deleted there. `attempts` is the number of its
    scheduling cycles; `evaluated` and `feasible` are numbers of nodes in the last one. `message` is
    kube-scheduler's message for a pod that wasn't placed. `reasons` are its parts, with the number of nodes for
    each (0 for a reason that isn't about single nodes). `arrived` and `bound` are times in virtual seconds
    since the start. `causes` are the requirements that keep an unschedulable pod off nodes at the end, the decisive
    ones first, if they were asked for.
    """

    pod: str
    outcome: Outcome
    node: str | None = None
    message: str = ""
    attempts: int = 0
    evaluated: int = 0
    feasible: int = 0
    reasons: Mapping[str, int] = EMPTY
    arrived: float = 0.0
    bound: float | None = None
    causes: tuple[Cause, ...] = ()

    @property
    def preempted(self) -> bool:
        """True if the pod was preempted."""
        return self.outcome is Outcome.PREEMPTED

    @property
    def place(self) -> str | None:
        """The pod's node at the end, or when it left; None if it has none, or has lost it."""
        return self.node if self.outcome is Outcome.PLACED else None

    def to_json(self) -> dict[str, object]:
        """Return the decision in types that `json.dumps` knows."""
        return {
            "pod": self.pod,
            "outcome": self.outcome.value,
            "node": self.node,
            "message": self.message,
            "reasons": [{"text": text, "nodes": nodes} for text, nodes in self.reasons.items()],
            "attempts": self.attempts,
            "preempted": self.preempted,
            "evaluated": self.evaluated,
            "feasible": self.feasible,
            "arrivedAt": self.arrived,
            "boundAt": self.bound,
            "causes": [cause.to_json() for cause in self.causes],
        }


_HERE_FROM_THE_START = Stay()


class DecisionMaker:
    """The maker of decisions from the final state of the scheduler and the cluster."""

    def __init__(
        self, scheduler: Scheduler, ledger: Ledger, stays: Mapping[str, Stay], *, interrupted: bool
    ) -> None:
        self._scheduler = scheduler
        self._ledger = ledger
        self._stays = stays
        self._interrupted = interrupted

    def of_all(self, pods: Sequence[Pod]) -> list[Decision]:
        """Return the decisions in the order of the pods' last attempts, those without an attempt last.

        Pods that weren't tried before an interruption are omitted.
        """
        found = [(self._ledger.entry(pod.uid), self._of(pod)) for pod in pods]
        decided = [(entry, decision) for entry, decision in found if decision is not None]
        # The sort is stable: pods without an attempt keep their order.
        decided.sort(key=lambda each: (not each[0].turn, each[0].turn))
        return [decision for _, decision in decided]

    def _of(self, pod: Pod) -> Decision | None:
        entry = self._ledger.entry(pod.uid)
        stay = self._stays.get(pod.uid, _HERE_FROM_THE_START)
        evaluated, feasible = entry.nodes
        base = Decision(
            pod.key,
            Outcome.PREEMPTED if entry.bound is not None and entry.preempted else Outcome.PLACED,
            node=entry.node or None,
            bound=entry.bound,
            attempts=entry.attempts,
            evaluated=evaluated,
            feasible=feasible,
            # Differences of seconds since 1970 are no finer: at 1.7e9, floats are 2.4e-7 apart.
            arrived=round(stay.arrival, 6),
        )
        if entry.bound is not None:
            return _deleted(base, "deleted after it was bound") if entry.deleted else base
        present = self._scheduler.cluster.get(Pod, pod.key)
        if present is not None and present.uid == pod.uid and present.node_name:
            # The interruption came between the binding and its event.
            return attrs.evolve(base, node=present.node_name)
        match self._scheduler.queue.place(pod.uid):
            case Place.GATED:
                return self._gated(pod, base)
            case Place.IN_FLIGHT:
                return None
            case None:
                return self._lost(pod, entry, base)
        return _refused(present or pod, entry, base) if entry.attempts else None

    def _gated(self, pod: Pod, base: Decision) -> Decision:
        framework = self._scheduler.frameworks[pod.spec.scheduler_name]
        status = framework.run_pre_enqueue_plugins(pod)
        return attrs.evolve(
            base,
            outcome=Outcome.GATED,
            message=status.message,
            reasons=FrozenDict(dict.fromkeys(status.reasons, 0)),
        )

    def _ended_while_it_waited(self, pod: Pod, entry: Entry, base: Decision) -> Decision:
        if entry.attempts and entry.last is not None and (last := _refused(entry.last, entry, base)):
            return last
        if (gated := self._gated(pod, base)).message:
            return gated
        text = "its lifetime was over before it was bound"
        return attrs.evolve(base, outcome=Outcome.UNSCHEDULABLE, message=text, reasons=FrozenDict({text: 0}))

    def _lost(self, pod: Pod, entry: Entry, base: Decision) -> Decision | None:
        """Return the decision on a pod that the scheduler doesn't have any more and hasn't seen bound."""
        if entry.gone:
            if entry.preempted:
                return attrs.evolve(base, outcome=Outcome.PREEMPTED)
            if self._stays.get(pod.uid, _HERE_FROM_THE_START).lifetime is not None:
                return self._ended_while_it_waited(pod, entry, base)
            return _deleted(base, "deleted before it was bound")
        assumed = self._scheduler.cache.get_pod(pod)
        if assumed is None or self._interrupted:
            return None
        # The cluster records bindings without making them.
        return attrs.evolve(base, node=assumed.node_name)


def _deleted(decision: Decision, text: str) -> Decision:
    return attrs.evolve(decision, outcome=Outcome.DELETED, message=text, reasons=FrozenDict({text: 0}))


def _refused(pod: Pod, entry: Entry, base: Decision) -> Decision | None:
    condition = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
    if condition is None:
        return None
    message, error = condition.message, entry.error
    outcome = Outcome.UNSCHEDULABLE if condition.reason == REASON_UNSCHEDULABLE else Outcome.FAILED
    reasons: Mapping[str, int] = {message: 0}
    if isinstance(error, FitError) and str(error) == message:
        reasons = error.diagnosis.reasons(error.number_of_nodes)
    return attrs.evolve(base, outcome=outcome, message=message, reasons=FrozenDict(reasons))


MOST_KINDS: Final = 100
"""For how many kinds of pods causes are sought: each asks every filter about every node."""


def with_causes(
    decisions: Iterable[Decision],
    cluster: Cluster,
    frameworks: Mapping[str, Framework],
    algorithm: GenericScheduler,
) -> Iterator[Decision]:
    """Yield the decisions, those on unschedulable pods with the causes that keep them off nodes now.

    Pods with equal specs and labels in a namespace are of a kind, and the first of them is asked about. Pods beyond
    the first `MOST_KINDS` kinds, pods that have left, and members of groups have no causes, nor has a pod that would
    have a place by now.
    """
    explainer = ExplainingScheduler(algorithm, beyond=True)
    known: dict[Hashable, tuple[Cause, ...]] = {}
    for decision in decisions:
        pod = cluster.get(Pod, decision.pod) if decision.outcome is Outcome.UNSCHEDULABLE else None
        if pod is None or pod.node_name or group_key(pod):
            yield decision
            continue
        kind = (pod.namespace, pod.labels, pod.spec)
        if kind not in known:
            if len(known) == MOST_KINDS:
                yield decision
                continue
            explanation = explainer.explain(frameworks[pod.spec.scheduler_name], pod)
            known[kind] = causes_of(explanation) if explanation.node is None else ()
        yield attrs.evolve(decision, causes=known[kind])
