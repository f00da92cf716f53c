"""What v1.37 decides otherwise than v1.36, without a gate: each rule with its source and both answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import attrs
import pytest

from kschedfw import (
    ActionType,
    Code,
    EnabledPlugin,
    ExtensionPoint,
    FeatureGates,
    InMemoryCluster,
    Pod,
    QueuedGroup,
    Registry,
    Scheduler,
    Snapshot,
    Status,
    default_profile,
    make_node,
    make_pod,
    make_pod_group,
)
from kschedfw.api import PodGroup, PreemptionPolicy, Resource
from kschedfw.api.manifests import pod_from_manifest
from kschedfw.api.meta import Named
from kschedfw.api.pod import PodCondition
from kschedfw.api.requests import pod_requests
from kschedfw.config import parse_configuration
from kschedfw.framework.events import EventResource
from kschedfw.framework.metrics import EntityKind, HintResult, NoMetrics
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.preemption.budgets import DisruptionBudgets
from kschedfw.framework.versions.v1_37 import FIRST_BUDGET
from kschedfw.plugins.gang_scheduling import GangScheduling
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity
from kschedfw.scheduler import profiles_of
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.queue.backoff import BackoffPolicy
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.select import FirstByNameSelector
from kschedfw.testing import FrameworkHarness
from kschedfw.testing.clock import FakeClock
from tests.framework.preemption.scenes import budget
from tests.framework.support import plugin

MIB = 1024 * 1024
T = TypeVar("T")
Answers = tuple[T, T]
"""The answers of v1.36 and of v1.37."""


def answers(ask: Callable[[FeatureGates], T]) -> Answers[T]:
    before, after = (ask(FeatureGates(version=version)) for version in ("1.36", "1.37"))
    return before, after


class TestImageVolumes:
    """kubernetes/kubernetes#138951: image volumes raise the size that earns all points."""

    def test_an_image_volume_raises_the_size_that_earns_all_points(self) -> None:
        spec = {
            "containers": [{"name": "main", "image": "app:1"}],
            "volumes": [{"name": "model", "image": {"reference": "model:1"}}],
        }
        pod = pod_from_manifest({"metadata": {"name": "pod"}, "spec": spec})
        node = make_node("a").image("model:1", size=1000 * MIB).build()

        def score(gates: FeatureGates) -> int:
            return FrameworkHarness("ImageLocality", nodes=[node], feature_gates=gates).score(pod)["a"]

        # 100 · (1000 − 23) / (2000 − 23)
        assert answers(score) == (100, 49)

    def test_pods_without_image_volumes_score_as_before(self) -> None:
        node = make_node("a").image("app:1", size=500 * MIB).build()
        pod = make_pod("pod").image("app:1").build()

        def score(gates: FeatureGates) -> int:
            return FrameworkHarness("ImageLocality", nodes=[node], feature_gates=gates).score(pod)["a"]

        assert answers(score) == (48, 48)

    def test_only_pods_with_as_many_image_volumes_are_alike(self) -> None:
        node = make_node("a").image("app:1", size=MIB).build()

        def pod(*volumes: str) -> Pod:
            made = make_pod("pod").image("app:1")
            for name in volumes:
                made.volume(name, {"image": {"reference": "absent:1"}})
            return made.build()

        def are_alike(gates: FeatureGates) -> bool:
            plugin = FrameworkHarness("ImageLocality", nodes=[node], feature_gates=gates).framework.plugins[
                "ImageLocality"
            ]
            return plugin.sign(pod("one")) == plugin.sign(pod("one", "two"))

        assert answers(are_alike) == (True, False)


def affinity_hint(gates: FeatureGates, pod: Pod, old: Pod, new: Pod | None) -> str:
    """Whether InterPodAffinity wakes the pod after another pod's change."""
    plugin = FrameworkHarness("InterPodAffinity", feature_gates=gates).framework.plugins["InterPodAffinity"]
    assert isinstance(plugin, InterPodAffinity)
    (ask,) = [event.hint for event in plugin.events_to_register() if event.resource is EventResource.POD]
    assert ask is not None
    return ask(pod, old, new).value


class TestAntiAffinityHints:
    """kubernetes/kubernetes#139161: of several anti-affinity terms, one that matched suffices for a hint."""

    TERMS = tuple(
        {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": app}}} for app in ("loud", "hot")
    )

    @classmethod
    def repelled_by_both(cls, name: str, **more: Any) -> Pod:
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(cls.TERMS)}}
        spec = {"containers": [{"name": "main", "image": "app"}], "affinity": affinity, **more}
        return pod_from_manifest({"metadata": {"name": name, "labels": {"app": "shy"}}, "spec": spec})

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (make_pod("loud").labels(app="loud").node("a").build(), None),
            (
                make_pod("loud").labels(app="loud").node("a").build(),
                make_pod("loud").labels(app="quiet").node("a").build(),
            ),
        ],
        ids=["goes", "changes its labels"],
    )
    def test_a_pod_that_matched_one_of_two_terms_wakes_since_v1_37(self, old: Pod, new: Pod | None) -> None:
        pod = self.repelled_by_both("pod")

        def hint(gates: FeatureGates) -> str:
            return affinity_hint(gates, pod, old, new)

        assert answers(hint) == ("skip", "queue")

    def test_a_pod_with_two_terms_of_which_one_selects_the_refused_pod_wakes_it_when_it_goes(self) -> None:
        gone = self.repelled_by_both("gone", nodeName="a")
        pod = make_pod("pod").labels(app="hot").build()

        def hint(gates: FeatureGates) -> str:
            return affinity_hint(gates, pod, gone, None)

        assert answers(hint) == ("skip", "queue")


