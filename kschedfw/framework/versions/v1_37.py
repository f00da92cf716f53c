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

IMAGE_VOLUMES: Final = Rule(
    "ImageVolumes",
    "1.37",
    "ImageLocality",
    "the images of a pod's image volumes count towards what a node has, but don't raise the size that earns 100 points",
    "each image volume raises that size by 1000 MiB, as each container does",
    "kubernetes/kubernetes#138951",
)

ANTI_AFFINITY_HINTS: Final = Rule(
    "AntiAffinityHints",
    "1.37",
    "InterPodAffinity",
    "a pod that goes, or changes its labels, wakes a refused pod only if all required anti-affinity terms matched it",
    "one matching term suffices",
    "kubernetes/kubernetes#139161",
)

RESIZED_PODS: Final = Rule(
    "ResizedPods",
    "1.37",
    "requests of pods that are resized",
    "each container counts with the largest of its desired, allocated and actual amount, and these are summed up",
    "the desired, allocated and actual amounts are summed up each, and the largest sum counts",
    "kubernetes/component-helpers resource/helpers.go @1e152663",
)

RULES: Final = (IMAGE_VOLUMES, ANTI_AFFINITY_HINTS, RESIZED_PODS, PLACEMENT_FEASIBLE)
"""The rules of v1.37."""
