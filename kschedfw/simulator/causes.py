"""The causes for which pods have no place at the end of a simulation, with codes for programs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import group_key
from kschedfw.cluster import Cluster
from kschedfw.explain import Cause, ExplainingScheduler, causes_of
from kschedfw.framework.runtime.framework import Framework
from kschedfw.scheduler import GenericScheduler
from kschedfw.simulator.decision import Decision, Outcome

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
