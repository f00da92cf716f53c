"""One attempt to schedule one pod, from the queue to binding or failure, and the attempts of one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs

from kschedfw.api.pod import Pod
from kschedfw.api.records import define, frozen
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.metrics import CachedObject
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.status import Status
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import StandstillError
from kschedfw.scheduler.generic_scheduler import ScheduleResult

_MOST_TRIES: Final = 50
"""The number of attempts of one pod in one moment from which on the pods that get a node are counted."""

CLEAR_NOMINATION = PostFilterResult.nominate("")
"""The post_filter result that clears an earlier nomination of the pod."""


@define(eq=False)
class Attempt:
    """An attempt to schedule a pod: the values that its steps share.

    `started` is on the clock's monotonic scale, in seconds. `assumed` is the pod with the chosen node, once a
    node is chosen. Once `is_binding` is set, the binding cycle ends the attempt; once `is_bound` is set,
    nothing is undone any more. Without `may_preempt`, post_filter plugins don't run. If the attempt fails with
    `keeps_turn`, the pod is tried again at once, in its old turn.
    """

    info: QueuedPodInfo
    framework: Framework
    started: float
    state: CycleState = attrs.field(factory=CycleState)
    result: ScheduleResult | None = None
    assumed: Pod | None = None
    is_binding: bool = False
    may_preempt: bool = True
    keeps_turn: bool = False
    is_bound: bool = False

    @property
    def pod(self) -> Pod:
        return self.info.pod


@frozen(eq=False)
class MemberRefusal:
    """The reason why a member gets no place. `node_name` is the node found for it, or empty."""

    status: Status
    node_name: str = ""


Start: TypeAlias = Callable[[Attempt, Callable[[], Status]], None]
"""Calls the given function to take the member's place, then begins its binding cycle."""


class Moment:
    """The number of attempts of each pod while a virtual clock stands still, to end a loop without an end."""

    def __init__(self, time: float) -> None:
        self.time = time
        self._tries: Counter[str] = Counter()
        self._infos: dict[str, QueuedPodInfo] = {}
        self._pods_on_nodes: int | None = None

    def check(self, info: QueuedPodInfo, cache: Cache) -> None:
        """Count an attempt of a pod.

        A pod may be tried once for each pod that is placed, which is an event; a limit alone would end a long
        chain of pods that wait for one another.

        Raises:
            StandstillError: the pod was tried too often.
        """
        self._tries[info.pod.key] += 1
        self._infos[info.pod.key] = info
        tries = self._tries[info.pod.key]
        if tries < _MOST_TRIES:
            return
        pods = cache.sizes()[CachedObject.PODS]
        if self._pods_on_nodes is None:
            self._pods_on_nodes = pods
        if tries >= 2 * _MOST_TRIES + max(0, pods - self._pods_on_nodes):
            stuck = [pod for pod, count in self._tries.most_common() if 2 * count > tries]
            # No plugin refused the pods that wait at this moment, so they add no name.
            infos = [self._infos[pod] for pod in stuck]
            plugins = {
                plugin for each in infos for plugin in each.unschedulable_plugins | each.pending_plugins
            }
            raise StandstillError(stuck, tries, sorted(plugins))
