"""The request and response bodies of k8s.io/kube-scheduler/extender/v1.

The Go types have no JSON tags, so kube-scheduler writes their field names unchanged (`NodeNames`) and reads them in
any case (`nodenames`). Each type has `read` for its receiver and `write` for its sender; the client uses one of
them, the extender server the other. Whole objects aren't decoded here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import msgspec

from kschedfw.api import EMPTY
from kschedfw_kubernetes.http_extender.go_json import (
    Json,
    WireError,
    decode,
    elements,
    encode,
    entries,
    fields,
    integer,
    is_null,
    items,
    members,
    string,
    string_map,
    strings,
)


@attrs.frozen
class ExtenderArgs:
    """A request to filter or prioritise: the pod, and the nodes in full or by name."""

    pod: Json
    nodes: Sequence[Json] | None = None
    node_names: tuple[str, ...] | None = None

    @classmethod
    def read(cls, body: bytes) -> ExtenderArgs:
        """Return the arguments that a body encodes. Raises WireError."""
        given = members(body, "ExtenderArgs")
        return cls(
            pod=_read_pod(given),
            nodes=_read_node_list(given.get("nodes")),
            node_names=strings(_decoded(given, "nodenames"), "NodeNames"),
        )

    def write(self) -> bytes:
        return encode({"Pod": self.pod, "Nodes": _node_list(self.nodes), "NodeNames": self.node_names})


@attrs.frozen
class FilterResult:
    """ExtenderFilterResult: the nodes that pass, in the form of the request, and the reasons for others."""

    nodes: Sequence[Json] | None = None
    node_names: tuple[str, ...] | None = None
    failed: Mapping[str, str] = EMPTY
    failed_and_unresolvable: Mapping[str, str] = EMPTY
    error: str = ""

    @classmethod
    def read(cls, body: bytes) -> FilterResult:
        """Return the result that a body encodes. Raises WireError."""
        given = members(body, "ExtenderFilterResult")
        return cls(
            nodes=_read_node_list(given.get("nodes")),
            node_names=strings(_decoded(given, "nodenames"), "NodeNames"),
            failed=string_map(_decoded(given, "failednodes"), "FailedNodes"),
            failed_and_unresolvable=string_map(
                _decoded(given, "failedandunresolvablenodes"), "FailedAndUnresolvableNodes"
            ),
            error=string(_decoded(given, "error"), "Error"),
        )

    def write(self) -> bytes:
        return encode(
            {
                "Nodes": _node_list(self.nodes),
                "NodeNames": self.node_names,
                "FailedNodes": dict(self.failed),
                "FailedAndUnresolvableNodes": dict(self.failed_and_unresolvable),
                "Error": self.error,
            }
        )


class _HostPriority(msgspec.Struct, gc=False, rename="pascal"):
    """An entry of a written HostPriorityList.

    A dict would be slower: 500 dicts per answer made the garbage collector traverse the whole process, which took
    longer than the answer.
    """

    host: str
    score: int


@attrs.frozen
class HostPriorityList:
    """Pairs of a node's name and its priority. The priorities of a node that comes twice are added."""

    priorities: tuple[tuple[str, int], ...]

    @classmethod
    def read(cls, body: bytes) -> HostPriorityList:
        """Return the list that a body encodes. Raises WireError."""
        pairs = []
        for path, item in items(decode(body), "HostPriorityList"):
            given = fields(item, path)
            pairs.append(
                (string(given.get("host"), f"{path}.Host"), integer(given.get("score"), f"{path}.Score"))
            )
        return cls(tuple(pairs))

    def write(self) -> bytes:
        return encode([_HostPriority(host, score) for host, score in self.priorities])


@attrs.frozen
class FullVictims:
    """Victims as whole pods."""

    pods: tuple[Json, ...]
    num_pdb_violations: int = 0


@attrs.frozen
class MetaVictims:
    """Victims by uid."""

    uids: tuple[str, ...]
    num_pdb_violations: int = 0


@attrs.frozen
class ExtenderPreemptionArgs:
    """A request to check candidates for preemption, with their victims in full or by uid."""

    pod: Json
    victims: Mapping[str, FullVictims] | None = None
    meta_victims: Mapping[str, MetaVictims] | None = None

    @classmethod
    def read(cls, body: bytes) -> ExtenderPreemptionArgs:
        """Return the arguments that a body encodes. Raises WireError."""
        given = members(body, "ExtenderPreemptionArgs")
        full, meta = given.get("nodenametovictims"), _decoded(given, "nodenametometavictims")
        return cls(
            pod=_read_pod(given),
            victims=None if full is None or is_null(full) else _read_victims(full),
            meta_victims=None if meta is None else _read_meta_victims(meta),
        )

    def write(self) -> bytes:
        full = None
        if self.victims is not None:
            full = {
                node: {"Pods": each.pods, "NumPDBViolations": each.num_pdb_violations}
                for node, each in self.victims.items()
            }
        meta = None if self.meta_victims is None else _write_meta_victims(self.meta_victims)
        return encode({"Pod": self.pod, "NodeNameToVictims": full, "NodeNameToMetaVictims": meta})


