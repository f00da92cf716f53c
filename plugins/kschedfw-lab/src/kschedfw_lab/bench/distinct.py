"""Variants of the workloads in which no two of the measured pods are alike, as in most real clusters.

What a pod asks for stays what the workload is about: it fits where the workload's own pods would, and its terms find
the same pods and nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kschedfw import Quantity
from kschedfw_lab.bench.shapes import Manifest, name_of
from kschedfw_lab.bench.workload import Workload

SUFFIX = "-distinct"
"""What the name of a variant ends with."""

LABEL = "pod"
"""The label whose value no other pod has."""

_GOLDEN = 0x9E3779B1
"""2³² divided by the golden ratio: its multiples modulo 2³² spread evenly, however many there are."""


def evenly(index: int, below: int) -> int:
    """A number from 0 to `below` - 1; those of the first indexes, however many, are spread evenly over all of them."""
    return (index * _GOLDEN % (1 << 32)) * below >> 32


def distinct(workload: Workload) -> Workload:
    """The workload with measured pods that have requests, labels and affinity values of their own."""
    return attrs.evolve(
        workload,
        name=workload.name + SUFFIX,
        measures=f"{workload.measures}; each measured pod differs",
        measured_pod=lambda index: of_its_own(workload.measured_pod(index), index),
    )


def of_its_own(pod: Manifest, index: int) -> Manifest:
    """The pod with what no other has; its name must be its own already.

    * It requests three quarters to the whole of what it did of CPU and memory; the fraction comes from `index`. A pod
      that requests no memory gets a request of `index` + 1 bytes.
    * Where it has labels, it gets one more, with its name for the value.
    * Where it has selectors (of nodes, in affinity and in spread constraints), its name is one more value that they
      take.
    """
    manifest: dict[str, Any] = {**pod}
    spec = manifest["spec"] = _with_value(manifest["spec"], name_of(pod))
    spec["containers"] = [_asking_for_less(each, index) for each in spec["containers"]]
    if labels := manifest["metadata"].get("labels"):
        manifest["metadata"] = {**manifest["metadata"], "labels": {**labels, LABEL: name_of(pod)}}
    return manifest


def _asking_for_less(container: Mapping[str, Any], index: int) -> Mapping[str, Any]:
    resources = dict(container.get("resources", {}))
    for kind in ("requests", "limits"):
        if kind in resources:
            resources[kind] = {name: _less(name, amount, index) for name, amount in resources[kind].items()}
    requests = resources.get("requests", {})
    if "memory" not in requests:
        resources["requests"] = {**requests, "memory": str(index + 1)}
    return {**container, "resources": resources}


def _less(name: str, amount: str, index: int) -> str:
    if name not in ("cpu", "memory"):
        return amount
    quantity = Quantity.parse(amount)
    number, unit = (quantity.milli_value(), "m") if name == "cpu" else (quantity.value(), "")
    return f"{number - evenly(index, number // 4 + 1)}{unit}"


def _with_value(part: Any, value: str) -> Any:
    """The part of a manifest, with the value as one more in each selector."""
    if isinstance(part, Mapping):
        return {
            key: _selector_with(below, value)
            if key == "labelSelector"
            else [_requirement_with(each, value) for each in below]
            if key == "matchExpressions"
            else _with_value(below, value)
            for key, below in part.items()
        }
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [_with_value(each, value) for each in part]
    return part


def _selector_with(selector: Mapping[str, Any], value: str) -> Mapping[str, Any]:
    labels = [
        {"key": key, "operator": "In", "values": [wanted]}
        for key, wanted in selector.get("matchLabels", {}).items()
    ]
    requirements = [*labels, *selector.get("matchExpressions", ())]
    return {"matchExpressions": [_requirement_with(each, value) for each in requirements]}


def _requirement_with(requirement: Mapping[str, Any], value: str) -> Mapping[str, Any]:
    if requirement["operator"] != "In":
        return requirement
    return {**requirement, "values": [*requirement["values"], value]}
