"""The controller that makes claims for devices from templates, for a cluster in memory."""

from __future__ import annotations

import attrs

from kschedfw import FrozenDict, Pod
from kschedfw.api import (
    CLAIM_FINALIZER,
    POD_CLAIM_ANNOTATION,
    ObjectMeta,
    OwnerReference,
    PodResourceClaim,
    PodResourceClaimStatus,
    ResourceClaim,
    ResourceClaimTemplate,
)
from kschedfw.cluster import ClusterError, EventType, InMemoryCluster, WatchEvent


class ClaimController:
    """Kubernetes' resource claim controller, as far as scheduling depends on it.

    * A pod gets a claim for each template that it refers to; its status has the claims' names.
    * A claim that was made for a pod is deleted with it. Other claims lose their reservation for a pod that is
      gone or has ended, and are deallocated when they have no reservation left.

    It reacts to a change before the write that made it returns.
    """

    def __init__(self, cluster: InMemoryCluster) -> None:
        self._cluster = cluster
        # `_handle` alone uses it, and no handler is called by two threads at once: it needs no lock.
        self._waiting: dict[str, None] = {}
        """The keys of pods that refer to a claim template which doesn't exist yet."""
        self.close = cluster.watch(self._handle)

    def _handle(self, event: WatchEvent) -> None:
        obj = event.object
        try:
            if isinstance(obj, ResourceClaimTemplate):
                # A copy: `_make_claims` takes the key out, and puts it back if another template is still missing.
                for key in tuple(self._waiting):
                    if (pod := self._cluster.get(Pod, key)) is not None:
                        self._make_claims(pod)
            elif isinstance(obj, Pod) and (
                obj.spec.resource_claims or obj.status.extended_resource_claim_status
            ):
                if event.type is EventType.DELETED or obj.is_terminal:
                    self._waiting.pop(obj.key, None)
                    self._release_claims(obj)
                else:
                    self._make_claims(obj)
        except ClusterError:
            # Another thread has changed the object; the event of that change leads here again.
            return

    def _make_claims(self, pod: Pod) -> None:
        self._waiting.pop(pod.key, None)
        named = {each.name for each in pod.status.resource_claim_statuses}
        made = []
        for reference in pod.spec.resource_claims:
            if reference.resource_claim_template_name is None or reference.name in named:
                continue
            key = f"{pod.namespace}/{reference.resource_claim_template_name}"
            template = self._cluster.get(ResourceClaimTemplate, key)
            if template is None:
                self._waiting[pod.key] = None
                continue
            claim = self._claim_of(pod, reference) or self._cluster.add(_claim(pod, reference, template))
            made.append(PodResourceClaimStatus(reference.name, claim.name))
        # After the claims: if the pod has changed meanwhile this is refused, and the event of that change finds the
        # claims by `_claim_of`.
        if made:
            statuses = (*pod.status.resource_claim_statuses, *made)
            self._cluster.update(pod.with_status(attrs.evolve(pod.status, resource_claim_statuses=statuses)))

    def _claim_of(self, pod: Pod, reference: PodResourceClaim) -> ResourceClaim | None:
        """Return an existing claim of the pod, as in a dump without the pod's status; None if there is none."""
        for claim in self._cluster.list(ResourceClaim, pod.namespace):
            if claim.annotations.get(POD_CLAIM_ANNOTATION) == reference.name and claim.is_owned_by(pod):
                return claim
        return None

    def _release_claims(self, pod: Pod) -> None:
        for name in _claim_names(pod):
            claim = self._cluster.get(ResourceClaim, f"{pod.namespace}/{name}")
            if claim is None:
                continue
            if claim.is_reserved_for(pod):
                claim = self._cluster.update(_without_reservation(claim, pod))
            if claim.is_owned_by(pod):
                self._cluster.delete(claim)


def _claim_names(pod: Pod) -> list[str]:
    """Return the names of the claims that the pod refers to, and of those that were made for it.

    Looking through all claims of the namespace takes 3.5 ms where there are 7,500.
    """
    status = pod.status
    names = [each.resource_claim_name for each in pod.spec.resource_claims]
    names += [each.resource_claim_name for each in status.resource_claim_statuses]
    if status.extended_resource_claim_status is not None:
        names.append(status.extended_resource_claim_status.resource_claim_name)
    return [name for name in names if name]


def _without_reservation(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """Return the claim without the pod among its consumers, and without devices if that was the last one.

    The finalizer keeps a claim until it has no devices. So a claim that is deleted with its pod is freed first,
    which is the event that schedulers wait for.
    """
    left = tuple(each for each in claim.status.reserved_for if each.uid != pod.uid)
    allocation = claim.status.allocation if left else None
    finalizers = claim.metadata.finalizers
    if allocation is None:
        finalizers = tuple(each for each in finalizers if each != CLAIM_FINALIZER)
    return attrs.evolve(
        claim,
        metadata=attrs.evolve(claim.metadata, finalizers=finalizers),
        status=attrs.evolve(claim.status, allocation=allocation, reserved_for=left),
    )


def _claim(pod: Pod, reference: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    given = template.spec.metadata
    owner = OwnerReference(kind="Pod", name=pod.name, uid=pod.uid, api_version="v1", controller=True)
    metadata = ObjectMeta(
        # Kubernetes adds random letters; a name that is always the same makes simulations reproducible.
        name=f"{pod.name}-{reference.name}",
        namespace=pod.namespace,
        labels=given.labels,
        annotations=FrozenDict({**given.annotations, POD_CLAIM_ANNOTATION: reference.name}),
        owner_references=(owner,),
    )
    return ResourceClaim(metadata, template.spec.spec)
