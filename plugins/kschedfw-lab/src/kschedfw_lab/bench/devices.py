"""The devices of benchmark clusters, and the claims for them (resource.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kschedfw_lab.bench import shapes
from kschedfw_lab.bench.shapes import Manifest

DRIVER = "test-driver.cdi.k8s.io"
CLASS = "test-class"
NODE_LABELS = {"node-with-dra": "true"}
EXTENDED_CLASSES = 25
"""The number of device classes with extended resources."""
SHARERS = 5
"""The number of pods that share a claim."""

_API = "resource.k8s.io/v1"
_REQUEST = "req-0"
_ONE_DEVICE = {"requests": [{"name": _REQUEST, "exactly": {"deviceClassName": CLASS}}]}
_FIRST_AVAILABLE = {
    "requests": [
        {
            "name": _REQUEST,
            "firstAvailable": [
                {"name": "sub-0", "deviceClassName": "no-devices-class"},
                {"name": "sub-1", "deviceClassName": CLASS},
            ],
        }
    ]
}
_TWO_OF_A_SLICE = {
    "requests": [{"name": _REQUEST, "exactly": {"deviceClassName": CLASS, "count": 2}}],
    "constraints": [{"requests": [_REQUEST], "matchAttribute": "dra.example.com/slice"}],
}


# Manifests


def _object(kind: str, name: str, *, namespace: object = None, **rest: object) -> Manifest:
    metadata = {"name": name, **({} if namespace is None else {"namespace": namespace})}
    return {"apiVersion": _API, "kind": kind, "metadata": metadata, **rest}


def _with_resources(pod: Manifest, resources: Manifest) -> Manifest:
    spec = pod["spec"]
    assert isinstance(spec, Mapping)
    (container,) = spec["containers"]
    return {**pod, "spec": {**spec, "containers": [{**container, "resources": resources}]}}


def _node_of(pod: Manifest) -> str:
    spec = pod["spec"]
    assert isinstance(spec, Mapping)
    return str(spec["nodeName"])


# Classes


def device_class(name: str = CLASS, driver: str = DRIVER, **spec: object) -> Manifest:
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    return _object("DeviceClass", name, spec={"selectors": selectors, **spec})


NO_DEVICES_CLASS = device_class("no-devices-class", "no-such-driver.cdi.k8s.io")
EXTENDED = tuple(
    device_class(f"{CLASS}-{index}", extendedResourceName=f"example.com/gpu-{index}")
    for index in range(EXTENDED_CLASSES)
)
IMPLICIT = tuple(device_class(f"{CLASS}-{index}") for index in range(EXTENDED_CLASSES))


# Nodes and what they publish


def node(index: int) -> Manifest:
    return shapes.node(f"node-{index}", labels=NODE_LABELS)


def slice_of_node(node: Manifest, devices: int) -> tuple[Manifest, ...]:
    """Return the node's slice with `devices` equal devices."""
    name = shapes.name_of(node)
    spec = {
        "driver": DRIVER,
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"device-{number}"} for number in range(devices)],
    }
    return (_object("ResourceSlice", f"{name}-slice", spec=spec),)


def half_taken_slice(node: Manifest, devices: int) -> tuple[Manifest, ...]:
    """Return the node's slice with `devices` equal devices, and claims to which the first half of them is allocated."""
    name = shapes.name_of(node)
    taken = (
        _object(
            "ResourceClaim",
            f"{name}-claim-{number}",
            namespace="init",
            spec={"devices": _ONE_DEVICE},
            status=_allocated(name, f"device-{number}"),
        )
        for number in range(devices // 2)
    )
    return (*slice_of_node(node, devices), *taken)


def partitionable_slices(node: Manifest, devices: int) -> tuple[Manifest, ...]:
    """Return `devices` pools that all nodes can reach.

    Each pool has four counters, which six devices share. One of these devices is allocated.
    """
    return tuple(
        each for number in range(devices) for each in _partitionable(f"{shapes.name_of(node)}-{number}")
    )


def _partitionable(name: str) -> tuple[Manifest, ...]:
    requirement = {"key": "node-with-dra", "operator": "In", "values": ["true"]}
    spec = {
        "driver": DRIVER,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 2},
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]},
    }
    counters = {f"counter{number}": {"value": "1"} for number in range(1, 5)}
    parts = {
        "device-2-counters-1": (1, 2),
        "device-2-counters-2": (3, 4),
        **{f"device-1-counter-{number}": (number,) for number in range(1, 5)},
    }
    devices = [_partition(part, name, numbers) for part, numbers in parts.items()]
    selector = (
        f"device.capacity['{DRIVER}'].counters.compareTo(quantity('2')) >= 0 &&\n"
        f"device.attributes['{DRIVER}'].preallocate"
    )
    exactly = {"deviceClassName": CLASS, "selectors": [{"cel": {"expression": selector}}]}
    return (
        _object(
            "ResourceSlice",
            f"countersets-{name}",
            spec={**spec, "sharedCounters": [{"name": "counter-set", "counters": counters}]},
        ),
        _object("ResourceSlice", f"devices-{name}", spec={**spec, "devices": devices}),
        _object(
            "ResourceClaim",
            f"claim-{name}",
            namespace="init",
            spec={"devices": {"requests": [{"name": _REQUEST, "exactly": exactly}]}},
            status=_allocated(name, "device-2-counters-1"),
        ),
    )


