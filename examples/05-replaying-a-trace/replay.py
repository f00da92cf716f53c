"""Replays a trace of jobs under two policies, in virtual time: `python replay.py`."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs

from kschedfw import InMemoryCluster, Pod, Profile, default_profile, make_node
from kschedfw.api import pod_from_manifest
from kschedfw.simulator import Arrivals, Simulation

TRACE = Path(__file__).with_name("trace.csv")
START = datetime(2026, 1, 5, 8, tzinfo=UTC)

NODES = [make_node(f"node-{number}").capacity(cpu=16, memory="64Gi").build() for number in range(6)]
CPUS = 6 * 16

PACKING = {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}}
PROFILES = {"spread": default_profile(), "pack": Profile(default_profile().multi_point, args=PACKING)}
"""kube-scheduler's default prefers the emptiest node; the other one the fullest that has room."""


@attrs.frozen
class Job:
    """A line of the trace; times are in seconds."""

    name: str
    arrival: int
    duration: int
    cpu: int
    memory: str

    @property
    def size(self) -> str:
        return self.name.partition("-")[0]

    @property
    def pod(self) -> Pod:
        """A pod arrives at its creationTimestamp, and leaves when its duration has passed since it was bound."""
        created = START + timedelta(seconds=self.arrival)
        requests = {"cpu": self.cpu, "memory": self.memory}
        return pod_from_manifest(
            {
                "metadata": {
                    "name": self.name,
                    "creationTimestamp": created.isoformat(),
                    "annotations": {"kschedfw/duration-seconds": str(self.duration)},
                },
                "spec": {"containers": [{"name": "job", "resources": {"requests": requests}}]},
            }
        )


def read_trace(path: Path) -> Sequence[Job]:
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Job(row["job"], int(row["arrival"]), int(row["duration"]), int(row["cpu"]), row["memory"])
            for row in csv.DictReader(file)
        ]


def start_times(jobs: Sequence[Job], profile: Profile) -> Mapping[Job, float]:
    """Return the time at which each job starts, in seconds since the first one arrived."""
    cluster = InMemoryCluster([*NODES, *(job.pod for job in jobs)])
    report = Simulation(cluster, profiles=[profile], arrivals=Arrivals(), seed=1).run()
    started = {decision.pod: decision.bound for decision in report.decisions}
    return {job: time for job in jobs if (time := started[job.pod.key]) is not None}


def cpus_in_use(started: Mapping[Job, float], end: float) -> float:
    """On average until then."""
    seconds = sum(
        job.cpu * (min(end, start + job.duration) - start) for job, start in started.items() if start < end
    )
    return seconds / end


def main() -> None:
    jobs = read_trace(TRACE)
    first, last = jobs[0].arrival, jobs[-1].arrival
    waits: dict[str, dict[Job, float]] = {}
    print(f"{len(jobs)} jobs arrive within {last - first} s; {len(NODES)} nodes have {CPUS} CPUs")
    print("        waiting, mean   longest     CPUs in use")
    print("        small   large   large       meanwhile")
    for name, profile in PROFILES.items():
        started = start_times(jobs, profile)
        waits[name] = wait = {job: start - (job.arrival - first) for job, start in started.items()}
        small, large = ([wait[job] for job in started if job.size == size] for size in ("small", "large"))
        used = cpus_in_use(started, last - first)
        print(
            f"{name:6} {sum(small) / len(small):4.1f} s {sum(large) / len(large):5.1f} s {max(large):6.1f} s"
            f"{used:10.1f} = {used / CPUS:.0%}"
        )
    better = sum(waits["pack"][job] < wait for job, wait in waits["spread"].items())
    worse = sum(waits["pack"][job] > wait for job, wait in waits["spread"].items())
    print(f"packed, {better} jobs start earlier and {worse} later")


if __name__ == "__main__":
    main()
