"""The events that are worth another attempt for a pod that was refused because of its devices."""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw import ActionType, ClusterEvent, EventResource, Pod, QueueingHint
from kschedfw.api import ResourceClaim
from kschedfw.plugins._hints import queue_if
from kschedfw.plugins.dynamic_resources.claims import ResourceClaimProblem, ResourceClaims


def claim_events(claims: ResourceClaims) -> Sequence[ClusterEvent]:
    """Return the events that the plugin subscribes to, each with its hint."""

    def after_pod_change(pod: Pod, _old: object | None, new: object | None) -> QueueingHint:
        """Queue when the pod's own claims have been made."""
        if not isinstance(new, Pod) or new.uid != pod.uid:
            return QueueingHint.SKIP
        return queue_if(_has_claims(claims, new))

    def after_claim_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Queue when devices become free, or something happens to one of the pod's own claims."""
        if not isinstance(new, ResourceClaim):
            return QueueingHint.SKIP
        before = old if isinstance(old, ResourceClaim) else None
        try:
            own = any(claim.uid == new.uid for claim in claims.of(pod))
        except ResourceClaimProblem:
            return QueueingHint.SKIP  # it has to wait for another one in any case
        if before is not None and before.status.allocation is not None and new.status.allocation is None:
            return QueueingHint.QUEUE
        return queue_if(own and (before is None or before.status != new.status))

    add_or_update = ActionType.ADD | ActionType.UPDATE
    node_changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
    return (
        ClusterEvent(
            EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, after_pod_change
        ),
        # Not their deletion, as in kube-scheduler: the finalizer keeps a claim until its devices are free, which is an
        # update.
        ClusterEvent(EventResource.RESOURCE_CLAIM, add_or_update, after_claim_change),
        ClusterEvent(EventResource.DEVICE_CLASS, add_or_update),
        ClusterEvent(EventResource.RESOURCE_SLICE, add_or_update),
        ClusterEvent(EventResource.NODE, node_changes),
    )


def _has_claims(claims: ResourceClaims, pod: Pod) -> bool:
    try:
        for _ in claims.of(pod):
            pass
    except ResourceClaimProblem:
        return False
    return True
