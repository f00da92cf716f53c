"""A loss system, in terms of queueing theory: a cluster in which pods that fit nowhere are lost."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import TracebackType
from typing import Self

import attrs

from kschedfw import InMemoryCluster, KschedfwError, Node, Pod, Scheduler
from kschedfw.simulator import Failures
from kschedfw_lab.compare import NodeAllocation
from kschedfw_lab.packing.policies import Policy, profile_of


class FailedRunError(KschedfwError):
    """A plugin failed during a run, so the run has no result."""


class LossSystem:
    """A cluster whose scheduler makes one attempt per pod. A pod that fits nowhere is refused and not kept."""

    def __init__(self, nodes: Sequence[Node], policy: Policy, random: Random) -> None:
        self._cluster = InMemoryCluster(nodes)
        self._scheduler = Scheduler(self._cluster, [profile_of(policy)], random=random)
        self._failures = Failures()
        self._names = 0

    def __enter__(self) -> Self:
        self._failures.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._failures.__exit__(kind, error, traceback)
        self._scheduler.close()
        if error is None and self._failures.count:
            raise FailedRunError(f"a plugin failed: {next(self._failures.lines())}")

    def place(self, pod: Pod) -> Pod | None:
        """Return a copy of the pod with its node; None if it was refused."""
        self._names += 1
        metadata = attrs.evolve(pod.metadata, name=f"pod-{self._names}", uid="")
        stored = self._cluster.add(pod.with_metadata(metadata))
        self._scheduler.schedule_one()
        placed = self._cluster.get(Pod, stored.key)
        if placed is not None and placed.node_name:
            return placed
        # Its deletion also takes the pod out of the scheduler's queue.
        self._cluster.delete(stored)
        return None

    def remove(self, pod: Pod) -> None:
        """Remove a pod that has ended."""
        self._cluster.delete(pod)

    def allocations(self) -> list[NodeAllocation]:
        """Return the current allocation of each node."""
        self._scheduler.cache.update_snapshot(self._scheduler.snapshot)
        return [NodeAllocation.of(info) for info in self._scheduler.snapshot.node_infos]