def resized(
    containers: Mapping[str, tuple[str, str, str]],
    *,
    infeasible: bool = False,
    level: dict[str, Any] | None = None,
) -> Pod:
    """A pod with the desired, allocated and actual CPU of each container; `level` are fields of the whole pod."""
    level = level or {}
    statuses = [
        {"name": name, "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}}}
        for name, (_, allocated, actual) in containers.items()
    ]
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}] if infeasible else []
    spec = {
        "nodeName": "n",
        "containers": [
            {"name": name, "image": "app", "resources": {"requests": {"cpu": desired}}}
            for name, (desired, _, _) in containers.items()
        ],
        **level.get("spec", {}),
    }
    status = {"containerStatuses": statuses, "conditions": pending, **level.get("status", {})}
    return pod_from_manifest({"metadata": {"name": "resized"}, "spec": spec, "status": status})


def both_rules(pod: Pod) -> Answers[int]:
    """The CPU that the pod takes on its node, in millicores, by v1.36's and by v1.37's rule."""
    old, new = (pod_requests(pod, largest_sum=rule).amounts for rule in (False, True))
    return old.milli_cpu, new.milli_cpu


class TestResizedPods:
    """component-helpers resource/helpers.go @1e152663: the largest sum counts, no sum of largest amounts."""

    def test_containers_that_are_resized_in_opposite_directions_do_not_count_with_their_peaks(self) -> None:
        # One grows from 1 to 3, the other shrinks from 3 to 1: never more than 4 of both.
        assert both_rules(resized({"a": ("3", "1", "1"), "b": ("1", "3", "3")})) == (6000, 4000)

    def test_a_single_container_counts_as_before(self) -> None:
        assert both_rules(resized({"a": ("1", "3", "2")})) == (3000, 3000)

    def test_the_desired_sum_does_not_count_if_the_resize_is_infeasible(self) -> None:
        pod = resized({"a": ("9", "1", "2"), "b": ("9", "2", "1")}, infeasible=True)
        assert both_rules(pod) == (4000, 3000)

    def test_amounts_of_the_whole_pod_stand_for_sums_over_containers(self) -> None:
        told = {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}
        pod = resized({"a": ("1", "5", "5")}, level={"status": told})
        assert both_rules(pod) == (5000, 3000)

    def test_what_is_in_effect_for_the_whole_pod_counts_though_its_spec_does_not_name_it(self) -> None:
        level = {
            "spec": {"resources": {"requests": {"memory": "1Mi"}}},
            "status": {
                "allocatedResources": {"memory": "1Mi"},
                "resources": {"requests": {"memory": "1Mi", "cpu": "7"}},
            },
        }
        assert both_rules(resized({"a": ("1", "1", "1")}, level=level)) == (1000, 7000)

    def test_a_container_without_a_status_counts_with_its_spec(self) -> None:
        pod = pod_from_manifest(
            {
                "metadata": {"name": "pod"},
                "spec": {
                    "containers": [
                        {"name": name, "image": "app", "resources": {"requests": {"cpu": "1"}}}
                        for name in "ab"
                    ]
                },
                "status": {"containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "2"}}]},
            }
        )
        assert both_rules(pod) == (2000, 3000)

    def test_the_cache_adds_up_nodes_by_the_rule(self) -> None:
        pod = resized({"a": ("3", "1", "1"), "b": ("1", "3", "3")})

        def taken(gates: FeatureGates) -> Resource:
            scheduler = Scheduler(InMemoryCluster([make_node("n").build(), pod]), feature_gates=gates)
            snapshot = Snapshot()
            scheduler.cache.update_snapshot(snapshot)
            return snapshot.get("n").requested

        before, after = answers(taken)
        assert (before.milli_cpu, after.milli_cpu) == (6000, 4000)

    def test_a_pod_that_comes_and_goes_leaves_nothing_behind(self) -> None:
        pod, cache, snapshot = (
            resized({"a": ("3", "1", "1"), "b": ("1", "3", "3")}),
            Cache(largest_sum=True),
            Snapshot(),
        )
        cache.add_node(make_node("n").build())
        cache.add_pod(pod)
        cache.remove_pod(pod)
        cache.update_snapshot(snapshot)
        assert snapshot.get("n").requested == Resource()


def gang(cpu: int, *, members: int = 3, least: int = 2, priority: int | None = None) -> InMemoryCluster:
    """A node with so many CPUs, and a gang whose members need one each."""
    room = InMemoryCluster([make_node("n").capacity(cpu=cpu, memory="8Gi").build()])
    group = make_pod_group("g").gang(min_count=least).build()
    if priority is not None:
        group = attrs.evolve(group, spec=attrs.evolve(group.spec, priority=priority))
    room.add(group)
    for number in range(members):
        room.add(make_pod(f"m{number}").requests(cpu=1).group("g").build())
    return room


def grouping(version: str) -> FeatureGates:
    """The gates under which gangs are scheduled together in a version."""
    return FeatureGates(dict.fromkeys(GROUP_GATES[version], True), version)


GROUP_GATES = {
    "1.36": ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"),
    "1.37": ("GenericWorkload",),
}


def in_both(make: Callable[[], InMemoryCluster], ask: Callable[[InMemoryCluster], T]) -> Answers[T]:
    """The answers about the cluster after one cycle under v1.36 and under v1.37."""
    found = []
    for version in ("1.36", "1.37"):
        cluster = make()
        Scheduler(cluster, feature_gates=grouping(version), clock=FakeClock()).schedule_one()
        found.append(ask(cluster))
    return found[0], found[1]


def bound(cluster: InMemoryCluster) -> set[str]:
    return {pod.name for pod in cluster.list(Pod) if pod.node_name}


def condition(cluster: InMemoryCluster) -> tuple[str, str, str, str]:
    (group,) = cluster.list(PodGroup)
    (told,) = group.status.conditions
    return told.type, told.status, told.reason, told.message


class TestGangScheduling:
    """gangscheduling.go @03789157, schedule_one_podgroup.go @ff3e4a37: PlacementFeasible instead of permit."""

    GROUP = QueuedGroup("default/g", make_pod_group("g").gang(min_count=3).build(), ())

    @pytest.mark.parametrize(
        ("left", "scheduled", "code", "message"),
        [
            (3, 0, Code.WAIT, "minCount (3) is not yet satisfied: 0 scheduled, 3 remaining"),
            (1, 2, Code.WAIT, "minCount (3) is not yet satisfied: 2 scheduled, 1 remaining"),
            (0, 3, Code.SUCCESS, ""),
            (5, 3, Code.SUCCESS, ""),
            (1, 1, Code.UNSCHEDULABLE, "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"),
            (0, 2, Code.UNSCHEDULABLE, "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"),
        ],
    )
    def test_it_says_whether_min_count_is_reached_or_still_can_be(
        self, left: int, scheduled: int, code: Code, message: str
    ) -> None:
        plugin = FrameworkHarness("GangScheduling", feature_gates=grouping("1.37")).framework.plugins[
            "GangScheduling"
        ]
        assert isinstance(plugin, GangScheduling)
        status = plugin.placement_feasible(self.GROUP, left, scheduled) or Status.success()
        assert (status.code, status.message) == (code, message)

    def test_a_basic_group_needs_one_member(self) -> None:
        plugin = FrameworkHarness("GangScheduling", feature_gates=grouping("1.37")).framework.plugins[
            "GangScheduling"
        ]
        assert isinstance(plugin, GangScheduling)
        basic = QueuedGroup("default/g", make_pod_group("g").build(), ())
        status = plugin.placement_feasible(basic, 0, 0)
        assert status is not None
        assert status.message == "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"
        assert plugin.placement_feasible(basic, 0, 1) is None

    def test_a_gang_that_fits_is_bound_in_both(self) -> None:
        assert in_both(lambda: gang(cpu=3), bound) == ({"m0", "m1", "m2"},) * 2

    def test_a_gang_of_which_enough_members_fit_is_bound_without_the_rest(self) -> None:
        before, after = in_both(lambda: gang(cpu=2), bound)
        assert (len(before), len(after)) == (2, 2)

    def test_a_gang_that_does_not_fit_says_how_many_members_have_a_node(self) -> None:
        before, after = in_both(lambda: gang(cpu=1), condition)
        assert before[3].startswith("pod group is unschedulable")
        assert after[3].startswith(
            "pod group is unschedulable, minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
        )

    def test_members_of_a_gang_that_does_not_fit_have_its_reason(self) -> None:
        def messages(cluster: InMemoryCluster) -> str:
            return " ".join(pod.status.conditions[0].message for pod in cluster.list(Pod))

        before, after = in_both(lambda: gang(cpu=1), messages)
        assert "waiting for minCount pods from a gang to be scheduled" in before
        assert "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining" in after
        assert "waiting for minCount" not in after

    def test_a_gang_with_a_member_that_is_bound_already_needs_fewer(self) -> None:
        def with_one_bound() -> InMemoryCluster:
            room = gang(cpu=2, members=1)
            room.add(make_pod("old").requests(cpu=1).group("g").node("n").build())
            return room

        assert in_both(with_one_bound, bound) == ({"m0", "old"},) * 2

    def test_a_group_none_of_whose_members_fits_is_not_scheduled(self) -> None:
        def basic() -> InMemoryCluster:
            room = InMemoryCluster([make_node("n").capacity(cpu=0, memory="8Gi").build()])
            room.add(make_pod_group("g").build())
            room.add(make_pod("m").requests(cpu=1).group("g").build())
            return room

        before, after = in_both(basic, condition)
        assert (before[1], after[1]) == ("False", "False")

    def test_nothing_is_left_assumed_after_a_trial_that_failed(self) -> None:
        scheduler = Scheduler(gang(cpu=1), feature_gates=grouping("1.37"), clock=FakeClock())
        scheduler.schedule_one()
        assert not scheduler.cache.dump().assumed

    def test_a_group_that_needs_fewer_members_than_before_wakes_its_pods(self) -> None:
        events = {}
        for version in ("1.36", "1.37"):
            harness = FrameworkHarness("GangScheduling", feature_gates=grouping(version))
            plugin = harness.framework.plugins["GangScheduling"]
            assert isinstance(plugin, GangScheduling)
            events[version] = [
                event.hint
                for event in plugin.events_to_register()
                if event.resource is EventResource.POD_GROUP and event.action is ActionType.UPDATE
            ]
        assert not events["1.36"]
        (hint,) = events["1.37"]
        assert hint is not None
        pod, old = make_pod("m").group("g").build(), make_pod_group("g").gang(min_count=3).build()
        fewer, more = (make_pod_group("g").gang(min_count=number).build() for number in (2, 4))
        assert [hint(pod, old, new).value for new in (fewer, more, old)] == ["queue", "skip", "skip"]
        assert hint(pod, old, make_pod_group("other").gang(min_count=1).build()).value == "skip"
        assert hint(pod, old, make_pod_group("g").build()).value == "skip"


class TestGroupValidation:
    """schedule_one_podgroup.go @ff3e4a37, validatePodGroup."""

    def test_priorities_that_differ_from_the_groups_are_an_error(self) -> None:
        before, after = in_both(lambda: gang(cpu=3, priority=7), condition)
        assert (before[1], before[2]) == ("True", "Scheduled")
        same = "all pods in a single pod group should have the same"
        assert after == (
            "PodGroupInitiallyScheduled",
            "False",
            "SchedulerError",
            f"{same} priority as the pod group's priority, got 0 and 7",
        )

    def test_preemption_policies_that_differ_are_an_error(self) -> None:
        def mixed() -> InMemoryCluster:
            room = gang(cpu=4)
            pod = make_pod("odd").requests(cpu=1).group("g").build()
            room.add(attrs.evolve(pod, spec=attrs.evolve(pod.spec, preemption_policy=PreemptionPolicy.NEVER)))
            return room

        before, after = in_both(mixed, condition)
        assert before[1] == "True"
        policies = "preemption policy, got Never and PreemptLowerPriority"
        assert after[2:] == (
            "SchedulerError",
            f"all pods in a single pod group should have the same {policies}",
        )

    def test_with_the_gate_the_groups_own_policy_counts(self) -> None:
        """PodGroupPreemptionPolicy, alpha in v1.37."""
        room = gang(cpu=3)
        (group,) = room.list(PodGroup)
        never = attrs.evolve(group.spec, preemption_policy=PreemptionPolicy.NEVER)
        room.update(attrs.evolve(group, spec=never))
        gates = FeatureGates({"GenericWorkload": True, "PodGroupPreemptionPolicy": True}, "1.37")
        Scheduler(room, feature_gates=gates, clock=FakeClock()).schedule_one()
        policies = "as the pod group's preemption policy, got PreemptLowerPriority and Never"
        assert condition(room)[3].endswith(f"the same preemption policy {policies}")

    def test_members_that_are_scheduled_already_count(self) -> None:
        def with_other_priority() -> InMemoryCluster:
            room = gang(cpu=4)
            pod = make_pod("old").group("g").node("n").build()
            room.add(attrs.evolve(pod, spec=attrs.evolve(pod.spec, priority=9)))
            return room

        before, after = in_both(with_other_priority, condition)
        assert before[1] == "True"
        assert after[3].endswith("got 9 and 0")

    def test_the_condition_has_another_type(self) -> None:
        before, after = in_both(lambda: gang(cpu=3), condition)
        assert (before[0], after[0]) == ("PodGroupScheduled", "PodGroupInitiallyScheduled")


class TestGroupPostFilter:
    """schedule_one_podgroup.go @ff3e4a37: members don't preempt by themselves, the group does once."""

    @staticmethod
    def crowded() -> InMemoryCluster:
        room = InMemoryCluster([make_node("n").capacity(cpu=2, memory="8Gi").build()])
        for number in range(2):
            room.add(make_pod(f"low{number}").requests(cpu=1).node("n").build())
        group = make_pod_group("g").gang(min_count=2).build()
        room.add(attrs.evolve(group, spec=attrs.evolve(group.spec, priority=100)))
        for number in range(2):
            pod = make_pod(f"m{number}").requests(cpu=1).group("g").build()
            room.add(attrs.evolve(pod, spec=attrs.evolve(pod.spec, priority=100)))
        return room

    def test_a_gang_gets_the_room_of_less_important_pods_in_both(self) -> None:
        for version in ("1.36", "1.37"):
            room = self.crowded()
            Scheduler(room, feature_gates=grouping(version), clock=FakeClock()).run_until_idle()
            assert {pod.name for pod in room.list(Pod) if not pod.name.startswith("m")} == set(), version

    def test_a_gang_that_can_not_have_enough_room_evicts_nobody(self) -> None:
        def too_large() -> InMemoryCluster:
            room = self.crowded()
            group = make_pod_group("g").gang(min_count=3).build()
            room.update(attrs.evolve(group, spec=attrs.evolve(group.spec, priority=100)))
            pod = make_pod("m2").requests(cpu=1).group("g").build()
            room.add(attrs.evolve(pod, spec=attrs.evolve(pod.spec, priority=100)))
            return room

        room = too_large()
        Scheduler(room, feature_gates=grouping("1.37"), clock=FakeClock()).schedule_one()
        assert {"low0", "low1"} <= {pod.name for pod in room.list(Pod)}

    @staticmethod
    def of_one(*, topology: str = "") -> InMemoryCluster:
        """A gang of one that fits on either of two nodes, once the pod there is gone; n1's is the more important."""
        room = InMemoryCluster(
            make_node(name).capacity(cpu=1, memory="8Gi").labels(zone="z").build() for name in ("n1", "n2")
        )
        for number, priority in ((1, 5), (2, 1)):
            pod = make_pod(f"low{number}").requests(cpu=1).node(f"n{number}").priority(priority)
            room.add(pod.build())
        group = make_pod_group("g").gang(min_count=1).priority(100)
        room.add((group.topology(topology) if topology else group).build())
        room.add(make_pod("m").requests(cpu=1).group("g").priority(100).build())
        return room

    @staticmethod
    def left(room: InMemoryCluster) -> set[str]:
        return {pod.name for pod in room.list(Pod) if pod.name.startswith("low")}

    def after_a_cycle(self, room: InMemoryCluster, version: str) -> InMemoryCluster:
        gates = grouping(version)
        if version == "1.36" or room.list(PodGroup)[0].topology_key:
            gates = FeatureGates({**gates.given, "TopologyAwareWorkloadScheduling": True}, version)
        Scheduler(room, feature_gates=gates, clock=FakeClock(), selector=FirstByNameSelector()).schedule_one()
        return room

    def test_victims_are_spared_while_members_keep_their_nodes(self) -> None:
        """podgrouppreemption.go @00f22436: the algorithm runs once, and a victim on a member's node goes."""
        before, after = (self.left(self.after_a_cycle(self.of_one(), each)) for each in ("1.36", "1.37"))
        assert before == {"low1"}  # the member moves to n2, where it costs less
        assert after == {"low2"}  # it got n1 first

    def test_members_are_nominated_to_the_nodes_that_they_wait_for(self) -> None:
        room = self.after_a_cycle(self.of_one(), "1.37")
        member = room.get(Pod, "default/m")
        assert member is not None
        assert member.status.nominated_node_name == "n1"
        assert condition(room)[3] == (
            "pod group is unschedulable, minCount (1) cannot be satisfied: 0 scheduled, 0 remaining,"
            " pod group preemption: found a placement for podgroup, preempting 1 victims"
        )

    @staticmethod
    def with_plugins(room: InMemoryCluster, version: str, **points: Any) -> InMemoryCluster:
        """The cluster after a cycle of a scheduler whose profile has these plugin sets."""
        gates = grouping(version)
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": points}],
        }
        profiles = profiles_of(parse_configuration(content, gates=gates))
        Scheduler(room, profiles, feature_gates=gates, clock=FakeClock()).schedule_one()
        return room

    def test_a_group_preempts_where_default_preemption_is_enabled_for_groups(self) -> None:
        """kube-scheduler config/v1 types.go @e87dbdd: `podGroupPostFilter`; before, `postFilter` counts."""
        nowhere = {"disabled": [{"name": "DefaultPreemption"}]}
        found = {
            (version, point): condition(self.with_plugins(self.of_one(), version, **{point: nowhere}))[3]
            for version, point in (
                ("1.36", "postFilter"),
                ("1.37", "postFilter"),
                ("1.37", "podGroupPostFilter"),
            )
        }
        assert "default preemption plugin is not registered" in found["1.36", "postFilter"]
        assert "preempting 1 victims" in found["1.37", "postFilter"]
        assert "preemption" not in found["1.37", "podGroupPostFilter"]

    @pytest.mark.parametrize(
        ("answers", "says", "evicts"),
        [
            ([Status.success()], "", False),
            ([Status.unschedulable("no"), None], "preempting 1 victims", True),
            ([Status.unresolvable("never"), None], "pod group preemption: never", False),
            ([None, Status.unschedulable("no")], "preempting 1 victims", True),
        ],
        ids=["success without victims", "then the next", "unresolvable ends it", "the first success ends it"],
    )
    def test_plugins_for_groups_are_asked_in_order(
        self, answers: list[Status | None], says: str, evicts: bool
    ) -> None:
        """framework/interface.go @e87dbdd, PodGroupPostFilterPlugin. None stands for what preemption does."""

        def hook(answer: Status | None) -> Callable[[Callable[[], Status]], Status]:
            return lambda preempt: preempt() if answer is None else answer

        room = self.of_one()
        registry, names = Registry(), []
        for number, answer in enumerate(answers):
            made = plugin(f"Room{number}", pod_group_post_filter=hook(answer))
            names.append(registry.register(made).name)
        base = default_profile(feature_gates=grouping("1.37"))
        points = {**base.points, ExtensionPoint.POD_GROUP_POST_FILTER: tuple(map(EnabledPlugin, names))}
        profile = attrs.evolve(base, points=points)
        Scheduler(
            room, [profile], registry=registry, feature_gates=grouping("1.37"), clock=FakeClock()
        ).schedule_one()
        assert says in condition(room)[3]
        assert (len(self.left(room)) < 2) is evicts

    def test_groups_with_a_topology_constraint_preempt_since_v1_37(self) -> None:
        """kubernetes/kubernetes#140683."""
        before, after = (
            self.left(self.after_a_cycle(self.of_one(topology="zone"), each)) for each in ("1.36", "1.37")
        )
        assert before == {"low1", "low2"}
        assert after == {"low2"}

    def test_while_victims_terminate_nobody_else_is_evicted(self) -> None:
        """podgrouppreemption.go, isOngoingPreemption."""
        room = self.of_one()
        victim, member = room.get(Pod, "default/low1"), room.get(Pod, "default/m")
        assert victim is not None
        assert member is not None
        target = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
        room.patch_pod_status(victim, condition=target)
        (victim,) = [pod for pod in room.list(Pod) if pod.name == "low1"]
        leaving = attrs.evolve(victim.metadata, deletion_timestamp=datetime.fromtimestamp(0, UTC))
        room.update(victim.with_metadata(leaving))
        room.patch_pod_status(member, nominated_node_name="n1")
        self.after_a_cycle(room, "1.37")
        assert self.left(room) == {"low1", "low2"}
        assert condition(room)[3].endswith("pod group preemption: ongoing preemption on nominated nodes")

    def test_what_keeps_a_group_from_preempting_is_introduced(self) -> None:
        room = self.of_one()
        for pod in [pod for pod in room.list(Pod) if pod.name.startswith("low")]:
            room.update(attrs.evolve(pod, spec=attrs.evolve(pod.spec, priority=100)))
        self.after_a_cycle(room, "1.37")
        text = "pod group preemption: No preemption victims found for incoming preemptor"
        assert condition(room)[3].endswith(text)

    def test_members_states_follow_the_victims_that_are_put_back(self) -> None:
        """Anti-affinity to both pods in the zone: either alone is in the way."""
        room = self.of_one()
        member = room.get(Pod, "default/m")
        assert member is not None
        room.delete(member)
        shy = (
            make_pod("m")
            .requests(cpu="100m")
            .group("g")
            .priority(100)
            .pod_anti_affinity("zone", {"app": "loud"})
        )
        room.add(shy.build())
        for pod in room.list(Pod):
            if pod.name.startswith("low"):
                room.delete(pod)
                loud = make_pod(pod.name).requests(cpu="100m").labels(app="loud").node(pod.node_name)
                room.add(loud.build())
        self.after_a_cycle(room, "1.37")
        assert self.left(room) == set()


