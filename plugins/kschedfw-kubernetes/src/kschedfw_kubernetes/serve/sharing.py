"""How a scheduler process shares a cluster with others that schedule at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import attrs

from kschedfw import KschedfwError, Pod, Profile
from kschedfw.scheduler import StillFits
from kschedfw_kubernetes.cluster import ClaimBook, ClaimingCluster, Client, KubernetesCluster, NodeRecords


class ShareError(KschedfwError, ValueError):
    """A share isn't valid."""


@attrs.frozen
class Share:
    """Which of the pods of its scheduler names a scheduler takes: those whose hash is its `part` of so many `parts`.

    Parts begin with 0. The share 0 of 1 is all of them: then whoever comes first has a pod.
    """

    part: int = 0
    parts: int = 1

    @classmethod
    def parse(cls, text: str) -> Share:
        """The share in a text such as `0/3`. Raises ShareError."""
        part, _, parts = text.partition("/")
        if not (part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
            raise ShareError(
                f"{text!r} is no share such as 0/3: a part from 0 on, and how many parts there are"
            )
        return cls(int(part), int(parts))

    def has(self, pod: Pod) -> bool:
        """Whether the pod is one of the share. The hash is of its uid, and the same everywhere."""
        return self.parts == 1 or crc32(pod.uid.encode()) % self.parts == self.part


@attrs.frozen
class Sharing:
    """Where the claims are kept, and which pods are this scheduler's."""

    namespace: str = "kube-system"
    share: Share = Share()

    def claiming(
        self, cluster: KubernetesCluster, client: Client, holder: str, profiles: Iterable[Profile]
    ) -> ClaimingCluster:
        """The cluster for a scheduler of this name, which must be nobody else's, nor that of one before.

        Raises:
            PluginError, ProfileError: a profile can't run.
        """
        # A rate of its own: claims mustn't hold up bindings, which have little time after their claim.
        records = NodeRecords(client.with_own_rate(), self.namespace, holder)

        def fit(truth: ClaimingCluster) -> StillFits:
            return StillFits(truth, profiles)

        return ClaimingCluster(cluster, records, ClaimBook(holder), fit, self.share.has)
