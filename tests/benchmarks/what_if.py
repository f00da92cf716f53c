"""What questions cost, in transactions and by copies of the cluster: a command.

    python -m tests.benchmarks.what_if [NODES …]      by default 100, 1,000, 5,000 and 50,000 nodes

There are ten pods on each node. Times are the processor's, per question; the first number is the least of the repeats,
which others at work on the machine disturb least, the second the median. A copy has the same objects in an
`InMemoryCluster` and a `Scheduler` of its own; it is made once for each size, since it takes long.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

import attrs

from kschedfw import InMemoryCluster, Node, Pod, Scheduler, WhatIf, make_node, make_pod
from kschedfw.framework.clock import VirtualClock

SIZES: Final = (100, 1_000, 5_000, 50_000)
PODS_PER_NODE: Final = 10
ADDED_PODS: Final = 10
DRAINED_PODS: Final = 20


@attrs.frozen
class Cost:
    """Seconds for one question: the least of the repeats, and the median."""

    least: float
    usual: float

    def __str__(self) -> str:
        return f"{_shown(self.least)} ({_shown(self.usual)})"


def nodes(count: int) -> list[Node]:
    """Nodes in three zones."""
    return [
        make_node(f"node-{number}")
        .zone(f"zone-{number % 3}")
        .capacity(cpu=32, memory="128Gi", pods=110)
        .build()
        for number in range(count)
    ]


def pods(count: int) -> list[Pod]:
    """The pods on so many nodes; on the first node there are twice as many."""
    places = [
        *(number % count for number in range(PODS_PER_NODE * count)),
        *[0] * (DRAINED_PODS - PODS_PER_NODE),
    ]
    return [
        make_pod(f"pod-{number}")
        .labels(app=f"app-{number % 50}")
        .requests(cpu="1", memory="2Gi")
        .node(f"node-{place}")
        .build()
        for number, place in enumerate(places)
    ]


def new_pods() -> list[Pod]:
    return [
        make_pod(f"new-{number}").requests(cpu="500m", memory="1Gi").build() for number in range(ADDED_PODS)
    ]


def can_schedule(what_if: WhatIf) -> None:
    with what_if.transaction() as trial:
        assert trial.can_schedule(_ASKED)


def add_and_schedule(what_if: WhatIf, templates: Sequence[Node], added: Sequence[Pod]) -> None:
    """Nodes of three groups in turn, so that rows move in every transaction."""
    for template in templates:
        with what_if.transaction() as trial:
            trial.add_nodes(template)
            assert trial.schedule(added)


def drain(what_if: WhatIf) -> None:
    with what_if.transaction() as trial:
        assert len(trial.drain("node-0").evicted) == DRAINED_PODS


def by_copy(objects: Sequence[Node | Pod], template: Node, added: Sequence[Pod]) -> None:
    cluster = InMemoryCluster([*objects, template, *added])
    scheduler = Scheduler(cluster, clock=VirtualClock())
    scheduler.run_until_idle()
    scheduler.close()


_ASKED: Final = make_pod("asked").requests(cpu="500m", memory="1Gi").build()


def costs(size: int, repeats: int = 30) -> dict[str, Cost]:
    """What each question costs on so many nodes."""
    templates, added = (
        [
            make_node(f"group-{name}").zone("zone-0").capacity(cpu=32, memory="128Gi").build()
            for name in "abc"
        ],
        new_pods(),
    )
    objects: list[Node | Pod] = [*nodes(size), *pods(size)]
    found = {
        "by a copy: add a node, schedule 10 pods": measured(lambda: by_copy(objects, templates[0], added), 1)
    }
    what_if: list[WhatIf] = []
    found["take the cluster over, once"] = measured(lambda: what_if.append(WhatIf(objects)), 1)
    (asked,) = what_if
    for _ in range(2):
        add_and_schedule(asked, templates, added)
    gc.collect()
    found["can_schedule"] = measured(lambda: can_schedule(asked), 10 * repeats)
    moving = measured(lambda: add_and_schedule(asked, templates, added), repeats)
    found["add a node, schedule 10 pods, revert"] = Cost(moving.least / 3, moving.usual / 3)
    found["drain a node with 20 pods, revert"] = measured(lambda: drain(asked), repeats)
    return found


def measured(question: Callable[[], object], repeats: int) -> Cost:
    if repeats > 1:
        question()
    times: list[float] = []
    for _ in range(repeats):
        begin = time.process_time()
        question()
        times.append(time.process_time() - begin)
    return Cost(min(times), median(times))


def _shown(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def main(arguments: Sequence[str]) -> None:
    by_size = {size: costs(size) for size in (map(int, arguments) if arguments else SIZES)}
    print("| question |", " | ".join(f"{size:,} nodes" for size in by_size), "|")
    print("| --- |", " | ".join("---" for _ in by_size), "|")
    for question in next(iter(by_size.values())):
        print(f"| {question} |", " | ".join(str(each[question]) for each in by_size.values()), "|")


if __name__ == "__main__":
    main(sys.argv[1:])
