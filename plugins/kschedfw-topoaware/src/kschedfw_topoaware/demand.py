"""What a pod wants of the zones."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kschedfw import Pod, QosClass, pod_qos_class
from kschedfw_topoaware.amounts import Amounts, amounts_of, highest, is_native, total


@attrs.frozen(cache_hash=True)
class Demand:
    """A pod's requests, container by container."""

    qos: QosClass
    init_containers: tuple[Amounts, ...]
    containers: tuple[Amounts, ...]

    @classmethod
    def of(cls, pod: Pod) -> Demand:
        init_containers, containers = (
            tuple([amounts_of(container.resources.requests) for container in group])
            for group in (pod.spec.init_containers, pod.spec.containers)
        )
        return cls(pod_qos_class(pod), init_containers, containers)

    @property
    def is_guaranteed(self) -> bool:
        return self.qos is QosClass.GUARANTEED

    @property
    def all_containers(self) -> Sequence[Amounts]:
        """In the order in which the kubelet starts them."""
        return (*self.init_containers, *self.containers)

    @property
    def is_nothing(self) -> bool:
        """Whether no zone matters to it."""
        return self.qos is QosClass.BEST_EFFORT and all(
            is_native(name) for amounts in self.all_containers for name in amounts
        )

    @property
    def of_the_pod(self) -> Amounts:
        """What it takes as a whole: all containers together, or an init container if that takes more."""
        return highest((total(self.containers), *self.init_containers))
