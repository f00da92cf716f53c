"""The core loop of a cluster autoscaler: which node groups grow for the pending pods? `python autoscaler.py`"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from kschedfw import Node, Pod, Transaction, WhatIf, make_node, make_pod


@attrs.frozen
class Group:
    """Nodes that the cloud can add: what one is like, how many more there may be, and cents per hour."""

    template: Node
    most: int
    cents: int


@attrs.frozen
class Option:
    """So many nodes of a group get these pods placed; `waste` is the share of their CPUs that stays free."""

    group: Group
    count: int
    pods: Sequence[Pod]
    waste: float

    def __str__(self) -> str:
        name, pods = self.group.template.name, ", ".join(pod.name for pod in self.pods)
        return f"{self.count} × {name} for {pods}, {self.count * self.group.cents} cents, {self.waste:.0%} wasted"


EXPANDERS: dict[str, Callable[[Option], float]] = {  # the best option has the least of this
    "price": lambda option: option.count * option.group.cents / len(option.pods),
    "least-waste": lambda option: option.waste,
    "most-pods": lambda option: -len(option.pods),
}


def estimate(around: Transaction, group: Group, pods: Sequence[Pod]) -> Option | None:
    """Return the number of nodes of the group to add: one more as long as that gets more pods placed, or None."""
    best = None
    for count in range(1, group.most + 1):
        with around.transaction() as trial:
            nodes = trial.add_nodes(group.template, count)
            placed = [each.pod for each in trial.schedule(pods).placed]
        if len(placed) == (0 if best is None else len(best.pods)):
            break
        there = sum(node.status.allocatable["cpu"].milli_value() for node in nodes)
        used = sum(pod.requests.amounts.milli_cpu for pod in placed)
        best = Option(group, count, placed, 1 - used / there)
    return best


def scale_up(trial: Transaction, groups: Sequence[Group], pods: Sequence[Pod], expander: str) -> list[Option]:
    """The nodes to add, group by group, until all pods fit or no group helps."""
    left = [each.pod for each in trial.schedule(pods).refused]  # the others fit where they are
    chosen: list[Option] = []
    while left:
        options = [option for group in groups if (option := estimate(trial, group, left)) is not None]
        if not options:
            break
        best = min(options, key=EXPANDERS[expander])
        chosen.append(best)
        trial.add_nodes(best.group.template, best.count)
        left = [each.pod for each in trial.schedule(left).refused]
    return chosen


def main() -> None:
    shapes = [  # name, CPUs, memory, the most nodes, cents per hour
        *(("small", 4, "16Gi", 9, 20), ("compute", 8, "16Gi", 9, 35), ("memory", 8, "64Gi", 9, 50)),
        ("large", 16, "64Gi", 2, 55),
    ]
    groups = [
        Group(make_node(name).capacity(cpu=cpu, memory=memory).build(), most, cents)
        for name, cpu, memory, most, cents in shapes
    ]
    apis = [make_pod(f"api-{n}").labels(app="api").requests(cpu="2", memory="2Gi") for n in (1, 2, 3)]
    pods = [api.pod_anti_affinity("kubernetes.io/hostname", {"app": "api"}) for api in apis]
    pods += [make_pod(f"cache-{n}").requests(cpu="1", memory="12Gi") for n in (1, 2)]
    pods += [make_pod(f"etl-{n}").requests(cpu="7", memory="8Gi") for n in (1, 2)]
    what_if = WhatIf([make_node("n1").capacity(cpu=4, memory="16Gi").build(), *(pod.build() for pod in pods)])
    for expander in EXPANDERS:
        with what_if.transaction() as trial:
            for option in scale_up(trial, groups, what_if.pending, expander):
                print(f"{expander}: {option}")


if __name__ == "__main__":
    main()
