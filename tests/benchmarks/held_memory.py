"""What a scheduler holds after many pods have come and gone: a command.

    python -m tests.benchmarks.held_memory [CYCLES]      by default a million, which takes a quarter of an hour

Every pod has a name, a label and requests of its own; the latest hundred are in the cluster. What is remembered by
value, such as requests and labels, fills caches of some 10,000 entries each, and Numba is loaded after 10,000 pods. So
memory rises at first; from then on it must not. The process's resident memory is printed at each tenth of the way. The
exit code is 1 if it has grown by more than a twentieth in the second half.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from random import Random
from typing import Final

from kschedfw import InMemoryCluster, Pod, Scheduler, make_node, make_pod
from tests.benchmarks.scale import resident

LIVING: Final = 100
NODES: Final = 20
MOST_GROWTH: Final = 1.05


def own_pod(number: int) -> Pod:
    """Return a pod that shares neither requests nor labels with another."""
    made = make_pod(f"p{number}").labels(run=f"r{number}")
    return made.requests(cpu=f"{100 + number % 400}m", memory=1_000_000 + number).build()


def measured(cycles: int) -> list[float]:
    """Return the resident memory at each tenth of so many cycles, in MiB, and print it."""
    cluster = InMemoryCluster(
        make_node(f"n{number}").capacity(cpu=16, memory="64Gi", pods=110).zone(f"z{number % 3}").build()
        for number in range(NODES)
    )
    scheduler = Scheduler(cluster, random=Random(1))
    living: deque[str] = deque()
    found: list[float] = []
    begin = time.process_time()
    for number in range(1, cycles + 1):
        living.append(cluster.add(own_pod(number)).key)
        scheduler.run_until_idle()
        if len(living) > LIVING and (oldest := cluster.get(Pod, living.popleft())) is not None:
            cluster.delete(oldest)
        if number % (cycles // 10) == 0:
            gc.collect()
            found.append(resident() / 2**20)
            took = (time.process_time() - begin) / number
            print(f"{number:9,} cycles  {found[-1]:6.1f} MiB  {took * 1e6:5.0f} µs a pod", flush=True)
    return found


def main() -> int:
    found = measured(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
    half, last = found[4], found[-1]
    print(f"second half: {half:.1f} to {last:.1f} MiB ({last / half - 1:+.1%})")
    return int(last > half * MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
