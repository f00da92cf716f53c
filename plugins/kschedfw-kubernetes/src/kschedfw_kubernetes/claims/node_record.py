"""A node's commit record, kept in a Lease: the claims of schedulers for pods that may not have been seen as bound.

The Lease's resource version protects commits: the API server refuses an update that is based on an older version.
"""

from __future__ import annotations

from typing import Final

import attrs
import msgspec

from kschedfw import CustomKind
from kschedfw_kubernetes.cluster.client import micro_time
from kschedfw_kubernetes.cluster.decoding import UNREADABLE, Content
from kschedfw_kubernetes.cluster.errors import KubernetesError
from kschedfw_kubernetes.cluster.resources import Resource

LEASE: Final = CustomKind("coordination.k8s.io/v1", "Lease")
LEASES: Final = Resource("Lease", "coordination.k8s.io/v1", "leases")
LABEL: Final = "kschedfw.dev/record"
"""The label of the Leases that are records; its value is `claims`."""
CLAIMS: Final = "kschedfw.dev/claims"
"""The annotation with the claims and the watermark, as JSON."""

_PREFIX: Final = "kschedfw."
_LONGEST_NAME: Final = 253
_LARGEST_SEQUENCE: Final = (1 << 31) - 1  # leaseTransitions is an int32.
_MOST_CLAIMS: Final = 4096


class RecordError(KubernetesError):
    """A Lease isn't a valid record, or a node can't have one."""


class PodClaim(msgspec.Struct, frozen=True):
    """A claim: a pod that a scheduler is about to bind to the node.

    `holder` is the scheduler; `version` is the pod's resource version that it had seen.
    """

    uid: str
    key: str
    version: int
    holder: str


class _Claims(msgspec.Struct, frozen=True):
    watermark: int = 0
    claims: tuple[PodClaim, ...] = ()


# Make the decoder on import: msgspec analyses a type at its first use, and the process crashes if two threads do so at
# once.
_decode: Final = msgspec.json.Decoder(_Claims).decode


@attrs.frozen
class NodeRecord:
    """The contents of a node's Lease.

    `sequence` counts the commits. A claim is removed when a scheduler has seen the pod bound or deleted. The bindings
    of all removed claims are visible to a scheduler that has followed the pods up to the resource version `watermark`.
    """

    sequence: int = 0
    watermark: int = 0
    claims: tuple[PodClaim, ...] = ()


def lease_name(node_name: str) -> str:
    """Return the name of a node's Lease. Raises RecordError if the node's name is too long."""
    name = f"{_PREFIX}{node_name}"
    if len(name) > _LONGEST_NAME:
        raise RecordError(
            f"node {node_name}: its Lease would have a name of more than {_LONGEST_NAME} characters"
        )
    return name


def node_of(lease: Content) -> str:
    """Return the name of the node whose record a Lease is; empty if it isn't a record."""
    name = str((lease.get("metadata") or {}).get("name") or "")
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""


def read_record(lease: Content) -> NodeRecord:
    """Return the record in a Lease. Raises RecordError if it can't be read."""
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    text = (metadata.get("annotations") or {}).get(CLAIMS, "{}")
    try:
        found = _decode(text)
        # Other clients may have written anything: int() may raise a ValueError.
        sequence = int(spec.get("leaseTransitions") or 0)
    except (*UNREADABLE, ValueError) as error:
        raise RecordError(
            f"Lease {metadata.get('name')}: its annotation {CLAIMS} can't be read: {error}"
        ) from None
    if len(found.claims) > _MOST_CLAIMS:
        raise RecordError(f"Lease {metadata.get('name')}: more than {_MOST_CLAIMS} claims")
    return NodeRecord(sequence, found.watermark, found.claims)


def write_record(
    record: NodeRecord, node_name: str, namespace: str, version: str, *, holder: str, now: float
) -> Content:
    """Return the Lease with this record.

    It updates this resource version; if the version is empty, it is a new Lease.
    """
    text = msgspec.json.encode(_Claims(record.watermark, record.claims)).decode()
    metadata: Content = {
        "name": lease_name(node_name),
        "namespace": namespace,
        "labels": {LABEL: "claims"},
        "annotations": {CLAIMS: text},
    }
    if version:
        metadata["resourceVersion"] = version
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": metadata,
        "spec": {
            "holderIdentity": holder,
            "leaseTransitions": record.sequence % _LARGEST_SEQUENCE,
            "renewTime": micro_time(now),
        },
    }
