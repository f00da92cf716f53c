"""Amounts in manifests that are hardly meant as they are written: parts of a byte, or a few bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from kschedfw import Pod, Quantity
from kschedfw.api import EPHEMERAL_STORAGE, MEMORY, Finding, counted, is_huge_pages
from kschedfw.cluster import Cluster, Workload, workload_of

_FEWEST_BYTES: Final = 1 << 20
"""The number of bytes below which no container runs."""


@attrs.frozen
class OddAmount:
    """An amount of bytes that no container can run with, and the pods of the workload that have it.

    `where` is the field: `requests` or `limits`. `workload` is None for pods without a controller.
    """

    pods: tuple[str, ...]
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
        whose = "{pod}" if self.workload is None else "{workload}"
        text = f"{whose}, container {{container}}: {{field}} {{resource}}: {{written}} is {counted(self.bytes, 'byte')}"
        return Finding.of(
            "odd-amount",
            text if self.meant is None else f"{text} (did you mean {{meant}}?)",
            workload=None if self.workload is None else str(self.workload),
            pod=self.pods[0] if self.workload is None else None,
            container=self.container,
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
            "workload": None if self.workload is None else str(self.workload),
            "pods": list(self.pods),
            "container": self.container,
            "field": self.where,
            "resource": self.resource,
            "written": self.written,
            "bytes": self.bytes,
            "meant": self.meant,
            "finding": self.finding.to_json(),
        }


def odd_amounts(cluster: Cluster) -> tuple[OddAmount, ...]:
    """Return the odd amounts of all pods, those of one workload once, in the order of the pods."""
    found: dict[OddAmount, list[str]] = {}
    for pod in cluster.list(Pod):
        for odd in _of_pod(pod, cluster):
            # Pods without a controller have nothing in common.
            key = odd if odd.workload is not None else attrs.evolve(odd, pods=(pod.key,))
            found.setdefault(key, []).append(pod.key)
    return tuple(attrs.evolve(odd, pods=tuple(pods)) for odd, pods in found.items())


def _of_pod(pod: Pod, cluster: Cluster) -> Iterator[OddAmount]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        given = container.resources
        for where, amounts in (("requests", given.requests), ("limits", given.limits)):
            for resource, written, size in _odd(amounts.items()):
                workload = workload_of(pod, cluster)
                yield OddAmount((), workload, container.name, where, resource, written, size)


def _odd(amounts: Iterable[tuple[str, Quantity]]) -> Iterator[tuple[str, str, int]]:
    for resource, amount in amounts:
        if resource in (MEMORY, EPHEMERAL_STORAGE) or is_huge_pages(resource):
            size = amount.value()
            if 0 < size < _FEWEST_BYTES:
                yield resource, str(amount), size
