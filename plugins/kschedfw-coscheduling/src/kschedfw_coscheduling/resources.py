"""Whether the cluster has what a gang needs at least."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kschedfw import NodeInfo, Pod, Quantity

_PODS = "pods"


def resource_gap(
    needed: Mapping[str, Quantity], count: int, nodes: Iterable[NodeInfo], placed: Iterable[Pod]
) -> Mapping[str, int]:
    """What is missing, all nodes taken together, for so many pods; CPU in thousandths.

    What the gang's own `placed` pods take counts as free, since it is for them, too. A node that is overcommitted has
    nothing free, but takes nothing from others either.
    """
    gaps = {name: _amount(name, quantity) for name, quantity in needed.items()}
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
