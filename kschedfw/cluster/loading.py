"""From manifests to a cluster in memory."""

from __future__ import annotations

from kschedfw.api.manifests import Manifests
from kschedfw.cluster.memory import InMemoryCluster


def from_manifests(manifests: Manifests) -> InMemoryCluster:
    """A cluster of everything that was loaded. What couldn't be loaded (`problems`) is the caller's business."""
    return InMemoryCluster(manifests.objects())
