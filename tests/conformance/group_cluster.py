"""A cluster that answers after each cycle, as the API server's watch does, in the order of the recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import attrs

from kschedfw.api import Named, Pod, PodCondition, PodGroup, PodPhase
from kschedfw.cluster import InMemoryCluster
from kschedfw.cluster.protocol import Handler
from kschedfw.scheduler.failure import REASON_SCHEDULING_GATED
from tests.conformance.scenario import Json

T = TypeVar("T", bound=Named)

_FIRST_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ACTIONS: Final = {"FailedScheduling": "Scheduling", "Scheduled": "Binding", "Preempted": "Preempting"}


class AnsweringCluster:
    """A cluster whose writes reach the scheduler's `view` only by `answer`, after the cycle."""

    def __init__(self, view: InMemoryCluster, tick: Callable[[], None]) -> None:
        """Make the cluster. `tick` is called after each answer."""
        self._view = view
        self._tick = tick
        self._started = 0
        self._clear()

    def _clear(self) -> None:
        self._patched: dict[str, Pod] = {}
        self._groups: dict[str, PodGroup] = {}
        self._bound: dict[str, str] = {}
        self._deleted: dict[str, Pod] = {}
        self._events: list[Json] = []

    # As a Cluster

    def get(self, kind: type[T], key: str) -> T | None:
        return self._view.get(kind, key)

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        return self._view.list(kind, namespace)

    def watch(self, handler: Handler) -> Callable[[], None]:
        return self._view.watch(handler)

    def add(self, obj: T) -> T:
        return self._view.add(obj)

    def update(self, obj: T) -> T:
        if isinstance(obj, PodGroup):
            self._groups[obj.key] = obj
            return obj
        return self._view.update(obj)

    def bind(self, pod: Pod, node_name: str) -> None:
        self._bound[pod.key] = node_name

    def delete(self, obj: Named) -> None:
        if isinstance(obj, Pod):
            self._deleted[obj.key] = obj
        else:
            self._view.delete(obj)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        if condition is not None and condition.reason == REASON_SCHEDULING_GATED:
            # A write of the API server, not of the scheduler.
            return
        present = self._patched.get(pod.key) or self._view.get(Pod, pod.key)
        if present is None:
            return
        status = present.status
        if nominated_node_name is not None:
            status = attrs.evolve(status, nominated_node_name=nominated_node_name)
        if condition is not None:
            others = tuple(each for each in status.conditions if each.type != condition.type)
            status = attrs.evolve(status, conditions=(*others, condition))
        self._patched[pod.key] = present.with_status(status)

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        event: Json = {
            "object": regarding.key,
            "kind": "Pod",
            "type": type,
            "reason": reason,
            "action": _ACTIONS.get(reason, ""),
            "note": message,
        }
        if related is not None:
            event["related"] = related.key
        self._events.append(event)

    # After a cycle

    def answer(self) -> Json:
        """Deliver the answers. Return the writes in the form of the recordings."""
        told: Json = {
            "binds": dict(self._bound),
            "evicted": sorted(self._deleted),
            "nominated": {
                key: pod.status.nominated_node_name
                for key, pod in self._patched.items()
                if pod.status.nominated_node_name != self._before(key).status.nominated_node_name
            },
            "podScheduled": self._changed_conditions("PodScheduled"),
            "disruptionTarget": self._changed_conditions("DisruptionTarget"),
            "groupConditions": {
                key: [
                    {
                        "type": each.type,
                        "status": each.status,
                        "reason": each.reason,
                        "message": each.message,
                        "observedGeneration": each.observed_generation,
                    }
                    for each in group.status.conditions
                ]
                for key, group in self._groups.items()
            },
            "events": self._events,
        }
        for group in self._groups.values():
            self._view.update(group)
        for key in sorted(self._patched.keys() - self._bound.keys() - self._deleted.keys()):
            self._view.update(self._with_status(key))
            self._tick()
        for key in sorted(self._bound):
            self._started += 1
            # A minute after the pod bound before: preemption compares start times, and no two are equal.
            started = _FIRST_START + timedelta(minutes=self._started)
            pod = self._before(key)
            status = attrs.evolve(
                pod.status, phase=PodPhase.RUNNING, nominated_node_name="", start_time=started
            )
            self._view.update(pod.bound_to(self._bound[key]).with_status(status))
            self._tick()
        for key in sorted(self._deleted):
            if (present := self._view.get(Pod, key)) is not None:
                self._view.delete(present)
                self._tick()
        self._clear()
        return told

    def _before(self, key: str) -> Pod:
        pod = self._view.get(Pod, key)
        assert pod is not None
        return pod

    def _with_status(self, key: str) -> Pod:
        return self._before(key).with_status(self._patched[key].status)

    def _changed_conditions(self, type: str) -> Json:
        changed: Json = {}
        for key, pod in self._patched.items():
            condition = next((each for each in pod.status.conditions if each.type == type), None)
            if condition is not None and condition not in self._before(key).status.conditions:
                changed[key] = {
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": condition.message,
                }
        return changed
