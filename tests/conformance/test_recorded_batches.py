"""Pods that follow each other, scheduled by kube-scheduler v1.36.2 with OpportunisticBatching on and off.

data/README.md says how the recordings were made. kube-scheduler takes equal nodes in an order that its workers leave
behind, so the test takes the recorded one of them; which nodes are equal, and best, is held.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedfw import InMemoryCluster, Node, Pod
from kschedfw.api.manifests import object_from_manifest
from kschedfw.framework.gate_table import OPPORTUNISTIC_BATCHING
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.metrics import NoMetrics
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.outcome import Totals
from kschedfw.metrics import BatchAttempt, BatchFlush
from kschedfw.scheduler import Scheduler, profiles_of
from kschedfw.testing import FakeClock
from tests.config.documents import document, loaded

DATA = Path(__file__).parent / "data" / "batching" / "batching.jsonl.gz"
CASES = [json.loads(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()]


class Recorded:
    """Picks the recorded one of the best nodes."""

    wanted: tuple[str, ...] = ()

    def select(self, totals: Totals, nodes: NodeSelection) -> int:
        best = {nodes[index].name: nth for nth, index in enumerate(totals.best.tolist())}
        chosen = next((best[name] for name in self.wanted if name in best), None)
        assert chosen is not None, f"none of {self.wanted} is among the best nodes, {sorted(best)}"
        return chosen


class Told(NoMetrics):
    """The attempts and flushes of the pods, in their order."""

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.flushed: list[str] = []

    def batch_attempt(self, result: BatchAttempt, profile: str) -> None:
        self.attempts.append(result)

    def batch_flushed(self, reason: BatchFlush, profile: str) -> None:
        self.flushed.append(reason)


def change(cluster: InMemoryCluster, clock: FakeClock, step: Mapping[str, Any]) -> None:
    """Do what was done in between: to a node, or nothing for a while."""
    match step:
        case {"wait": seconds}:
            clock.advance(seconds)
        case {"delete": name}:
            cluster.delete(node(cluster, name))
        case {"cordon": name}:
            spec = attrs.evolve(node(cluster, name).spec, unschedulable=True)
            cluster.update(attrs.evolve(node(cluster, name), spec=spec))
        case {"grow": name}:
            manifest = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "uid": node(cluster, name).uid},
                "status": {"allocatable": {"cpu": "8", "memory": "31Gi", "pods": "110"}},
            }
            cluster.update(object_from_manifest(manifest))
        case _:
            raise AssertionError(step)


def node(cluster: InMemoryCluster, name: str) -> Node:
    return next(each for each in cluster.list(Node) if each.name == name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['name']}-{'on' if case['gate'] else 'off'}")
def test_pods_get_the_nodes_and_hints_that_were_recorded(case: dict[str, Any]) -> None:
    clock, told, recorded = FakeClock(1000.0), Told(), Recorded()
    cluster = InMemoryCluster(map(object_from_manifest, case["nodes"]))
    profiles = profiles_of(loaded(document(profiles=case["profiles"])))
    scheduler = Scheduler(
        cluster,
        profiles,
        clock=clock,
        selector=recorded,
        metrics=told,
        percentage_of_nodes_to_score=100,
        feature_gates=FeatureGates({OPPORTUNISTIC_BATCHING: case["gate"]}),
    )
    for step in case["steps"]:
        if "pod" not in step:
            change(cluster, clock, step)
            continue
        told.attempts.clear()
        told.flushed.clear()
        recorded.wanted = tuple(filter(None, (step["hint"], step["node"])))
        cluster.add(object_from_manifest(step["pod"]))
        scheduler.run_until_idle()
        name = step["pod"]["metadata"]["name"]
        pod = next(each for each in cluster.list(Pod) if each.name == name)
        assert (pod.node_name or None) == step["node"], name
        assert told.flushed == step["flushed"], name
        assert told.attempts == expected_attempts(case, step), name
    scheduler.close()


def expected_attempts(case: dict[str, Any], step: dict[str, Any]) -> list[BatchAttempt]:
    if not case["gate"]:
        return []
    if step["hint"] is None:
        return [BatchAttempt.NO_HINT]
    return [BatchAttempt.HINT_USED if step["hint"] == step["node"] else BatchAttempt.HINT_NOT_USED]
