"""Workloads whose pods request devices (dynamic resource allocation)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kschedfw_lab.bench import devices
from kschedfw_lab.bench.shapes import Manifest
from kschedfw_lab.bench.workload import Placement, Workload, nothing

_DEVICES = 10
"""The number of devices per node in most of scheduler_perf's workloads (`maxClaimsPerNode`)."""


def _from_templates(
    name: str,
    measures: str,
    follows: str,
    *,
    nodes: int = 500,
    initial_pods: int = 0,
    pods: int,
    others: tuple[Manifest, ...] = (),
    with_pod: Callable[[Manifest], tuple[Manifest, ...]] = devices.claim_for_one,
    per_node: int = _DEVICES,
    with_devices: Callable[[Manifest, int], tuple[Manifest, ...]] = devices.slice_of_node,
) -> Workload:
    """Return a workload in which each pod has a claim of its own, which exists and isn't allocated yet."""
    return Workload(
        name,
        measures,
        follows,
        nodes=nodes,
        initial_pods=initial_pods,
        pods=pods,
        node=devices.node,
        initial_pod=lambda index: devices.with_template(f"initial-{index}"),
        measured_pod=lambda index: devices.with_template(f"pod-{index}"),
        others=(devices.device_class(), *others),
        with_pod=with_pod,
        with_bound=devices.allocated_claim,
        devices=per_node,
        with_devices=with_devices,
    )


def _extended(
    name: str, measures: str, follows: str, *, prefix: str, others: tuple[Manifest, ...]
) -> Workload:
    """Return a workload in which each pod requests a device by an extended resource."""
    shape = partial(devices.for_extended_resource, prefix=prefix)
    return Workload(
        name,
        measures,
        f"{follows} (5000pods_500nodes)",
        nodes=500,
        initial_pods=2500,
        pods=2500,
        node=devices.node,
        initial_pod=lambda index: shape(index, f"initial-{index}"),
        measured_pod=lambda index: shape(index, f"pod-{index}"),
        others=others,
        placement=Placement.SCHEDULED,
        devices=_DEVICES,
        with_devices=devices.slice_of_node,
    )


DEVICE_WORKLOADS = (
    _from_templates(
        "claim-template",
        "a claim per pod, made from a template, for one of ten devices of its node",
        "SchedulingWithResourceClaimTemplate (5000pods_500nodes, on ten times as many nodes)",
        nodes=5000,
        initial_pods=2500,
        pods=2500,
    ),
    _from_templates(
        "claim-template-half-taken",
        "the same on fewer nodes, where half of the devices are taken by other claims",
        "SteadyStateClusterResourceClaimTemplate (half_500nodes, for 1000 pods)",
        pods=1000,
        with_devices=devices.half_taken_slice,
    ),
    _from_templates(
        "claim-first-available",
        "a claim per pod with two alternatives, of which no node has the first",
        "FirstAvailable (fast, on 500 nodes for 1000 pods)",
        pods=1000,
        others=(devices.NO_DEVICES_CLASS,),
        with_pod=devices.claim_for_first_available,
    ),
    _from_templates(
        "claim-partitions",
        "a claim per pod for two partitions of one card, of cards that all nodes reach",
        "Partitionable (2000pods_100nodes)",
        nodes=100,
        pods=2000,
        with_pod=devices.claim_for_two,
        per_node=20,
        with_devices=devices.partitionable_slices,
    ),
    Workload(
        "claim-shared",
        "claims that five pods share each",
        "SchedulingWithResourceClaim (5000pods_500nodes)",
        nodes=500,
        initial_pods=2500,
        pods=2500,
        node=devices.node,
        initial_pod=lambda index: devices.sharing(index, f"initial-{index}"),
        measured_pod=lambda index: devices.sharing(index, f"pod-{index}"),
        others=(devices.device_class(),),
        placement=Placement.SCHEDULED,
        with_pod=devices.shared_claim,
        with_bound=nothing,
        devices=2,
        with_devices=devices.slice_of_node,
    ),
    _extended(
        "extended-resource-claims",
        "each pod asks for a device by one of 25 extended resources that classes of devices stand behind",
        "ExtendedResource_25Classes",
        prefix="example.com/gpu-",
        others=devices.EXTENDED,
    ),
    _extended(
        "implicit-extended-resource-claims",
        "the same by the names of the classes",
        "ImplicitExtendedResource_25Classes",
        prefix="deviceclass.resource.kubernetes.io/test-class-",
        others=devices.IMPLICIT,
    ),
)
