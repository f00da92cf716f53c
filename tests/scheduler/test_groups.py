"""Groups of pods in a scheduler with the gates on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar
from unittest.mock import Mock

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import (
    Code,
    EnabledPlugin,
    InMemoryCluster,
    NodeInfo,
    PlacedGroup,
    Plugin,
    Pod,
    Profile,
    QueuedGroup,
    Registry,
    Scheduler,
    Status,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
    make_pod_group,
)
from kschedfw.api import DisruptionMode, PodGroup
from kschedfw.api.manifests import object_from_manifest
from kschedfw.explain import Explaining, Explanation, GroupStage
from kschedfw.framework.diagnosis import FitError
from kschedfw.framework.gate_table import (
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    WORKLOAD_AWARE_PREEMPTION,
)
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.metrics import AttemptResult, NoMetrics
from kschedfw.framework.preemption.units import by_importance, victim_units
from kschedfw.scheduler import SchedulingError
from kschedfw.simulator import Simulation
from kschedfw.testing.clock import FakeClock
from tests.overtaken import OvertakenCluster
from tests.steps import assert_linear

GATES = FeatureGates.of(GENERIC_WORKLOAD, GANG_SCHEDULING)
ALL_GATES = FeatureGates.of(
    GENERIC_WORKLOAD, GANG_SCHEDULING, TOPOLOGY_AWARE_WORKLOAD_SCHEDULING, WORKLOAD_AWARE_PREEMPTION
)

GROUP_GATES = {"1.36": (GENERIC_WORKLOAD, GANG_SCHEDULING), "1.37": (GENERIC_WORKLOAD,)}


def cluster(cpu: int, made: InMemoryCluster | None = None) -> InMemoryCluster:
    made = InMemoryCluster() if made is None else made
    made.add(make_node("n").capacity(cpu=cpu, memory="8Gi").build())
    made.add(make_pod_group("g").gang(min_count=3).build())
    for name in ("a", "b", "c"):
        made.add(make_pod(name).requests(cpu=1).group("g").build())
    return made


def bound(of: InMemoryCluster) -> set[str]:
    return {pod.name for pod in of.list(Pod) if pod.node_name}


def condition(of: InMemoryCluster) -> tuple[str, str]:
    (group,) = of.list(PodGroup)
    (only,) = group.status.conditions
    return only.status, only.reason


def test_a_gang_that_fits_is_bound_in_one_cycle() -> None:
    room = cluster(cpu=4)
    assert Scheduler(room, feature_gates=GATES).schedule_one()
    assert bound(room) == {"a", "b", "c"}
    assert condition(room) == ("True", "Scheduled")


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_a_gang_that_comes_takes_time_in_proportion_to_its_members(version: str) -> None:
    gates = FeatureGates(dict.fromkeys(GROUP_GATES[version], True), version)

    def comes(members: int) -> Callable[[], None]:
        room = cluster(cpu=1)
        room.add(make_pod_group("big").gang(min_count=members).build())
        Scheduler(room, feature_gates=gates)
        pods = [make_pod(f"m{number}").group("big").build() for number in range(members)]

        def work() -> None:
            for pod in pods:
                room.add(pod)

        return work

    assert_linear(comes(150), comes(300))


def test_of_a_gang_that_does_not_fit_nothing_is_bound_or_left_assumed() -> None:
    room = cluster(cpu=2)
    scheduler = Scheduler(room, feature_gates=GATES)
    assert scheduler.schedule_one()
    assert bound(room) == set()
    assert not scheduler.cache.dump().assumed
    assert condition(room) == ("False", "Unschedulable")


@pytest.mark.parametrize(("cpu", "told"), [(4, ("True", "Scheduled")), (2, ("False", "Unschedulable"))])
def test_a_groups_condition_is_written_although_others_write_the_group_at_the_same_time(
    cpu: int, told: tuple[str, str]
) -> None:
    room = cluster(cpu, OvertakenCluster({PodGroup: [1, 2, 1, 1]}))
    assert Scheduler(room, feature_gates=GATES).schedule_one()
    assert condition(room) == told
    (group,) = room.list(PodGroup)
    assert len(group.labels) == 5


def test_without_the_gates_members_are_pods_like_any_others() -> None:
    room = cluster(cpu=2)
    scheduler = Scheduler(room)
    scheduler.run_until_idle()
    assert len(bound(room)) == 2
    assert not room.list(PodGroup)[0].status.conditions


def test_without_the_gate_for_placements_the_groups_message_has_none() -> None:
    room = cluster(cpu=2)
    Scheduler(room, feature_gates=GATES).schedule_one()
    (group,) = room.list(PodGroup)
    assert group.status.conditions[0].message == "pod group is unschedulable"


def test_running_until_idle_ends_although_a_group_backs_off() -> None:
    room = cluster(cpu=2)
    scheduler = Scheduler(room, feature_gates=GATES)
    assert scheduler.run_until_idle() == 1
    assert scheduler.run_until_idle() == 0


def test_a_group_that_backs_off_is_tried_again_when_its_time_has_come() -> None:
    room, clock = cluster(cpu=2), FakeClock()
    scheduler = Scheduler(room, feature_gates=GATES, clock=clock)
    scheduler.run_until_idle()
    room.add(make_node("m").capacity(cpu=1, memory="8Gi").build())
    clock.advance(15)
    scheduler.run_until_idle()
    assert bound(room) == {"a", "b", "c"}


def test_a_simulation_counts_the_cycles_of_a_hopeless_group_and_ends() -> None:
    report = Simulation(cluster(cpu=2), feature_gates=GATES).run()
    assert report.unschedulable == 3
    assert {decision.attempts for decision in report.decisions} == {5}


@pytest.mark.parametrize("error", [RuntimeError("it broke"), SystemExit(0)], ids=repr)
@pytest.mark.parametrize("raising", ["algorithm", "snapshot"])
def test_whatever_fails_in_the_cycle_of_a_group_is_an_attempt_and_the_simulation_ends(
    raising: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    explanations: list[Explanation] = []
    simulation = Simulation(cluster(cpu=8), feature_gates=GATES, explaining=Explaining(explanations.append))
    cycle = simulation.scheduler.group_cycle
    assert cycle is not None
    of, name = {
        "algorithm": (cycle.algorithm, "run"),
        "snapshot": (simulation.scheduler.cache, "update_snapshot"),
    }[raising]
    monkeypatch.setattr(of, name, Mock(side_effect=error))
    # Without a count of these attempts it would go on for ever in virtual time.
    report = simulation.run()
    assert (report.failed, {decision.attempts for decision in report.decisions}) == (3, {5})
    assert {each.group and each.group.ended_by for each in explanations} == {GroupStage.FAILURE}


def test_a_group_of_v1beta1_says_how_it_is_disrupted_by_an_object() -> None:
    manifest = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}},
    }
    group = object_from_manifest(manifest, "PodGroup")
    assert isinstance(group, PodGroup)
    assert group.spec.disruption_mode is DisruptionMode.POD_GROUP


GANGS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.integers(0, 2)), min_size=1, max_size=4
)
"""For each gang its size, minCount, whether it wants one rack, and its priority."""


@given(GANGS, st.lists(st.integers(1, 4), min_size=1, max_size=4), st.lists(st.integers(0, 30), max_size=4))
def test_no_gang_is_bound_in_part_no_node_is_overcommitted_and_nothing_stays_assumed(
    gangs: Sequence[tuple[int, int, bool, int]], cpus: Sequence[int], removals: Sequence[int]
) -> None:
    nodes = [
        make_node(f"n{i}").capacity(cpu=cpu, memory="8Gi").labels(rack=f"r{i % 2}").build()
        for i, cpu in enumerate(cpus)
    ]
    room, clock = InMemoryCluster(nodes), FakeClock()
    scheduler = Scheduler(room, feature_gates=ALL_GATES, clock=clock)
    for number, (size, min_count, is_racked, priority) in enumerate(gangs):
        group = make_pod_group(f"g{number}").gang(min_count).priority(priority).disrupted_as_a_whole()
        room.add((group.topology("rack") if is_racked else group).build())
        for i in range(size):
            room.add(
                make_pod(f"g{number}-{i}").requests(cpu=1).priority(priority).group(f"g{number}").build()
            )

    def settled() -> None:
        for _ in range(4):
            scheduler.run_until_idle()
            clock.advance(15)
        scheduler.run_until_idle()
        used = Counter(pod.node_name for pod in room.list(Pod) if pod.node_name)
        assert all(used[f"n{i}"] <= cpu for i, cpu in enumerate(cpus))
        assert not scheduler.cache.dump().assumed
        assert not list(scheduler.waiting_pods)
        left = [pod for pod in room.list(Pod) if not pod.node_name]
        for number, (_, min_count, is_racked, _) in enumerate(gangs):
            members = [pod for pod in room.list(Pod) if pod.name.startswith(f"g{number}-")]
            on_nodes = {pod.node_name for pod in members if pod.node_name}
            if is_racked:
                assert len({int(name[1:]) % 2 for name in on_nodes}) <= 1
            running = sum(1 for pod in members if pod.node_name)
            assert running == 0 or running >= min_count or number in shrunk
            # Nothing else is left to be run, and there is room for all of it: then it runs.
            if not is_racked and len(left) == len(members) and len(members) >= min_count:
                assert sum(cpus) - sum(used.values()) < min_count or running

    shrunk: set[int] = set()
    settled()
    for each in removals:
        pods = sorted(room.list(Pod), key=lambda pod: pod.name)
        if pods:
            gone = pods[each % len(pods)]
            shrunk.add(int(gone.name[1 : gone.name.index("-")]))
            room.delete(gone)
            settled()


class Slow(Plugin):
    """Has the pod `b` wait at permit."""

    name = "Slow"

    @hookimpl
    def permit(self, pod: Pod) -> Status | None:
        return Status.wait(60) if pod.name == "b" else None


def test_a_member_whose_victims_still_take_its_room_is_not_bound_with_its_group() -> None:
    """The group was scheduled with `a`. That it waits for preemption shows at permit, where `b` only waits.

    Condition and nomination are those observed of kube-scheduler v1.36.2 with such a plugin.
    """
    room = InMemoryCluster([make_node("n").capacity(cpu=2, memory="8Gi").build()])
    room.add(make_pod("victim").requests(cpu=1).priority(0).node("n").build())
    room.add(make_pod_group("g").build())
    room.add(make_pod("a").requests(cpu=1).priority(10).group("g").build())
    room.add(make_pod("b").requests(cpu=1).priority(9).group("g").build())
    registry = Registry()
    registry.register(Slow)
    enabled = (*default_profile(feature_gates=GATES).multi_point, EnabledPlugin("Slow"))
    scheduler = Scheduler(room, [Profile(enabled)], registry=registry, feature_gates=GATES)

    assert scheduler.schedule_one()

    assert {pod.name for pod in room.list(Pod) if pod.node_name} <= {"victim", "a"}
    assert {pod.name for pod in scheduler.cache.dump().pods} <= {"victim", "a"}
    waiting = room.get(Pod, "default/b")
    assert waiting is not None
    assert waiting.status.nominated_node_name == ""
    assert [each.message for each in waiting.status.conditions if each.type == "PodScheduled"] == [
        "pod group is unschedulable, one or more plugins asked to wait and no plugin rejected pod"
    ]
    victim = room.get(Pod, "default/victim")
    assert victim is None or victim.is_terminating


def test_equal_victims_that_have_not_started_are_in_the_order_of_nodes_and_of_pods_on_them() -> None:
    """As observed of kube-scheduler v1.36.2, where the nodes, and the pods of each, were made in this order."""
    nodes = [
        NodeInfo.of(make_node(node).build(), [make_pod(f"{node}-{name}").build() for name in "ebfadc"])
        for node in ("n2", "n1")
    ]
    units = by_importance(victim_units([info.pods for info in nodes], lambda _key: None))
    assert [unit.pods[0].name for unit in units] == [
        f"{node}-{name}" for node in ("n2", "n1") for name in "ebfadc"
    ]


def test_equal_groups_that_have_not_started_are_in_the_order_of_their_first_pods() -> None:
    """As observed of kube-scheduler v1.36.2."""
    as_one = make_pod_group("g").disrupted_as_a_whole().build()
    pods = [make_pod(name).group(name[0]).build() for name in ("b1", "a1", "c1", "c2", "a2", "b2")]
    node = NodeInfo.of(make_node("n").build(), pods)
    units = by_importance(victim_units([node.pods], lambda _key: as_one))
    assert [[pod.name for pod in unit.pods] for unit in units] == [["b1", "b2"], ["a1", "a2"], ["c1", "c2"]]


def test_metrics_tell_of_groups_and_of_each_member() -> None:
    """As observed of kube-scheduler v1.36.2 with three members: the algorithm is measured four times per cycle."""
    for cpu, result in ((4, AttemptResult.SCHEDULED), (2, AttemptResult.UNSCHEDULABLE)):
        metrics = Mock(spec_set=NoMetrics())
        Scheduler(cluster(cpu=cpu), feature_gates=GATES, metrics=metrics, clock=FakeClock()).schedule_one()
        metrics.group_attempt.assert_called_once_with(result, "default-scheduler", 0.0)
        metrics.group_algorithm.assert_called_once_with(0.0)
        assert metrics.scheduling_algorithm.call_count == 3
        assert {call.args[0] for call in metrics.scheduling_attempt.call_args_list} == {result}
        assert metrics.scheduling_attempt.call_count == 3


class TestPlacingOutOfTurn:
    """`place_group` holds the places of members until they are committed or given up."""

    def test_the_places_of_a_gang_are_held_and_given_up(self) -> None:
        room = cluster(cpu=4)
        scheduler = Scheduler(room, feature_gates=GATES)
        found = scheduler.place_group(room.list(Pod))
        assert [placement.node_name for placement in found.placements] == ["n", "n", "n"]
        assert not found.refused
        assert not any(placement.is_waiting for placement in found.placements)
        for placement in found.placements:
            placement.give_up()
        assert not scheduler.cache.dump().assumed

    def test_of_a_gang_that_does_not_fit_each_member_says_why(self) -> None:
        room = cluster(cpu=2)
        pods = room.list(Pod)
        found = Scheduler(room, feature_gates=GATES).place_group(pods)
        assert not found.placements
        assert [found.refused[pod.uid].node_name for pod in pods] == ["n", "n", ""]

    def test_a_member_that_a_gate_holds_back_is_left_out(self) -> None:
        room = cluster(cpu=4)
        room.delete(room.list(Pod)[0])
        pods = room.list(Pod)
        found = Scheduler(room, feature_gates=GATES).place_group(pods)
        text = "waiting for minCount pods from a gang to appear in scheduling queue"
        assert [found.refused[pod.uid].status.message for pod in pods] == [text, text]

    def test_if_a_member_is_bound_already_the_others_may_be_placed_again(self) -> None:
        room = cluster(cpu=4)
        scheduler = Scheduler(room, feature_gates=GATES)
        *others, last = room.list(Pod)
        room.update(attrs.evolve(last, spec=attrs.evolve(last.spec, node_name="n")))
        with pytest.raises(SchedulingError, match=f"{last.key} is bound to node n already"):
            scheduler.place_group([*others, last])
        assert len(scheduler.place_group(others).placements) == 2

    def test_victims_of_a_pod_or_a_gang_that_has_to_wait_for_them_are_evicted_at_once(self) -> None:
        room = InMemoryCluster([make_node("n").capacity(cpu=2, memory="8Gi").build()])
        for name in ("low", "other"):
            room.add(make_pod(name).requests(cpu=1).node("n").build())
        alone = room.add(make_pod("alone").requests(cpu=1).priority(10).build())
        room.add(make_pod_group("g").gang(min_count=1).priority(20).build())
        member = room.add(make_pod("member").requests(cpu=2).priority(20).group("g").build())
        scheduler = Scheduler(room, feature_gates=ALL_GATES)
        with pytest.raises(FitError):
            scheduler.place(alone)
        assert len([pod for pod in room.list(Pod) if pod.node_name]) == 1
        assert not scheduler.place_group([member]).placements
        assert not [pod for pod in room.list(Pod) if pod.node_name]

    def test_pods_of_no_group_or_without_the_gate_are_an_error(self) -> None:
        room = cluster(cpu=4)
        with pytest.raises(ValueError, match="pods: expected members of one PodGroup, found those of none"):
            Scheduler(room, feature_gates=GATES).place_group([make_pod("single").build()])
        with pytest.raises(ValueError, match="feature_gates with GenericWorkload, which is off"):
            Scheduler(room).place_group(room.list(Pod))


class Asked(Plugin[None]):
    """Stops where more than one member found no node; notes how many had one, and how many were left."""

    name = "Asked"
    notes: ClassVar[list[tuple[int, int]]] = []
    answer: ClassVar[Status] = Status.unschedulable("too many are without a node")

    @hookimpl
    def placement_feasible(self, group: QueuedGroup, placed: PlacedGroup, left: int) -> Status | None:
        self.notes.append((len(placed.node_names), left))
        return self.answer if len(group.pods) - left - len(placed.node_names) > 1 else None


class TestPlacementFeasible:
    """A third party's plugin ends the trial of a placement, as v1.37's extension point does."""

    @pytest.fixture(autouse=True)
    def _fresh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Asked, "notes", [])

    def scheduled(self, cpu: int, version: str = "1.37") -> InMemoryCluster:
        room = InMemoryCluster([make_node("n").capacity(cpu=cpu, memory="8Gi").build()])
        room.add(make_pod_group("g").gang(min_count=2).build())
        for i in range(6):
            room.add(make_pod(f"m{i}").requests(cpu=1).group("g").build())
        gates = FeatureGates(dict.fromkeys([GENERIC_WORKLOAD], True), version)
        registry = Registry()
        registry.register(Asked)
        enabled = (*default_profile(feature_gates=gates).multi_point, EnabledPlugin("Asked"))
        assert Scheduler(
            room, [Profile(enabled)], registry=registry, feature_gates=gates, clock=FakeClock()
        ).schedule_one()
        return room

    def messages(self, room: InMemoryCluster) -> set[str]:
        return {each.message for pod in room.list(Pod) for each in pod.status.conditions}

    def test_it_is_asked_before_the_first_member_and_after_each(self) -> None:
        room = self.scheduled(cpu=6)
        # GangScheduling answers first: it has nothing against any of them.
        assert Asked.notes == [(placed, 6 - placed) for placed in range(7)]
        assert all(pod.node_name for pod in room.list(Pod))

    def test_a_refusal_ends_the_trial_and_says_why(self) -> None:
        room = self.scheduled(cpu=2)
        assert Asked.notes == [(0, 6), (1, 5), (2, 4), (2, 3), (2, 2)]
        assert not any(pod.node_name for pod in room.list(Pod))
        (group,) = room.list(PodGroup)
        assert "too many are without a node" in group.status.conditions[0].message

    def test_an_error_ends_the_cycle_and_names_the_plugin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Asked, "answer", Status.skip())
        room = self.scheduled(cpu=2)
        assert not any(pod.node_name for pod in room.list(Pod))
        (group,) = room.list(PodGroup)
        assert group.status.conditions[0].reason == "SchedulerError"
        assert "Asked" in group.status.conditions[0].message

    def test_a_plugin_that_waits_has_the_other_members_tried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Asked, "answer", Status(Code.WAIT, ("some are without a node",)))
        room = self.scheduled(cpu=2)
        assert Asked.notes == [(0, 6), (1, 5), (2, 4), (2, 3), (2, 2), (2, 1), (2, 0)]
        assert not any(pod.node_name for pod in room.list(Pod))
        (group,) = room.list(PodGroup)
        assert group.status.conditions[0].message.startswith(
            "pod group is unschedulable, some are without a node"
        )

    def test_it_is_not_asked_with_the_gates_of_an_earlier_version(self) -> None:
        room = self.scheduled(cpu=2, version="1.36")
        assert not Asked.notes
        assert any(pod.node_name for pod in room.list(Pod))
