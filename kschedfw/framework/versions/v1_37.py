"""Rules of kube-scheduler v1.37 that differ from v1.36 and that no feature gate switches.

No decision of v1.37 was recorded: every rule was read, at the source that it names.
"""

from __future__ import annotations

from typing import Final

from kschedfw.framework.versions.rule import Rule

PLACEMENT_FEASIBLE: Final = Rule(
    "PlacementFeasible",
    "1.37",
    "groups",
    "no plugin can stop the trial of a placement",
    "plugins say before the first member and after each whether the placement can still take the group",
    "kubernetes/kubernetes pkg/scheduler/schedule_one_podgroup.go @ff3e4a37",
)

RULES: Final = (PLACEMENT_FEASIBLE,)
"""The rules of v1.37."""
