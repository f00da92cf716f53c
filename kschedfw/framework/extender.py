"""What the algorithm needs of an extender: a scheduler's helper that is asked after the filters and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.node_info import NodeInfo

EXTENDER_NAME = "Extender"
"""Stands for all extenders among the plugins that made a pod unschedulable."""

MAX_EXTENDER_PRIORITY = 10
"""The highest score that an extender gives a node."""


@attrs.frozen(eq=False)
class ExtenderFilterResult:
    """The nodes an extender leaves over, and why it refused the others, by node name.

    What stands in `failed_and_unresolvable` is out of preemption's reach and wins over `failed`.
    """

    feasible: Sequence[NodeInfo]
    failed: Mapping[str, str]
    failed_and_unresolvable: Mapping[str, str]


class Extender(Protocol):
    """kube-scheduler `fwk.Extender`; the HTTP client is one implementation."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> int:
        """What its priorities (0–10) are multiplied with."""
        ...

    @property
    def is_filter(self) -> bool: ...

    @property
    def is_prioritizer(self) -> bool: ...

    @property
    def is_ignorable(self) -> bool:
        """Whether scheduling goes on without it when it fails."""
        ...

    def is_interested(self, pod: Pod) -> bool:
        """Whether it wants to be asked about this pod."""
        ...

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> ExtenderFilterResult:
        """Which nodes are left; raises on any failure."""
        ...

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        """A priority of 0–10 per node name; raises on any failure, which only loses its priorities."""
        ...