class TestGroupVictims:
    """kubernetes/kubernetes#139030, default_preemption.go: groups as victims of single pods."""

    @staticmethod
    def occupied(*, whole: bool, group_priority: int = 1, member_priority: int = 1) -> InMemoryCluster:
        """A pod of priority 10 that needs the room of one of two members, each on a node of its own."""
        room = InMemoryCluster(make_node(name).capacity(cpu=1, memory="8Gi").build() for name in ("n1", "n2"))
        group = make_pod_group("g").gang(min_count=2).priority(group_priority)
        room.add((group.disrupted_as_a_whole() if whole else group).build())
        for name in ("n1", "n2"):
            member = make_pod(f"on-{name}").requests(cpu=1).group("g").priority(member_priority)
            room.add(member.node(name).build())
        room.add(make_pod("p").requests(cpu=1).priority(10).build())
        return room

    @pytest.mark.parametrize(("whole", "left"), [(True, (1, 0)), (False, (1, 1))])
    def test_a_group_that_is_disrupted_as_a_whole_goes_as_a_whole(
        self, whole: bool, left: Answers[int]
    ) -> None:
        def members(room: InMemoryCluster) -> int:
            return sum(pod.name.startswith("on-") for pod in room.list(Pod))

        assert in_both(lambda: self.occupied(whole=whole), members) == left

    @pytest.mark.parametrize(
        ("group_priority", "member_priority", "left"), [(20, 1, (1, 2)), (1, 20, (2, 1))]
    )
    def test_members_count_with_their_groups_priority(
        self, group_priority: int, member_priority: int, left: Answers[int]
    ) -> None:
        def members(room: InMemoryCluster) -> int:
            return sum(pod.name.startswith("on-") for pod in room.list(Pod))

        room = partial(
            self.occupied, whole=False, group_priority=group_priority, member_priority=member_priority
        )
        assert in_both(room, members) == left

    def test_a_single_pod_is_taken_rather_than_a_group_of_the_same_priority(self) -> None:
        def crowded() -> InMemoryCluster:
            room = InMemoryCluster([make_node("n").capacity(cpu=2, memory="8Gi").build()])
            room.add(make_pod_group("g").priority(1).build())
            room.add(make_pod("member").requests(cpu=1).group("g").priority(1).node("n").build())
            room.add(make_pod("alone").requests(cpu=1).priority(1).node("n").build())
            room.add(make_pod("p").requests(cpu=1).priority(10).build())
            return room

        def left(room: InMemoryCluster) -> set[str]:
            return {pod.name for pod in room.list(Pod)} - {"p"}

        assert in_both(crowded, left)[1] == {"member"}


