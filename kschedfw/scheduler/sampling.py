"""The number of feasible nodes that ends a search (kube-scheduler `numFeasibleNodesToFind`)."""

from __future__ import annotations

from typing import Final

from kschedfw.framework.runtime.framework import Framework

# kube-scheduler's minFeasibleNodesToFind and minFeasibleNodesPercentageToFind.
MIN_FEASIBLE_NODES_TO_FIND: Final = 100
MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND: Final = 5


def num_feasible_nodes_to_find(percentage: int, num_all_nodes: int) -> int:
    """Return the number of feasible nodes that ends a search: all below 100 nodes, else the percentage, at least 100.

    Percentage 0 adapts to the size: 50 − n/125, at least 5.
    """
    if num_all_nodes < MIN_FEASIBLE_NODES_TO_FIND or percentage == 100:
        return num_all_nodes
    if percentage == 0:
        percentage = max(50 - num_all_nodes // 125, MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND)
    return max(num_all_nodes * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)


def nodes_to_find(framework: Framework, percentage: int, nodes: int) -> int:
    """Return the number of feasible nodes that ends a search of so many nodes.

    The profile's own percentage comes before that of the scheduler.
    """
    # Nothing prefers one feasible node to another without scores and extenders, so the first one is as good as any.
    if not framework.has_score_plugins and not any(
        extender.is_filter or extender.is_prioritizer for extender in framework.handle.extenders
    ):
        return 1
    own = framework.profile.percentage_of_nodes_to_score
    return num_feasible_nodes_to_find(percentage if own is None else own, nodes)
