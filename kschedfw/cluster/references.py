"""Objects that pods refer to and a cluster lacks. Without them, a dump of a cluster leads to other decisions.

For claims without a volume there is also the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, TypeAlias

from kschedfw.api.affinity import PodAffinityTerm
from kschedfw.api.defaults import BUILT_IN_PRIORITIES
from kschedfw.api.devices import DeviceClass
from kschedfw.api.finding import Finding
from kschedfw.api.kinds import KIND_OF
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from kschedfw.api.spelling import did_you_mean
from kschedfw.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeBindingMode
from kschedfw.api.volume_matching import class_of_claim
from kschedfw.api.workloads import Namespace, PriorityClass, ReplicaSet, ReplicationController, StatefulSet
from kschedfw.cluster.memory import InMemoryCluster
from kschedfw.cluster.protocol import Cluster

Reference: TypeAlias = tuple[type[Named], str]
"""A kind, and the key of one of its objects."""

_SPREADING_OWNERS: Final[dict[tuple[str, str], type[Named]]] = {
    (KIND_OF[cls].api_version, KIND_OF[cls].name): cls
    for cls in (ReplicationController, ReplicaSet, StatefulSet)
}
"""The controllers from whose selectors PodTopologySpread's default constraints know which pods to count."""


@frozen
class MissingObject:
    """A missing object: its kind and key, and the keys of the pods that refer to it."""

    kind: str
    name: str
    pods: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "name": self.name, "pods": list(self.pods)}


def missing_objects(cluster: Cluster) -> tuple[MissingObject, ...]:
    """Return the objects that scheduling would read for the pods and that the cluster lacks; by kind, then by name.

    These are the nodes of bound pods; claims for devices, or the templates of claims that aren't made yet, and the
    classes of devices that aren't allocated;
    claims, their volumes and, while they have none, their storage classes; priority classes of pods without a
    priority; for pending pods, the controllers whose selectors default spreading uses; and namespaces whose
    labels a namespaceSelector asks for. References of ended pods don't count.
    """
    found: dict[Reference, list[str]] = {}
    implied = cluster.implied_namespaces if isinstance(cluster, InMemoryCluster) else frozenset()
    # Pods of one workload refer to the same objects: each is looked up once.
    known: dict[Reference, bool] = {}
    for pod in cluster.list(Pod):
        if pod.is_terminal:
            continue
        for reference in _references(cluster, pod, implied):
            if reference not in known:
                kind, key = reference
                present = cluster.get(kind, key) is not None
                known[reference] = present and not (kind is Namespace and key in implied)
            if not known[reference]:
                found.setdefault(reference, []).append(pod.key)
    ordered = sorted(found.items(), key=lambda item: (item[0][0].__name__, item[0][1]))
    return tuple(
        MissingObject(kind.__name__, key, tuple(dict.fromkeys(pods))) for (kind, key), pods in ordered
    )


@frozen
class ClaimProblem:
    """A pod's claim without a volume, where no scheduler can change that, and the finding that says why.

    `misspelt` is the kind and key of the object for which the finding asks whether another one was meant; None if it
    doesn't ask.
    """

    finding: Finding
    misspelt: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """Return the finding in words."""
        return str(self.finding)


def claim_problems(pod: Pod, cluster: Cluster) -> Iterator[ClaimProblem]:
    """Yield the problems of the claims that the pod names, but of those that wait for their first consumer."""
    for volume in pod.spec.volumes:
        if (source := volume.persistent_volume_claim) is None:
            continue
        key = f"{pod.namespace}/{source.claim_name}"
        claim = cluster.get(PersistentVolumeClaim, key)
        if claim is None:
            others = cluster.list(PersistentVolumeClaim, pod.namespace)
            meant = did_you_mean(source.claim_name, [each.name for each in others])
            misspelt = (PersistentVolumeClaim.__name__, key) if meant else None
            missing = Finding.of("claim-missing", "claim {claim} doesn't exist{hint}", claim=key, hint=meant)
            yield ClaimProblem(missing, misspelt)
        elif not claim.spec.volume_name:
            if (problem := _of_unbound_claim(claim, cluster)) is not None:
                yield problem
        elif cluster.get(PersistentVolume, claim.spec.volume_name) is None:
            text = "claim {claim} is of volume {volume}, which doesn't exist"
            lost = Finding.of("claimed-volume-missing", text, claim=key, volume=claim.spec.volume_name)
            yield ClaimProblem(lost)


