"""A scheduler over some nodes, for the tests of this floor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from kschedfw import (
    Cache,
    CycleState,
    Framework,
    GenericScheduler,
    Node,
    Pod,
    Profile,
    ScheduleResult,
    Snapshot,
    make_node,
)
from kschedfw.framework.extender import Extender
from kschedfw.framework.nominator import Nominator
from tests.framework.support import PluginClass, make_framework

POOL = [make_node(f"n{index}").build() for index in range(300)]
"""Nodes n0, n1, … for tests that need many."""


class Bench:
    """A framework, a cache with nodes and pods, and the scheduler that uses them."""

    def __init__(
        self,
        *plugins: PluginClass,
        nodes: Iterable[Node] = (),
        pods: Iterable[Pod] = (),
        profile: Profile | None = None,
        nominator: Nominator | None = None,
        extenders: Sequence[Extender] = (),
        parallelism: int = 1,
        percentage: int = 0,
        seed: int = 0,
    ) -> None:
        self.cache = Cache()
        for node in nodes:
            self.cache.add_node(node)
        for pod in pods:
            self.cache.add_pod(pod)
        snapshot = Snapshot()
        self.framework: Framework = make_framework(
            *plugins,
            snapshot=snapshot,
            profile=profile,
            nominator=nominator,
            extenders=extenders,
            parallelism=parallelism,
        )
        self.scheduler = GenericScheduler(
            self.cache, snapshot, random=Random(seed), percentage_of_nodes_to_score=percentage
        )

    def schedule(self, pod: Pod) -> ScheduleResult:
        return self.scheduler.schedule(self.framework, CycleState(), pod)
