"""DaemonSets: the nodes that get a pod, and the affinity of the pod to its node (the DaemonSet controller's rules)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from kschedfw.api.affinity import NodeAffinity, Toleration, TolerationOperator
from kschedfw.api.node import Node, TaintEffect
from kschedfw.api.owners import Owners, pod_from_template
from kschedfw.api.pod import Pod, PodSpec, PodTemplateSpec
from kschedfw.api.selectors import NodeSelector, NodeSelectorTerm, Operator, Requirement, Selector
from kschedfw.api.workloads import DaemonSet


def _tolerate(condition: str, effect: TaintEffect) -> Toleration:
    return Toleration(
        key=f"node.kubernetes.io/{condition}", operator=TolerationOperator.EXISTS, effect=effect
    )


# Daemon pods tolerate the taints of a node with problems.
_ALWAYS: Final = (
    _tolerate("not-ready", TaintEffect.NO_EXECUTE),
    _tolerate("unreachable", TaintEffect.NO_EXECUTE),
    _tolerate("disk-pressure", TaintEffect.NO_SCHEDULE),
    _tolerate("memory-pressure", TaintEffect.NO_SCHEDULE),
    _tolerate("pid-pressure", TaintEffect.NO_SCHEDULE),
    _tolerate("unschedulable", TaintEffect.NO_SCHEDULE),
)
_IN_HOST_NETWORK: Final = (_tolerate("network-unavailable", TaintEffect.NO_SCHEDULE),)


def pods_of_daemon_set(
    daemon_set: DaemonSet, nodes: Iterable[Node], owners: Owners, revision: str
) -> Iterator[Pod]:
    """Yield the missing pods: one for each eligible node without one."""
    template = daemon_set.spec.template
    if template is None:
        return
    spec = _with_tolerations(template.spec)
    served = {_node_of(pod) for pod in owners.active_pods_of(daemon_set)}
    for node in nodes:
        if node.name not in served and _is_eligible(node, spec):
            tied = PodTemplateSpec(template.metadata, _tied_to(node.name, spec))
            name = f"{daemon_set.name}-{node.name}"
            owners.take(daemon_set.namespace, name)
            labels = {"controller-revision-hash": revision, "pod-template-generation": "1"}
            yield pod_from_template(daemon_set, tied, name, labels)


def _with_tolerations(spec: PodSpec) -> PodSpec:
    wanted = (*_ALWAYS, *_IN_HOST_NETWORK) if spec.host_network else _ALWAYS
    missing = tuple(toleration for toleration in wanted if toleration not in spec.tolerations)
    return attrs.evolve(spec, tolerations=(*spec.tolerations, *missing))


def _is_eligible(node: Node, spec: PodSpec) -> bool:
    if spec.node_name not in ("", node.name):
        return False
    if not Selector.from_labels(spec.node_selector).matches(node.labels):
        return False
    affinity = spec.affinity.node_affinity
    required = affinity.required if affinity is not None else None
    if required is not None and not required.matches(node.labels, node.name):
        return False
    return all(
        taint.effect is TaintEffect.PREFER_NO_SCHEDULE
        or any(each.tolerates(taint) for each in spec.tolerations)
        for taint in node.spec.taints
    )


def _tied_to(name: str, spec: PodSpec) -> PodSpec:
    """Return the spec with required affinity to this node instead of the template's."""
    term = NodeSelectorTerm(match_fields=(Requirement("metadata.name", Operator.IN, (name,)),))
    affinity = spec.affinity.node_affinity or NodeAffinity()
    affinity = attrs.evolve(affinity, required=NodeSelector((term,)))
    return attrs.evolve(spec, affinity=attrs.evolve(spec.affinity, node_affinity=affinity))


def _node_of(pod: Pod) -> str:
    """Return the node that a daemon's pod is on, or is meant for."""
    affinity = pod.spec.affinity.node_affinity
    if not pod.node_name and affinity is not None and affinity.required is not None:
        for term in affinity.required.node_selector_terms:
            for name in term.only_names or ():
                return name
    return pod.node_name
