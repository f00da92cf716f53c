"""What the scheduling algorithm needs of an extender, which is called after the filters and after the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot

EXTENDER_NAME = "Extender"
"""Stands for all extenders among the plugins that made a pod unschedulable."""

MAX_EXTENDER_PRIORITY = 10
"""The highest score that an extender gives a node."""


@attrs.frozen(eq=False)
class ExtenderFilterResult:
    """The nodes that pass an extender, and why the others don't, by node name.

    What stands in `failed_and_unresolvable` is out of preemption's reach and wins over `failed`.
    """

    feasible: Sequence[NodeInfo]
    failed: Mapping[str, str]
    failed_and_unresolvable: Mapping[str, str]


@attrs.frozen
class Victims:
    """The pods that must leave a node for another to fit, and how many of them a disruption budget forbids to evict.

    They come in falling importance: the first one has the highest priority.
    """

    pods: tuple[Pod, ...]
    num_pdb_violations: int = 0


class Extender(Protocol):
    """kube-scheduler `fwk.Extender`; the HTTP client is one implementation."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int:
        """The factor of its priorities, which are 0–10."""
        ...

    @property
    def is_filter(self) -> bool: ...

    @property
    def is_prioritizer(self) -> bool: ...

    @property
    def is_binder(self) -> bool:
        """Whether it binds pods in place of the bind plugins."""
        ...

    @property
    def is_ignorable(self) -> bool:
        """Whether scheduling continues without it if it fails."""
        ...

    @property
    def supports_preemption(self) -> bool:
        """Whether it takes part in preemption. If not, it may still refuse the node in a later cycle."""
        ...

    def is_interested(self, pod: Pod) -> bool:
        """Whether it is called for this pod."""
        ...

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> ExtenderFilterResult:
        """The nodes that pass; raises on any failure."""
        ...

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        """A priority of 0–10 per node name; raises on any failure, which only loses its priorities."""
        ...

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod; raises on any failure."""
        ...

    def process_preemption(
        self, pod: Pod, victims_by_node: Mapping[str, Victims], snapshot: Snapshot
    ) -> Mapping[str, Victims]:
        """Which of these nodes are left, each with its victims, more or fewer than before; raises on any failure.

        Victims may be any pods that are on the node in the snapshot.
        """
        ...
