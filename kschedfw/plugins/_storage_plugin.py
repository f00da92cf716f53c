"""The base class of plugins whose answers depend on a pod's volumes in the cluster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

from kschedfw import Handle, Plugin, Pod, Status

FoundT = TypeVar("FoundT")


def volumes_of(pod: Pod) -> Hashable:
    """Return the sources of the pod's volumes, in any order and without names: a signature for batching.

    As kube-scheduler's, it contains the names of claims, but not their state in the cluster.
    """
    sources = [
        attrs.evolve(volume, name="")
        for volume in pod.spec.volumes or ()
        if volume.is_storage or volume.image
    ]
    return tuple(sorted(sources, key=repr))


class StoragePlugin(Plugin, Generic[FoundT]):
    """A plugin that signs a pod by the state of its volumes, since claims and volumes may change at any time.

    All pods without storage share one signature. What `sign` finds is reused by the pre_filter of the same
    cycle.
    """

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._latest: tuple[Pod, FoundT | Status] | None = None

    @abstractmethod
    def find(self, pod: Pod) -> FoundT | Status:
        """Return the state of the pod's volumes in the cluster; a refusal if something is missing."""

    @abstractmethod
    def signature(self, found: FoundT) -> Hashable:
        """Return the signature of a pod with storage: all inputs of filter and score."""

    def sign(self, pod: Pod) -> Hashable | None:
        if not pod.spec.volumes or not pod.storage:
            return ()
        found = self.find(pod)
        self._latest = pod, found
        return None if isinstance(found, Status) else self.signature(found)

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return volumes_of(pod)

    def found(self, pod: Pod) -> FoundT | Status:
        """Return the result of `find` that `sign` has kept for this pod, once; otherwise call `find`."""
        latest, self._latest = self._latest, None
        return latest[1] if latest is not None and latest[0] is pod else self.find(pod)
