"""The check that the cluster has a gang's minimal resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kschedfw import NodeInfo, Pod, Quantity

_PODS = "pods"


def resource_gap(
    needed: Mapping[str, Quantity], count: int, nodes: Iterable[NodeInfo], placed: Iterable[Pod]
) -> Mapping[str, int]:
    """Return how much of each resource is missing for `count` pods, summed over all nodes; CPU in millicores.

    Resources that the gang's own `placed` pods use count as free, since `needed` includes these pods. An overcommitted
    node counts as 0 free, so that it doesn't reduce what other nodes have.
    """
    gaps = {name: _amount(name, quantity) for name, quantity in needed.items()}
    # As in scheduler-plugins, minMember replaces an amount of pods in minResources.
    gaps[_PODS] = count
    for pod in placed:
        for name in gaps:
            gaps[name] -= _requested(name, pod)
    for info in nodes:
        for name in gaps:
            gaps[name] -= max(0, _free(name, info))
    return {name: gap for name, gap in sorted(gaps.items()) if gap > 0}


def _amount(name: str, quantity: Quantity) -> int:
    return quantity.milli_value() if name == "cpu" else quantity.value()


def _free(name: str, info: NodeInfo) -> int:
    if name == _PODS:
        return info.allocatable.allowed_pod_number - len(info.pods)
    return info.allocatable.get(name) - info.requested.get(name)


def _requested(name: str, pod: Pod) -> int:
    amounts = pod.requests.amounts
    match name:
        case "pods":
            return 1
        case "cpu":
            return amounts.milli_cpu
        case "memory":
            return amounts.memory
        case "ephemeral-storage":
            return amounts.ephemeral_storage
    return amounts.scalar_resources.get(name, 0)