class TestFirstViolatedBudget:
    """preemption/util.go: an eviction that violates a budget leaves the later ones as they are."""

    def test_a_violated_budget_spares_the_budgets_after_it(self) -> None:
        pods = [make_pod(name).labels(app="a", **{name: "1"}).build() for name in ("x", "y")]
        budgets = [budget(0, {"app": "a", "x": "1"}), budget(1, {"app": "a"})]

        def violations(gates: FeatureGates) -> list[int]:
            made = DisruptionBudgets.of(budgets, ends_at_first=gates.follows(FIRST_BUDGET))
            return made.violations([[pod] for pod in pods])

        assert answers(violations) == ([1, 1], [1, 0])


class TestGroupLeftovers:
    """KEP-4671: members without a node in a cycle that succeeds come back in their old turn."""

    @pytest.mark.parametrize(("version", "place"), [("1.36", Place.BACKOFF), ("1.37", Place.ACTIVE)])
    def test_members_left_over_by_a_success_are_active_at_once(self, version: str, place: Place) -> None:
        room = gang(cpu=2)
        clock = FakeClock(1000.0)
        scheduler = Scheduler(room, feature_gates=grouping(version), clock=clock)
        clock.advance(1.5)
        scheduler.schedule_one()
        (left,) = [pod for pod in room.list(Pod) if not pod.node_name]
        assert scheduler.queue.place(left.uid) is place
        info = scheduler.queue.get(left.uid)
        assert info is not None
        assert (info.timestamp, info.unschedulable_count) == ((1001.5, 1), (1000.0, 0))[version == "1.37"]

    def test_they_back_off_once_none_of_them_gets_a_node(self) -> None:
        room = gang(cpu=2)
        scheduler = Scheduler(room, feature_gates=grouping("1.37"), clock=FakeClock())
        scheduler.schedule_one()
        scheduler.schedule_one()
        (left,) = [pod for pod in room.list(Pod) if not pod.node_name]
        assert scheduler.queue.place(left.uid) is Place.BACKOFF


