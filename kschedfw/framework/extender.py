"""The interface of an extender, which the scheduling algorithm calls after the filters and after the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kschedfw.api.pod import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot

EXTENDER_NAME = "Extender"
"""The name that stands for all extenders among the plugins that made a pod unschedulable."""

MAX_EXTENDER_PRIORITY = 10
"""The highest score that an extender gives a node."""


@frozen(eq=False)
class ExtenderFilterResult:
    """The nodes that pass an extender, and the reasons why other nodes don't, by node name.

    Preemption skips the nodes in `failed_and_unresolvable`. A node in both mappings counts as unresolvable.
    """

    feasible: Sequence[NodeInfo]
    failed: Mapping[str, str]
    failed_and_unresolvable: Mapping[str, str]


@frozen
class Victims:
    """The pods that must leave a node so that another pod fits, in falling importance.

    `num_pdb_violations` is the number of them whose eviction violates a disruption budget.
    """

    pods: tuple[Pod, ...]
    num_pdb_violations: int = 0


class Extender(Protocol):
    """kube-scheduler `fwk.Extender`; the HTTP client is one implementation."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int:
        """The factor that this extender's priorities (0–10) are multiplied by."""
        ...

    @property
    def is_filter(self) -> bool: ...

    @property
    def is_prioritizer(self) -> bool: ...

    @property
    def is_binder(self) -> bool:
        """True if the extender binds pods in place of the bind plugins."""
        ...

    @property
    def is_ignorable(self) -> bool:
        """True if scheduling continues without the extender if it fails."""
        ...

    @property
    def supports_preemption(self) -> bool:
        """True if the extender takes part in preemption. If not, it may still refuse the node in a later cycle."""
        ...

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender is called for this pod."""
        ...

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> ExtenderFilterResult:
        """Return the nodes that pass, and the others with reasons; raise on any failure."""
        ...

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        """Return a priority of 0–10 per node name. Raise on any failure, which only loses the priorities."""
        ...

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod; raise on any failure."""
        ...

    def process_preemption(
        self, pod: Pod, victims_by_node: Mapping[str, Victims], snapshot: Snapshot
    ) -> Mapping[str, Victims]:
        """Return the nodes on which preemption remains possible, each with its victims; raise on any failure.

        There may be more or fewer victims than before. Victims may be any pods that are on the node in the
        snapshot.
        """
        ...