def _of_unbound_claim(claim: PersistentVolumeClaim, cluster: Cluster) -> ClaimProblem | None:
    pending = partial(Finding.of, claim=claim.key)
    name = class_of_claim(claim)
    if not name:
        # An empty name asks for no class; without a name, the default class would be the claim's.
        no_default = ", and none is the default" if claim.spec.storage_class_name is None else ""
        text = (
            f"claim {{claim}} is pending: it has no StorageClass{no_default}, so it waits for a PersistentVolume "
            "that fits"
        )
        return ClaimProblem(pending("claim-without-class", text))
    storage_class = cluster.get(StorageClass, name)
    if storage_class is None:
        meant = did_you_mean(name, [each.name for each in cluster.list(StorageClass)])
        text = "claim {claim} is pending: there is no StorageClass {storageClass} to make it a volume{hint}"
        finding = pending("storage-class-missing", text, storageClass=name, hint=meant)
        return ClaimProblem(finding, (StorageClass.__name__, name) if meant else None)
    if storage_class.volume_binding_mode == VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER:
        return None
    text = (
        "claim {claim} is pending: provisioner {provisioner} of StorageClass {storageClass} has to make it a "
        "volume; kubectl -n {namespace} describe pvc {name} says what it did"
    )
    return ClaimProblem(
        pending(
            "claim-waits-for-provisioner",
            text,
            provisioner=storage_class.provisioner,
            storageClass=name,
            namespace=claim.namespace,
            name=claim.name,
        )
    )


def _references(cluster: Cluster, pod: Pod, implied: frozenset[str]) -> Iterator[Reference]:
    spec = pod.spec
    if spec.node_name:
        yield Node, spec.node_name
    if spec.priority is None and spec.priority_class_name not in ("", *BUILT_IN_PRIORITIES):
        yield PriorityClass, spec.priority_class_name
    for volume in pod.storage:
        if volume.persistent_volume_claim is not None:
            yield from _of_claim(cluster, f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}")
    named = {each.name for each in pod.status.resource_claim_statuses}
    for claim in spec.resource_claims:
        if claim.resource_claim_name is not None:
            yield from _of_devices(cluster, ResourceClaim, f"{pod.namespace}/{claim.resource_claim_name}")
        elif claim.resource_claim_template_name is not None and claim.name not in named:
            key = f"{pod.namespace}/{claim.resource_claim_template_name}"
            yield from _of_devices(cluster, ResourceClaimTemplate, key)
    owner = pod.metadata.controller
    # Default constraints are for pods without constraints of their own, and are looked at only while a pod is
    # scheduled.
    if owner is not None and not spec.node_name and not spec.topology_spread_constraints:
        kind = _SPREADING_OWNERS.get((owner.api_version, owner.kind))
        if kind is not None:
            yield kind, f"{pod.namespace}/{owner.name}"
    if implied and any(map(_looks_at_namespaces, spec.affinity.pod_terms)):
        yield from ((Namespace, name) for name in implied)


def _of_devices(
    cluster: Cluster, kind: type[ResourceClaim | ResourceClaimTemplate], key: str
) -> Iterator[Reference]:
    """Yield a claim for devices or the template of one, and the classes of devices it needs."""
    yield kind, key
    found = cluster.get(kind, key)
    if isinstance(found, ResourceClaimTemplate):
        spec = found.spec.spec
    # Once devices are allocated, nobody looks at their classes again.
    elif isinstance(found, ResourceClaim) and found.status.allocation is None:
        spec = found.spec
    else:
        return
    for request in spec.devices.requests:
        options = request.first_available if request.exactly is None else (request.exactly,)
        yield from ((DeviceClass, option.device_class_name) for option in options)


def _of_claim(cluster: Cluster, key: str) -> Iterator[Reference]:
    yield PersistentVolumeClaim, key
    claim = cluster.get(PersistentVolumeClaim, key)
    if claim is None:
        return
    if claim.spec.volume_name:
        yield PersistentVolume, claim.spec.volume_name
    elif claim.spec.storage_class_name:
        yield StorageClass, claim.spec.storage_class_name


def _looks_at_namespaces(term: PodAffinityTerm) -> bool:
    selector = term.namespace_selector
    return selector is not None and not selector.compile().everything
