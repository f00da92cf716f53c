"""The number of feasible nodes that ends a search (kube-scheduler `numFeasibleNodesToFind`)."""

from __future__ import annotations

from typing import Final

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
