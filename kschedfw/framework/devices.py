"""The port to device support: extended resources that DRA devices provide (kube-scheduler `SharedDRAManager`).

The core knows which extended resources device classes back, and nothing of devices. A distribution counts and
allocates them; the entry-point group `kschedfw.devices` has its provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol, TypeAlias, runtime_checkable

from kschedfw.api import IMPLICIT_RESOURCE_PREFIX, DeviceClass, Extensions, Node, Pod, how_to_install
from kschedfw.api.records import frozen
from kschedfw.framework.cluster_client import ClusterClient

DeviceAmounts: TypeAlias = Callable[[str, Node], tuple[int, int]]
"""Return how many devices of a node back an extended resource, and how many of them are in use."""


class DeviceBackedResources(Protocol):
    """The extended resources of a cluster that device classes back.

    Semantics: kube-scheduler v1.36 `DRAExtendedResource`. All profiles of a scheduler share one instance.
    """

    @property
    def missing(self) -> str:
        """The reason why no pod can use devices here, with what to install; empty if pods can."""
        ...

    def requested_by(self, pod: Pod) -> Sequence[str]:
        """Return the extended resources that the pod requests and that a class backs now."""
        ...

    def amounts(self) -> DeviceAmounts:
        """Return the amounts as of now; the function gives the same answers whatever is allocated later."""
        ...


@runtime_checkable
class DeviceProvider(Protocol):
    """The object behind an entry point of the group `kschedfw.devices`."""

    def of(self, cluster: ClusterClient) -> DeviceBackedResources:
        """Return the device-backed resources of this cluster, the same instance for the same cluster."""
        ...


_NAME: Final = "dynamic-resources"
PROVIDERS: Final = Extensions[DeviceProvider](
    "kschedfw.devices",
    "device support",
    DeviceProvider,  # type: ignore[type-abstract]  # classes are compared with the protocol, never made by it
    homes={_NAME: "kschedfw-devices"},
)


def device_backed_resources(cluster: ClusterClient) -> DeviceBackedResources:
    """Return the device-backed resources of a cluster: those of the installed provider, or `WithoutDevices`.

    Raises:
        ExtensionError: a provider is installed, but can't be loaded, or there are two.
    """
    return (
        PROVIDERS.load(_NAME).of(cluster)
        if _NAME in PROVIDERS.names()
        else WithoutDevices(DeviceClasses(cluster))
    )


_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class DeviceClasses:
    """The device classes of a cluster, by the extended resources that they back."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._listed: object = None
        self._classes: Mapping[str, DeviceClass] = {}

    def by_resource(self) -> Mapping[str, DeviceClass]:
        """Return the class behind each extended resource."""
        listed = self._cluster.list(DeviceClass)
        # The cluster in memory returns the same list until an object of the kind changes. With another
        # cluster the table is only made more often.
        if listed is not self._listed:
            self._classes, self._listed = _by_resource(listed), listed
        return self._classes

    def requested_by(self, pod: Pod) -> Sequence[str]:
        """Return the extended resources that the pod requests and that a class backs now."""
        requested = pod.requests.amounts.scalar_resources
        if not requested:
            return ()
        classes = self.by_resource()
        return [name for name, amount in requested.items() if amount and name in classes]


def _by_resource(classes: Iterable[DeviceClass]) -> Mapping[str, DeviceClass]:
    """Return the device class of each extended resource, by explicit name and by the class's implicit name.

    Of two classes with the same explicit name, the newer one gets it. An older class that comes later in the
    order of names loses its implicit name, too.
    """
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name):
        name = each.spec.extended_resource_name
        if name:
            other = found.get(name)
            if other is not None and not _is_newer(each, other):
                continue
            found[name] = each
        found[IMPLICIT_RESOURCE_PREFIX + each.name] = each
    return found


def _is_newer(one: DeviceClass, other: DeviceClass) -> bool:
    mine, theirs = one.metadata.creation_timestamp or _NEVER, other.metadata.creation_timestamp or _NEVER
    return mine > theirs or (mine == theirs and one.name < other.name)


@frozen(eq=False)
class WithoutDevices:
    """Device-backed resources where no distribution allocates devices: they are known, and can't be had."""

    _classes: DeviceClasses

    @property
    def missing(self) -> str:
        return (
            "claims and extended resources of devices need DynamicResources of the distribution kschedfw-devices, "
            f"which isn't installed: {how_to_install('kschedfw-devices')}"
        )

    def requested_by(self, pod: Pod) -> Sequence[str]:
        return self._classes.requested_by(pod)

    def amounts(self) -> DeviceAmounts:
        return lambda _resource, _node: (0, 0)
