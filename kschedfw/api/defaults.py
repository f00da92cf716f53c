"""The defaults, and the values derived from others, that the API server fills in, as far as scheduling reads them.

Every function is idempotent, so objects dumped from a cluster, which have their defaults, don't change. (Pod-level
requests follow from limits; the pod-level limits that v1.37 derives from containers are not derived.)
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from kschedfw.api.affinity import (
    PodAffinity,
    PodAffinityTerm,
    TolerationOperator,
    TopologySpreadConstraint,
)
from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.evolver import evolver
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import DEFAULT_NAMESPACE, Named, ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod, PodSpec, PreemptionPolicy
from kschedfw.api.requests import aggregate
from kschedfw.api.resource_claims import (
    DeviceAllocationMode,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from kschedfw.api.resource_names import is_huge_pages, is_pod_level_resource, may_overcommit
from kschedfw.api.selectors import LabelSelector, Operator, Requirement
from kschedfw.api.workloads import (
    DaemonSet,
    Deployment,
    Namespace,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"
# Any fixed UUID namespace will do; generated uids have to be the same in every run.
_UIDS: Final = hashlib.sha1(uuid.UUID("7c6cb0bb-5f0e-5a53-8f0f-6b7363686564").bytes, usedforsecurity=False)
BUILT_IN_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


_identified = evolver(ObjectMeta, "namespace", "uid")
_with_priority = evolver(PodSpec, "priority", "priority_class_name", "preemption_policy")


def default_metadata(metadata: ObjectMeta, kind: str, *, namespaced: bool) -> ObjectMeta:
    """Fill in the namespace `default` for namespaced kinds, and a uid made from kind, namespace and name.

    A namespace on a cluster-scoped object is cleared, as the API server does (`rest.BeforeCreate`): Helm charts often
    have one.
    """
    namespace = metadata.namespace or DEFAULT_NAMESPACE if namespaced else ""
    uid = metadata.uid or default_uid(kind, namespace, metadata.name)
    if (namespace, uid) == (metadata.namespace, metadata.uid):
        return metadata
    return _identified(metadata, namespace, uid)


def default_uid(kind: str, namespace: str, name: str) -> str:
    """Return the uid of an object that has none: the same in every run."""
    # Every object of a large file gets a uid. `uuid.uuid5` gives the same text in four times the time.
    digest = _UIDS.copy()
    digest.update(f"{kind}/{namespace}/{name}".encode())
    text = digest.hexdigest()
    variant = "89ab"[int(text[16], 16) % 4]
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def default_node(node: Node) -> Node:
    """Set the allocatable amounts to the capacity if there are none."""
    if node.status.allocatable or not node.status.capacity:
        return node
    return attrs.evolve(node, status=attrs.evolve(node.status, allocatable=node.status.capacity))


def default_namespace(namespace: Namespace) -> Namespace:
    """Add the label that has the namespace's name."""
    labels = FrozenDict({**namespace.labels, NAMESPACE_NAME_LABEL: namespace.name})
    if not namespace.name or labels == namespace.labels:
        return namespace
    return attrs.evolve(namespace, metadata=attrs.evolve(namespace.metadata, labels=labels))


def default_claim(claim: ResourceClaim) -> ResourceClaim:
    """Set the count of requests without one to one device."""
    return attrs.evolve(claim, spec=_with_counts(claim.spec))


def default_claim_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    spec = template.spec
    return attrs.evolve(template, spec=attrs.evolve(spec, spec=_with_counts(spec.spec)))


