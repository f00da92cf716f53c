"""The static estimate of what an expression costs at most."""

from kschedfw.plugins.dynamic_resources.cel.syntax import Node

__all__ = ["estimated_cost"]


def estimated_cost(tree: Node) -> int:
    return 0 if tree else 1
