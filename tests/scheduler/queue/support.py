"""Queues over real frameworks, and pods that are refused, in one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kschedfw import make_pod
from kschedfw.api.pod import Pod
from kschedfw.framework.events import (
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
    QueueingHintFunction,
)
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.framework.status import Status
from kschedfw.plugins.priority_sort import PrioritySort
from kschedfw.plugins.scheduling_gates import SchedulingGates
from kschedfw.scheduler.queue import Place, SchedulingQueue
from kschedfw.testing import FakeClock
from tests.framework.support import PluginClass, make_framework, plugin

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
PROFILE = "default-scheduler"


def subscriber(
    name: str, *subscriptions: ClusterEvent, hint: QueueingHintFunction | None = None
) -> PluginClass:
    """A plugin that can refuse pods and subscribes to these events, each with the hint."""
    events = [ClusterEvent(each.resource, each.action, hint) for each in subscriptions]
    return plugin(name, filter=lambda: None, events_to_register=lambda: events)


def always(hint: QueueingHint) -> QueueingHintFunction:
    return lambda _pod, _old, _new: hint


class Gate:
    """A pre_enqueue plugin whose gate the test opens and closes; it looks again on node additions."""

    def __init__(self, name: str = "Gate", *, open: bool = False) -> None:
        self.name = name
        self.open = open
        self.asked = 0

    def plugin(self, *subscriptions: ClusterEvent) -> PluginClass:
        def pre_enqueue() -> Status | None:
            self.asked += 1
            return None if self.open else Status.unresolvable("closed")

        events = list(subscriptions or (NODE_ADD,))
        return plugin(self.name, pre_enqueue=pre_enqueue, events_to_register=lambda: events)


class Queue(SchedulingQueue):
    """A queue with one profile of these plugins (beside those for priorities and gates), and short words for tests."""

    def __init__(self, *plugins: PluginClass, clock: FakeClock | None = None, **options: Any) -> None:
        self.clock = clock or FakeClock(1000.0)
        framework = make_framework(SchedulingGates, PrioritySort, *plugins, clock=self.clock)
        super().__init__({PROFILE: framework}, clock=self.clock, **options)

    def refuse(self, info: QueuedPodInfo | None, *by: str, pending: Sequence[str] = ()) -> Place | None:
        """Give back a popped pod, refused by these plugins; by none, it failed with an error."""
        assert info is not None
        info.unschedulable_plugins = set(by)
        info.pending_plugins = set(pending)
        self.add_unschedulable_if_not_present(info)
        return self.place(info.pod.uid)

    def add_refused(self, pod: Pod, *by: str, pending: Sequence[str] = ()) -> Place | None:
        """Add a pod that is popped at once, and refused."""
        self.add(pod)
        info = self.try_pop()
        assert info is not None
        assert info.pod is pod
        return self.refuse(info, *by, pending=pending)

    def tell(self, event: ClusterEvent, new: object | None = None) -> None:
        self.move_all_to_active_or_backoff(event, None, new)

    def names(self, place: Place) -> list[str]:
        return [pod.name for pod in self.pods_in(place)]

    def pop_names(self) -> list[str]:
        """Pop until nothing comes; the pods stay in flight."""
        names = []
        while (info := self.try_pop()) is not None:
            names.append(info.pod.name)
        return names

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)


def pod(name: str = "pod", *, priority: int = 0) -> Pod:
    return make_pod(name).uid(name).priority(priority).build()
