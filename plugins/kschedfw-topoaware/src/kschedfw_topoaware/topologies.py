"""The topologies of all nodes, converted from the cluster's NodeResourceTopologies."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import attrs

from kschedfw import Handle
from kschedfw_topoaware.node_resource_topology import NodeResourceTopology
from kschedfw_topoaware.numa import NodeTopology


@attrs.frozen(eq=False)
class View:
    """Topologies by node name. Views of one `Topologies` with equal numbers are equal."""

    by_node: Mapping[str, NodeTopology]
    number: int


class Topologies:
    """Converts NodeResourceTopologies. An unchanged object is converted only once. Thread-safe."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._reported: object = ()
        self._versions: Mapping[str, str] = {}
        self._view = View({}, 0)

    def latest(self) -> View:
        """Return the current topologies.

        Raises ManifestError: an object of the kind isn't a valid topology.
        """
        reported = self._handle.cluster.list(NodeResourceTopology)
        # The usual case: a cluster returns the same list object until something of the kind changes. Read without the
        # lock, since `_reported` is set last.
        if reported is self._reported:
            return self._view
        with self._lock:
            # The uid, too: an object that was deleted and made again may have a version that was seen before.
            versions = {each.name: f"{each.uid} {each.metadata.resource_version}" for each in reported}
            if versions != self._versions:
                known, before = self._view.by_node, self._versions
                by_node = {
                    each.name: known[each.name]
                    if before.get(each.name) == versions[each.name]
                    else NodeTopology.of(each)
                    for each in reported
                }
                self._view = View(by_node, self._view.number + 1)
                self._versions = versions
            self._reported = reported
            return self._view
