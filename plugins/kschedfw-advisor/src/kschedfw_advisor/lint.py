"""Amounts in manifests that are hardly meant as they are written: parts of a byte, or a few bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from kschedfw import Pod, Quantity
from kschedfw.api import (
    EPHEMERAL_STORAGE,
    MEMORY,
    CronJob,
    Finding,
    LimitRange,
    Named,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceQuota,
    RuntimeClass,
    WorkloadObject,
    counted,
    is_huge_pages,
    pod_alike,
)
from kschedfw.cluster import Cluster, Workload, workload_of

_FEWEST_BYTES: Final = 1 << 20
"""The number of bytes below which no container runs."""
_OF_BYTES: Final = frozenset((MEMORY, EPHEMERAL_STORAGE, "storage", "sizeLimit"))
_PREFIXES: Final = ("requests.", "limits.")
"""Beginnings of the names of resources in quotas."""

_Amounts: TypeAlias = Mapping[str, Quantity]


@attrs.frozen
class OddAmount:
    """An amount of bytes that nothing can run with, and the pods of the workload that have it.

    `name` is the object's: the workload, or the key of a pod without one, or kind and key of another object. `where` is
    the field, such as `requests`, `default` or `hard`, or the volume of an emptyDir's `sizeLimit`. `container`
    is empty for an amount of no container. `pods` are empty for a template that has none now, and for objects that
    aren't pods.
    """

    pods: tuple[str, ...]
    name: str
    workload: Workload | None
    container: str
    where: str
    resource: str
    written: str
    bytes: int

    def __str__(self) -> str:
        return str(self.finding)

    @property
    def finding(self) -> Finding:
        """The amount with its code; `pod` is the first of the pods if no workload made it."""
        whose = "{object}, container {container}" if self.container else "{object}"
        text = f"{whose}: {{field}} {{resource}}: {{written}} is {counted(self.bytes, 'byte')}"
        return Finding.of(
            "odd-amount",
            text if self.meant is None else f"{text} (did you mean {{meant}}?)",
            object=self.name,
            workload=None if self.workload is None else str(self.workload),
            pod=self.pods[0] if self.workload is None and self.pods else None,
            container=self.container or None,
            field=self.where,
            resource=self.resource,
            written=self.written,
            bytes=self.bytes,
            meant=self.meant,
        )

    @property
    def meant(self) -> str | None:
        """The text with the unit that may have been meant; None if there are several."""
        return f"{self.written[:-1]}Mi" if self.written.endswith("m") else None

    def to_json(self) -> dict[str, object]:
        return {
            "object": self.name,
            "workload": None if self.workload is None else str(self.workload),
            "pods": list(self.pods),
            "container": self.container or None,
            "field": self.where,
            "resource": self.resource,
            "written": self.written,
            "bytes": self.bytes,
            "meant": self.meant,
            "finding": self.finding.to_json(),
        }


def odd_amounts(
    cluster: Cluster, templates: Iterable[WorkloadObject | CronJob] = ()
) -> tuple[OddAmount, ...]:
    """Return the odd amounts of all pods, templates, claims, volumes, RuntimeClasses, LimitRanges and ResourceQuotas.

    Those of one workload are given once, in the order of the pods; then come those of `templates` that have no pods.
    """
    found: dict[OddAmount, list[str]] = {}
    for pod in cluster.list(Pod):
        for odd in _of_pod(pod, workload_of(pod, cluster)):
            found.setdefault(odd, []).append(pod.key)
    # A new revision of a Deployment may lack pods with an amount that the old one's have: the template counts.
    for template in templates:
        if template.metadata.controller is None and (alike := pod_alike(template)) is not None:
            workload = Workload(type(template).__name__, template.namespace, template.name)
            for odd in _of_pod(alike, workload):
                found.setdefault(odd, [])
    of_pods = tuple(attrs.evolve(odd, pods=tuple(pods)) for odd, pods in found.items())
    return (*of_pods, *_of_objects(cluster))


def _of_pod(pod: Pod, workload: Workload | None) -> Iterator[OddAmount]:
    spec = pod.spec
    name = pod.key if workload is None else str(workload)
    given = [(each.name, each.resources) for each in (*spec.init_containers, *spec.containers)]
    if spec.resources is not None:
        given.append(("", spec.resources))
    for container, resources in given:
        for where, amounts in (("requests", resources.requests), ("limits", resources.limits)):
            for resource, written, size in _odd(amounts):
                yield OddAmount((), name, workload, container, where, resource, written, size)
    for volume in spec.volumes:
        if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
            where = f"emptyDir {volume.name}"
            for resource, written, size in _odd({"sizeLimit": volume.empty_dir.size_limit}):
                yield OddAmount((), name, workload, "", where, resource, written, size)


def _of_objects(cluster: Cluster) -> Iterator[OddAmount]:
    for claim in cluster.list(PersistentVolumeClaim):
        yield from _of(claim, "requests", claim.spec.resources.requests)
    for volume in cluster.list(PersistentVolume):
        yield from _of(volume, "capacity", volume.spec.capacity)
    for limits in cluster.list(LimitRange):
        for each in limits.spec.limits:
            yield from _of(limits, "min", each.min)
            yield from _of(limits, "max", each.max)
            yield from _of(limits, "default", each.default)
            yield from _of(limits, "defaultRequest", each.default_request)
    for quota in cluster.list(ResourceQuota):
        yield from _of(quota, "hard", quota.spec.hard)
    for runtime in cluster.list(RuntimeClass):
        if runtime.overhead is not None:
            yield from _of(runtime, "overhead", runtime.overhead.pod_fixed)


def _of(obj: Named, where: str, amounts: _Amounts) -> Iterator[OddAmount]:
    for resource, written, size in _odd(amounts):
        yield OddAmount((), f"{type(obj).__name__} {obj.key}", None, "", where, resource, written, size)


def _odd(amounts: _Amounts) -> Iterator[tuple[str, str, int]]:
    for resource, amount in amounts.items():
        if _is_of_bytes(resource):
            size = amount.value()
            if 0 < size < _FEWEST_BYTES:
                yield resource, str(amount), size


def _is_of_bytes(resource: str) -> bool:
    """Return whether the resource is counted in bytes, also under its name in a quota: `requests.memory`."""
    # A quota for one class is `gold.storageclass.storage.k8s.io/requests.storage`.
    plain = resource.rpartition("/")[2] if resource.endswith("/requests.storage") else resource
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain in _OF_BYTES or is_huge_pages(plain)
