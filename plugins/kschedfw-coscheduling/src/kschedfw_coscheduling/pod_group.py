"""The kind PodGroup, and which pods belong to one."""

from __future__ import annotations

from collections.abc import Iterator

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


@attrs.frozen
class PodGroup(CustomResource):
    """A gang, as in kubernetes-sigs/scheduler-plugins."""

    kind = CustomKind("scheduling.x-k8s.io/v1alpha1", "PodGroup")

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()

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