class TestGroupBackoff:
    """backend/queue: the longest backoff of a group grows with the square root of its pending members."""

    @staticmethod
    def longest(gates: FeatureGates, members: int) -> float:
        """The longest backoff of a member of a gang that never fits, in seconds."""
        scheduler = Scheduler(gang(cpu=0, members=members), feature_gates=gates, clock=FakeClock(1000.0))
        info = QueuedPodInfo(PodInfo.of(make_pod("m0").group("g").build()), timestamp=1000.0)
        info.unschedulable_count = 100
        return scheduler.queue._sub_queues.backoff._policy.expiration(info) - 1000.0

    def test_a_group_of_nine_backs_off_for_three_times_as_long_at_most(self) -> None:
        found = [self.longest(grouping(version), members=9) for version in ("1.36", "1.37")]
        assert found == [10.0, 30.0]

    def test_a_group_of_one_backs_off_like_a_pod(self) -> None:
        found = [self.longest(grouping(version), members=1) for version in ("1.36", "1.37")]
        assert found == [10.0, 10.0]

    def test_backoffs_below_the_longest_are_as_before(self) -> None:
        policy = BackoffPolicy(initial=1.0, maximum=10.0)
        assert [policy.duration(failures, size=9) for failures in (0, 1, 3, 5, 6)] == [
            0.0,
            1.0,
            4.0,
            16.0,
            30.0,
        ]


