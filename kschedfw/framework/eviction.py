"""The evictions of a preemption, and the removal of nominations of lower priority to the same node.

kube-scheduler evicts on a goroutine of its own by default, and holds the pod back in pre_enqueue until that is
done. Here it is done before post_filter returns, in the order of the victims, as with the gate
SchedulerAsyncPreemption off: the result is known when the pod goes back to the queue, and nothing depends on
threads. Where pods are scheduled in groups (GenericWorkload), it is done after the cycle (`evict_later`):
evictions for one member must not make room for the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import attrs

from kschedfw.api import DisruptionMode, Named, Pod, PodCondition, PodGroup, group_key
from kschedfw.api.records import define, frozen
from kschedfw.framework.cluster_client import ClusterClient, record_event
from kschedfw.framework.errors import NotFoundError
from kschedfw.framework.metrics import EntityKind
from kschedfw.framework.parts import Parts

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


@frozen
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

    @property
    def entity(self) -> EntityKind:
        """The preemptor in metrics."""
        return EntityKind(self.kind)

    @classmethod
    def pod(cls, pod: Pod, node_name: str) -> Preemptor:
        return cls("pod", pod, pod.spec.scheduler_name, node_name, pod.priority)


@frozen
class Harm:
    """The harm that a preemption does beside the number of its victims; for metrics (v1.37).

    `groups` counts groups that are evicted as a whole, and other members of groups; `violations` counts pods that are
    evicted against disruption budgets.
    """

    groups: int
    violations: int

    @classmethod
    def of_pods(cls, cluster: ClusterClient, victims: Sequence[Pod], violations: int) -> Harm:
        """Return the harm of evicting these pods, of which so many violate budgets."""
        groups = set()
        for pod in victims:
            if key := group_key(pod):
                group = cluster.get(PodGroup, key)
                is_whole = group is not None and group.spec.disruption_mode is DisruptionMode.POD_GROUP
                groups.add(key if is_whole else pod.uid)
        return cls(len(groups), violations)


@frozen(eq=False)
class Evictor:
    """The evictions of pods that are in the way of a preemptor, on one cluster."""

    parts: Parts
    activate: Callable[[Sequence[Pod]], None]

    def evict(self, victims: Sequence[Pod], preemptor: Preemptor, plugin: str) -> None:
        """Evict the victims, then clear nominations of lower priority to the preemptor's node.

        Victims that are terminating already are skipped. Exceptions of the cluster are raised.
        """
        for victim in self._begin(victims, preemptor):
            self.evict_one(victim, preemptor, plugin)
        self.clear_lower_nominations(preemptor)

    def evict_later(
        self,
        victims: Sequence[Pod],
        preemptor: Preemptor,
        plugin: str,
        members: Sequence[Pod],
        harm: Harm | None = None,
    ) -> None:
        """Queue the evictions for the end of the cycle; until then the preemptor is held back.

        Victims that are terminating already are skipped; if all are, nothing is queued. If an eviction fails, the
        `members` that wait for it are tried again. With `harm` (v1.37) metrics are told of it and of the evictions'
        duration.
        """
        # Where nothing is left to do, the members mustn't be held back: no answer would let them pass again.
        if left := self._begin(victims, preemptor, harm):
            later = LaterEvictions(self, left, preemptor, plugin, members, is_told=harm is not None)
            self.parts.evictions.start(preemptor.uid, later)

    def counts(self, victim: Pod) -> bool:
        """Return whether decisions still count the victim."""
        return self.parts.evictions.counts(victim)

    def _begin(self, victims: Sequence[Pod], preemptor: Preemptor, harm: Harm | None = None) -> Sequence[Pod]:
        """Return the victims that are to be evicted. Record the number of all, unless all are terminating."""
        left = [victim for victim in victims if not victim.is_terminating]
        if not left:
            return left
        entity = preemptor.entity
        if harm is not None and entity is EntityKind.GROUP:
            self.parts.metrics.group_preemption_victims(len(victims))
        else:
            self.parts.metrics.preemption_victims(len(victims))
        if harm is not None and harm.groups:
            self.parts.metrics.groups_disrupted(entity, harm.groups)
        if harm is not None and harm.violations:
            self.parts.metrics.budgets_violated(entity, harm.violations)
        return left

    def evict_one(self, victim: Pod, preemptor: Preemptor, plugin: str) -> None:
        if not self._hold_back(victim, plugin) and not self._delete(victim, preemptor):
            return
        message = f"Preempted by {preemptor.kind} {preemptor.uid} on node {preemptor.where}"
        record_event(self.parts.cluster, victim, "Normal", "Preempted", message, related=preemptor.object)

    def _hold_back(self, victim: Pod, plugin: str) -> bool:
        """Send a victim that waits at permit, or is in pre_bind, back to the queue; return False if it is too late."""
        # A pod that isn't bound yet takes its room by reservation alone, so it is sent back and not deleted, as
        # in kube-scheduler.
        waiting = self.parts.waiting_pods.get(victim.uid)
        if waiting is not None and waiting.preempt(plugin, "preempted"):
            return True
        in_pre_bind = self.parts.pods_in_pre_bind.get(victim.uid)
        return in_pre_bind is not None and in_pre_bind.cancel(
            f"preempted by {plugin}" if plugin else "preempted"
        )

    def _delete(self, victim: Pod, preemptor: Preemptor) -> bool:
        """Set the victim's DisruptionTarget condition and delete it; return False if it is already gone."""
        condition = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=f"{preemptor.scheduler_name}: preempting to accommodate a higher priority {preemptor.kind}",
        )
        try:
            # The condition first, as in kube-scheduler: after the deletion there may be no object left to patch.
            self.parts.cluster.patch_pod_status(victim, condition=condition)
            self.parts.cluster.delete(victim)
        except NotFoundError:
            # Not looked up: the cluster's `get` may still return the victim, whose deletion it is yet to hear of.
            return False
        except Exception:
            # The error of a victim whose name another pod has by now differs between clusters, so it is looked up.
            present = self.parts.cluster.get(Pod, victim.key)
            if present is None or present.uid != victim.uid:
                return False
            raise
        return True

    def clear_lower_nominations(self, preemptor: Preemptor) -> None:
        """Clear nominations of lower priority to the preemptor's node: those pods may not fit there any more."""
        for info in self.parts.nominator.nominated_pods_for_node(preemptor.where):
            if info.pod.priority >= preemptor.priority:
                continue
            try:
                self.parts.cluster.patch_pod_status(info.pod, nominated_node_name="")
            except Exception:
                # Not worth failing for: at worst the nominated pod waits longer than it needs to.
                logger.warning(
                    "can't take back the nomination of pod %s to node %s",
                    info.pod.key,
                    preemptor.where,
                    exc_info=True,
                )


