"""The policies that are compared: which of kube-scheduler's plugins score, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from kschedfw import EnabledPlugin, ExtensionPoint, Profile
from kschedfw.api import CPU, MEMORY
from kschedfw.simulator import GPU

_FIT: Final = "NodeResourcesFit"
_BALANCED: Final = "NodeResourcesBalancedAllocation"


class Policy(StrEnum):
    """How nodes are rated; in Borg's words worst fit, best fit, and a hybrid that strands less."""

    SPREADING = "spreading"
    PACKING = "packing"
    HYBRID = "hybrid"


_SCORES: Final[Mapping[Policy, Sequence[str]]] = {
    Policy.SPREADING: (_FIT,),
    Policy.PACKING: (_FIT,),
    Policy.HYBRID: (_FIT, _BALANCED),
}


def profile_of(policy: Policy) -> Profile:
    """The profile of the policy: CPU, memory and GPUs weigh the same, and all nodes are rated.

    Spreading is LeastAllocated, packing MostAllocated, the hybrid MostAllocated and NodeResourcesBalancedAllocation
    with equal weights. The trace's pods have nothing else that a plugin of the default profile looks at.
    """
    resources = [{"name": name, "weight": 1} for name in (CPU, MEMORY, GPU)]
    strategy = "LeastAllocated" if policy is Policy.SPREADING else "MostAllocated"
    return Profile(
        ["PrioritySort", _FIT, _BALANCED, "DefaultBinder"],
        points={ExtensionPoint.SCORE: [EnabledPlugin(name) for name in _SCORES[policy]]},
        args={
            _FIT: {"scoringStrategy": {"type": strategy, "resources": resources}},
            _BALANCED: {"resources": resources},
        },
        percentage_of_nodes_to_score=100,
    )
