"""The OpenB trace, and the order in which its pods arrive."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TypeVar

import attrs
from kschedfw_lab import read_openb_nodes, read_openb_pods

from kschedfw import KschedfwError, Node, Pod
from kschedfw_gpushare.demand import MILLI, demand_of
from kschedfw_gpushare.fragmentation import TypicalPod, typical_pods

ObjectT = TypeVar("ObjectT")

GPU = "nvidia.com/gpu"
TUNE = 1.3
"""The pods' GPU requests, as a multiple of the cluster's GPUs."""


class TraceError(KschedfwError, ValueError):
    """An invalid file of the trace. The message names the file and what was expected."""


@attrs.frozen(slots=False)
class Trace:
    """The nodes, the pods by name, and the typical pods that stand for the pods' requests."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    typical: tuple[TypicalPod, ...]

    @classmethod
    def read(cls, nodes: Path, pods: Path) -> Trace:
        """Read a trace.

        Raises OpenbError or TraceError: a file can't be read or has another format, or the nodes have no GPUs.
        """
        # By name, so that a seed's draws don't depend on the file's order.
        by_name = sorted(_table_of("pods", pods, read_openb_pods), key=lambda pod: pod.name)
        all_nodes = tuple(_table_of("nodes", nodes, read_openb_nodes))
        trace = cls(all_nodes, tuple(by_name), typical_pods(by_name, GPU))
        if not trace.capacity:
            raise TraceError(
                f"{nodes}: expected OpenB's table of nodes, some of them with GPUs; none has any"
            )
        return trace

    @cached_property
    def capacity(self) -> int:
        """The capacity of all GPUs, in thousandths."""
        return (
            sum(node.status.allocatable[GPU].value() for node in self.nodes if GPU in node.status.allocatable)
            * MILLI
        )


def _table_of(what: str, path: Path, read: Callable[[Path], list[ObjectT]]) -> list[ObjectT]:
    try:
        return read(path)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}; expected OpenB's table of {what}") from error


def tuned(trace: Trace, random: Random, tune: float = TUNE) -> list[Pod]:
    """Return the pods in the order of their arrival.

    They are shuffled; copies are appended, or pods left out, until they request `tune` times the GPUs.
    """
    pods = list(trace.pods)
    random.shuffle(pods)
    asked, wanted = sum(map(asked_by, pods)), tune * trace.capacity
    if asked > wanted:
        while asked > wanted:
            asked -= asked_by(pods.pop(random.randrange(len(pods))))
        return pods
    for number in itertools.count() if asked else ():
        copy = random.choice(trace.pods)
        if asked + asked_by(copy) > wanted:
            break
        asked += asked_by(copy)
        name = f"{copy.name}-{number}"
        pods.append(copy.with_metadata(attrs.evolve(copy.metadata, name=name, uid="")))
    return pods


def asked_by(pod: Pod) -> int:
    """Return the pod's GPU request, in thousandths."""
    return demand_of(pod, GPU).total