@define(eq=False)
class LaterEvictions:
    """The evictions for a preemptor, after its cycle (kube-scheduler `prepareCandidateAsync`).

    The preemptor is held back until only the last victim is left: an earlier attempt would find victims that are
    still there, and preempt them again. It is let through before the eviction of the last one, whose event brings it
    back to the queue.
    """

    _evictor: Evictor
    _victims: Sequence[Pod]
    """At least one; none of them was terminating in the cycle."""
    _preemptor: Preemptor
    _plugin: str
    _members: Sequence[Pod]
    _is_told: bool
    """True if metrics are told of the duration."""
    _is_open: bool = attrs.field(default=False, init=False)

    @property
    def holds_back(self) -> bool:
        """True until only the last victim is left, and is about to be evicted or goes for another reason."""
        return not self._is_open and (len(self._victims) > 1 or not self._is_last_leaving())

    def carry_out(self) -> None:
        """Evict the victims in their order. Log what a cluster raises, and have the members tried again."""
        parts = self._evictor.parts
        begun = parts.clock.monotonic()
        success = self._carry_out()
        if self._is_told:
            parts.metrics.preemption_carried_out(
                self._preemptor.entity, success, parts.clock.monotonic() - begun
            )

    def _carry_out(self) -> bool:
        """Return whether nothing was raised."""
        try:
            # First, as in kube-scheduler: those pods needn't wait for the evictions to look for another place.
            self._evictor.clear_lower_nominations(self._preemptor)
            *others, last = self._victims
            for victim in others:
                self._evictor.evict_one(victim, self._preemptor, self._plugin)
            self._is_open = True
            # After the gate has opened: an event that comes from now on finds it so. An earlier one didn't bring
            # the members back, and there may be no other. While decisions count the victim its event is still to come;
            # members that were tried before it would choose the same victims again, and so on without end.
            was_missed = bool(others) and not self._evictor.counts(last)
            self._evictor.evict_one(last, self._preemptor, self._plugin)
            if was_missed:
                self._evictor.activate(self._members)
            return True
        except Exception:  # a cluster may raise anything; only this preemption should fail
            logger.exception("the preemption for %s %s failed", self._preemptor.kind, self._preemptor.uid)
            self._is_open = True
            self._evictor.activate(self._members)
            return False

    def _is_last_leaving(self) -> bool:
        last = self._victims[-1]
        present = self._evictor.parts.cluster.get(Pod, last.key)
        # A pod that has ended has no deletion ahead that anybody would be told of: its room is free already.
        return present is None or present.uid != last.uid or present.is_terminating or present.is_terminal
