"""The claims of pods, and what is taken by claims: as the cluster has it, and as it is decided already.

What a pod was given in its scheduling cycle is in flight until it is written into the claim's status: its devices
are taken, and no other pod can use the claim yet (kube-scheduler `DRAManager`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from kschedfw import ClusterClient, Pod
from kschedfw.api import AllocationResult, PodResourceClaim, ResourceClaim
from kschedfw.api.resource_claims import EXTENDED_RESOURCE_ANNOTATION
from kschedfw.plugins._assume_cache import AssumeCache
from kschedfw.plugins.dynamic_resources.inventory import PoolId
from kschedfw.plugins.dynamic_resources.usage import NOTHING_USED, PoolUsage, Usage, counting_results


class ClaimProblem(Exception):
    """A pod can't be scheduled because of one of its claims."""


class Claims:
    """All claims, with what is in flight. Thread-safe as far as the cluster is, and dicts are."""

    def __init__(self, cluster: ClusterClient) -> None:
        self.cache = AssumeCache(ResourceClaim, cluster)
        self._in_flight: dict[str, AllocationResult] = {}
        self._usage = _UsageBook()

    def of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """The pod's claims in its order; those that turned out not to be needed are left out.

        Raises:
            ClaimProblem: one isn't there, isn't the pod's, or is being deleted.
        """
        for reference in pod.spec.resource_claims:
            name = claim_name(pod, reference)
            if name is None:
                continue
            key = f"{pod.namespace}/{name}"
            claim = self.cache.get(key)
            if claim is None:
                raise ClaimProblem(f'could not find ResourceClaim "{key}"')
            if claim.metadata.deletion_timestamp is not None:
                raise ClaimProblem(f'resourceclaim "{name}" is being deleted')
            if reference.resource_claim_name is None and not claim.is_owned_by(pod):
                raise ClaimProblem(
                    f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
                )
            yield claim

    def extended_of(self, pod: Pod) -> ResourceClaim | None:
        """The claim for the pod's extended resources that an earlier attempt has left."""
        for claim in self.cache.list():
            if claim.annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true" and claim.is_owned_by(pod):
                return claim
        return None

    def is_in_flight(self, claim: ResourceClaim) -> bool:
        return claim.uid in self._in_flight

    def put_in_flight(self, uid: str, allocation: AllocationResult) -> None:
        self._in_flight[uid] = allocation

    def landed(self, uid: str) -> None:
        """What was in flight is in the cluster now, or has been given up."""
        self._in_flight.pop(uid, None)

    def usage(self) -> Usage:
        """What is taken at the moment; doesn't change afterwards."""
        self._usage.follow(self.cache.list(), dict(self._in_flight))
        return self._usage.by_pool()


def claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """The name of the claim that a pod means; None if it needs none.

    Raises:
        ClaimProblem: it is to be made from a template, and isn't yet.
    """
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ClaimProblem(f'pod "{pod.key}": ResourceClaim not created yet')


class _UsageBook:
    """What is taken, by pool; only pools of claims that have changed are worked out anew."""

    def __init__(self) -> None:
        self._listed: object = None
        self._claims: dict[str, ResourceClaim] = {}
        self._in_flight: Mapping[str, AllocationResult] = {}
        self._allocations: dict[PoolId, dict[str, AllocationResult]] = {}
        self._by_pool: dict[PoolId, PoolUsage] = {}

    def follow(self, claims: Iterable[ResourceClaim], in_flight: Mapping[str, AllocationResult]) -> None:
        if claims is not self._listed:
            self._follow_claims(claims)
            self._listed = claims
        for uid in self._in_flight.keys() | in_flight.keys():
            old, new = self._in_flight.get(uid), in_flight.get(uid)
            if old is not new:
                known = self._claims.get(uid)
                written = None if known is None else known.status.allocation
                self._change(uid, old or written, new or written)
        self._in_flight = in_flight

    def by_pool(self) -> Usage:
        return dict(self._by_pool)

    def _follow_claims(self, claims: Iterable[ResourceClaim]) -> None:
        present: dict[str, ResourceClaim] = {}
        for claim in claims:
            uid = claim.uid
            present[uid] = claim
            known = self._claims.get(uid)
            if known is not claim:
                before = None if known is None else known.status.allocation
                if uid not in self._in_flight:
                    self._change(uid, before, claim.status.allocation)
        if len(present) < len(self._claims.keys() | present.keys()):
            for uid in self._claims.keys() - present.keys():
                if uid not in self._in_flight:
                    self._change(uid, self._claims[uid].status.allocation, None)
        self._claims = present

    def _change(self, uid: str, old: AllocationResult | None, new: AllocationResult | None) -> None:
        if old is new:
            return
        given = {(each.driver, each.pool) for each in counting_results(new)}
        for pool in given | {(each.driver, each.pool) for each in counting_results(old)}:
            allocations = self._allocations.setdefault(pool, {})
            gone = allocations.pop(uid, None)
            usage = self._by_pool.get(pool, NOTHING_USED)
            if gone is not None:
                usage = NOTHING_USED
                for other in allocations.values():
                    usage = _with(usage, pool, other)
            if new is not None and pool in given:
                allocations[uid] = new
                usage = _with(usage, pool, new)
            if allocations:
                self._by_pool[pool] = usage
            else:
                del self._allocations[pool]
                self._by_pool.pop(pool, None)


def _with(usage: PoolUsage, pool: PoolId, allocation: AllocationResult) -> PoolUsage:
    for result in counting_results(allocation):
        if (result.driver, result.pool) == pool:
            usage = usage.with_result(result)
    return usage


def reserved_for_others(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether somebody else than the pod may use the claim."""
    return any(each.uid != pod.uid for each in claim.status.reserved_for)


def without_allocation(claim: ResourceClaim) -> ResourceClaim:
    """The claim as if it had never been given anything."""
    return attrs.evolve(claim, status=attrs.evolve(claim.status, allocation=None, reserved_for=()))
