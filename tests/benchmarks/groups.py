"""What a group of equal pods costs, by members and placements: a command.

    python -m tests.benchmarks.groups [NODES]       by default 5,000 nodes

A gang of pods that request 1 CPU and 2 GiB, or a GPU as well, is scheduled on nodes of which every third has a pod.
They are divided into racks, which are its placements; with one placement it has no constraint. Times are the
processor's: the least of three groups, one after the other, after a first one for which columns and plans are made.
The algorithm is everything until it is decided where the members go; the cycle is that, and taking members from the
queue, binding them and writing the group's condition.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from kschedfw import FeatureGates, InMemoryCluster, Pod, Scheduler, make_node, make_pod, make_pod_group

NODES: Final = 5_000
MEMBERS: Final = (8, 64, 256, 1_000, 2_000)
MEMBERS_WITH_GPU: Final = 64
PLACEMENTS: Final = (1, 10, 50, 200)
TIMES: Final = 3
GPU: Final = "nvidia.com/gpu"
GATES: Final = FeatureGates.of(
    "GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"
)


class Timed:
    """A scheduler of gangs with so many members, on nodes in so many racks, that times the algorithm and cycles."""

    def __init__(self, members: int, placements: int, nodes: int, gpus: int = 0) -> None:
        self.members = members
        self.cluster = InMemoryCluster(
            make_node(f"node-{number}")
            .labels(rack=f"rack-{number % placements}")
            .capacity({"cpu": 256, "memory": "1Ti", "pods": 1_000, GPU: 8})
            .build()
            for number in range(nodes)
        )
        for number in range(0, nodes, 3):
            running = make_pod(f"running-{number}").requests(cpu=1 + number % 7, memory="4Gi")
            self.cluster.add(running.node(f"node-{number}").build())
        for gang in range(1 + TIMES):
            group = make_pod_group(f"gang-{gang}").gang(min_count=members)
            self.cluster.add((group.topology("rack") if placements > 1 else group).build())
            for number in range(members):
                member = make_pod(f"gang-{gang}-{number}").requests(cpu=1, memory="2Gi")
                if gpus:
                    member = member.requests({GPU: gpus})
                self.cluster.add(member.group(f"gang-{gang}").build())
        self.scheduler = Scheduler(self.cluster, feature_gates=GATES)
        assert self.scheduler.group_cycle is not None
        self._run = self.scheduler.group_cycle.algorithm.run
        self.scheduler.group_cycle.algorithm.run = self._timed  # type: ignore[method-assign]
        self._algorithm = 0.0

    def _timed(self, *args: Any, **named: Any) -> Any:
        begun = time.process_time()
        try:
            return self._run(*args, **named)
        finally:
            self._algorithm = time.process_time() - begun

    def schedule(self) -> tuple[float, float]:
        """Schedule the next gang. Return the seconds of the algorithm and of the cycle."""
        gc.collect()
        begun = time.process_time()
        assert self.scheduler.schedule_one()
        return self._algorithm, time.process_time() - begun


def measured(members: int, placements: int, nodes: int = NODES, gpus: int = 0) -> tuple[float, float]:
    """Return the least seconds of the algorithm, and of the cycle, for members that request so many GPUs."""
    timed = Timed(members, placements, nodes, gpus)
    times = [timed.schedule() for _ in range(1 + TIMES)][1:]
    placed = [pod for pod in timed.cluster.list(Pod) if pod.name.startswith("gang-") and pod.node_name]
    assert len(placed) == members * (1 + TIMES)
    return min(each for each, _ in times), min(each for _, each in times)


def main(arguments: Sequence[str]) -> None:
    if arguments and not (arguments[0].isdecimal() and int(arguments[0]) >= max(PLACEMENTS)):
        sys.exit(
            f"{arguments[0]}: give a number of nodes, {max(PLACEMENTS)} or more: there are as many placements"
        )
    nodes = int(arguments[0]) if arguments else NODES
    print(f"{nodes:,} nodes: milliseconds of the algorithm, and of the cycle\n")
    print("| members | " + " | ".join(f"{count} placement{'s' * (count > 1)}" for count in PLACEMENTS) + " |")
    print("| ---: |" + " ---: |" * len(PLACEMENTS))
    for members, gpus in (*((members, 0) for members in MEMBERS), (MEMBERS_WITH_GPU, 1)):
        found = [measured(members, placements, nodes, gpus) for placements in PLACEMENTS]
        cells = [f"{algorithm * 1000:,.0f}, {cycle * 1000:,.0f}" for algorithm, cycle in found]
        print(f"| {members:,}{' with a GPU' * gpus} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
