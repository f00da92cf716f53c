"""The plugin NodeVolumeLimits."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kschedfw import (
    IDLE,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    IntArray,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw.api import CSIDriver, CSINode, PersistentVolume, VolumeAttachment
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.gate_table import VOLUME_LIMIT_SCALING
from kschedfw.plugins._hints import queue_if, takes_a_place
from kschedfw.plugins._migration import ALL_MIGRATED, plugin_of
from kschedfw.plugins._storage import ClaimNotFoundError, VolumeError, queue_if_used, volumes_of
from kschedfw.plugins.node_volume_limits.volumes import (
    NO_LIMIT,
    Attachment,
    LimitColumns,
    StorageOfNodes,
    attachments,
    can_count,
    limits_of,
    may_fail,
)

TOO_MANY: Final = Status.unschedulable("node(s) exceed max volume count")

ByNode = Mapping[str, Sequence[VolumeAttachment]]

_ATTACHMENTS = StateKey[ByNode]("NodeVolumeLimits.attachments")
# More than any limit of a driver, which is an int32, and less than NO_LIMIT.
_UNCLEAR: Final = 1 << 61


class NodeVolumeLimits(Plugin):
    """Refuses nodes that can't attach the pod's volumes, by the limits of each CSI driver in their CSINode.

    Volumes of in-tree plugins count as their driver's on nodes whose CSINode says that they have been migrated.

    With the feature gate VolumeLimitScaling (KEP-5030), nodes are refused that lack a driver whose CSIDriver asks for
    that by preventPodSchedulingIfMissing.
    """

    name = "NodeVolumeLimits"
    reads = Reads.CLUSTER
    concerns = "volumes"

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._storage = StorageOfNodes(handle.cluster)
        self._asks_for_drivers = handle.feature_gates.enabled(VOLUME_LIMIT_SCALING)

    def sign(self, pod: Pod) -> Hashable | None:
        """Return None for pods with volumes that count.

        The answers for such volumes depend on objects whose changes aren't tracked.
        """
        return None if can_count(pod) else IDLE

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return volumes_of(pod)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        if not pod.spec.volumes or not can_count(pod):
            return Status.skip()
        state.write(_ATTACHMENTS, self._storage.attachments())
        return None

    @hookimpl
    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
        if not pod.spec.volumes:
            return None
        try:
            if (missing := self._missing_driver(pod, node_info)) is not None:
                return _not_installed(missing)
            exceeded = next(self._exceeded(state, pod, node_info), None)
        except ClaimNotFoundError as error:
            return Status.unresolvable(str(error))
        except VolumeError as error:
            return Status.from_error(error)
        return None if exceeded is None else TOO_MANY

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:
        for driver, wanted, present, limit in self._exceeded(state, pod, node_info):
            yield Evidence(
                f"{wanted} more volume{'s' * (wanted > 1)} of {driver}",
                f"{present} of at most {limit} attached",
                gap=(present + wanted - limit) / wanted,
                values={"driver": driver, "wanted": wanted, "attached": present, "limit": limit},
                code="volume-limit",
            )

    def _missing_driver(self, pod: Pod, node_info: NodeInfo) -> str | None:
        """Return the first driver that the pod's volumes need, that refuses nodes without it, and that the node lacks.

        Raises:
            ClaimNotFoundError: a claim of the pod doesn't exist.
            VolumeError: the volumes of the pod can't be determined.
        """
        if not self._asks_for_drivers:
            return None
        cluster, csi_node = self.handle.cluster, self.handle.cluster.get(CSINode, node_info.name)
        installed = () if csi_node is None else {driver.name for driver in csi_node.spec.drivers}
        # kube-scheduler takes them in the random order of a map; here the order of the pod's volumes counts.
        for name, _ in attachments(cluster, pod, csi_node, is_new=True):
            driver = None if name in installed else cluster.get(CSIDriver, name)
            if driver is not None and driver.spec.prevent_pod_scheduling_if_missing:
                return name
        return None

    def _exceeded(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> Iterator[tuple[str, int, int, int]]:
        """Yield each driver whose limit the pod's volumes exceed: new volumes, attached volumes, and the limit.

        Raises:
            ClaimNotFoundError: a claim of the pod doesn't exist.
            VolumeError: the volumes of a pod can't be determined.
        """
        cluster, csi_node = self.handle.cluster, self.handle.cluster.get(CSINode, node_info.name)
        new = set(attachments(cluster, pod, csi_node, is_new=True))
        limits = limits_of(csi_node)
        if not new or not limits:
            return
        used = {
            volume
            for each in node_info.pods_with_volumes
            for volume in attachments(cluster, each.pod, csi_node)
        }
        wanted = Counter(driver for driver, _ in new - used)
        # What is attached but not used by any pod counts, even if it is what the pod wants.
        present = Counter(driver for driver, _ in used | self._attached_to(state, node_info.name))
        for driver, count in wanted.items():
            if driver in limits and present[driver] + count > limits[driver]:
                yield driver, count, present[driver], limits[driver]

    @hookimpl
    def filter_batch(self, state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts | None:
        """Check exactly only nodes that would be over a limit if every volume there counted against it."""
        try:
            new = set(attachments(self.handle.cluster, pod, ALL_MIGRATED, is_new=True))
        except VolumeError:
            return None
        limits = self._storage.limits(nodes)
        if self._may_lack_driver(new):
            return None
        if not new or not limits.by_driver:
            return Verdicts.passing(len(rows))
        refused = np.zeros(len(rows), dtype=np.bool_)
        infos = nodes.node_infos
        for index in np.flatnonzero(self._may_be_full(state, new, limits, nodes)[rows]).tolist():
            status = self.filter(state, pod, infos[rows[index]])
            # An error names what is missing, so it is left to `filter`.
            if status is not None and status is not TOO_MANY:
                return None
            refused[index] = status is TOO_MANY
        return Verdicts.refuse(refused, TOO_MANY)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [
            ClusterEvent(EventResource.CSI_NODE, ActionType.ADD),
            ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE, _after_csi_node_update),
            ClusterEvent(EventResource.POD, ActionType.DELETE, _after_pod_deletion),
            ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, queue_if_used),
            ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, _after_detachment),
        ]

    def _may_lack_driver(self, new: Iterable[Attachment]) -> bool:
        """Return whether a node may be refused for lack of a driver, so that each has to be asked by itself."""
        found = (
            {self.handle.cluster.get(CSIDriver, name) for name, _ in new} if self._asks_for_drivers else ()
        )
        return any(each is not None and each.spec.prevent_pod_scheduling_if_missing for each in found)

    def _may_be_full(
        self, state: CycleState, new: Iterable[Attachment], limits: LimitColumns, nodes: NodeTable
    ) -> npt.NDArray[np.bool_]:
        """Return, for each row, whether new volumes may exceed a limit of the node, as an upper bound."""
        used = nodes.encoded("attachments at most", _most_attachments, Reads.PODS)
        taken = np.array([most or 0 for most in used.values], dtype=np.int64)[used.codes]
        may_be: npt.NDArray[np.bool_] = (taken == _UNCLEAR) & (limits.lowest != NO_LIMIT)
        for node_name, listed in _listed(state, self._storage).items():
            row = nodes.rows.get(node_name)
            if row is not None:
                # At most: what is attached and used by a pod counts twice here.
                taken[row] += len(listed)
        for driver, count in Counter(driver for driver, _ in new).items():
            if driver in limits.by_driver:
                may_be |= taken + count > limits.by_driver[driver]
        return may_be

    def _attached_to(self, state: CycleState, node_name: str) -> set[Attachment]:
        """Return the volumes attached to the node, or about to be, according to its VolumeAttachments."""
        found = set()
        for each in _listed(state, self._storage).get(node_name, ()):
            volume = self.handle.cluster.get(PersistentVolume, each.spec.source.persistent_volume_name or "")
            if volume is not None and volume.spec.csi is not None:
                found.add((each.spec.attacher, volume.spec.csi.volume_handle))
        return found


@functools.lru_cache(maxsize=64)
def _not_installed(driver: str) -> Status:
    return Status.unschedulable(f"{driver} CSI driver is not installed on the node")


def _listed(state: CycleState, storage: StorageOfNodes) -> ByNode:
    # None where the plugin isn't enabled at pre_filter.
    attachments = state.find(_ATTACHMENTS)
    return storage.attachments() if attachments is None else attachments


def _most_attachments(node_info: NodeInfo) -> int | None:
    """Return an upper bound of the volumes that the node's pods have attached; None for 0, `_UNCLEAR` if unknown."""
    volumes = [volume for each in node_info.pods_with_volumes for volume in each.pod.storage]
    return _UNCLEAR if any(map(may_fail, volumes)) else len(volumes) or None


def _after_csi_node_update(_pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    before = limits_of(old if isinstance(old, CSINode) else None)
    after = limits_of(new if isinstance(new, CSINode) else None)
    return queue_if(any(limit > before.get(driver, 0) for driver, limit in after.items()))


def _after_pod_deletion(_pod: Pod, old: object | None, _new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or not takes_a_place(old):
        return QueueingHint.SKIP
    return queue_if(can_count(old))


def _after_detachment(pod: Pod, old: object | None, _new: object | None) -> QueueingHint:
    for volume in pod.storage:
        if volume.persistent_volume_claim is not None:
            return QueueingHint.QUEUE
        plugin = plugin_of(volume)
        if plugin is not None and isinstance(old, VolumeAttachment) and old.spec.attacher == plugin.driver:
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