class Told(NoMetrics):
    """Receives what v1.37 tells otherwise than v1.36."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.pending: dict[str, int] = {}
        self.preemption: list[tuple[object, ...]] = []

    def pod_incoming(self, queue: str, event: str) -> None:
        self.events.append(("queue", event))

    def event_handled(self, event: str, seconds: float) -> None:  # given by name
        self.events.append(("handled", event))

    def queueing_hint(self, plugin: str, event: str, result: HintResult, seconds: float) -> None:
        self.events.append((plugin, event))

    def pending_pods(self, queue: str, count: int) -> None:
        self.pending[queue] = count

    def preemption_victims(self, count: int) -> None:
        self.preemption.append(("victims", count))

    def group_preemption_attempt(self, code: Code) -> None:
        self.preemption.append(("attempt of a group", code))

    def group_preemption_victims(self, count: int) -> None:
        self.preemption.append(("victims for a group", count))

    def preemption_evaluated(self, preemptor: EntityKind, code: Code, seconds: float) -> None:
        self.preemption.append(("evaluated", preemptor.value, code))

    def preemption_carried_out(self, preemptor: EntityKind, success: bool, seconds: float) -> None:
        self.preemption.append(("carried out", preemptor.value, success))

    def groups_disrupted(self, preemptor: EntityKind, count: int) -> None:
        self.preemption.append(("disrupted", preemptor.value, count))

    def budgets_violated(self, preemptor: EntityKind, count: int) -> None:
        self.preemption.append(("violated", preemptor.value, count))


def told(gates: FeatureGates, run: Callable[[InMemoryCluster, Scheduler], None], *objects: Named) -> Told:
    metrics, cluster = Told(), InMemoryCluster(objects)
    run(cluster, Scheduler(cluster, feature_gates=gates, clock=FakeClock(), metrics=metrics))
    return metrics


class TestPodEventNames:
    """kubernetes/kubernetes#135905 and scheduling_queue.go, Update: events of pods have new names."""

    def test_a_pending_pod_that_comes_and_changes(self) -> None:
        pod = make_pod("p").requests(cpu=8).build()
        smaller = make_pod("p").uid(pod.uid).requests(cpu=1).build()

        def run(cluster: InMemoryCluster, scheduler: Scheduler) -> None:
            cluster.add(pod)
            scheduler.schedule_one()
            cluster.update(smaller)

        def ask(gates: FeatureGates) -> list[tuple[str, str]]:
            events = told(gates, run, make_node("n").capacity(cpu=4).build()).events
            # The refusal is written into the pod's status, which is an update, too.
            return [each for each in events if each[1] != "NodeAdd" and not each[1].endswith("PodUpdate")]

        before, after = answers(ask)
        fit = "NodeResourcesFit"
        assert before == [
            ("queue", "UnschedulablePodAdd"),
            ("handled", "UnschedulablePodAdd"),
            ("queue", "ScheduleAttemptFailure"),
            (fit, "UnschedulablePodUpdatePodScaleDown"),
            ("queue", "UnschedulablePodUpdatePodScaleDown"),
            ("handled", "UnschedulablePodUpdatePodScaleDown"),
        ]
        assert after == [
            ("queue", "UnscheduledPodAdd"),
            ("handled", "UnscheduledPodAdd"),
            ("queue", "ScheduleAttemptFailure"),
            (fit, "TargetPodUpdatePodScaleDown"),
            ("queue", "TargetPodUpdatePodScaleDown"),
            ("handled", "UnscheduledPodUpdatePodScaleDown"),
        ]

    def test_events_of_pods_on_nodes_and_of_nodes_keep_their_names(self) -> None:
        def run(cluster: InMemoryCluster, _scheduler: Scheduler) -> None:
            cluster.add(make_node("n").build())
            cluster.add(make_pod("p").node("n").build())

        def ask(gates: FeatureGates) -> list[tuple[str, str]]:
            return told(gates, run).events

        names = [("handled", "NodeAdd"), ("handled", "AssignedPodAdd")]
        assert answers(ask) == (names, names)


