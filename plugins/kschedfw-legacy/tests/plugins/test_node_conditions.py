"""CheckNode…: what a node reports of itself."""

from __future__ import annotations

import pytest
from kschedfw_legacy.plugins.node_conditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
)
from legacy_objects import node_with

from kschedfw import Code, make_pod
from kschedfw.api.node import Node
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.testing import FrameworkHarness

BEST_EFFORT = make_pod().build()
BURSTABLE = make_pod().requests(cpu="1m").build()


def reasons(plugin: type[AnyPlugin], node: Node) -> tuple[str, ...]:
    status = FrameworkHarness(plugin, nodes=[node]).filter(BEST_EFFORT)[node.name]
    assert status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return status.reasons


@pytest.mark.parametrize(
    ("plugin", "condition", "reason"),
    [
        (CheckNodeMemoryPressure, "MemoryPressure", "node(s) had memory pressure"),
        (CheckNodeDiskPressure, "DiskPressure", "node(s) had disk pressure"),
        (CheckNodePIDPressure, "PIDPressure", "node(s) had pid pressure"),
    ],
)
def test_pressure_counts_when_it_is_certain(plugin: type[AnyPlugin], condition: str, reason: str) -> None:
    assert reasons(plugin, node_with({condition: "True"})) == (reason,)
    for status in ("False", "Unknown"):
        assert reasons(plugin, node_with({condition: status})) == ()
    assert reasons(plugin, node_with({"Other": "True"})) == ()


def test_memory_pressure_matters_to_best_effort_pods_alone() -> None:
    harness = FrameworkHarness(
        CheckNodeMemoryPressure, nodes=[node_with({"MemoryPressure": "True"}, name="n")]
    )
    assert harness.filter(BURSTABLE)["n"].is_success
    assert harness.filter(BEST_EFFORT)["n"].reasons == ("node(s) had memory pressure",)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (node_with(), ()),
        (node_with({"Ready": "True", "OutOfDisk": "False", "NetworkUnavailable": "False"}), ()),
        (node_with({"Ready": "False"}), ("node(s) were not ready",)),
        (node_with({"Ready": "Unknown"}), ("node(s) were not ready",)),
        (node_with({"OutOfDisk": "Unknown"}), ("node(s) were out of disk space",)),
        (node_with({"NetworkUnavailable": "True"}), ("node(s) had unavailable network",)),
        (node_with(unschedulable=True), ("node(s) were unschedulable",)),
        (
            node_with({"Ready": "False", "NetworkUnavailable": "True"}, unschedulable=True),
            ("node(s) were not ready", "node(s) had unavailable network", "node(s) were unschedulable"),
        ),
        (node_with({"MemoryPressure": "True", "DiskPressure": "True"}), ()),
    ],
)
def test_a_node_must_be_ready_with_disk_and_network_and_not_cordoned(
    node: Node, expected: tuple[str, ...]
) -> None:
    assert reasons(CheckNodeCondition, node) == expected
