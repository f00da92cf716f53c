"""Who is evicted among equals, and in which order victims are told: recorded with kube-scheduler v1.36.2.

data/README.md says how the recordings were made.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedfw import InMemoryCluster, Node, Pod, Snapshot, make_node, make_pod
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.pod import PodPhase
from kschedfw.framework.extender import Victims
from kschedfw.framework.preemption.go_sort import go_sorted
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.scheduler import Scheduler
from kschedfw.testing import FakeClock
from tests.scheduler.test_extender import Helper

DATA = Path(__file__).parent / "data" / "order"
PRIORITIES = {"low": 0, "mid": 50}
EVALUATIONS = [
    Evaluation.MEMO,
    # Victims are chosen and sorted by the same code in every evaluation.
    *[pytest.param(each, marks=pytest.mark.nightly) for each in Evaluation if each is not Evaluation.MEMO],
]

pytestmark = pytest.mark.conformance


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((DATA / name).read_bytes()).splitlines()]


class Holder(Helper):
    """Binds pods later."""

    is_binder = True

    def is_interested(self, pod: Pod) -> bool:
        return "held" in pod.labels

    def bind(self, pod: Pod, node_name: str) -> None:
        pass


class Witness(Helper):
    """Is told the victims."""

    supports_preemption = True
    victims: Sequence[str] = ()

    def process_preemption(
        self, pod: Pod, victims_by_node: Mapping[str, Victims], snapshot: Snapshot | None = None
    ) -> Mapping[str, Victims]:
        self.victims = [each.name for each in victims_by_node["n"].pods]
        return victims_by_node


class World:
    """A cluster with a node `n`, to which the recorded things happen."""

    def __init__(self, cpus: int, evaluation: Evaluation) -> None:
        self.witness = Witness(filters=False)
        self._node = make_node("n").labels(host="n").capacity(cpu=cpus, memory="64Gi", pods=110).build()
        self._evaluation = evaluation
        self._changes = count()
        self.cluster = InMemoryCluster()
        self.scheduler = self._started()

    def _started(self) -> Scheduler:
        extenders = [Holder(filters=False), self.witness]
        return Scheduler(
            self.cluster, clock=FakeClock(1000.0), extenders=extenders, evaluation=self._evaluation
        )

    def do(self, step: Mapping[str, Any]) -> None:
        match step:
            case {"add": name, **more}:
                self._add(name, node="n", priority=PRIORITIES[more.get("priority", "low")])
            case {"schedule": name}:
                self.schedule(name)
            case {"assume": name}:
                self.schedule(name, held="yes")
            case {"bind": name, **more}:
                self.cluster.bind(self._pod(name), "other" if "elsewhere" in more else "n")
            case {"forget": name} | {"delete": name}:
                self.cluster.delete(self._pod(name))
            case {"start": name, "at": time}:
                self._set_status(name, start_time=datetime.fromisoformat(time))
            case {"running": name}:
                self._set_status(name, phase=PodPhase.RUNNING)
            case {"finish": name}:
                self._set_status(name, phase=PodPhase.SUCCEEDED)
            case {"terminate": name}:
                self._set_metadata(name, deletion_timestamp=datetime(2026, 1, 2, tzinfo=UTC))
            case {"label": name}:
                self._set_metadata(name, labels=FrozenDict({f"label-{next(self._changes)}": "x"}))
            case {"annotate": name} | {"condition": name}:
                self._set_metadata(name, annotations=FrozenDict({f"note-{next(self._changes)}": "x"}))
            case {"budget": names}:
                self._allow_one_of(names)
            case {"add_node": _}:
                self.cluster.add(self._node)
            case {"delete_node": _}:
                self.cluster.delete(self._node)
            case {"label_node": _}:
                labels = FrozenDict({**self._node.labels, "new": "x"})
                self.cluster.update(
                    attrs.evolve(self._node, metadata=attrs.evolve(self._node.metadata, labels=labels))
                )
            case {"restart": _}:
                pods = sorted(self.cluster.list(Pod), key=lambda pod: pod.key)
                self.cluster = InMemoryCluster([*self.cluster.list(Node), *pods])
                self.scheduler = self._started()
            case _:
                raise AssertionError(step)

    def schedule(self, name: str, *, cpu: str = "1", priority: int = 0, **labels: str) -> None:
        self._add(name, cpu=cpu, priority=priority, **labels)
        self.scheduler.schedule_one()

    def _add(self, name: str, *, node: str = "", cpu: str = "1", priority: int, **labels: str) -> None:
        builder = make_pod(name).requests(cpu=cpu).priority(priority).node_selector(host="n").node(node)
        self.cluster.add(builder.labels(labels).build())

    def _pod(self, name: str) -> Pod:
        return next(each for each in self.cluster.list(Pod) if each.name == name)

    def _set_status(self, name: str, **fields: Any) -> None:
        pod = self._pod(name)
        self.cluster.update(attrs.evolve(pod, status=attrs.evolve(pod.status, **fields)))

    def _set_metadata(self, name: str, **fields: Any) -> None:
        pod = self._pod(name)
        self.cluster.update(attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, **fields)))

    def _allow_one_of(self, names: Sequence[str]) -> None:
        for name in names:
            self._set_metadata(name, labels=FrozenDict(covered="yes"))
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "one", "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"covered": "yes"}}},
            "status": {"disruptionsAllowed": 1},
        }
        self.cluster.add(object_from_manifest(budget))


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize("case", lines("victims.jsonl.gz"), ids=lambda case: case["name"])
def test_victims_are_those_that_were_recorded_in_their_order(
    case: dict[str, Any], evaluation: Evaluation
) -> None:
    world = World(case["cpus"], evaluation)
    if not case.get("late"):
        world.do({"add_node": True})
    for step in case["steps"]:
        world.do(step)
    world.schedule("preemptor", cpu=str(case["asks"]), priority=1000)
    world.scheduler.close()
    assert world.witness.victims == case["victims"]


@pytest.mark.parametrize("case", lines("go_sort.jsonl.gz"), ids=lambda case: case["name"])
def test_a_list_is_sorted_as_go_sorts_it(case: dict[str, Any]) -> None:
    keys, contradicts = case["keys"], set(case["contradicts"])

    def less(one: int, other: int) -> bool:
        return keys[one] < keys[other] or (keys[one] == keys[other] and keys[one] in contradicts)

    assert go_sorted(range(len(keys)), less) == case["order"]
