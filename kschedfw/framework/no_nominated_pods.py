"""Nobody is nominated."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kschedfw.framework.nodes.pod_info import PodInfo


class NoNominatedPods:
    """The nominator of a scheduler without preemption."""

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:  # noqa: ARG002  # see PodNominator
        return ()

    def nominated_nodes(self) -> Collection[str]:
        return ()

    def node_of(self, uid: str) -> str:  # noqa: ARG002  # see PodNominator
        return ""

    @property
    def is_empty(self) -> bool:
        return True

    @property
    def version(self) -> int:
        return 0

    def changed_since(self, version: int) -> Collection[str] | None:  # noqa: ARG002  # see PodNominator
        return ()
