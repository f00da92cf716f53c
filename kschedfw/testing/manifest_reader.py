"""Reads the nodes and pods of a test: as a file would be read, or as tests write them."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from kschedfw.api.manifests import node_from_manifest, pod_from_manifest
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod


class ManifestReader:
    """Gives objects for manifests, and for objects themselves.

    If it is `lenient`, what is missing is filled in: a name (`pod-1`, `node-2`), a uid that no other has, a container,
    and the names of containers. What the API server would refuse besides is taken as it is.
    """

    def __init__(self, *, lenient: bool) -> None:
        self.lenient = lenient
        self._numbers = itertools.count(1)

    def node(self, given: Node | Mapping[str, object]) -> Node:
        """Raises ManifestError if it can't be read."""
        if isinstance(given, Node):
            return given
        return node_from_manifest(
            self._named(given, "node") if self.lenient else given, check=not self.lenient
        )

    def pod(self, given: Pod | Mapping[str, object]) -> Pod:
        """Raises ManifestError if it can't be read."""
        if isinstance(given, Pod):
            return given
        if not self.lenient:
            return pod_from_manifest(given)
        manifest = self._named(given, "pod")
        spec = manifest["spec"] = dict(manifest.get("spec") or {})
        spec.setdefault("containers", [{}])
        for kind in ("containers", "initContainers"):
            for position, container in enumerate(spec.get(kind) or ()):
                container.setdefault("name", f"{kind.lower()}-{position}")
        return pod_from_manifest(manifest, check=False)

    def _named(self, given: Mapping[str, object], kind: str) -> dict[str, Any]:
        manifest: dict[str, Any] = copy.deepcopy(dict(given))
        number = next(self._numbers)
        metadata = manifest["metadata"] = dict(manifest.get("metadata") or {})
        metadata.setdefault("name", f"{kind}-{number}")
        metadata.setdefault("uid", f"{kind}-uid-{number}")
        return manifest
