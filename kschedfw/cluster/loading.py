"""From manifests to a cluster in memory."""

from __future__ import annotations

from kschedfw.api.manifests import Manifests
from kschedfw.cluster.memory import InMemoryCluster


def from_manifests(manifests: Manifests, *, skip_invalid: bool = False) -> InMemoryCluster:
    """A cluster of everything that was loaded.

    Raises:
        InvalidManifestsError: there are problems, unless `skip_invalid` says to do without what is invalid.
    """
    return InMemoryCluster(manifests.objects(skip_invalid=skip_invalid))