class TestPodGroupQueueNames:
    """pkg/scheduler/metrics/metrics.go, pendingPods: members without a group, and those that come during its cycle."""

    def pending(self, version: str, *objects: Named) -> dict[str, int]:
        def run(cluster: InMemoryCluster, _scheduler: Scheduler) -> None:
            cluster.add(make_pod("m").group("g").build())

        counts = told(grouping(version), run, *objects).pending
        return {queue: count for queue, count in counts.items() if count}

    def test_a_member_whose_group_is_missing_is_incomplete(self) -> None:
        found = tuple(self.pending(version) for version in GROUP_GATES)
        assert found == ({"gated": 1}, {"incomplete": 1})

    def test_a_member_that_waits_for_others_is_gated(self) -> None:
        group = make_pod_group("g").gang(min_count=2).build()
        found = tuple(self.pending(version, group) for version in GROUP_GATES)
        assert found == ({"gated": 1}, {"gated": 1})

    def test_members_that_come_during_the_cycle_of_their_group_are_pending(self) -> None:
        group = make_pod_group("g").gang(min_count=1).build()
        metrics, cluster = Told(), InMemoryCluster([make_node("n").build(), group])
        scheduler = Scheduler(cluster, feature_gates=grouping("1.37"), clock=FakeClock(), metrics=metrics)
        cluster.add(make_pod("m").group("g").build())
        info = scheduler.queue.try_pop()
        assert info is not None
        scheduler.queue.begin_group(info)
        cluster.add(make_pod("late").group("g").build())
        assert metrics.pending == {**dict.fromkeys(metrics.pending, 0), "pending": 1}
        # Whoever asks the queue itself finds it among those that can be popped, as before.
        assert scheduler.queue.counts()[Place.ACTIVE] == 1


