"""The timeline of a simulation: the pods' places and the lengths of the queues, after every attempt."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping

from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster, EventType, WatchEvent
from kschedfw.scheduler.queue.protocol import Place

QUEUES = (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED)
"""The places whose numbers of pods are recorded."""

PENDING = ""
"""The value in place of a node's name for a pod that exists and is on no node."""


class Timeline:
    """The history of a simulation in steps: step 0 is the start, then each attempt is one.

    * `times`: the time of each step, in virtual seconds since the start.
    * `queues`: the number of pods in each place of the queue, by step.
    * `start`: the pods' places at step 0, by key: the name of a node, or PENDING.
    * `moves`: every later change as (step, pod, place), with the step at whose end the pod is there; the place
      None says that the pod is gone.
    * `pods`: every pod that was ever there, by key, in order of appearance.
    """

    def __init__(self) -> None:
        self.times = array("d")
        self.queues: Mapping[Place, array[int]] = {place: array("q") for place in QUEUES}
        self.start: dict[str, str] = {}
        self.moves: list[tuple[int, str, str | None]] = []
        self.pods: dict[str, Pod] = {}

    def follow(self, cluster: Cluster) -> Callable[[], None]:
        """Record the pods of the cluster from now on. Return a function that ends it."""
        return cluster.watch(self._take)

    def step(self, time: float, counts: Mapping[Place, int]) -> None:
        """End a step at this time, in virtual seconds since the start."""
        self.times.append(time)
        for place, numbers in self.queues.items():
            numbers.append(counts[place])

    def end(self, time: float, counts: Mapping[Place, int]) -> None:
        """End the last step, if anything has happened since the step before."""
        if self.moves and self.moves[-1][0] == len(self.times):
            self.step(time, counts)

    def _take(self, event: WatchEvent) -> None:
        pod = event.object
        if not isinstance(pod, Pod):
            return
        place = None if event.type is EventType.DELETED or pod.is_terminal else pod.node_name
        was = event.old.node_name if isinstance(event.old, Pod) and not event.old.is_terminal else None
        if event.type is EventType.MODIFIED and place == was:
            return
        if place is not None:
            self.pods.setdefault(pod.key, pod)
        # The pod had ended before it was seen.
        if pod.key not in self.pods:
            return
        if len(self.times):
            self.moves.append((len(self.times), pod.key, place))
        elif place is not None:
            self.start[pod.key] = place
        else:
            self.start.pop(pod.key, None)
