"""The kind PodGroup, and which pods belong to one."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import attrs

from kschedfw import CustomKind, CustomResource, FieldError, FrozenDict, ObjectMeta, Pod, Quantity

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""The pod label with the name of its PodGroup, which is in the pod's namespace."""


@attrs.frozen
class PodGroupSpec:
    """`min_member` pods are to be placed together; `min_resources` are what the cluster must have free for them."""

    min_member: int = 1
    min_resources: FrozenDict[str, Quantity] = attrs.field(factory=FrozenDict)
    schedule_timeout_seconds: int | None = None


class PodGroupPhase(StrEnum):
    """How far a gang has come.

    It is PENDING while it has fewer pods than `min_member`, and SCHEDULING while fewer of them run or have succeeded.
    FINISHED and FAILED are final.
    """

    PENDING = "Pending"
    SCHEDULING = "Scheduling"
    RUNNING = "Running"
    FINISHED = "Finished"
    FAILED = "Failed"


@attrs.frozen
class PodGroupStatus:
    """How a gang's pods fare: how many run, have succeeded or have failed, and whose they are.

    `phase` is a PodGroupPhase, or what another controller has written. `occupied_by` are the owners of one of the pods
    (`namespace/name`, with commas between).
    """

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


@attrs.frozen
class PodGroup(CustomResource):
    """A gang, as in kubernetes-sigs/scheduler-plugins."""

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
    """The key of the pod's PodGroup; None for a pod of its own."""
    name = pod.labels.get(POD_GROUP_LABEL)
    return f"{pod.namespace}/{name}" if name else None