def _partition(name: str, slice_name: str, counters: Sequence[int]) -> Manifest:
    return {
        "name": name,
        "attributes": {
            "preallocate": {"bool": name == "device-2-counters-1"},
            "dra.example.com/slice": {"string": slice_name},
        },
        "capacity": {"counters": {"value": str(len(counters))}},
        "consumesCounters": [
            {
                "counterSet": "counter-set",
                "counters": {f"counter{number}": {"value": "1"} for number in counters},
            }
        ],
    }


# Pods and their claims


def with_template(name: str, namespace: str = "default") -> Manifest:
    """Return a pod whose claim was made from a template."""
    reference = {"name": "resource", "resourceClaimTemplateName": "test-claim-template"}
    pod = _with_claim(name, namespace, reference)
    metadata = {**shapes.metadata_of(pod), "uid": f"uid-{name}"}
    status = {"resourceClaimStatuses": [{"name": "resource", "resourceClaimName": f"{name}-claim"}]}
    return {**pod, "metadata": metadata, "status": status}


def sharing(index: int, name: str, namespace: str = "default") -> Manifest:
    """Return one of five pods that use the same claim."""
    claim = f"{name.partition('-')[0]}-claim-{index // SHARERS}"
    return _with_claim(name, namespace, {"name": "resource", "resourceClaimName": claim})


def _with_claim(name: str, namespace: str, reference: Manifest) -> Manifest:
    pod = shapes.pod(name, namespace, port=False, resourceClaims=[reference])
    return _with_resources(pod, {"claims": [{"name": "resource"}]})


def for_extended_resource(index: int, name: str, namespace: str = "default", *, prefix: str) -> Manifest:
    amounts = {f"{prefix}{index % EXTENDED_CLASSES}": "1"}
    return shapes.pod(name, namespace, requests=amounts, port=False)


def claim_for_one(pod: Manifest) -> tuple[Manifest, ...]:
    """Return the pod's claim, for one device."""
    return (_claim_of(pod, _ONE_DEVICE),)


def claim_for_first_available(pod: Manifest) -> tuple[Manifest, ...]:
    """Return the pod's claim, for a device of a class without devices, or else of a class with devices."""
    return (_claim_of(pod, _FIRST_AVAILABLE),)


def claim_for_two(pod: Manifest) -> tuple[Manifest, ...]:
    """Return the pod's claim, for two devices of the same slice."""
    return (_claim_of(pod, _TWO_OF_A_SLICE),)


def allocated_claim(pod: Manifest, turn: int) -> tuple[Manifest, ...]:
    """Return the claim of a placed pod. The `turn`-th device of its node is allocated to the claim."""
    return ({**_claim_of(pod, _ONE_DEVICE), "status": _allocated(_node_of(pod), f"device-{turn}")},)


def shared_claim(pod: Manifest) -> tuple[Manifest, ...]:
    """Return the claim that several pods share; empty for all but the first of them."""
    kind, _, number = shapes.name_of(pod).partition("-")
    if int(number) % SHARERS:
        return ()
    name = f"{kind}-claim-{int(number) // SHARERS}"
    return (_object("ResourceClaim", name, namespace="default", spec={"devices": _ONE_DEVICE}),)


def _claim_of(pod: Manifest, devices: Manifest) -> Manifest:
    metadata = shapes.metadata_of(pod)
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    claim = _object(
        "ResourceClaim",
        f"{shapes.name_of(pod)}-claim",
        namespace=metadata["namespace"],
        spec={"devices": devices},
    )
    return {**claim, "metadata": {**shapes.metadata_of(claim), "ownerReferences": [owner]}}


def _allocated(pool: str, device: str) -> Manifest:
    """Return an allocation without a node selector: the scheduler doesn't read it if a claim is already allocated."""
    result = {"request": _REQUEST, "driver": DRIVER, "pool": pool, "device": device}
    return {"allocation": {"devices": {"results": [result]}}}