class TestWorkloadPreemptionMetrics:
    """kubernetes/kubernetes#139373; executor_test.go and podgrouppreemption.go: what is told of preemptions."""

    @staticmethod
    def scene(*more: Named) -> list[Named]:
        """A node that two members of a gang of lower priority fill, which is evicted as a whole, and their budget."""
        group = make_pod_group("low").gang(min_count=1).priority(1).disrupted_as_a_whole().build()
        members = [
            make_pod(f"low{number}")
            .labels(app="low")
            .priority(1)
            .requests(cpu=2)
            .group("low")
            .node("n")
            .build()
            for number in range(2)
        ]
        return [
            make_node("n").capacity(cpu=4, memory="8Gi").build(),
            group,
            *members,
            budget(0, {"app": "low"}),
            *more,
        ]

    def told(self, version: str, *pods: Pod, group: PodGroup | None = None) -> list[tuple[object, ...]]:
        def run(cluster: InMemoryCluster, scheduler: Scheduler) -> None:
            for pod in pods:
                cluster.add(pod)
            scheduler.schedule_one()

        return told(grouping(version), run, *self.scene(*([] if group is None else [group]))).preemption

    def test_a_pod_that_preempts_a_group(self) -> None:
        pod = make_pod("high").priority(9).requests(cpu=3).build()
        before, after = (self.told(version, pod) for version in GROUP_GATES)
        assert before == [("victims", 2)]
        assert after == [
            ("victims", 2),
            ("disrupted", "pod", 1),
            ("violated", "pod", 2),
            ("carried out", "pod", True),
        ]

    def test_a_group_that_preempts_a_group(self) -> None:
        group = make_pod_group("g").gang(min_count=2).priority(9).build()
        pods = [make_pod(f"m{i}").priority(9).requests(cpu=2).group("g").build() for i in range(2)]
        before, after = (self.told(version, *pods, group=group) for version in GROUP_GATES)
        assert before == [("victims", 2)]
        assert after == [
            ("evaluated", "podgroup", Code.SUCCESS),
            ("victims for a group", 2),
            ("disrupted", "podgroup", 1),
            ("violated", "podgroup", 2),
            ("attempt of a group", Code.SUCCESS),
            ("carried out", "podgroup", True),
        ]

    def test_a_group_that_finds_no_room(self) -> None:
        group = make_pod_group("g").gang(min_count=2).priority(9).build()
        pods = [make_pod(f"m{i}").priority(9).requests(cpu=9).group("g").build() for i in range(2)]
        assert self.told("1.37", *pods, group=group) == [
            ("evaluated", "podgroup", Code.UNSCHEDULABLE),
            ("attempt of a group", Code.UNSCHEDULABLE),
        ]

    def test_without_the_gate_of_groups_a_preemption_is_told_as_before(self) -> None:
        def run(cluster: InMemoryCluster, scheduler: Scheduler) -> None:
            cluster.add(make_pod("high").priority(9).requests(cpu=3).build())
            scheduler.schedule_one()

        assert told(FeatureGates(version="1.37"), run, *self.scene()).preemption == [("victims", 2)]
