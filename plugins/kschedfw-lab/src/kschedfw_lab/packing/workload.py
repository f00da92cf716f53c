"""The OpenB trace as a source of machines and pods."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final, Self

import attrs

from kschedfw import FrozenDict, KschedfwError, Node, Pod
from kschedfw.api import ResourceRequirements
from kschedfw_lab.openb import GPU, read_openb_nodes, read_openb_pods

NODES: Final = "openb_node_list_all_node.csv"
PODS: Final = "openb_pod_list_default.csv"

LARGE: Final = 8
"""The number of GPUs of large pods. Such a pod needs a machine with all its GPUs free."""


class TraceError(KschedfwError, ValueError):
    """The trace's files can't be read or are empty. The message is one line that names the file."""


@attrs.frozen
class Trace:
    """The machines and pods of the trace. A pod that shares a GPU takes the whole GPU here."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]

    @property
    def gpus(self) -> int:
        """The GPUs of all machines."""
        return sum(
            node.status.allocatable[GPU].value() for node in self.nodes if GPU in node.status.allocatable
        )

    @property
    def gpus_per_pod(self) -> float:
        """The mean number of GPUs per pod."""
        return sum(map(gpus_of, self.pods)) / len(self.pods)

    def without_gpus(self) -> Self:
        """Return the same machines and pods with CPU and memory only."""
        return attrs.evolve(self, pods=tuple(map(_without_gpus, self.pods)))

    def shuffled_nodes(self, random: Random) -> list[Node]:
        """Return the machines in a random order."""
        return random.sample(self.nodes, len(self.nodes))


@lru_cache(maxsize=1)
def read_trace(nodes: Path, pods: Path) -> Trace:
    """Read the trace, or return it if this process has read it already.

    Raises:
        TraceError, OpenbError: a file can't be read, has another format, or has no machines with GPUs or no pods.
    """
    try:
        trace = Trace(tuple(read_openb_nodes(nodes)), tuple(read_openb_pods(pods)))
    except OSError as error:
        raise TraceError(f"{error.filename}: {error.strerror}; expected a table of the OpenB trace") from None
    if not trace.gpus:
        raise TraceError(f"{nodes}: expected OpenB's table of nodes, some of them with GPUs; none has any")
    if not any(map(gpus_of, trace.pods)):
        raise TraceError(f"{pods}: expected OpenB's table of pods, some of them with GPUs; none asks for any")
    return trace


def gpus_of(pod: Pod) -> int:
    """Return how many GPUs the pod takes."""
    return pod.requests.amounts.scalar_resources.get(GPU, 0)


def _without_gpus(pod: Pod) -> Pod:
    containers = tuple(
        attrs.evolve(
            each,
            resources=ResourceRequirements(
                FrozenDict({name: amount for name, amount in each.resources.requests.items() if name != GPU}),
                FrozenDict({name: amount for name, amount in each.resources.limits.items() if name != GPU}),
            ),
        )
        for each in pod.spec.containers
    )
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, containers=containers))
