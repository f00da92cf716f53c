"""Writes the tables of a small cluster's hour and a half, in the format of Google's trace of 2011.

Small tasks come all the time, large ones need nearly a whole machine. kube-scheduler's default configuration decides,
in virtual time, and the tables tell what it did, as a trace of a real cluster does.
"""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import attrs

from kschedfw import InMemoryCluster, Pod, make_node, make_pod
from kschedfw.simulator import Arrivals, Simulation

MACHINES, SMALL, LARGE = 8, 140, 15
SECONDS = 90 * 60
BEGIN = 600
"""The trace's second at which the first machine is there."""
CPUS, MEMORY_GIB = 64, 256
SUBMIT, SCHEDULE, FINISH = 0, 1, 4
"""The types of tasks' events."""
DURATION = "kschedfw/duration-seconds"


def tasks(random: Random) -> list[tuple[Pod, float, float, float]]:
    """Pods with their arrival, their duration, and the share of a machine that they need."""
    kinds = [(f"1-{number}", 1200, 0.125) for number in range(SMALL)]
    kinds += [(f"2-{number}", 900, 0.875) for number in range(LARGE)]
    found = []
    for name, mean, share in kinds:
        arrival = round(random.uniform(0, SECONDS), 3)
        duration = round(random.uniform(0.5, 1.5) * mean, 3)
        pod = (
            make_pod(name)
            .requests(cpu=int(CPUS * share), memory=f"{int(MEMORY_GIB * share)}Gi")
            .annotations({DURATION: str(duration)})
            .build()
        )
        created = datetime(2011, 5, 1, tzinfo=UTC) + timedelta(seconds=arrival)
        pod = pod.with_metadata(attrs.evolve(pod.metadata, creation_timestamp=created))
        found.append((pod, arrival, duration, share))
    return found


def main(directory: Path = Path(__file__).parent) -> None:
    found = tasks(Random(1))
    nodes = [
        make_node(f"machine-{number}").capacity(cpu=CPUS, memory=f"{MEMORY_GIB}Gi", pods=1000).build()
        for number in range(1, MACHINES + 1)
    ]
    first = min(arrival for _, arrival, _, _ in found)
    report = Simulation(InMemoryCluster([*nodes, *(pod for pod, *_ in found)]), arrivals=Arrivals()).run()
    of_name = {decision.pod: decision for decision in report.decisions}
    rows: list[list[object]] = []
    for pod, arrival, duration, share in found:
        decision = of_name[pod.key]
        job, index = pod.name.split("-")
        events: list[tuple[int, float, object]] = [(SUBMIT, arrival, "")]
        if decision.bound is not None and decision.node is not None:
            bound = first + decision.bound
            machine = decision.node.removeprefix("machine-")
            events += [(SCHEDULE, bound, machine), (FINISH, bound + duration, machine)]
        for type_, at, where in events:
            time = round((BEGIN + at) * 1_000_000)
            rows.append([time, "", job, index, where, type_, "user", 0, 0, share, share, 0, 0])
    # What ends at a time makes the room for what begins then.
    rows.sort(key=lambda row: (row[0], row[5] != FINISH))
    with (directory / "task_events.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    with (directory / "machine_events.csv").open("w", newline="") as file:
        machines = range(1, MACHINES + 1)
        csv.writer(file, lineterminator="\n").writerows([0, number, 0, "a", 1, 1] for number in machines)


if __name__ == "__main__":
    main()
