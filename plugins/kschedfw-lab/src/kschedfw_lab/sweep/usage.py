"""The resources that pods hold over the virtual time of a simulation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from kschedfw import Node, Pod
from kschedfw.api import PODS
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.simulator import Simulation


@attrs.frozen
class Step:
    """The arrival or departure of a pod at a virtual time. The node is "" for the set of pending pods.

    `sign` is 1 for an arrival and -1 for a departure. `amounts` are the pod's requests, with a `pods` of 1.
    """

    time: float
    pod: str
    node: str
    sign: int
    amounts: Mapping[str, int]


class Usage:
    """Follows a simulation's cluster from before its start.

    * `nodes`: the nodes by name.
    * `steps`: arrivals of pods at nodes or among the pending pods, and their departures, in order.
    * `gone`: the time when a pod left its node for the last time, by the pod's key. Pods that are still there have
      none.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.nodes: dict[str, Node] = {}
        self.steps: list[Step] = []
        self.gone: dict[str, float] = {}
        self._simulation = simulation
        self._places: dict[str, str] = {}
        self.close = simulation.cluster.watch(self._take)

    def _take(self, event: WatchEvent) -> None:
        obj = event.object
        if isinstance(obj, Node):
            self.nodes[obj.name] = obj
        elif isinstance(obj, Pod):
            is_gone = event.type is EventType.DELETED or obj.is_terminal
            self._moves(obj, None if is_gone else obj.node_name)

    def _moves(self, pod: Pod, place: str | None) -> None:
        # By uid, since another pod may have the name later.
        before = self._places.get(pod.uid)
        if place == before:
            return
        time = self._simulation.virtual_time
        amounts = {**dict(pod.requests.amounts.items()), PODS: 1}
        if before is not None:
            self.steps.append(Step(time, pod.key, before, -1, amounts))
            del self._places[pod.uid]
            if place is None and before:
                self.gone[pod.key] = time
        if place is not None:
            self.steps.append(Step(time, pod.key, place, 1, amounts))
            self._places[pod.uid] = place

    @property
    def end(self) -> float:
        """The time of the last arrival or departure, in virtual seconds since the start."""
        return self.steps[-1].time if self.steps else 0.0

    def states(self, times: Sequence[float]) -> Iterator[State]:
        """Yield the states at these ascending times. It is one object, which is updated for each time."""
        state, position = State(), 0
        for time in times:
            while position < len(self.steps) and self.steps[position].time <= time:
                state.take(self.steps[position])
                position += 1
            yield state


_NOTHING: Final[Counter[str]] = Counter()


class State:
    """The amounts that pods hold at a time: in total (`held`), by node (`on_node`), and the number of pending pods."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter()
        self.on_node: dict[str, Counter[str]] = {}
        self.pending = 0

    def on(self, node: str) -> Counter[str]:
        """Return the amounts that pods hold on the node."""
        return self.on_node.get(node, _NOTHING)

    def take(self, step: Step) -> None:
        if not step.node:
            self.pending += step.sign
            return
        on_node = self.on_node.setdefault(step.node, Counter())
        for name, amount in step.amounts.items():
            self.held[name] += step.sign * amount
            on_node[name] += step.sign * amount
        # A node without pods is dropped: `on_node` then counts the nodes in use.
        if not on_node[PODS]:
            del self.on_node[step.node]


def mean_over_time(usage: Usage, prices: Mapping[str, int]) -> tuple[Mapping[str, float], float, float]:
    """Return means over the time until `usage.end`; all are 0 if no time passes.

    They are the held amount of each resource, the number of nodes with a pod, and the sum of these nodes' prices.
    `prices` are whole numbers by node.
    """
    areas: defaultdict[str, float] = defaultdict(float)
    state, nodes, price, now = State(), 0.0, 0.0, 0.0
    rate = 0
    for step in usage.steps:
        if (passed := step.time - now) > 0:
            for name, amount in state.held.items():
                areas[name] += amount * passed
            nodes += len(state.on_node) * passed
            price += rate * passed
            now = step.time
        # The rate follows the step's node alone: summing over all nodes at each step would take quadratic time.
        was_used = step.node in state.on_node
        state.take(step)
        rate += prices.get(step.node, 0) * ((step.node in state.on_node) - was_used)
    if not now:
        return {}, 0.0, 0.0
    return {name: area / now for name, area in areas.items()}, nodes / now, price / now
