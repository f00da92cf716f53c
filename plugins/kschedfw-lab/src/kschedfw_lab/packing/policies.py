"""The compared policies: which of kube-scheduler's plugins score, and with which strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from kschedfw import EnabledPlugin, ExtensionPoint, Profile
from kschedfw.api import CPU, MEMORY
from kschedfw_lab.openb import GPU

_FIT: Final = "NodeResourcesFit"
_BALANCED: Final = "NodeResourcesBalancedAllocation"


class Policy(StrEnum):
    """A scoring policy. In Borg's terms: worst fit, best fit, and a hybrid that strands fewer resources."""

    SPREADING = "spreading"
    PACKING = "packing"
    HYBRID = "hybrid"


_SCORES: Final[Mapping[Policy, Sequence[str]]] = {
    Policy.SPREADING: (_FIT,),
    Policy.PACKING: (_FIT,),
    Policy.HYBRID: (_FIT, _BALANCED),
}


def profile_of(policy: Policy) -> Profile:
    """Return the policy's profile. CPU, memory and GPUs have equal weights, and all nodes are scored.

    Spreading is LeastAllocated, packing is MostAllocated. The hybrid is MostAllocated and
    NodeResourcesBalancedAllocation with equal weights. No other plugin of the default profile would treat the trace's
    pods differently.
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
