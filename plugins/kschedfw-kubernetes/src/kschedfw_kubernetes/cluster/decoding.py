"""Decodes the API server's JSON with the reader for manifest files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kschedfw.api import KINDS, Named, Pod, read_object
from kschedfw.api.reading import pod_from_json, read_custom_object
from kschedfw_kubernetes.cluster.resources import Resource

Content = dict[str, Any]
"""A JSON object."""


class WatchLine(msgspec.Struct):
    """A line of a watch: its type (`ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`), and its object's JSON."""

    type: str
    object: msgspec.Raw


decode_line: Final = msgspec.json.Decoder(WatchLine).decode
"""Decodes a line of a watch. Raises msgspec.MsgspecError, UnicodeDecodeError or RecursionError (`UNREADABLE`)."""

content_of: Final = msgspec.json.Decoder(Content).decode
"""Decodes an object's JSON. Raises `UNREADABLE`."""

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read_json(text: msgspec.Raw, resource: Resource) -> Named:
    """Return the object of this JSON, as `read` does. Pods are read with less than half of the effort.

    Raises:
        ManifestError: a field has the wrong type.
        msgspec.MsgspecError, UnicodeDecodeError, RecursionError: it isn't the JSON of an object; see `UNREADABLE`.
    """
    return pod_from_json(text) if resource.kind == Pod.__name__ else read(content_of(text), resource)


def read(content: Content, resource: Resource) -> Named:
    """Return the object, without its managedFields.

    An object with the right types is accepted even if it breaks a rule that kschedfw knows. The server has accepted it,
    perhaps by newer rules. If a pod were skipped, its room would be given to other pods, too.

    Raises:
        ManifestError: a field has the wrong type.
    """
    metadata = content.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    kind = KINDS.get(resource.kind)
    # Kinds of the same name exist in several groups, such as PodGroup. Items of a list have neither kind nor
    # apiVersion.
    if kind is None or kind.api_version.rpartition("/")[0] != resource.api_version.rpartition("/")[0]:
        content["kind"], content["apiVersion"] = resource.kind, resource.api_version
        return read_custom_object(content)
    return read_object(content, kind, check=False)


def key_of(content: Mapping[str, Any]) -> str:
    """Return `namespace/name`, or only the name, of an object that may be invalid in other respects.

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
