"""Variants of the workloads in which no two measured pods are alike, as in most real clusters.

The pods request almost the same as in the original workload. They fit on the same nodes, and their terms match the same
pods and nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kschedfw import Quantity
from kschedfw_lab.bench.shapes import Manifest, name_of
from kschedfw_lab.bench.workload import Workload

SUFFIX = "-distinct"
"""The suffix of a variant's name."""

LABEL = "pod"
"""A label whose value differs for every pod."""

_GOLDEN = 0x9E3779B1
"""2³² divided by the golden ratio.

The multiples modulo 2³² of this number are evenly spread, however many there are.
"""


def evenly(index: int, below: int) -> int:
    """Return a number from 0 to `below` - 1. The numbers of any first indexes are evenly spread over this range."""
    return (index * _GOLDEN % (1 << 32)) * below >> 32


def distinct(workload: Workload) -> Workload:
    """Return the workload with measured pods whose requests, labels and affinity values differ from one another."""
    return attrs.evolve(
        workload,
        name=workload.name + SUFFIX,
        measures=f"{workload.measures}; each measured pod differs",
        measured_pod=lambda index: of_its_own(workload.measured_pod(index), index),
    )


def of_its_own(pod: Manifest, index: int) -> Manifest:
    """Return the pod with requests, labels and selectors that no other pod has. Its name must be unique already.

    * CPU and memory requests become three quarters to the whole of the original; the fraction depends on `index`. A pod
      without a memory request gets one of `index` + 1 bytes.
    * If the pod has labels, it gets one more, with its name as the value.
    * If it has selectors (of nodes, in affinity and in spread constraints), its name becomes one more accepted value.
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
    """Return the part of a manifest with `value` as one more accepted value in each selector."""
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
