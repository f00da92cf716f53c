"""The claims of pods: the cluster's state with decided but unwritten allocations.

An allocation made in a pod's scheduling cycle is in flight until it is written into the claim's status: its
devices are taken, and no other pod can use the claim yet (kube-scheduler `DRAManager`).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import ClusterClient, MemberStates, Pod
from kschedfw.api import AllocationResult, PodResourceClaim, ResourceClaim
from kschedfw.plugins._assume_cache import AssumeCache
from kschedfw.plugins.dynamic_resources.usage import Usage
from kschedfw.plugins.dynamic_resources.usage_book import UsageBook


class ResourceClaimProblem(Exception):
    """The error of a claim that keeps the pod from being scheduled; the text says why."""


class ResourceClaims:
    """All claims of the cluster, with allocations in flight. As thread-safe as the cluster."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cache = AssumeCache(ResourceClaim, cluster)
        self.book = UsageBook()
        self._trials: dict[str, MemberStates] = {}
        """The trial of a group in which a claim was put in flight, by the claim's uid."""

    def of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the pod's claims in its order. Claims that the pod turned out not to need are omitted.

        Raises:
            ResourceClaimProblem: a claim doesn't exist, isn't the pod's, or is being deleted.
        """
        for reference in pod.spec.resource_claims:
            name = claim_name(pod, reference)
            if name is None:
                continue
            key = f"{pod.namespace}/{name}"
            claim = self.cache.get(key)
            if claim is None:
                raise ResourceClaimProblem(f'could not find ResourceClaim "{key}"')
            if claim.metadata.deletion_timestamp is not None:
                raise ResourceClaimProblem(f'resourceclaim "{name}" is being deleted')
            if reference.resource_claim_name is None and not claim.is_owned_by(pod):
                raise ResourceClaimProblem(
                    f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
                )
            yield claim

    def problem_of(self, pod: Pod) -> str:
        """Return what is wrong with the pod's claims; empty if each is there and the pod's."""
        try:
            for _ in self.of(pod):
                pass
        except ResourceClaimProblem as problem:
            return str(problem)
        return ""

    def extended_of(self, pod: Pod) -> ResourceClaim | None:
        """Return the claim for the pod's extended resources that an earlier attempt created; None if there is none."""
        self.book.follow(self.cache.list())
        return next((each for each in self.book.extended_of(pod.uid) if each.is_owned_by(pod)), None)

    def put_in_flight(
        self, uid: str, allocation: AllocationResult, trial: MemberStates | None = None
    ) -> None:
        """Record the allocation of a claim before it is written.

        While a group is on trial, its members may share the claim.
        """
        self.book.put_in_flight(uid, allocation)
        if trial is not None:
            self._trials[uid] = trial

    def as_shared(self, claim: ResourceClaim, trial: MemberStates | None) -> ResourceClaim:
        """Return the claim with the allocation that another group member got in this trial; unchanged if none."""
        given = self.book.in_flight(claim.uid)
        if given is None or trial is None or self._trials.get(claim.uid) is not trial:
            return claim
        return attrs.evolve(claim, status=attrs.evolve(claim.status, allocation=given))

    def landed(self, uid: str) -> None:
        """Drop the allocation in flight: it was written to the cluster, or given up."""
        self.book.landed(uid)
        self._trials.pop(uid, None)

    def usage(self) -> Usage:
        """Return the devices in use now; the result doesn't change afterwards."""
        self.book.follow(self.cache.list())
        return self.book.usage()


def claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """Return the name of the claim behind an entry of the pod; None if the entry needs none.

    Raises:
        ResourceClaimProblem: the claim has to be made from a template, and isn't yet.
    """
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ResourceClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')


def reserved_for_others(claim: ResourceClaim, pod: Pod) -> bool:
    """Tell whether the claim is reserved for another consumer than the pod."""
    return any(each.uid != pod.uid for each in claim.status.reserved_for)


def without_allocation(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim without its allocation and reservations."""
    return attrs.evolve(claim, status=attrs.evolve(claim.status, allocation=None, reserved_for=()))
