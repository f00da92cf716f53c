"""Rules of kube-scheduler v1.37 that differ from v1.36 and that no feature gate switches.

No decision of v1.37 was recorded: every rule was read, at the source that it names.
"""

from __future__ import annotations

from typing import Final

from kschedfw.framework.versions.rule import Rule

_GROUP_CYCLE: Final = "kubernetes/kubernetes pkg/scheduler/schedule_one_podgroup.go @ff3e4a37"

PLACEMENT_FEASIBLE: Final = Rule(
    "PlacementFeasible",
    "1.37",
    "groups, GangScheduling",
    "members are asked at permit in the trial, where GangScheduling has them wait until minCount have a node",
    "plugins, GangScheduling among them, say before the first member and after each whether the placement suffices, may"
    " with more members, or can't; permit is asked when members are submitted",
    _GROUP_CYCLE,
)

GROUP_POST_FILTER: Final = Rule(
    "PodGroupPostFilter",
    "1.37",
    "groups, preemption",
    "each member that fits nowhere preempts by itself, and a group that still fits nowhere as a whole",
    "only the group preempts, after its cycle, also if it has a topology constraint, where DefaultPreemption is enabled"
    " at podGroupPostFilter; victims are spared one by one while the members keep the nodes that they got without any,"
    " and members are nominated to these",
    "kubernetes/kubernetes pkg/scheduler/framework/preemption/podgrouppreemption.go, as in kubernetes-sigs/"
    "scheduler-library pkg/upstreamsync/preemption @a7631a09; kubernetes/kubernetes#140683",
)

GROUP_VICTIMS: Final = Rule(
    "PodGroupVictims",
    "1.37",
    "groups, preemption",
    "a single pod preempts members of groups one by one, by their own priorities",
    "a group that is disrupted as a whole is one victim, wherever its members run, and members count with their group's"
    " priority",
    "kubernetes/kubernetes#139030; pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go",
)

FIRST_BUDGET: Final = Rule(
    "FirstViolatedBudget",
    "1.37",
    "preemption",
    "an eviction is subtracted from every disruption budget that covers the pod",
    "an eviction is subtracted from the disruption budgets that cover the pod up to the first that it violates",
    "kubernetes/kubernetes pkg/scheduler/framework/preemption/util.go",
)

GROUP_PRIORITIES: Final = Rule(
    "PodGroupPriorities",
    "1.37",
    "groups",
    "members may have other priorities than their group",
    "a member with another priority than its group's ends the cycle in an error",
    _GROUP_CYCLE,
)

GROUP_PREEMPTION_POLICIES: Final = Rule(
    "PodGroupPreemptionPolicies",
    "1.37",
    "groups",
    "members may have different preemption policies",
    "members with different preemption policies end the cycle in an error",
    _GROUP_CYCLE,
)

GROUP_CONDITION: Final = Rule(
    "PodGroupInitiallyScheduled",
    "1.37",
    "groups",
    "the condition PodGroupScheduled tells whether a group is scheduled",
    "the condition PodGroupInitiallyScheduled does",
    "kubernetes/api scheduling/v1beta1/types.go",
)

GROUP_BACKOFF: Final = Rule(
    "PodGroupBackoff",
    "1.37",
    "the queue",
    "members back off for at most podMaxBackoffSeconds",
    "the longest backoff of a group is that times the square root of the number of its pending members",
    "kubernetes/kubernetes pkg/scheduler/backend/queue/backoff_queue.go, calculateBackoffDuration",
)

GROUP_ENTITY: Final = Rule(
    "PodGroupEntity",
    "1.37",
    "the queue",
    "members are queued one by one: a gated member is left behind, and a new one takes those along that back off",
    "a group is one entity: a gated member holds all back, a new one joins its group where that waits, and members that"
    " come during the group's cycle wait for its end",
    "KEP-4671; kubernetes/kubernetes pkg/scheduler/backend/queue/scheduling_queue.go, addPodGroupMember and"
    " AddAttemptedPodGroupIfNeeded",
)

