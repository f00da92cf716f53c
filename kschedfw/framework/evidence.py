"""The evidence for a filter's refusal: the numbers and objects that caused it, for explanations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from kschedfw.api.frozendict import EMPTY
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.node_info import NodeInfo

EvidenceValue: TypeAlias = str | int | float | None
"""The values of JSON that are no containers."""


@attrs.frozen
class Evidence:
    """One reason why a pod can't go on a node, in numbers.

    `asked` is the requirement of the pod, or of the node, in words that are the same for all nodes with the
    same requirement: `cpu: 2 requested`. `found` is what this node has instead, `1920m free of 4 allocatable,
    80m short`; it may be empty. `gap` is the distance of the node from passing, as a share of the requirement
    (0.04: 4 % of it are missing), and None where there is no distance, as with a taint. `values` are the
    numbers and names in it, for programs.
    """

    asked: str
    found: str = ""
    gap: float | None = None
    values: Mapping[str, EvidenceValue] = EMPTY

    def __str__(self) -> str:
        return f"{self.asked}; {self.found}" if self.found else self.asked


@runtime_checkable
class GivesEvidence(Protocol):
    """A filter plugin that can give evidence for its refusals."""

    def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterable[Evidence]:
        """Return the evidence for the refusal of a node that `filter` refused just now, with the same arguments.

        Called for explanations only, never while pods are scheduled. Must not change anything.
        """
        ...
