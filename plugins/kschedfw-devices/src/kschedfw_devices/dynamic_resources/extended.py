"""Extended resources backed by device classes (KEP-5004).

A pod requests them like those of device plugins. On nodes where no device plugin provides them, a special claim
is made for the pod, with a request per container and resource.

Semantics: kube-scheduler v1.36 `DRAExtendedResource`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Final

import attrs

from kschedfw import ObjectMeta, Pod
from kschedfw.api import (
    EXTENDED_RESOURCE_ANNOTATION,
    IMPLICIT_RESOURCE_PREFIX,
    Container,
    ContainerExtendedResourceRequest,
    DeviceAllocationMode,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    OwnerReference,
    ResourceClaim,
    is_extended,
)

SPECIAL_CLAIM = "<extended-resources>"
"""The name of the claim as long as it isn't in the cluster."""

_RANDOM_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The API server's, for generated names: none of them makes a word with the others."""


def generated_name(prefix: str, random: Random) -> str:
    """Return a name as the API server makes it of a `generateName`: at most 63 characters, five of them random."""
    number, letters = random.getrandbits(64), ""
    for _ in range(5):
        number, digit = divmod(number, len(_RANDOM_LETTERS))
        letters += _RANDOM_LETTERS[digit]
    return f"{prefix[:58]}{letters}"


def special_claim(pod: Pod) -> ResourceClaim:
    """Return the claim for a pod's extended resources, as it will be made once its node is chosen."""
    owner = OwnerReference(kind="Pod", name=pod.name, uid=pod.uid, api_version="v1", controller=True)
    metadata = ObjectMeta(
        name=SPECIAL_CLAIM,
        generate_name=f"{pod.name}-extended-resources-",
        namespace=pod.namespace,
        uid=f"{SPECIAL_CLAIM} {pod.uid}",
        annotations={EXTENDED_RESOURCE_ANNOTATION: "true"},
        owner_references=(owner,),
    )
    return ResourceClaim(metadata)


@attrs.frozen
class ExtendedRequests:
    """The requests of the special claim on a node, and the container and resource that each request serves."""

    requests: tuple[DeviceRequest, ...] = ()
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


NO_REQUESTS = ExtendedRequests()


@attrs.define
class _HeldAmount:
    """A request that an init container may use, before a later container does."""

    name: str
    count: int


def extended_requests(
    pod: Pod, resources: Iterable[str], classes: Mapping[str, DeviceClass]
) -> ExtendedRequests:
    """Return the requests for those of the pod's resources that come from devices.

    Containers that run at the same time have requests of their own. Init containers run before, one after
    another: they use the devices of containers that start later, and have requests of their own for the rest.
    """
    everyone = (*pod.spec.init_containers, *pod.spec.containers)
    first = len(pod.spec.init_containers)
    found: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = classes[resource].name
        held: dict[int, _HeldAmount] = {}
        for index, container in enumerate(everyone):
            if index >= first or container.is_sidecar:
                count = _count(container, resource)
                if count:
                    held[index] = _HeldAmount(_name(index, container, resource), count)
                    mappings.append(_mapping(container, resource, held[index]))
        for index, container in enumerate(pod.spec.init_containers):
            if container.is_sidecar:
                continue
            lacking = _count(container, resource)
            for number, each in held.items():
                # A container that starts later doesn't need its devices yet, and an init container that has
                # ended doesn't any more.
                starts_later = number > index
                has_ended = number < first and not everyone[number].is_sidecar
                if lacking > 0 and (starts_later or has_ended):
                    mappings.append(_mapping(container, resource, each))
                    lacking -= each.count
            if lacking > 0:
                held[index] = _HeldAmount(_name(index, container, resource), lacking)
                mappings.append(_mapping(container, resource, held[index]))
        found += [_request(each, device_class) for each in held.values()]
    return ExtendedRequests(tuple(sorted(found, key=lambda each: each.name)), tuple(mappings))


def _count(container: Container, resource: str) -> int:
    amount = container.resources.requests.get(resource)
    return 0 if amount is None else amount.value()


def _name(index: int, container: Container, resource: str) -> str:
    position = sorted(container.resources.requests).index(resource)
    return f"container-{index}-request-{position}"


def _mapping(container: Container, resource: str, held: _HeldAmount) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container.name, resource, held.name)


def _request(held: _HeldAmount, device_class: str) -> DeviceRequest:
    exactly = ExactDeviceRequest(
        device_class, allocation_mode=DeviceAllocationMode.EXACT_COUNT, count=held.count
    )
    return DeviceRequest(held.name, exactly)


def may_come_from_devices(name: str) -> bool:
    """Tell whether the resource's name is one that device plugins or device classes may provide."""
    return is_extended(name) or name.startswith(IMPLICIT_RESOURCE_PREFIX)
