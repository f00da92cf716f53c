"""Carries out a preemption: evicts the victims, and clears nominations of lower priority to the same node.

kube-scheduler evicts on a goroutine of its own by default, and holds the pod back in pre_enqueue until that is done.
Here it is done before post_filter returns, in the order of the victims, as with the gate
SchedulerAsyncPreemption off: what happened is known when the pod goes back to the queue, and nothing depends on
threads.
"""

from __future__ import annotations

import logging

from kschedfw.api.pod import Pod, PodCondition
from kschedfw.framework.handle import Handle, record_event
from kschedfw.framework.preemption.candidates import Candidate
from kschedfw.framework.status import Status

logger = logging.getLogger(__name__)

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


def is_terminating_by_preemption(pod: Pod) -> bool:
    """Whether the pod is being deleted because a scheduler preempted it."""
    target = next((each for each in pod.status.conditions if each.type == DISRUPTION_TARGET), None)
    return (
        pod.is_terminating
        and target is not None
        and target.status == "True"
        and target.reason == PREEMPTION_BY_SCHEDULER
    )


def prepare_candidate(handle: Handle, plugin_name: str, candidate: Candidate, pod: Pod) -> Status:
    """Evict the candidate's victims, then clear nominations of lower priority to its node; ERROR if an eviction fails.

    Victims that are terminating already are skipped. After a failed eviction the pod isn't nominated; its next attempt
    sees the node as it is then.
    """
    for victim in candidate.victims.pods:
        if victim.is_terminating:
            continue
        try:
            _evict(handle, plugin_name, victim, pod, candidate.node_name)
        except Exception as error:
            # A cluster may raise anything; it must cost only this attempt.
            return Status.from_error(error)
    _clear_lower_nominations(handle, pod, candidate.node_name)
    return Status.success()


def _evict(handle: Handle, plugin_name: str, victim: Pod, pod: Pod, node_name: str) -> None:
    if not _hold_back(handle, plugin_name, victim) and not _delete(handle, victim, pod):
        return
    message = f"Preempted by pod {pod.uid} on node {node_name}"
    record_event(handle.cluster, victim, "Normal", "Preempted", message, related=pod)


def _hold_back(handle: Handle, plugin_name: str, victim: Pod) -> bool:
    """Send a victim that waits at permit, or is in pre_bind, back to the queue; False if it is too late for that."""
    waiting = handle.waiting_pods.get(victim.uid)
    if waiting is not None and waiting.preempt(plugin_name, "preempted"):
        return True
    in_pre_bind = handle.pods_in_pre_bind.get(victim.uid)
    return in_pre_bind is not None and in_pre_bind.cancel(f"preempted by {plugin_name}")


def _delete(handle: Handle, victim: Pod, pod: Pod) -> bool:
    """Set the victim's DisruptionTarget condition and delete it; False if it is deleted already."""
    condition = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=PREEMPTION_BY_SCHEDULER,
        message=f"{pod.spec.scheduler_name}: preempting to accommodate a higher priority pod",
    )
    try:
        handle.cluster.patch_pod_status(victim, condition=condition)
        handle.cluster.delete(victim)
    except Exception:
        present = handle.cluster.get(Pod, victim.key)
        if present is None or present.uid != victim.uid:
            return False
        raise
    return True


def _clear_lower_nominations(handle: Handle, pod: Pod, node_name: str) -> None:
    """Clear the nominations to the node of pods with a lower priority, which may not fit there any more."""
    for info in handle.nominator.nominated_pods_for_node(node_name):
        if info.pod.priority >= pod.priority:
            continue
        try:
            handle.cluster.patch_pod_status(info.pod, nominated_node_name="")
        except Exception:
            # Not worth failing for: at worst the pod waits longer than it needs to.
            logger.warning(
                "can't take back the nomination of pod %s to node %s", info.pod.key, node_name, exc_info=True
            )
