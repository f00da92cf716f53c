"""What a pod wants of the zones."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kschedfw import Pod, QosClass, pod_qos_class
from kschedfw_topoaware.amounts import Amounts, amounts_of, highest, is_native, total


@attrs.frozen
class InitContainer:
    """What one of them requests."""

    requests: Amounts
    is_sidecar: bool


@attrs.frozen(cache_hash=True)
class Demand:
    """A pod's requests, container by container, and what its runtime class adds to the pod as a whole."""

    qos: QosClass
    init_containers: tuple[InitContainer, ...]
    containers: tuple[Amounts, ...]
    overhead: Amounts

    @classmethod
    def of(cls, pod: Pod) -> Demand:
        init_containers = [
            InitContainer(amounts_of(each.resources.requests), each.is_sidecar)
            for each in pod.spec.init_containers
        ]
        containers = [amounts_of(each.resources.requests) for each in pod.spec.containers]
        overhead = amounts_of(pod.spec.overhead)
        return cls(pod_qos_class(pod), tuple(init_containers), tuple(containers), overhead)

    @property
    def is_guaranteed(self) -> bool:
        return self.qos is QosClass.GUARANTEED

    @property
    def all_containers(self) -> Sequence[Amounts]:
        """In the order in which the kubelet starts them."""
        return (*(each.requests for each in self.init_containers), *self.containers)

    @property
    def is_nothing(self) -> bool:
        """True if no NUMA zone matters to the pod."""
        return self.qos is QosClass.BEST_EFFORT and all(
            is_native(name) for amounts in self.all_containers for name in amounts
        )

    @property
    def of_the_pod(self) -> Amounts:
        """What it takes as a whole: all containers together, or an init container if that takes more; and overhead."""
        of_containers = highest((total(self.containers), *(each.requests for each in self.init_containers)))
        return total((of_containers, self.overhead))