@attrs.frozen
class ExtenderPreemptionResult:
    """The candidates that are left; victims are always given by uid."""

    meta_victims: Mapping[str, MetaVictims]

    @classmethod
    def read(cls, body: bytes) -> ExtenderPreemptionResult:
        """Return the result that a body encodes. Raises WireError."""
        given = fields(decode(body), "ExtenderPreemptionResult")
        return cls(_read_meta_victims(given.get("nodenametometavictims")))

    def write(self) -> bytes:
        return encode({"NodeNameToMetaVictims": _write_meta_victims(self.meta_victims)})


@attrs.frozen
class ExtenderBindingArgs:
    """A request to bind a pod to a node."""

    pod_name: str
    pod_namespace: str
    pod_uid: str
    node: str

    def write(self) -> bytes:
        return encode(
            {
                "PodName": self.pod_name,
                "PodNamespace": self.pod_namespace,
                "PodUID": self.pod_uid,
                "Node": self.node,
            }
        )


@attrs.frozen
class ExtenderBindingResult:
    """The result of binding: the pod is bound if there is no error."""

    error: str = ""

    @classmethod
    def read(cls, body: bytes) -> ExtenderBindingResult:
        """Return the result that a body encodes. Raises WireError."""
        return cls(string(fields(decode(body), "ExtenderBindingResult").get("error"), "Error"))


class _Metadata(msgspec.Struct):
    name: str | None = None
    uid: str | None = None


class _Identified(msgspec.Struct):
    metadata: _Metadata | None = None


_IDENTIFIED = msgspec.json.Decoder(_Identified)


@attrs.frozen
class Identity:
    """The name and the uid of an object; either may be empty."""

    name: str
    uid: str


def node_identity(node: Json, path: str) -> Identity:
    """Return the identity of a node, read without decoding the rest. Raises WireError."""
    try:
        metadata = _IDENTIFIED.decode(node).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        metadata = None
    if metadata is not None:
        return Identity(metadata.name or "", metadata.uid or "")
    given = fields(fields(decode(node), path).get("metadata"), f"{path}.metadata")
    return Identity(
        string(given.get("name"), f"{path}.metadata.name"), string(given.get("uid"), f"{path}.metadata.uid")
    )


def _decoded(given: Mapping[str, Json], name: str) -> object:
    return None if name not in given else decode(given[name])


def _read_pod(given: Mapping[str, Json]) -> Json:
    pod = given.get("pod")
    if pod is None or is_null(pod):
        raise WireError("Pod: is missing")
    members(pod, "Pod")
    return pod


def _node_list(nodes: Sequence[Json] | None) -> object:
    return None if nodes is None else {"metadata": {}, "items": nodes}


def _read_node_list(value: Json | None) -> Sequence[Json] | None:
    if value is None or is_null(value):
        return None
    return elements(members(value, "Nodes").get("items"), "Nodes.items")


def _read_victims(value: Json) -> dict[str, FullVictims]:
    victims = {}
    for node, path, content in entries(decode(value), "NodeNameToVictims"):
        given = fields(content, path)
        pods = tuple(Json(encode(pod)) for _, pod in items(given.get("pods"), f"{path}.Pods"))
        victims[node] = FullVictims(pods, integer(given.get("numpdbviolations"), f"{path}.NumPDBViolations"))
    return victims


def _read_meta_victims(value: object) -> dict[str, MetaVictims]:
    victims = {}
    for node, path, content in entries(value, "NodeNameToMetaVictims"):
        given = fields(content, path)
        uids = tuple(
            string(fields(pod, place).get("uid"), f"{place}.UID")
            for place, pod in items(given.get("pods"), f"{path}.Pods")
        )
        victims[node] = MetaVictims(uids, integer(given.get("numpdbviolations"), f"{path}.NumPDBViolations"))
    return victims


def _write_meta_victims(victims: Mapping[str, MetaVictims]) -> object:
    return {
        node: {"Pods": [{"UID": uid} for uid in each.uids], "NumPDBViolations": each.num_pdb_violations}
        for node, each in victims.items()
    }
