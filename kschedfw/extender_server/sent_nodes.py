"""The nodes that come whole with requests: decoded once for as long as they stay as they are."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import attrs

from kschedfw.api.manifests import ManifestError, node_from_manifest
from kschedfw.extender_server.errors import RequestError
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.scheduler.http_extender.go_json import Json, decode, manifest
from kschedfw.scheduler.http_extender.wire import node_identity

MAX_KEPT_BYTES: Final = 64 << 20
"""How much JSON of nodes is remembered: as much as one request may have. Decoded it takes about twice as much again."""


@attrs.frozen
class _Kept:
    text: bytes
    info: NodeInfo


class SentNodes:
    """Makes NodeInfos of nodes' JSON, and keeps the latest of each node, by uid.

    A kept one is used again where the JSON is the same to the byte, `resourceVersion` included: whoever changes a node
    but not its version, as one does by hand, gets an answer about what was sent. Those that weren't sent for longest go
    first. For one caller at a time.
    """

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def info(self, json: Json, index: int) -> NodeInfo:
        """The node at this place of a request, without pods. Not to be changed.

        Raises:
            RequestError: it is no node that an API server could have.
            WireError: its name or uid is no string.
        """
        path = f"Nodes.items[{index}]"
        identity = node_identity(json, path)
        key, text = identity.uid or identity.name, bytes(json)
        known = self._kept.get(key)
        if known is not None and known.text == text:
            self._kept.move_to_end(key)
            return known.info
        try:
            node = node_from_manifest(manifest(decode(json), path))
        except ManifestError as error:
            raise RequestError(f"{path}: {error}") from error
        info = NodeInfo.of(node)
        self._keep(key, _Kept(text, info))
        return info

    def _keep(self, key: str, kept: _Kept) -> None:
        if (old := self._kept.pop(key, None)) is not None:
            self._bytes -= len(old.text)
        self._kept[key] = kept
        self._bytes += len(kept.text)
        while self._bytes > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.text)
