"""The amounts that a pod requests, by container."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kschedfw import Pod
from kschedfw.api import QosClass, pod_qos_class
from kschedfw_topoaware.amounts import Amounts, amounts_of, highest, is_native, total


@attrs.frozen
class InitContainer:
    """The requests of an init container."""

    requests: Amounts
    is_sidecar: bool


@attrs.frozen(cache_hash=True)
class Demand:
    """A pod's requests by container, and the overhead of its runtime class."""

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
        """The requests of all containers, in the order in which the kubelet starts them."""
        return (*(each.requests for each in self.init_containers), *self.containers)

    @property
    def is_nothing(self) -> bool:
        """Return whether the pod needs nothing of a NUMA zone: it is BestEffort and requests no devices."""
        # A BestEffort pod may request devices, which the kubelet aligns, too.
        return self.qos is QosClass.BEST_EFFORT and all(
            is_native(name) for amounts in self.all_containers for name in amounts
        )

    @property
    def of_the_pod(self) -> Amounts:
        """The pod's requests as a whole, with overhead.

        For each resource this is the sum over the containers, or an init container's request if it is larger.
        """
        of_containers = highest((total(self.containers), *(each.requests for each in self.init_containers)))
        return total((of_containers, self.overhead))
