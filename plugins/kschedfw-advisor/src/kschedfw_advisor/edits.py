"""Edits of manifests in a form for programs: the object, the path in it, the old and the new value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Final

import attrs

from kschedfw import KschedfwError
from kschedfw.api import Named, to_manifest

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


class EditError(KschedfwError):
    """An edit doesn't apply to a manifest."""

    def __init__(self, edit: Edit) -> None:
        super().__init__(f"{edit.name}: there is no {edit.path} in its manifest")


def written(obj: Named) -> Mapping[str, object]:
    """Return the manifest of an object without the metadata that the API server writes."""
    manifest = to_manifest(obj)
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _OF_SERVER}
    return {**manifest, "metadata": metadata}


def object_differences(old: Named, new: Named) -> Iterator[Edit]:
    """Return the edits that turn one object into the other. Lists of different lengths are replaced as a whole."""
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


def edited(manifest: Mapping[str, object], edits: Iterable[Edit]) -> dict[str, object]:
    """Return a copy of the manifest with the edits, none of which is of the whole object.

    Raises:
        EditError: the manifest isn't one to which an edit applies.
    """
    copy: dict[str, object] = deepcopy(dict(manifest))
    for edit in edits:
        *way, last = [_unescaped(part) for part in edit.path.split("/")[1:]]
        place: object = copy
        for part in way:
            # A field that the object lacks may be written in several parts.
            place = place.setdefault(part, {}) if isinstance(place, dict) else _item(place, part, edit)
        if isinstance(place, list):
            _item(place, last, edit)
            place[int(last)] = edit.new
        elif not isinstance(place, dict):
            raise EditError(edit)
        elif edit.new is None:
            place.pop(last, None)
        else:
            place[last] = edit.new
    return copy


def _item(place: object, part: str, edit: Edit) -> object:
    if not isinstance(place, list) or not part.isdecimal() or int(part) >= len(place):
        raise EditError(edit)
    return place[int(part)]


def _escaped(key: str) -> str:
    # `~` first, since the escape of `/` has one.
    return key.replace("~", "~0").replace("/", "~1")


def _unescaped(part: str) -> str:
    # In this order, by RFC 6901: `~01` stands for `~1`, and not for `/`.
    return part.replace("~1", "/").replace("~0", "~")
