"""The kind PodGroup, and the label by which pods belong to a group."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import attrs

from kschedfw import CustomKind, CustomResource, FieldError, FrozenDict, ObjectMeta, Pod, Quantity

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""The pod label with the name of the pod's PodGroup. The group is in the pod's namespace."""


@attrs.frozen
class PodGroupSpec:
    """The spec of a PodGroup.

    `min_member` pods are placed together. `min_resources` are free resources that the cluster must have for them.
    """

    min_member: int = 1
    min_resources: FrozenDict[str, Quantity] = attrs.field(factory=FrozenDict)
    schedule_timeout_seconds: int | None = None


class PodGroupPhase(StrEnum):
    """The phase of a PodGroup.

    PENDING: it has fewer than `min_member` pods. SCHEDULING: fewer than `min_member` pods run or have succeeded.
    FINISHED and FAILED are final.
    """

    PENDING = "Pending"
    SCHEDULING = "Scheduling"
    RUNNING = "Running"
    FINISHED = "Finished"
    FAILED = "Failed"


@attrs.frozen
class PodGroupStatus:
    """The status of a PodGroup: how many of its pods run, have succeeded or have failed.

    `phase` is a PodGroupPhase, or a text that another controller has written. `occupied_by` are the owners of the
    oldest pod, as `namespace/name`, separated by commas.
    """

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


@attrs.frozen
class PodGroup(CustomResource):
    """A gang of pods, as kubernetes-sigs/scheduler-plugins defines it."""

    kind = CustomKind("scheduling.x-k8s.io/v1alpha1", "PodGroup")

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    def validate(self) -> Iterator[FieldError]:
        if self.spec.min_member < 1:
            yield FieldError.invalid("spec.minMember", self.spec.min_member, "must be at least 1")
        timeout = self.spec.schedule_timeout_seconds
        if timeout is not None and timeout < 0:
            yield FieldError.invalid("spec.scheduleTimeoutSeconds", timeout, "must not be negative")


def gang_of(pod: Pod) -> str | None:
    """Return the key of the pod's PodGroup (`namespace/name`), or None if the pod belongs to no group."""
    name = pod.labels.get(POD_GROUP_LABEL)
    return f"{pod.namespace}/{name}" if name else None
