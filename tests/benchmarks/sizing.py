"""What `kschedfw run` takes of a machine, by nodes and pods: the table of docs/sizing.md.

    python -m tests.benchmarks.sizing [NODESxPODS ...]   by default 100x1000 1000x10000 5000x50000

Each size is a process of its own against an API server in this one. All pods but `PENDING` run already. Objects have
two kilobytes of annotations, so that they are about as large as those of real clusters.
CPU is the scheduler process's own, so that other work of the machine hardly matters; only the time until it is ready
depends on that.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from kschedfw_apiserver import ApiServer
from serve.replicas import Replica

from kschedfw import Node, Pod, make_node, make_pod
from kschedfw.api.builders import PodBuilder

SIZES = ("100x1000", "1000x10000", "5000x50000")
PENDING = 1000
NOTES = {"example.org/notes": "n" * 2000}
# Without its own limit of requests, so that the time is the scheduler's.
ARGUMENTS = ("--kube-api-qps=-1",)


@attrs.frozen
class Row:
    """What one size took; memory in bytes, everything else in seconds."""

    nodes: int
    pods: int
    ready: float
    ready_cpu: float
    ready_memory: float
    bound_cpu: float
    memory: float

    def __str__(self) -> str:
        mebibyte = 1 << 20
        return (
            f"| {self.nodes:,} | {self.pods:,} | {self.ready:.1f} s | {self.ready_cpu:.1f} s "
            f"| {self.ready_memory / mebibyte:,.0f} MiB | {1000 * self.bound_cpu / PENDING:.2f} ms "
            f"| {self.memory / mebibyte:,.0f} MiB |"
        )


def main(arguments: Sequence[str]) -> None:
    print(
        "| nodes | pods | ready after | CPU until then | memory then | CPU per pod | memory after 1,000 pods |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for size in arguments or SIZES:
        nodes, pods = map(int, size.split("x"))
        print(measured(nodes, pods), flush=True)


def measured(nodes: int, pods: int) -> Row:
    with tempfile.TemporaryDirectory() as folder, ApiServer() as server:
        for each in objects(nodes, pods):
            server.cluster.add(each)
        began = time.monotonic()
        with Replica(server, Path(folder), "run", *ARGUMENTS) as run:
            run.wait_until_ready()
            ready = time.monotonic() - began
            at_first = figures(run)
            for index in range(PENDING):
                server.cluster.add(pod(f"pending-{index}", index).build())
            # Asked of the server: an answer of /metrics would take the scheduler's own time.
            run.wait_for(lambda: len(server.audit.writes("pods/binding")) == PENDING)
            at_last = figures(run)
            assert run.ends() == 0
    cpu, memory = "process_cpu_seconds_total", "process_resident_memory_bytes"
    return Row(
        nodes,
        pods,
        ready,
        at_first[cpu],
        at_first[memory],
        at_last[cpu] - at_first[cpu],
        at_last[memory],
    )


def objects(nodes: int, pods: int) -> Iterator[Node | Pod]:
    for index in range(nodes):
        node = make_node(f"node-{index}").zone(f"zone-{index % 3}").annotations(NOTES)
        yield node.capacity(cpu="32", memory="128Gi", pods="110").build()
    for index in range(pods):
        yield pod(f"running-{index}", index).node(f"node-{index % nodes}").build()


def pod(name: str, index: int) -> PodBuilder:
    """One of a thousand workloads, whose pods are spread over nodes and zones."""
    app = f"app-{index % 1000}"
    spread = make_pod(name).namespace("default").labels(app=app).annotations(NOTES)
    return spread.requests(cpu="250m", memory="512Mi").spread("topology.kubernetes.io/zone", {"app": app})


def figures(run: Replica) -> dict[str, float]:
    text = run.get("/metrics", run.token).text
    return {name: float(value) for name, value in re.findall(r"^(process_\w+) (\S+)$", text, re.MULTILINE)}


if __name__ == "__main__":
    main(sys.argv[1:])
