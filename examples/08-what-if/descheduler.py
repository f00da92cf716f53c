"""A descheduler's loop: which pods should move, so that the nodes are used more evenly? `python descheduler.py`"""

from __future__ import annotations

from collections import Counter
from statistics import pstdev

import attrs

from kschedfw import Pod, Transaction, WhatIf, make_node, make_pod
from kschedfw.api import object_from_manifest

LEAST_GAIN = 0.02
"""A move that improves the balance by less isn't worth a restart."""


@attrs.frozen
class Move:
    """A pod, its nodes before and after, and the imbalance after that."""

    pod: Pod
    target: str
    imbalance: float


def imbalance(what_if: WhatIf) -> float:
    """The standard deviation of the nodes' shares of requested CPUs."""
    used: Counter[str] = Counter()
    for pod in what_if.pods:
        used[pod.node_name] += pod.requests.amounts.milli_cpu
    return pstdev(used[node.name] / node.status.allocatable["cpu"].milli_value() for node in what_if.nodes)


def move(what_if: WhatIf, trial: Transaction, pod: Pod) -> Move | None:
    """Evict the pod and schedule it anew; None if that isn't allowed, or leads nowhere else."""
    evictions = trial.evict(pod)
    placed = trial.schedule(evictions.evicted).placed
    if not placed or placed[0].node_name == pod.node_name:
        return None
    return Move(pod, placed[0].node_name, imbalance(what_if))


def best_move(what_if: WhatIf, around: Transaction) -> Move | None:
    """The move that improves the balance most, tried out with every pod in turn."""
    moves: list[Move] = []
    for pod in what_if.pods:
        with around.transaction() as trial:
            found = move(what_if, trial, pod)
        if found is not None:
            moves.append(found)
    best = min(moves, key=lambda each: each.imbalance, default=None)
    return best if best is not None and imbalance(what_if) - best.imbalance >= LEAST_GAIN else None


def new_cluster() -> WhatIf:
    """Two full nodes, one that has just come, and a budget that lets one database move and no more."""
    nodes = [make_node(name).capacity(cpu=8, memory="32Gi", pods=20).build() for name in ("n1", "n2", "n3")]
    pods = [make_pod(f"web-{n}").labels(app="web").requests(cpu="1").node("n1").build() for n in range(1, 5)]
    pods += [make_pod(f"db-{n}").labels(app="db").requests(cpu="2").node(f"n{n}").build() for n in (1, 2)]
    pods += [make_pod(f"db-{n}").labels(app="db").requests(cpu="2").node("n2").build() for n in (3, 4)]
    budget = object_from_manifest(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "db", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": 1},
            "status": {"disruptionsAllowed": 1},
        }
    )
    return WhatIf([*nodes, *pods, budget])


def main() -> None:
    what_if = new_cluster()
    print(f"The imbalance is {imbalance(what_if):.3f}.")
    with what_if.transaction() as trial:
        while (best := best_move(what_if, trial)) is not None:
            move(what_if, trial, best.pod)
            print(f"{best.pod.name}: {best.pod.node_name} → {best.target}, then it is {best.imbalance:.3f}")
        for pod, reason in trial.evict(*what_if.pods).blocked:
            print(f"{pod.name} must stay on {pod.node_name}: {reason}")
    print(f"Nothing has moved: the imbalance is {imbalance(what_if):.3f}.")


if __name__ == "__main__":
    main()