GROUP_LEFTOVERS: Final = Rule(
    "PodGroupLeftovers",
    "1.37",
    "the queue",
    "members that get no node while their group is scheduled back off like other refused pods",
    "they come back at once, in their old turn",
    "KEP-4671; kubernetes/kubernetes pkg/scheduler/schedule_one_podgroup.go, AddAttemptedPodGroupIfNeeded",
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

BATCH_RESCORING: Final = Rule(
    "BatchRescoring",
    "1.37",
    "batching",
    "a search is reused only while each pod fills its node",
    "a node that the pod before it hasn't filled is scored again, and competes with the rest of the search; pods that"
    " are nominated to a node take no part",
    "kubernetes/kubernetes#140289; pkg/scheduler/framework/runtime/batch.go",
)

_ALLOCATOR: Final = "kubernetes/dynamic-resource-allocation structured/internal/incubating @3d036712"

SELECTOR_ERRORS: Final = Rule(
    "DeviceSelectorErrors",
    "1.37",
    "DynamicResources",
    "the error of a selector that can't be evaluated names the class or claim",
    "it names the device as well, and where a key is missing it advises how to write optional fields",
    f"{_ALLOCATOR}/allocator_incubating.go, cel/errors.go",
)

DEVICE_CONFIGURATIONS: Final = Rule(
    "DeviceConfigurations",
    "1.37",
    "DynamicResources",
    "a claim's configuration is in the allocation once for each of its requests",
    "it is there once, and names no requests where it concerns all; so does a class's",
    f"{_ALLOCATOR}/allocator_incubating.go",
)

COUNTERS_BY_NODE: Final = Rule(
    "SharedCountersByNode",
    "1.37",
    "DynamicResources",
    "every node sees the slices with a pool's counters, so that a broken pool is in the way of claims everywhere",
    "only nodes that reach one of a pool's slices see the pool",
    f"{_ALLOCATOR}/pools_incubating.go",
)

EVENT_NAMES: Final = Rule(
    "PodEventNames",
    "1.37",
    "metrics",
    "events of pending pods are `UnschedulablePodAdd` and so on",
    "they are `UnscheduledPodAdd` and so on, and an update of the pod is `TargetPodUpdate` in the queue's metrics",
    "kubernetes/kube-scheduler framework/types.go @a1a05b92 (kubernetes/kubernetes#135905); kubernetes/kubernetes"
    " pkg/scheduler/backend/queue/scheduling_queue.go, Update",
    decides=False,
)

QUEUE_NAMES: Final = Rule(
    "PodGroupQueueNames",
    "1.37",
    "metrics",
    "members that wait in the queue are counted as active, backoff, unschedulable or gated",
    "those whose PodGroup doesn't exist yet are `incomplete`, and those that came during its cycle `pending`",
    "kubernetes/kubernetes pkg/scheduler/metrics/metrics.go, pendingPods",
    decides=False,
)

PREEMPTION_METRICS: Final = Rule(
    "WorkloadPreemptionMetrics",
    "1.37",
    "metrics",
    "victims of a group count in `scheduler_preemption_victims`",
    "with the gate GenericWorkload they count in `scheduler_workload_preemption_victims`, and five more metrics tell of"
    " preemptions",
    "kubernetes/kubernetes#139373; pkg/scheduler/metrics/metrics.go, framework/preemption/executor_test.go and"
    " podgrouppreemption.go",
    decides=False,
)

RULES: Final = (
    IMAGE_VOLUMES,
    ANTI_AFFINITY_HINTS,
    RESIZED_PODS,
    FIRST_BUDGET,
    PLACEMENT_FEASIBLE,
    GROUP_POST_FILTER,
    GROUP_VICTIMS,
    GROUP_PRIORITIES,
    GROUP_PREEMPTION_POLICIES,
    GROUP_CONDITION,
    GROUP_BACKOFF,
    GROUP_LEFTOVERS,
    GROUP_ENTITY,
    BATCH_RESCORING,
    SELECTOR_ERRORS,
    DEVICE_CONFIGURATIONS,
    COUNTERS_BY_NODE,
    EVENT_NAMES,
    QUEUE_NAMES,
    PREEMPTION_METRICS,
)
"""The rules of v1.37."""
