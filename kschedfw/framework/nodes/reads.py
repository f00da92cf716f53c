"""The scope of what a plugin reads: a node object, the pods on it, or the whole cluster."""

from __future__ import annotations

from enum import Enum


class Reads(Enum):
    """The scope of the data that a plugin's filter or score reads. Only changes within it can change its answer."""

    NODE = "node"
    """The node object alone: labels, taints, spec, allocatable, images."""
    PODS = "pods"
    """The node object and the pods on that node."""
    CLUSTER = "cluster"
    """Other nodes or their pods, too."""
