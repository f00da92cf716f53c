"""Five ways to test a policy; each finds what the others don't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from quiet import TIER, Quiet, QuietArgs

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    Pod,
    Profile,
    Registry,
    Scheduler,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.api import pod_from_manifest
from kschedfw.testing import (
    FrameworkHarness,
    PluginContract,
    assert_decision,
    assert_golden,
    decide,
    strategies,
)

NODES = [make_node(name).capacity(cpu=4, memory="8Gi").build() for name in ("a", "b")]


def batch(name: str) -> Pod:
    return make_pod(name).labels({TIER: "batch"}).requests(cpu=1).build()


def critical(name: str, node: str = "") -> Pod:
    return make_pod(name).labels({TIER: "critical"}).requests(cpu=1).node(node).build()


# --- the rules of every plugin ---


class TestContract(PluginContract):
    """The rules for all plugins, on generated clusters with batch and critical pods."""

    plugin = Quiet
    args = QuietArgs(max_batch_pods=1)

    def pods(self) -> st.SearchStrategy[Pod]:
        return st.builds(of_tier, st.sampled_from(["batch", "critical", ""]), strategies.pod_manifests("pod"))


def of_tier(tier: str, manifest: dict[str, Any]) -> Pod:
    manifest["metadata"]["labels"] = {**manifest["metadata"].get("labels", {}), TIER: tier}
    return pod_from_manifest(manifest)


# --- single hooks ---


@pytest.mark.parametrize(("neighbours", "score"), [(0, 100), (1, 75), (4, 0), (9, 0)])
def test_the_more_critical_pods_there_are_the_less_a_node_is_liked(neighbours: int, score: int) -> None:
    running = [critical(f"critical-{number}", "a") for number in range(neighbours)]
    harness = FrameworkHarness(Quiet, nodes=NODES, pods=running, args={"Quiet": QuietArgs()})
    assert harness.score(batch("crawler")) == {"a": score, "b": 100}


# --- a decision ---


def test_a_batch_pod_goes_where_it_disturbs_nobody() -> None:
    assert_decision(
        decide(batch("crawler"), Quiet, nodes=NODES, pods=[critical("shop", "a")]),
        node="b",
        scores={"Quiet": {"a": 75, "b": 100}},
    )


# --- the whole scheduler ---


@pytest.mark.kschedfw(
    plugins=[Quiet],
    args={"Quiet": {"maxBatchPods": 0}},
    objects=[*NODES, critical("shop", "a"), critical("bank", "b"), batch("crawler")],
)
def test_a_batch_pod_waits_until_a_critical_one_has_left(
    kschedfw_scheduler: Scheduler, kschedfw_cluster: InMemoryCluster
) -> None:
    kschedfw_scheduler.run_until_idle()
    assert placed(kschedfw_cluster)["crawler"] == ""

    kschedfw_cluster.delete(critical("bank", "b"))
    kschedfw_scheduler.run_until_idle()
    assert placed(kschedfw_cluster)["crawler"] == "b"


def placed(cluster: InMemoryCluster) -> dict[str, str]:
    return {pod.name: pod.node_name for pod in cluster.list(Pod)}


# --- decisions as they were ---


def test_decisions_are_those_that_were_agreed_on() -> None:
    registry = Registry()
    registry.register(Quiet)
    profile = Profile([*default_profile().multi_point, EnabledPlugin("Quiet", weight=2)])
    pods = [critical("shop", "a"), *(batch(f"crawler-{number}") for number in range(6)), critical("bank")]
    golden = Path(__file__).with_name("decisions.jsonl")
    assert_golden(golden, InMemoryCluster([*NODES, *pods]), profiles=[profile], registry=registry)
