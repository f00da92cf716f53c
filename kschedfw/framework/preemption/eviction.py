"""The evictions of a preemption, and the removal of nominations of lower priority to the same node.

kube-scheduler evicts on a goroutine of its own by default, and holds the pod back in pre_enqueue until that is
done. Here it is done before post_filter returns, in the order of the victims, as with the gate
SchedulerAsyncPreemption off: the result is known when the pod goes back to the queue, and nothing depends on
threads. Where pods are scheduled in groups (GenericWorkload), it is done after the cycle (`evict_later`):
evictions for one member must not make room for the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import attrs

from kschedfw.api import Named, Pod, PodCondition
from kschedfw.framework.errors import NotFoundError
from kschedfw.framework.handle import Handle, record_event
from kschedfw.framework.preemption.candidates import Candidate
from kschedfw.framework.status import Status

logger = logging.getLogger(__name__)

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


def is_terminating_by_preemption(pod: Pod) -> bool:
    """Return whether the pod is being deleted because a scheduler preempted it."""
    target = next((each for each in pod.status.conditions if each.type == DISRUPTION_TARGET), None)
    return (
        pod.is_terminating
        and target is not None
        and target.status == "True"
        and target.reason == PREEMPTION_BY_SCHEDULER
    )


@attrs.frozen
class Preemptor:
    """The pod or group that needs the room, in the words of events and conditions.

    `where` is the node; "cluster" for a group, whose victims are on many. Nominations to the node below
    `priority` are cleared.
    """

    kind: str
    object: Named
    scheduler_name: str
    where: str
    priority: int

    @property
    def uid(self) -> str:
        return self.object.metadata.uid

    @classmethod
    def pod(cls, pod: Pod, node_name: str) -> Preemptor:
        return cls("pod", pod, pod.spec.scheduler_name, node_name, pod.priority)


def evict(handle: Handle, plugin_name: str, victims: Sequence[Pod], preemptor: Preemptor) -> None:
    """Evict the victims, then clear nominations of lower priority to the preemptor's node.

    Victims that are terminating already are skipped. Exceptions of the cluster are raised.
    """
    for victim in _begin(handle, victims):
        _evict(handle, plugin_name, victim, preemptor)
    _clear_lower_nominations(handle, preemptor)


def prepare_candidate(handle: Handle, plugin_name: str, candidate: Candidate, pod: Pod) -> Status:
    """Evict the candidate's victims, then clear nominations of lower priority to its node; ERROR if an eviction fails.

    Victims that are terminating already are skipped. After a failed eviction the pod isn't nominated; its next attempt
    sees the node as it is then.
    """
    try:
        evict(handle, plugin_name, candidate.victims.pods, Preemptor.pod(pod, candidate.node_name))
    except Exception as error:
        # A cluster may raise anything; only this attempt should fail.
        return Status.from_error(error)
    return Status.success()


def evict_later(
    handle: Handle, plugin_name: str, victims: Sequence[Pod], preemptor: Preemptor, members: Sequence[Pod]
) -> None:
    """Queue the evictions for the end of the cycle; until then `handle.evictions` holds the preemptor back.

    Victims that are terminating already are skipped; if all are, nothing is queued. If an eviction fails, the
    `members` that wait for it are tried again.
    """
    # Where nothing is left to do, the members mustn't be held back: no answer would let them pass again.
    if left := _begin(handle, victims):
        handle.evictions.start(preemptor.uid, LaterEvictions(handle, plugin_name, left, preemptor, members))


@attrs.define(eq=False)
class LaterEvictions:
    """The evictions for a preemptor, after its cycle (kube-scheduler `prepareCandidateAsync`).

    The preemptor is held back until only the last victim is left: an earlier attempt would find victims that are
    still there, and preempt them again. It is let through before the eviction of the last one, whose event brings it
    back to the queue.
    """

    _handle: Handle
    _plugin_name: str
    _victims: Sequence[Pod]
    """At least one; none of them was terminating in the cycle."""
    _preemptor: Preemptor
    _members: Sequence[Pod]
    _is_open: bool = attrs.field(default=False, init=False)

    @property
    def holds_back(self) -> bool:
        """True until only the last victim is left, and is about to be evicted or goes for another reason."""
        return not self._is_open and (len(self._victims) > 1 or not self._is_last_leaving())

    def carry_out(self) -> None:
        """Evict the victims in their order. Log what a cluster raises, and have the members tried again."""
        try:
            # First, as in kube-scheduler: those pods needn't wait for the evictions to look for another place.
            _clear_lower_nominations(self._handle, self._preemptor)
            *others, last = self._victims
            for victim in others:
                _evict(self._handle, self._plugin_name, victim, self._preemptor)
            self._is_open = True
            # After the gate has opened: an event that comes from now on finds it so. An earlier one didn't bring
            # the members back, and there may be no other.
            was_missed = bool(others) and self._is_last_leaving()
            _evict(self._handle, self._plugin_name, last, self._preemptor)
            if was_missed:
                self._handle.activate(self._members)
        except Exception:  # a cluster may raise anything; only this preemption should fail
            logger.exception("the preemption for %s %s failed", self._preemptor.kind, self._preemptor.uid)
            self._is_open = True
            self._handle.activate(self._members)

    def _is_last_leaving(self) -> bool:
        last = self._victims[-1]
        present = self._handle.cluster.get(Pod, last.key)
        # A pod that has ended has no deletion ahead that anybody would be told of: its room is free already.
        return present is None or present.uid != last.uid or present.is_terminating or present.is_terminal


def _begin(handle: Handle, victims: Sequence[Pod]) -> Sequence[Pod]:
    """Return the victims that are to be evicted. Record the number of all, unless the others are terminating."""
    left = [victim for victim in victims if not victim.is_terminating]
    if left:
        handle.metrics.preemption_victims(len(victims))
    return left


def _evict(handle: Handle, plugin_name: str, victim: Pod, preemptor: Preemptor) -> None:
    if not _hold_back(handle, plugin_name, victim) and not _delete(handle, victim, preemptor):
        return
    message = f"Preempted by {preemptor.kind} {preemptor.uid} on node {preemptor.where}"
    record_event(handle.cluster, victim, "Normal", "Preempted", message, related=preemptor.object)


def _hold_back(handle: Handle, plugin_name: str, victim: Pod) -> bool:
    """Send a victim that waits at permit, or is in pre_bind, back to the queue; return False if it is too late."""
    # A pod that isn't bound yet takes its room by reservation alone, so it is sent back and not deleted, as
    # in kube-scheduler.
    waiting = handle.waiting_pods.get(victim.uid)
    if waiting is not None and waiting.preempt(plugin_name, "preempted"):
        return True
    in_pre_bind = handle.pods_in_pre_bind.get(victim.uid)
    return in_pre_bind is not None and in_pre_bind.cancel(f"preempted by {plugin_name}")


def _delete(handle: Handle, victim: Pod, preemptor: Preemptor) -> bool:
    """Set the victim's DisruptionTarget condition and delete it; return False if it is already gone."""
    condition = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=PREEMPTION_BY_SCHEDULER,
        message=f"{preemptor.scheduler_name}: preempting to accommodate a higher priority {preemptor.kind}",
    )
    try:
        # The condition first, as in kube-scheduler: after the deletion there may be no object left to patch.
        handle.cluster.patch_pod_status(victim, condition=condition)
        handle.cluster.delete(victim)
    except NotFoundError:
        # Not looked up: the cluster's `get` may still return the victim, whose deletion it is yet to hear of.
        return False
    except Exception:
        # The error of a victim whose name another pod has by now differs between clusters, so it is looked up.
        present = handle.cluster.get(Pod, victim.key)
        if present is None or present.uid != victim.uid:
            return False
        raise
    return True


def _clear_lower_nominations(handle: Handle, preemptor: Preemptor) -> None:
    """Clear the nominations to the preemptor's node of pods with a lower priority, which may not fit there any more."""
    for info in handle.nominator.nominated_pods_for_node(preemptor.where):
        if info.pod.priority >= preemptor.priority:
            continue
        try:
            handle.cluster.patch_pod_status(info.pod, nominated_node_name="")
        except Exception:
            # Not worth failing for: at worst the nominated pod waits longer than it needs to.
            logger.warning(
                "can't take back the nomination of pod %s to node %s",
                info.pod.key,
                preemptor.where,
                exc_info=True,
            )
