"""From a pod's spread constraints, or the defaults where it has none, to what counting and filtering need."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import NodeInclusionPolicy, Pod, TopologySpreadConstraint, UnsatisfiableAction
from kschedfw.api.selectors import Selector, as_selector
from kschedfw.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kschedfw.framework.handle import ClusterClient
from kschedfw.plugins._label_selectors import selector_error


class MalformedSelectorError(KschedfwError, ValueError):
    """A label selector breaks the API's rules; says how, in kube-scheduler's words."""


@attrs.frozen
class Constraint:
    """A spread constraint with its selector compiled and its optional fields filled in.

    `self_match` tells whether the pod to be scheduled is itself one of those that are counted.
    """

    topology_key: str
    max_skew: int
    selector: Selector
    self_match: bool
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


def own_constraints(pod: Pod, action: UnsatisfiableAction) -> tuple[Constraint, ...]:
    """The constraints that the pod itself carries, of one kind."""
    return tuple(
        _compile(constraint, _selector(constraint, pod), pod)
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable is action
    )


def default_constraints(
    defaults: Iterable[TopologySpreadConstraint],
    pod: Pod,
    action: UnsatisfiableAction,
    cluster: ClusterClient,
) -> tuple[Constraint, ...]:
    """The defaults of one kind for the pod; none where nothing in the cluster selects it."""
    applicable = [constraint for constraint in defaults if constraint.when_unsatisfiable is action]
    if not applicable:
        return ()
    selector = default_selector(pod, cluster)
    if selector.everything:
        return ()
    return tuple(_compile(constraint, selector, pod) for constraint in applicable)


def default_selector(pod: Pod, cluster: ClusterClient) -> Selector:
    """What the Services that select the pod and its controller say about its siblings; everything if they say nothing.

    All of them match the pod, so their equalities can't contradict each other.
    """
    labels: dict[str, str] = {}
    for service in cluster.list(Service, pod.namespace):
        wanted = service.spec.selector
        if all(pod.labels.get(key) == value for key, value in wanted.items()):
            labels.update(wanted)

    owner = pod.metadata.controller
    key = f"{pod.namespace}/{owner.name}" if owner is not None else ""
    controller: ReplicaSet | StatefulSet | None = None
    match owner and (owner.api_version, owner.kind):
        case ("v1", "ReplicationController"):
            if (replication_controller := cluster.get(ReplicationController, key)) is not None:
                labels.update(replication_controller.spec.selector)
        case ("apps/v1", "ReplicaSet"):
            controller = cluster.get(ReplicaSet, key)
        case ("apps/v1", "StatefulSet"):
            controller = cluster.get(StatefulSet, key)

    selector = Selector.from_labels(labels)
    if controller is None or controller.spec.selector is None:
        return selector
    return Selector((*selector.requirements, *controller.spec.selector.compile().requirements))


def _selector(constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
    """The constraint's selector with `match_label_keys` merged in, which changes nothing if the loader did so.

    Raises:
        MalformedSelectorError: the selector is one that the API server would not have let through.
    """
    if (error := selector_error(constraint.label_selector)) is not None:
        raise MalformedSelectorError(error)
    narrowed_to = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    return as_selector(constraint.label_selector).and_labels(narrowed_to)


def _compile(constraint: TopologySpreadConstraint, selector: Selector, pod: Pod) -> Constraint:
    return Constraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        selector=selector,
        self_match=selector.matches(pod.labels),
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy is NodeInclusionPolicy.HONOR,
        honors_taints=constraint.node_taints_policy is NodeInclusionPolicy.HONOR,
    )
