"""What lies behind a filter's refusal: the numbers and the objects that made it, for explanations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.node_info import NodeInfo

EvidenceValue: TypeAlias = str | int | float | None
"""What JSON can hold without being a container."""


@attrs.frozen
class Evidence:
    """One thing that keeps a pod off a node.

    `asked` is what the pod, or the node, asks for, in words that are the same for all nodes of which they hold: `cpu: 2
    requested`. `found` is what this node has instead, `1920m free of 4 allocatable, 80m short`; it may be empty. `gap`
    is how far the node is from passing, as a share of what is asked for (0.04: 4 % of it are missing), and None where
    there is no nearer and no farther, as with a taint. `values` are the numbers and names in it, for programs.
    """

    asked: str
    found: str = ""
    gap: float | None = None
    values: Mapping[str, EvidenceValue] = EMPTY

    def __str__(self) -> str:
        return f"{self.asked}; {self.found}" if self.found else self.asked


@runtime_checkable
class GivesEvidence(Protocol):
    """A filter plugin that can say what lies behind its refusals."""

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:
        """What lies behind the refusal of a node that `filter` refused just now, with the same arguments.

        It is asked for explanations only, never while pods are scheduled, and changes nothing.
        """
        ...
