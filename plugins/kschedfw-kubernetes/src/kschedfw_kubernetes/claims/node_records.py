"""Access to the Leases that are nodes' commit records."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from kschedfw import CustomObject
from kschedfw.cluster import EventType, NotFoundError
from kschedfw_kubernetes.claims.node_record import (
    LABEL,
    LEASE,
    LEASES,
    NodeRecord,
    RecordError,
    lease_name,
    node_of,
    read_record,
    write_record,
)
from kschedfw_kubernetes.cluster.client import Client
from kschedfw_kubernetes.cluster.decoding import Content, version_of
from kschedfw_kubernetes.cluster.reflector import Changes, Reflector
from kschedfw_kubernetes.cluster.watches import Watches

Seen: TypeAlias = tuple[str, NodeRecord, str]
"""A node's name, its record, and the record's resource version. An empty version means that the record is gone."""

_log = logging.getLogger(__name__)

_QUERY: Final = {"labelSelector": LABEL}


class NodeRecords:
    """The records in one namespace. `holder` is the scheduler that writes them."""

    def __init__(self, client: Client, namespace: str, holder: str) -> None:
        self.client = client
        self.clock = client.clock
        self._namespace, self._holder = namespace, holder
        self._reflector: Reflector | None = None

    def read(self, node_name: str) -> Seen | None:
        """Return the record that the API server has; None if there is none. Raises what `Client.get` raises."""
        try:
            return self._seen(self.client.get(LEASES.path(self._namespace, lease_name(node_name))))
        except NotFoundError:
            return None

    def write(self, node_name: str, record: NodeRecord, version: str) -> Seen:
        """Write the record in place of this version, or as a new one if the version is empty.

        Return the written record.

        Raises:
            ConflictError, AlreadyExistsError: the server has another version.
            KubernetesError: the API server can't be reached, or refuses.
        """
        content = write_record(
            record, node_name, self._namespace, version, holder=self._holder, now=self.clock.now()
        )
        path = LEASES.path(self._namespace, lease_name(node_name))

        def settle() -> Content | None:
            try:
                present = self.client.get(path)
            except NotFoundError:
                return None
            spec = present.get("spec") or {}
            # Another scheduler's record may have the same claims after a removal, but it names that scheduler.
            is_ours = spec.get("holderIdentity") == self._holder
            return present if is_ours and read_record(present) == read_record(content) else None

        if version:
            return self._seen(self.client.write("PUT", path, content, settle=settle))
        return self._seen(
            self.client.write("POST", LEASES.collection(self._namespace), content, settle=settle)
        )

    @staticmethod
    def _seen(lease: Content) -> Seen:
        return node_of(lease), read_record(lease), version_of(lease)

    # --- following ---

    def follow(self, told: Callable[[Seen], None]) -> None:
        """Call `told` with all records, then with each change, on a separate thread."""

        def apply(changes: Changes) -> None:
            assert self._reflector is not None
            for event in changes(self._reflector.store):
                lease = event.object
                if isinstance(lease, CustomObject) and (node_name := node_of(_content(lease))):
                    if event.type is EventType.DELETED:
                        told((node_name, NodeRecord(), ""))
                        continue
                    try:
                        seen = self._seen(_content(lease))
                    except RecordError as error:
                        # The last valid record stays, although it is outdated. So every claim on the node conflicts.
                        _log.error("%s", error)
                        continue
                    told(seen)

        self._reflector = Reflector(
            self.client,
            LEASE,
            apply,
            self.client.chance,
            self.client.clock,
            Watches(self.client.clock),
            namespace=self._namespace,
            query=_QUERY,
        )
        self._reflector.start()

    @property
    def synced(self) -> bool:
        """Return whether all records have been received."""
        return self._reflector is not None and self._reflector.synced

    def close(self) -> None:
        """Stop following."""
        if self._reflector is not None:
            self._reflector.stop()


def _content(lease: CustomObject) -> Content:
    meta = lease.metadata
    return {
        "metadata": {
            "name": meta.name,
            "annotations": dict(meta.annotations),
            "resourceVersion": meta.resource_version,
        },
        "spec": lease.content.get("spec") or {},
    }
