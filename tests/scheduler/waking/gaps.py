"""The gaps in kube-scheduler's own hints, which the property of `kschedfw.testing.waking` leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kschedfw.framework.events import ActionType, EventResource
from kschedfw.testing.waking import Gap

_INCOMPLETE: Final = (
    Gap(
        "InterPodAffinity",
        EventResource.NODE,
        ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL,
        "it looks at the pod's own terms, and not at existing pods' anti-affinity that refused it",
    ),
    Gap(
        "InterPodAffinity",
        EventResource.POD,
        ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
        "it doesn't see that a pod may be the first of its group once the last one is gone, wants a pod that goes to "
        "match all terms of an anti-affinity, and doesn't look up the labels of namespaces",
    ),
    Gap(
        "InterPodAffinity",
        EventResource.POD,
        ActionType.ADD,
        "it doesn't look up the labels of namespaces, by which the pod's terms may select them",
    ),
    Gap(
        "PodTopologySpread",
        EventResource.NODE,
        ActionType.UPDATE_NODE_LABEL,
        "it compares the labels of topology keys, and not those that the pod's node affinity names",
    ),
)
"""Those that `completeHints` closes."""

_ALWAYS: Final = (
    Gap(
        "DynamicResources",
        EventResource.RESOURCE_CLAIM,
        ActionType.DELETE,
        "it registers additions and updates; the finalizer has a claim freed, which is an update, before it goes",
    ),
    Gap(
        "NodeVolumeLimits",
        EventResource.CSI_NODE,
        ActionType.DELETE | ActionType.UPDATE,
        "it takes a limit that goes away for 0, and so for lower than before",
    ),
    Gap(
        "NodeVolumeLimits",
        EventResource.NODE,
        ActionType.ADD,
        "it registers the addition of the node's CSINode instead",
    ),
    Gap(
        "NodeVolumeLimits",
        EventResource.ASSIGNED_POD,
        ActionType.ADD,
        "it registers deletions of pods; a pod that comes with the claim has its volume attached to the node for both",
    ),
    Gap(
        "NodeVolumeLimits",
        EventResource.VOLUME_ATTACHMENT,
        ActionType.DELETE,
        "it looks for volumes that name a claim, and passes over those that are ephemeral",
    ),
    Gap(
        "NodeVolumeLimits",
        EventResource.STORAGE_CLASS,
        ActionType.DELETE,
        "it doesn't register classes, by which it tells the driver of a claim whose volume is yet to be made",
    ),
    Gap(
        "NodeVolumeLimits",
        EventResource.PERSISTENT_VOLUME,
        ActionType.DELETE,
        "it registers the deletion of the volume's VolumeAttachment, which doesn't count without the volume",
    ),
    Gap(
        "VolumeBinding",
        EventResource.ASSIGNED_POD,
        ActionType.DELETE,
        "it registers no events of pods; volumes that were reserved for a pod in vain are free without one",
    ),
    Gap(
        "VolumeBinding",
        EventResource.CSI_DRIVER,
        ActionType.DELETE | ActionType.UPDATE,
        "it looks for the driver in the pod's inline volumes alone, and not behind its claims",
    ),
)


def gaps_of(*, complete_hints: bool) -> Sequence[Gap]:
    return _ALWAYS if complete_hints else (*_INCOMPLETE, *_ALWAYS)
