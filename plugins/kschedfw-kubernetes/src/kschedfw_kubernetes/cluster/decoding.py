"""Decoding of the API server's JSON, by the reader that also reads files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kschedfw.api import KINDS, ManifestError, Named, read_object
from kschedfw.api.reading import read_custom_object
from kschedfw_kubernetes.cluster.resources import Resource

Content = dict[str, Any]
"""A JSON object."""


class WatchLine(msgspec.Struct):
    """A line of a watch: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`, and what it is about."""

    type: str
    object: Content


decode_line: Final = msgspec.json.Decoder(WatchLine).decode
"""Raises msgspec.MsgspecError, UnicodeDecodeError or RecursionError (`UNREADABLE`)."""

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read(content: Content, resource: Resource) -> Named:
    """Return the object, without its managedFields.

    An object of the right types is read even if it breaks a rule that kschedfw knows: this server has accepted it,
    perhaps by newer rules, and the room of a pod that isn't read would be given away twice.

    Raises:
        ManifestError: its types are wrong.
    """
    metadata = content.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    kind = KINDS.get(resource.kind)
    if kind is None or kind.api_version.rpartition("/")[0] != resource.api_version.rpartition("/")[0]:
        content["kind"], content["apiVersion"] = resource.kind, resource.api_version
        return read_custom_object(content)
    try:
        return read_object(content, kind)
    except ManifestError:
        return read_object(content, kind, check=False)


def key_of(content: Mapping[str, Any]) -> str:
    """Return `namespace/name`, or only the name, of an object that may be invalid otherwise.

    Empty if it has no name.
    """
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return f"{namespace}/{name}" if namespace else str(name or "")


def version_of(content: Mapping[str, Any]) -> str:
    """Return the object's resource version; empty if it has none."""
    metadata = content.get("metadata")
    return str(metadata.get("resourceVersion") or "") if isinstance(metadata, Mapping) else ""
