"""A cluster of which pods that fit nowhere are lost: a loss system, in terms of queueing theory."""

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
    """A plugin failed during a run, so it measured nothing."""


class LossSystem:
    """A cluster with a scheduler that gives each pod one attempt: one that fits nowhere is refused, and gone."""

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
        """A copy of the pod where it has been placed; None if it was refused."""
        self._names += 1
        metadata = attrs.evolve(pod.metadata, name=f"pod-{self._names}", uid="")
        stored = self._cluster.add(pod.with_metadata(metadata))
        self._scheduler.schedule_one()
        placed = self._cluster.get(Pod, stored.key)
        if placed is not None and placed.node_name:
            return placed
        self._cluster.delete(stored)
        return None

    def remove(self, pod: Pod) -> None:
        """The pod ends."""
        self._cluster.delete(pod)

    def allocations(self) -> list[NodeAllocation]:
        """What is requested on each node now."""
        self._scheduler.cache.update_snapshot(self._scheduler.snapshot)
        return [NodeAllocation.of(info) for info in self._scheduler.snapshot.node_infos]