def _with_counts(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = tuple(_with_count(request) for request in spec.devices.requests)
    return ResourceClaimSpec(attrs.evolve(spec.devices, requests=requests))


def _with_count(request: DeviceRequest) -> DeviceRequest:
    return DeviceRequest(
        request.name,
        None if request.exactly is None else _counted(request.exactly),
        tuple(_counted(each) for each in request.first_available),
    )


_Counted = TypeVar("_Counted", ExactDeviceRequest, DeviceSubRequest)


def _counted(request: _Counted) -> _Counted:
    mode = request.allocation_mode or DeviceAllocationMode.EXACT_COUNT
    count = request.count
    if mode is DeviceAllocationMode.EXACT_COUNT and not count:
        count = 1
    tolerations = tuple(
        attrs.evolve(each, operator=each.operator or TolerationOperator.EQUAL) for each in request.tolerations
    )
    return attrs.evolve(request, allocation_mode=mode, count=count, tolerations=tolerations)


def default_selector(workload: Named) -> Named:
    """Set the selector of a workload without one to its template's labels.

    That is a ReplicationController, or a workload of an old API version.
    """
    match workload:
        case ReplicationController(spec=spec) if spec.template is not None and not spec.selector:
            spec = attrs.evolve(spec, selector=spec.template.metadata.labels)
            return attrs.evolve(workload, spec=spec)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            template = workload.spec.template
            if template is not None and workload.spec.selector is None:
                selected: Any = attrs.evolve(workload.spec, selector=LabelSelector(template.metadata.labels))
                return attrs.evolve(workload, spec=selected)
    return workload


def default_pod(pod: Pod) -> Pod:
    """Fill in requests from limits, host ports in the host's network, selectors from `matchLabelKeys`."""
    spec = pod.spec
    containers = tuple([_default_container(each, spec.host_network) for each in spec.containers])
    init_containers = tuple([_default_container(each, spec.host_network) for each in spec.init_containers])
    changes: dict[str, Any] = {}
    if containers != spec.containers:
        changes["containers"] = containers
    if init_containers != spec.init_containers:
        changes["init_containers"] = init_containers
    if spec.resources is not None:
        changes["resources"] = _pod_level(
            PodSpec(containers=containers, init_containers=init_containers), spec.resources
        )
    if spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity:
        changes["affinity"] = attrs.evolve(
            spec.affinity,
            pod_affinity=_merge_into_terms(spec.affinity.pod_affinity, pod.labels),
            pod_anti_affinity=_merge_into_terms(spec.affinity.pod_anti_affinity, pod.labels),
        )
    if any(constraint.match_label_keys for constraint in spec.topology_spread_constraints):
        changes["topology_spread_constraints"] = tuple(
            _merge_into_constraint(constraint, pod.labels) for constraint in spec.topology_spread_constraints
        )
    return attrs.evolve(pod, spec=attrs.evolve(spec, **changes)) if changes else pod


# --- Resources ---------------------------------------------------------------------------------------------------


def default_requests(resources: ResourceRequirements) -> ResourceRequirements:
    """Fill in a container's requests from its limits."""
    if resources.limits.keys() <= resources.requests.keys():
        return resources
    # As a new dict in the order of requests, then limits: the order shows in reports.
    requests = {**resources.requests, **resources.limits, **resources.requests}
    return attrs.evolve(resources, requests=FrozenDict(requests))


def _default_container(container: Container, host_network: bool) -> Container:
    resources = default_requests(container.resources)
    if resources is not container.resources:
        container = attrs.evolve(container, resources=resources)
    if host_network and any(port.host_port == 0 for port in container.ports):
        ports = tuple(
            attrs.evolve(port, host_port=port.host_port or port.container_port) for port in container.ports
        )
        container = attrs.evolve(container, ports=ports)
    return container


def _pod_level(spec: PodSpec, resources: ResourceRequirements) -> ResourceRequirements:
    """Pod-level limits of huge pages from the containers', then pod-level requests from containers and limits."""
    requests, limits = dict(resources.requests), dict(resources.limits)
    pod = Pod(spec=spec)
    if requests or limits:
        for name, amount in aggregate(pod, lambda container: container.resources.limits).items():
            if is_huge_pages(name) and name not in requests:
                limits.setdefault(name, amount)
    if limits:
        for name, amount in aggregate(pod, lambda container: container.resources.requests).items():
            if is_pod_level_resource(name) and may_overcommit(name):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if is_pod_level_resource(name):
                requests.setdefault(name, amount)
    return ResourceRequirements(requests=FrozenDict(requests), limits=FrozenDict(limits))


# --- Selectors ---------------------------------------------------------------------------------------------------


def _merge_into_terms(affinity: PodAffinity | None, labels: Mapping[str, str]) -> PodAffinity | None:
    if affinity is None:
        return None
    return PodAffinity(
        required=tuple(_merge_into_term(term, labels) for term in affinity.required),
        preferred=tuple(
            attrs.evolve(each, pod_affinity_term=_merge_into_term(each.pod_affinity_term, labels))
            for each in affinity.preferred
        ),
    )


def _merge_into_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = _merged(term.label_selector, term.match_label_keys, Operator.IN, labels)
    selector = _merged(selector, term.mismatch_label_keys, Operator.NOT_IN, labels)
    return term if selector is term.label_selector else attrs.evolve(term, label_selector=selector)


def _merge_into_constraint(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str]
) -> TopologySpreadConstraint:
    selector = _merged(constraint.label_selector, constraint.match_label_keys, Operator.IN, labels)
    return attrs.evolve(constraint, label_selector=selector)


def _merged(
    selector: LabelSelector | None, keys: Iterable[str], operator: Operator, labels: Mapping[str, str]
) -> LabelSelector | None:
    """Return `selector` with a requirement of the pod's value for each of `keys`, unless it has that already."""
    if selector is None:
        # The absent selector matches nothing, with or without keys.
        return None
    wanted = [Requirement(key, operator, (labels[key],)) for key in keys if key in labels]
    added = [requirement for requirement in wanted if requirement not in selector.match_expressions]
    if not added:
        return selector
    return attrs.evolve(selector, match_expressions=(*selector.match_expressions, *added))


# --- Priorities --------------------------------------------------------------------------------------------------


class Priorities:
    """The PriorityClasses of a cluster, as the Priority admission plugin applies them."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        known = list(classes)
        self._known = {
            name: (value, PreemptionPolicy.PREEMPT_LOWER_PRIORITY)
            for name, value in BUILT_IN_PRIORITIES.items()
        }
        self._known |= {each.name: (each.value, each.preemption_policy) for each in known}
        # If several classes are the default, the one with the lowest priority counts.
        default = min(
            (each for each in known if each.global_default), key=lambda each: each.value, default=None
        )
        self._default = default.name if default is not None else ""

    def applied(self, spec: PodSpec) -> PodSpec:
        """Return the spec with the priority and preemption policy of its class.

        A spec with a priority is unchanged, and one with a preemption policy other than the default keeps it, even if
        the class says otherwise: exported pods have both. kube-apiserver refuses to create such a pod. If the class
        isn't known, the spec stays without priority, which counts as 0.
        """
        if spec.priority is not None:
            return spec
        name = spec.priority_class_name or self._default
        if name not in self._known:
            return spec
        value, policy = self._known[name]
        if spec.preemption_policy is not PreemptionPolicy.PREEMPT_LOWER_PRIORITY:
            policy = spec.preemption_policy
        return _with_priority(spec, value, name, policy)
