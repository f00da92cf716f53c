"""Generated clusters: a failing test is shown the smallest one, as manifests."""

from __future__ import annotations

import ast
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis.vendor.pretty import pretty

from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters


def has_taints_and_tolerations(cluster: DrawnCluster) -> bool:
    tolerating = any(pod.spec.tolerations for pod in cluster.pending)
    return tolerating and any(node.spec.taints for node in cluster.nodes)


def has_cordoned_node_and_pending_pod(cluster: DrawnCluster) -> bool:
    return bool(cluster.pending) and any(node.spec.unschedulable for node in cluster.nodes)


def has_pod_that_keeps_others_away(cluster: DrawnCluster) -> bool:
    return any(pod.spec.affinity.pod_anti_affinity is not None for pod in cluster.bound)


@pytest.mark.parametrize(
    ("fails", "pods"),
    [
        (has_cordoned_node_and_pending_pod, (0, 1)),
        (has_taints_and_tolerations, (0, 1)),
        (has_pod_that_keeps_others_away, (1, 0)),
    ],
)
@pytest.mark.nightly
@pytest.mark.slow
def test_what_a_failure_does_not_need_is_left_out(
    fails: Callable[[DrawnCluster], bool], pods: tuple[int, int]
) -> None:
    profile = settings(max_examples=1000, suppress_health_check=list(HealthCheck), database=None)
    smallest = find(clusters(), fails, settings=profile, random=Random(1))
    assert len(smallest.nodes) == 1
    assert (len(smallest.bound), len(smallest.pending)) == pods


@given(clusters())
@settings(max_examples=examples(20))
def test_a_printed_cluster_is_made_again_by_what_is_printed(cluster: DrawnCluster) -> None:
    assert DrawnCluster.of(*printed_manifests(cluster)) == cluster


def printed_manifests(cluster: DrawnCluster) -> list[dict[str, object]]:
    """The manifests in what is printed of a cluster."""
    call = ast.parse(pretty(cluster), mode="eval").body
    assert isinstance(call, ast.Call)
    return [ast.literal_eval(each) for each in call.args]
