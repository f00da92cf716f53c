"""A batch scheduler with an order and a cluster of its own, which places whole jobs: `python batch_scheduler.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import attrs
from site_records import Site

from kschedfw import (
    Cache,
    CycleState,
    FitError,
    Framework,
    GenericScheduler,
    Node,
    Parallelizer,
    Pod,
    Profile,
    Registry,
    Snapshot,
    make_node,
    make_pod,
)

PROFILE = Profile(
    ["NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit", "DefaultBinder"],
    args={"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}},
)
"""Few of kube-scheduler's plugins; what they have to decide is packed tightly, so that room for large tasks remains."""


Placed = tuple[CycleState, Pod]


@attrs.frozen
class Job:
    """So many equal tasks, all of which run at the same time, or none."""

    name: str
    tasks: int
    cpu: int

    @property
    def pods(self) -> Sequence[Pod]:
        names = [f"{self.name}-{number}" for number in range(1, self.tasks + 1)]
        return [make_pod(name).uid(name).requests(cpu=self.cpu).build() for name in names]


class BatchScheduler:
    """Starts jobs, those with most CPUs first; a job that doesn't fit is passed over until another has ended."""

    def __init__(self, site: Site) -> None:
        self.waiting: list[Job] = []
        self._site = site
        self._cache, snapshot = Cache(), Snapshot()
        self._framework = Framework(
            Registry(), PROFILE, cluster=site, snapshot=snapshot, parallelizer=Parallelizer(1)
        )
        self._algorithm = GenericScheduler(self._cache, snapshot, random=Random(1))
        for node in site.list(Node):
            self._cache.add_node(node)

    def submit(self, jobs: Iterable[Job]) -> None:
        self.waiting = sorted([*self.waiting, *jobs], key=lambda job: (-job.tasks * job.cpu, job.name))

    def start_jobs(self) -> None:
        self.waiting = [job for job in self.waiting if not self._start(job)]

    def end(self, job: Job) -> None:
        for pod in job.pods:
            self._cache.remove_pod(pod)
            self._site.delete(pod)
        print(f"{job.name} has ended")

    def _start(self, job: Job) -> bool:
        placed: list[Placed] = []
        for pod in job.pods:
            if problem := self._place(pod, placed):
                self._roll_back(placed)
                print(f"{job.name} waits, because of {pod.name}: {problem}")
                return False
        for state, pod in placed:
            status = self._framework.run_bind_plugins(state, pod, pod.node_name)
            assert status.is_success, status.message
            self._cache.add_pod(pod)  # from now on a fact, no assumption
        print(f"{job.name} runs on {' '.join(pod.node_name for _, pod in placed)}")
        return True

    def _place(self, pod: Pod, placed: list[Placed]) -> str | None:
        """Why there is no place for it; where there is one, it is taken."""
        state = CycleState()
        try:
            host = self._algorithm.schedule(self._framework, state, pod).suggested_host
        except FitError as error:
            return str(error)
        assumed = pod.bound_to(host)
        self._cache.assume_pod(assumed)  # so that the next task finds the room gone
        placed.append((state, assumed))
        status = self._framework.run_reserve_plugins_reserve(state, assumed, host)
        return None if status.is_success else status.message

    def _roll_back(self, placed: Sequence[Placed]) -> None:
        for state, pod in reversed(placed):
            self._framework.run_reserve_plugins_unreserve(state, pod, pod.node_name)
            self._cache.forget_pod(pod)


def main() -> None:
    site = Site(make_node(name).capacity(cpu=8, memory="32Gi").build() for name in "abcd")
    scheduler = BatchScheduler(site)
    simulation, training = Job("simulation", tasks=4, cpu=5), Job("training", tasks=6, cpu=3)
    scheduler.submit([Job("report", tasks=3, cpu=1), training, Job("rendering", tasks=5, cpu=2), simulation])
    scheduler.start_jobs()
    scheduler.end(simulation)
    scheduler.start_jobs()
    print(f"waiting: {[job.name for job in scheduler.waiting]}")


if __name__ == "__main__":
    main()
