"""The cycle of a group of pods that are scheduled together (kube-scheduler `podGroupCycle`; KEP-4671, KEP-5732)."""

from kschedfw.framework.preemption.units import VictimUnit
from kschedfw.scheduler.groups.algorithm import GroupAlgorithm
from kschedfw.scheduler.groups.cycle import GroupCycle, GroupDecision, GroupObserver
from kschedfw.scheduler.groups.preemption import GroupPreemption, Reprieve
from kschedfw.scheduler.groups.trial import GroupResult, MemberResult, PlacementResult

__all__ = [
    "GroupAlgorithm",
    "GroupCycle",
    "GroupDecision",
    "GroupObserver",
    "GroupPreemption",
    "GroupResult",
    "MemberResult",
    "PlacementResult",
    "Reprieve",
    "VictimUnit",
]
