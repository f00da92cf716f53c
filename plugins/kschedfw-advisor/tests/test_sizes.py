"""Sizes of nodes: the most that a pod could get of a resource on an empty node."""

from __future__ import annotations

from kschedfw_advisor.sizes import too_large_for_all, too_large_for_allowed
from small_clusters import node

from kschedfw import make_pod

SMALL = node("small", cpu=4).labels(pool="db").build()
LARGE = node("large", cpu=16).build()


def test_a_request_that_only_nodes_beside_the_pods_pool_have_is_told_with_the_largest_of_the_pool() -> None:
    pod = make_pod("p").requests(cpu=6).node_selector(pool="db").build()
    (found,) = too_large_for_allowed(pod, [SMALL, LARGE])
    assert str(found) == (
        "no node that the pod may use has 6 of cpu even when empty; the largest has 4 (small)"
    )
    assert list(too_large_for_all(pod, [SMALL, LARGE])) == []


def test_a_request_that_a_node_of_the_pool_has_when_empty_and_one_that_no_node_has_are_not_told_so() -> None:
    fits = make_pod("p").requests(cpu=4).node_selector(pool="db").build()
    nowhere = make_pod("p").requests(cpu=32).node_selector(pool="db").build()
    assert list(too_large_for_allowed(fits, [SMALL, LARGE])) == []
    assert list(too_large_for_allowed(nowhere, [SMALL, LARGE])) == []
    assert [each.code for each in too_large_for_all(nowhere, [SMALL, LARGE])] == ["request-too-large"]


def test_a_request_that_no_node_has_is_told_with_the_largest_node_and_the_largest_for_the_pod() -> None:
    pooled = make_pod("p").requests(cpu=32).node_selector(pool="db").build()
    free = make_pod("p").requests(cpu=32).build()
    nowhere = make_pod("p").requests(cpu=32).node_selector(pool="web").build()
    texts = [
        str(found) for pod in (pooled, free, nowhere) for found in too_large_for_all(pod, [SMALL, LARGE])
    ]
    assert texts == [
        (
            "no node has 32 of cpu even when empty; the largest has 16 (large)"
            ", and of those that the pod may use 4 (small)"
        ),
        "no node has 32 of cpu even when empty; the largest has 16 (large)",
        "no node has 32 of cpu even when empty; the largest has 16 (large)",
    ]
