"""How far a plugin looks."""

from __future__ import annotations

from enum import Enum


class Reads(Enum):
    """How far a plugin's filter or score looks, and so which changes can change its answer."""

    NODE = "node"
    """The node object alone: labels, taints, spec, allocatable, images."""
    PODS = "pods"
    """The node object and the pods on that node."""
    CLUSTER = "cluster"
    """Other nodes or their pods, too."""
