"""Changes of manifests, as programs read them: which object, where in it, from what, to what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from kschedfw import Node, Pod
from kschedfw.api import to_manifest

_OF_SERVER: Final = frozenset(("creationTimestamp", "generation", "resourceVersion", "uid"))


@attrs.frozen
class Edit:
    """One change of an object's manifest.

    `name` is the object's kind and key, `path` a JSON pointer (RFC 6901) into its manifest, empty for the whole object.
    `old` and `new` are JSON values; None where the field, or the object, is absent.
    """

    name: str
    path: str
    old: object
    new: object

    def to_json(self) -> dict[str, object]:
        return {"object": self.name, "path": self.path, "from": self.old, "to": self.new}


def written(obj: Pod | Node) -> Mapping[str, object]:
    """The manifest of a whole object, without what the API server writes into its metadata."""
    manifest = to_manifest(obj)
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _OF_SERVER}
    return {**manifest, "metadata": metadata}


def object_differences(old: Pod | Node, new: Pod | Node) -> Iterator[Edit]:
    """The changes that make one object of another of its name. Lists of different lengths are replaced as a whole."""
    return _differences(f"{type(old).__name__} {old.key}", to_manifest(old), to_manifest(new), "")


def _differences(name: str, old: object, new: object, path: str) -> Iterator[Edit]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from _differences(name, old.get(key), new.get(key), f"{path}/{_escaped(str(key))}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(name, before, after, f"{path}/{index}")
    else:
        yield Edit(name, path, old, new)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
