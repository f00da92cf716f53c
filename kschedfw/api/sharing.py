"""Sharing of equal parts between pods, which are then read only once.

The pods of a workload hardly differ except in their names, nodes and volumes. With shared parts, a dict whose
keys are labels or affinities finds them by identity instead of comparing field by field, and reading another
pod of a workload takes half the time of the first.
"""

from __future__ import annotations

import functools
import marshal
from collections.abc import Hashable, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.convert import json_name, structure
from kschedfw.api.defaults import default_pod, default_requests
from kschedfw.api.evolver import evolver
from kschedfw.api.field_errors import FieldErrors
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.pod import Pod, PodSpec, PodStatus
from kschedfw.api.validate_pods import pod_spec, requirements
from kschedfw.api.volumes import Volume

T = TypeVar("T", bound=Hashable)

_MOST_KEPT: Final = 10_000
_NO_STATUS: Final = PodStatus()
_NO_RESOURCES: Final = ResourceRequirements()
_OWN: Final = frozenset(("nodeName", "volumes"))
"""The fields of the spec in which pods of a workload differ."""
_COMMON: Final = frozenset(json_name(field) for field in attrs.fields(PodSpec)) - _OWN
_OF_CONTAINERS: Final = frozenset(json_name(field) for field in attrs.fields(Container))
# marshal's version 2 is the last one that writes equal values as equal bytes.
_FORMAT: Final = 2

_with_labels = evolver(ObjectMeta, "labels")
_with_parts = evolver(PodSpec, "affinity", "tolerations", "topology_spread_constraints")
_with_containers = evolver(PodSpec, "containers", "init_containers")
_with_resources = evolver(Container, "resources")
_with_own = evolver(PodSpec, "node_name", "volumes")


def with_shared_parts(pod: Pod) -> Pod:
    """Return an equal pod that shares its labels, and a status that is empty, with other pods."""
    return Pod(_with_shared_labels(pod.metadata), pod.spec, _shared_status(pod.status))


def shared_pod(metadata: ObjectMeta, manifest: object, status: PodStatus) -> Pod | None:
    """Return a pod that shares most of its spec, its requests and its ports with earlier ones.

    `manifest` is that of the spec, whose defaults are filled in. None if there is none, or it is invalid.
    """
    if not isinstance(manifest, dict):
        return None
    common = {key: value for key, value in manifest.items() if key in _COMMON}
    try:
        for field in ("containers", "initContainers"):
            if containers := common.get(field):
                common[field] = [
                    {key: value for key, value in container.items() if key in _OF_CONTAINERS}
                    for container in containers
                ]
        encoded = marshal.dumps(common, _FORMAT)
        node_name = structure(given, str) if (given := manifest.get("nodeName")) else ""
        volumes = structure(given, tuple[Volume, ...]) if (given := manifest.get("volumes")) else ()
    # This is no manifest of a pod, or it isn't plain data.
    except (AttributeError, TypeError, ValueError):
        return None
    # Labels count where `matchLabelKeys` and `mismatchLabelKeys` refer to them.
    first = _first_with(encoded, metadata.labels if b"atchLabelKeys" in encoded else EMPTY)
    if first is None:
        return None
    spec = _with_own(first.spec, node_name, volumes) if node_name or volumes else first.spec
    return first.alike(_with_shared_labels(metadata), spec, _shared_status(status))


@functools.lru_cache(maxsize=_MOST_KEPT)
def _first_with(encoded: bytes, labels: FrozenDict[str, str]) -> Pod | None:
    """Return a pod without a name that has the spec, to be copied; None if the spec is invalid."""
    manifest: dict[str, Any] = marshal.loads(encoded)
    # Resources of the pod depend on those of its containers, so that all must be read together.
    read = _read_spec if manifest.get("resources") else _spec_with_resources
    spec = read(manifest, labels)
    if spec is None:
        return None
    orders = tuple(
        [(tuple(each.resources.requests), tuple(each.resources.limits)) for each in spec.containers]
    )
    return Pod(spec=_with_containers(spec, _shared(spec.containers, orders), spec.init_containers))


def _spec_with_resources(manifest: dict[str, Any], labels: FrozenDict[str, str]) -> PodSpec | None:
    """Return a spec that shares all but its containers' resources; None if it is invalid.

    In many a trace and workload no two pods ask for the same. Their resources are then all that is read.
    """
    given = [
        each for field in ("containers", "initContainers") for each in _without_resources(manifest, field)
    ]
    rest = _spec_without_resources(marshal.dumps(manifest, _FORMAT), labels)
    if rest is None:
        return None
    try:
        return with_resources(rest, [read_requirements(each) for each in given])
    except FieldErrors:
        return None


def with_resources(spec: PodSpec, resources: Sequence[ResourceRequirements]) -> PodSpec:
    """Return the spec with these resources, those of its containers before those of its init containers."""
    count = len(spec.containers)
    containers, init_containers = (
        tuple([_with_resources(each, own) for each, own in zip(of, its, strict=True)])
        for of, its in (
            (spec.containers, resources[:count]),
            (spec.init_containers, resources[count:]),
        )
    )
    return _with_containers(spec, containers, init_containers)


def _without_resources(manifest: dict[str, Any], field: str) -> list[object]:
    """Take the resources out of a manifest's containers, and return them."""
    return [container.pop("resources", None) for container in manifest.get(field) or ()]


def read_requirements(manifest: object) -> ResourceRequirements:
    """Read the resources of a container, and fill in defaults.

    Raises:
        FieldErrors: they are invalid.
    """
    if manifest is None:
        return _NO_RESOURCES
    resources = default_requests(structure(manifest, ResourceRequirements))
    if errors := list(requirements(resources, "resources")):
        raise FieldErrors(errors)
    return resources


@functools.lru_cache(maxsize=_MOST_KEPT)
def _spec_without_resources(encoded: bytes, labels: FrozenDict[str, str]) -> PodSpec | None:
    return _read_spec(marshal.loads(encoded), labels)


def _read_spec(manifest: object, labels: FrozenDict[str, str]) -> PodSpec | None:
    """Return the valid spec of the manifest, its defaults filled in, with shared parts; None if it is invalid."""
    try:
        spec = default_pod(Pod(ObjectMeta(labels=labels), structure(manifest, PodSpec))).spec
    except FieldErrors:
        return None
    if next(pod_spec(spec, "spec"), None) is not None:
        return None
    return _with_parts(
        spec, _shared(spec.affinity), _shared(spec.tolerations), _shared(spec.topology_spread_constraints)
    )


def shared_labels(labels: FrozenDict[str, str]) -> FrozenDict[str, str]:
    """Return equal labels, in the same order, that pods share."""
    # The order of labels is part of the key: equal dicts may differ in it, and it is visible in messages and output.
    return _shared(labels, tuple(labels)) if labels else labels


def _with_shared_labels(metadata: ObjectMeta) -> ObjectMeta:
    return _with_labels(metadata, shared_labels(metadata.labels)) if metadata.labels else metadata


def _shared_status(status: PodStatus) -> PodStatus:
    return _NO_STATUS if status == _NO_STATUS else status


@functools.lru_cache(maxsize=_MOST_KEPT)
def _shared(part: T, _order: Hashable = None) -> T:
    return part
