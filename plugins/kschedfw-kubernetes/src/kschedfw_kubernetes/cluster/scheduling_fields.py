"""Reduces objects to the fields that scheduling reads, for dumps and recordings."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import attrs

from kschedfw import FrozenDict, ObjectMeta
from kschedfw.api import (
    DeviceClass,
    Named,
    PersistentVolume,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    StatefulSet,
)
from kschedfw.plugins import MIGRATED_PLUGINS
from kschedfw.simulator import ANNOTATIONS

# kschedfw-legacy reads this annotation.
_AVOIDED_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"

_OF_AUTOSCALER: Final = frozenset(  # kschedfw-advisor reads these annotations.
    f"cluster-autoscaler.kubernetes.io/{key}"
    for key in ("safe-to-evict", "safe-to-evict-local-volumes", "scale-down-disabled")
)

_OF_GPUS: Final = frozenset(  # kschedfw-gpushare reads these annotations.
    f"alibabacloud.com/{key}" for key in ("gpu-count", "gpu-milli", "gpu-card-model")
)

SCHEDULING_ANNOTATIONS: Final = ANNOTATIONS | {MIGRATED_PLUGINS, _AVOIDED_PODS} | _OF_AUTOSCALER | _OF_GPUS
"""The annotations that commands and in-tree plugins read. Other annotations are dropped: they may contain anything."""


def scheduling_fields(obj: Named, annotations: Collection[str] = SCHEDULING_ANNOTATIONS) -> Named:
    """Return the object without fields that scheduling doesn't read, so that loading it creates no further objects.

    The result contains no names of Secrets, and no parameters of devices. Workloads have no replicas, since loading a
    manifest with replicas would create pods that the cluster doesn't have.

    Args:
        obj: an object of the classes of `kschedfw.api`. These have only fields that scheduling and commands read.
        annotations: the keys of annotations to keep.
    """
    kept = {key: value for key, value in obj.annotations.items() if key in annotations}
    if len(kept) < len(obj.annotations):
        obj = obj.with_metadata(attrs.evolve(obj.metadata, annotations=FrozenDict(kept)))
    match obj:
        case ReplicaSet() | ReplicationController() | StatefulSet():
            spec: Any = obj.spec
            return attrs.evolve(obj, spec=attrs.evolve(spec, replicas=0, template=_labelled(spec.template)))
        case PersistentVolume() if obj.spec.azure_file is not None:
            share = attrs.evolve(obj.spec.azure_file, secret_name="", secret_namespace="")
            return attrs.evolve(obj, spec=attrs.evolve(obj.spec, azure_file=share))
        case DeviceClass():
            return attrs.evolve(obj, spec=attrs.evolve(obj.spec, config=()))
        case ResourceClaim():
            return attrs.evolve(obj, spec=_without_parameters(obj.spec), status=_allocated(obj.status))
        case ResourceClaimTemplate():
            inner = attrs.evolve(obj.spec, spec=_without_parameters(obj.spec.spec))
            return attrs.evolve(obj, spec=inner)
    return obj


def _labelled(template: PodTemplateSpec | None) -> PodTemplateSpec | None:
    """Return the template with only its labels as metadata. The selector must match them."""
    if template is None:
        return None
    return PodTemplateSpec(ObjectMeta(labels=template.metadata.labels), template.spec)


def _without_parameters(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    return attrs.evolve(spec, devices=attrs.evolve(spec.devices, config=()))


def _allocated(status: ResourceClaimStatus) -> ResourceClaimStatus:
    """Return the claim's status, with its allocation but without device parameters."""
    if status.allocation is None:
        return status
    devices = attrs.evolve(status.allocation.devices, config=())
    return attrs.evolve(status, allocation=attrs.evolve(status.allocation, devices=devices))
