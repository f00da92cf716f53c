"""Preemption: PriorityClasses, and policies of preemption, with which a pod would preempt others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs
from typing_extensions import override

from kschedfw import Pod
from kschedfw.api import BUILT_IN_PRIORITIES, PreemptionPolicy, PriorityClass
from kschedfw.cluster import Cluster, belongs_to_its_node
from kschedfw_advisor.changes import Change, Effort, with_spec
from kschedfw_advisor.edits import Edit, object_differences

_OF_DAEMONS: Final = "system-node-critical"
"""The class that every cluster has, and that is meant for pods which each node needs."""


@attrs.frozen
class Prioritise(Change):
    """The pod with another PriorityClass, so that it preempts less important pods."""

    usual_effort = Effort.OTHER_POD
    preempts = True
    class_name: str
    priority: int

    def __str__(self) -> str:
        return f"priorityClassName {self.class_name} ({self.priority}), with which less important pods are preempted"

    @property
    def amount(self) -> float:
        # One pod that is deleted for it is less of a change than a rank above all such pods, now and later.
        return 1e12 + self.priority

    def changed(self, pod: Pod) -> Pod:
        spec = attrs.evolve(
            pod.spec,
            priority_class_name=self.class_name,
            priority=self.priority,
            preemption_policy=PreemptionPolicy.PREEMPT_LOWER_PRIORITY,
        )
        return with_spec(pod, spec)


@attrs.frozen
class MayPreempt(Change):
    """The pod with `preemptionPolicy: PreemptLowerPriority`; the policy is its PriorityClass's if it names one."""

    usual_effort = Effort.POD_RULE
    preempts = True
    class_name: str

    def __str__(self) -> str:
        # The API server takes the policy from the class, and lets nobody change it there.
        where = f" in PriorityClass {self.class_name}, made anew" if self.class_name else ""
        return f"preemptionPolicy PreemptLowerPriority instead of Never{where}: less important pods are preempted"

    def changed(self, pod: Pod) -> Pod:
        spec = attrs.evolve(pod.spec, preemption_policy=PreemptionPolicy.PREEMPT_LOWER_PRIORITY)
        return with_spec(pod, spec)

    @override
    def other_edits(self, cluster: Cluster) -> Iterator[Edit]:
        policy = PreemptionPolicy.PREEMPT_LOWER_PRIORITY
        for each in cluster.list(PriorityClass):
            if each.name == self.class_name:
                yield from object_differences(each, attrs.evolve(each, preemption_policy=policy))


def that_may_preempt(pod: Pod, others: Iterable[Pod]) -> Iterator[MayPreempt]:
    """Yield the change of the pod's policy if that alone keeps it from preempting one of the other pods."""
    never = pod.spec.preemption_policy is PreemptionPolicy.NEVER
    if never and any(each.priority < pod.priority and not belongs_to_its_node(each) for each in others):
        yield MayPreempt(pod.spec.priority_class_name)


def with_more_priority(pod: Pod, others: Iterable[Pod], cluster: Cluster) -> Iterator[Prioritise]:
    """Yield the change to the lowest class that is above one of the other pods and no lower than the pod's own."""
    may_preempt = pod.spec.preemption_policy is PreemptionPolicy.PREEMPT_LOWER_PRIORITY
    ranks = [each.priority for each in others if not belongs_to_its_node(each)]
    if not ranks or (may_preempt and min(ranks) < pod.priority):
        # Preemption was possible, and didn't help.
        return
    classes = {
        each.name: each.value
        for each in cluster.list(PriorityClass)
        if each.preemption_policy is PreemptionPolicy.PREEMPT_LOWER_PRIORITY
    }
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "DaemonSet":
        classes.setdefault(_OF_DAEMONS, BUILT_IN_PRIORITIES[_OF_DAEMONS])
    able = [(value, name) for name, value in classes.items() if value > min(ranks) and value >= pod.priority]
    if able:
        value, name = min(able)
        yield Prioritise(name, value)
