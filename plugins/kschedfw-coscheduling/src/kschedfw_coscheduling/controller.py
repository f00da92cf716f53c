"""A controller that writes the status of PodGroups, for clusters without another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import attrs

from kschedfw import CustomObject, InMemoryCluster, KschedfwError, Pod
from kschedfw.cluster import EventType, WatchEvent
from kschedfw_coscheduling.pod_group import PodGroup, PodGroupPhase, PodGroupStatus, gang_of


class PodGroupController:
    """Keep the `status` of PodGroups current, like the PodGroup controller of kubernetes-sigs/scheduler-plugins.

    The status is updated before the write that changed a pod or a PodGroup returns. `close` ends this. PodGroups that
    can't be parsed are skipped.
    """

    def __init__(self, cluster: InMemoryCluster) -> None:
        self._cluster = cluster
        self._pods: dict[str, dict[str, Pod]] = {}
        """Pods by uid, by the key of their PodGroup."""
        # Keys of PodGroups whose status has to be checked, in order; a dict is an ordered set.
        self._due: dict[str, None] = {}
        self._has_seen_all = False
        self.close = cluster.watch(self._handle)
        # Statuses are written only after all pods were listed: a gang of which only some pods are known might look
        # failed, and FAILED is a final phase.
        self._has_seen_all = True
        self._sync()

    def _handle(self, event: WatchEvent) -> None:
        changed, is_gone = event.object, event.type is EventType.DELETED
        if isinstance(changed, CustomObject):
            if changed.kind == PodGroup.kind and not is_gone:
                self._due[f"{changed.namespace or 'default'}/{changed.name}"] = None
        elif isinstance(changed, Pod):
            # The label was changed, so that the pod leaves one group and joins another.
            if isinstance(event.old, Pod) and gang_of(event.old) != gang_of(changed):
                self._note(event.old, is_gone=True)
            self._note(changed, is_gone=is_gone)
        if self._has_seen_all:
            self._sync()

    def _note(self, pod: Pod, *, is_gone: bool) -> None:
        key = gang_of(pod)
        if key is None:
            return
        self._due[key] = None
        pods = self._pods.setdefault(key, {})
        if not is_gone:
            pods[pod.uid] = pod
        elif pods.pop(pod.uid, None) is not None and not pods:
            del self._pods[key]

    def _sync(self) -> None:
        # Not a loop over the dict: `update` calls `_handle`, which adds keys and calls `_sync` again.
        while self._due:
            key = next(iter(self._due))
            del self._due[key]
            try:
                group = self._cluster.get(PodGroup, key)
                if group is None:
                    continue
                status = settled(group.status, group.spec.min_member, self._pods.get(key, {}).values())
                if status != group.status:
                    self._cluster.update(attrs.evolve(group, status=status))
            except KschedfwError:
                # Either the PodGroup can't be parsed, or somebody else changed it first. Both bring an event of their
                # own, and with it the next try.
                continue


def settled(status: PodGroupStatus, min_member: int, pods: Collection[Pod]) -> PodGroupStatus:
    """Return the status that a PodGroup with these pods ends up with. The oldest pod comes first.

    One change may make another one due, for example PENDING, then SCHEDULING, then RUNNING.
    """
    while (following := _following(status, min_member, pods)) != status:
        status = following
    return status


def _following(status: PodGroupStatus, min_member: int, pods: Collection[Pod]) -> PodGroupStatus:
    """Return the status after one transition. Pods are counted by phase only once the gang was complete."""
    enough = len(pods) >= min_member
    match status.phase:
        case PodGroupPhase.FINISHED | PodGroupPhase.FAILED:
            return status
        case "":
            return attrs.evolve(status, phase=PodGroupPhase.PENDING)
        case PodGroupPhase.PENDING if enough:
            owners = _owners(pods) or status.occupied_by
            return attrs.evolve(status, phase=PodGroupPhase.SCHEDULING, occupied_by=owners)
        case PodGroupPhase.PENDING:
            return status
    count = Counter(pod.status.phase.value for pod in pods)
    running, succeeded, failed = count["Running"], count["Succeeded"], count["Failed"]
    if not enough:
        phase = PodGroupPhase.PENDING
    elif succeeded >= min_member:
        phase = PodGroupPhase.FINISHED
    elif failed and running + succeeded + failed >= min_member:
        phase = PodGroupPhase.FAILED
    elif running + succeeded >= min_member:
        phase = PodGroupPhase.RUNNING
    else:
        phase = PodGroupPhase.SCHEDULING
    return attrs.evolve(status, phase=phase, running=running, succeeded=succeeded, failed=failed)


def _owners(pods: Collection[Pod]) -> str:
    first = next(iter(pods))
    owners = first.metadata.owner_references
    return ",".join(sorted(f"{first.namespace}/{owner.name}" for owner in owners))
