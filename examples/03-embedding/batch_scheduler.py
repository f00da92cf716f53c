"""A batch scheduler with an order and a cluster of its own, which places whole jobs: `python batch_scheduler.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import attrs
from site_records import Site

from kschedfw import FitError, Placement, Pod, Profile, Scheduler, make_node, make_pod

PROFILE = Profile(
    [
        "PrioritySort",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "DefaultBinder",
    ],
    args={"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}},
)
"""Few of kube-scheduler's plugins; what they have to decide is packed tightly, so that room for large tasks remains."""


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
        self._scheduler = Scheduler(site, [PROFILE], random=Random(1))

    def submit(self, jobs: Iterable[Job]) -> None:
        self.waiting = sorted([*self.waiting, *jobs], key=lambda job: (-job.tasks * job.cpu, job.name))

    def start_jobs(self) -> None:
        self.waiting = [job for job in self.waiting if not self._start(job)]

    def end(self, job: Job) -> None:
        for pod in job.pods:
            self._site.delete(pod)
        print(f"{job.name} has ended")

    def _start(self, job: Job) -> bool:
        held: list[Placement] = []
        for pod in job.pods:
            try:
                held.append(self._scheduler.place(pod))  # so that the next task finds the room gone
            except FitError as error:
                for placement in held:
                    placement.give_up()
                print(f"{job.name} waits, because of {pod.name}: {error}")
                return False
        for placement in held:
            placement.commit()
        print(f"{job.name} runs on {' '.join(placement.node_name for placement in held)}")
        return True


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
