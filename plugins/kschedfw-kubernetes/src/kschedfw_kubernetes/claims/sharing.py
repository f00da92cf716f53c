"""The settings of a scheduler process that shares a cluster with others that schedule at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import attrs

from kschedfw import KschedfwError, Pod, Profile
from kschedfw.scheduler import StillFits
from kschedfw_kubernetes.claims.claim_book import ClaimBook
from kschedfw_kubernetes.claims.claiming_cluster import ClaimingCluster
from kschedfw_kubernetes.claims.node_records import NodeRecords
from kschedfw_kubernetes.cluster import Client, KubernetesCluster


class ShareError(KschedfwError, ValueError):
    """The text of a share is invalid."""


@attrs.frozen
class Share:
    """The pods that a scheduler takes, of those with its scheduler names: all whose hash, modulo `parts`, is `part`.

    Parts count from 0. The share 0 of 1 contains all pods; each pod then goes to the first scheduler that claims it.
    """

    part: int = 0
    parts: int = 1

    @classmethod
    def parse(cls, text: str) -> Share:
        """Return the share in a text such as `0/3`. Raises ShareError."""
        part, _, parts = text.partition("/")
        if not (part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
            raise ShareError(
                f"{text!r} is no share such as 0/3: a part from 0 on, and how many parts there are"
            )
        return cls(int(part), int(parts))

    def has(self, pod: Pod) -> bool:
        """Return whether the pod belongs to the share. The hash is computed from its uid, equally in all processes."""
        # Python's own `hash` differs between processes.
        return self.parts == 1 or crc32(pod.uid.encode()) % self.parts == self.part


@attrs.frozen
class Claims:
    """The place where claims are kept, and the share of pods that this scheduler takes."""

    namespace: str = "kube-system"
    share: Share = Share()

    def shared(
        self, cluster: KubernetesCluster, client: Client, holder: str, profiles: Iterable[Profile]
    ) -> ClaimingCluster:
        """Return the cluster for a scheduler of this name. No other scheduler may have, or have had, the name.

        Raises:
            PluginError, ProfileError: a profile can't run.
        """
        # Claims have a rate limit of their own, so that they don't delay bindings, which must follow their claim soon.
        records = NodeRecords(client.with_own_rate(), self.namespace, holder)

        def fit(truth: ClaimingCluster) -> StillFits:
            return StillFits(truth, profiles)

        return ClaimingCluster(cluster, records, ClaimBook(holder), fit, self.share.has)
