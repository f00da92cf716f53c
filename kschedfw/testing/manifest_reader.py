"""Reading of a test's nodes, pods and other objects: as from a file, or leniently."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from kschedfw import FieldError, Node, Pod
from kschedfw.api import Named, PriorityClass, node_from_manifest, object_from_manifest, pod_from_manifest
from kschedfw.api.defaults import Priorities
from kschedfw.api.expand import expand
from kschedfw.api.manifest_error import ManifestError


class ManifestReader:
    """A reader that turns manifests into objects, and returns objects unchanged.

    If it is `lenient`, missing parts are filled in: a name (`pod-1`, `node-2`), a unique uid, a container, and
    the names of containers. Anything else that the API server would refuse is accepted.
    """

    def __init__(self, *, lenient: bool) -> None:
        self.lenient = lenient
        self._numbers = itertools.count(1)

    def node(self, given: Node | Mapping[str, object]) -> Node:
        """Return the node. Raises ManifestError if it can't be read, and TypeError if it is no node and no mapping."""
        if isinstance(given, Node):
            return given
        _check_mapping(given, "a Node")
        return node_from_manifest(
            self._named(given, "node") if self.lenient else given, check=not self.lenient
        )

    def pod(self, given: Pod | Mapping[str, object]) -> Pod:
        """Return the pod. Raises ManifestError if it can't be read, and TypeError if it is no pod and no mapping."""
        if isinstance(given, Pod):
            return given
        _check_mapping(given, "a Pod")
        if not self.lenient:
            return pod_from_manifest(given)
        manifest = self._named(given, "pod")
        spec = manifest["spec"] = dict(manifest.get("spec") or {})
        spec.setdefault("containers", [{}])
        for kind in ("containers", "initContainers"):
            for position, container in enumerate(spec.get(kind) or ()):
                container.setdefault("name", f"{kind.lower()}-{position}")
        return pod_from_manifest(manifest, check=False)

    def objects(self, given: Iterable[Named | Mapping[str, object]]) -> list[Named]:
        """Return objects of any kinds; manifests must have their kind.

        As from a file, Deployments, DaemonSets and Jobs are replaced by their pods, and pods get the priorities
        of their classes. If no manifest is given, the objects are returned unchanged.

        Raises:
            ManifestError: a manifest can't be read.
            TypeError: one is neither an object nor a mapping.
        """
        given = list(given)
        read = [self._object(each) for each in given]
        if all(map(operator.is_, given, read)):
            return read
        read = list(expand(read, refuse=_refuse).objects)
        priorities = Priorities(obj for obj in read if isinstance(obj, PriorityClass))
        return [
            attrs.evolve(obj, spec=priorities.applied(obj.spec)) if isinstance(obj, Pod) else obj
            for obj in read
        ]

    def _object(self, given: Named | Mapping[str, object]) -> Named:
        if isinstance(given, Named):
            return given
        _check_mapping(given, "an object")
        match given.get("kind"):
            case "Node":
                return self.node(given)
            case "Pod":
                return self.pod(given)
            case _:
                return object_from_manifest(given)

    def _named(self, given: Mapping[str, object], kind: str) -> dict[str, Any]:
        manifest: dict[str, Any] = copy.deepcopy(dict(given))
        number = next(self._numbers)
        metadata = manifest["metadata"] = dict(manifest.get("metadata") or {})
        metadata.setdefault("name", f"{kind}-{number}")
        metadata.setdefault("uid", f"{kind}-uid-{number}")
        return manifest


def _check_mapping(given: object, expected: str) -> None:
    if isinstance(given, Mapping):
        return
    hint = f"; {type(given).__name__}.build() makes it" if hasattr(given, "build") else ""
    raise TypeError(f"expected {expected} or its manifest, a mapping; found {type(given).__name__}{hint}")


def _refuse(obj: Named, error: FieldError) -> None:
    raise ManifestError((error,), obj.metadata.key)
