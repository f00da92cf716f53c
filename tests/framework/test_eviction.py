"""Carrying a preemption out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeVar

import attrs
import pytest

from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodCondition, PodPhase
from kschedfw.cluster import EventType, InMemoryCluster, NotFoundError, WatchEvent
from kschedfw.framework.eviction import Preemptor
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.results import PostFilterResult
from kschedfw.framework.status import Code, Status
from kschedfw.framework.waiting_pods import PodInPreBind, WaitingPod
from tests.framework.preemption.scenes import MARKED, Scene, node, pod, scene

PREEMPTOR = pod("p", 500, priority=10)
NOMINATED = (PostFilterResult.nominate("n"), Status.success())
V1 = pod("v1", 250, on="n", priority=2)
V2 = pod("v2", 250, on="n", priority=1)


def two_victims(cluster: InMemoryCluster | None = None) -> Scene:
    return scene([node("n")], [V1, V2], cluster=cluster)


def changes(cluster: InMemoryCluster) -> list[WatchEvent]:
    """What happens to pods from now on."""
    seen: list[WatchEvent] = []
    cluster.watch(seen.append)
    seen.clear()
    return seen


class TestVictims:
    def test_they_are_deleted(self) -> None:
        made = two_victims()
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert not made.is_there("v1")
        assert not made.is_there("v2")

    def test_after_a_condition_has_told_them_why_one_after_the_other(self) -> None:
        made = two_victims()
        made.cluster.add(PREEMPTOR)
        seen = changes(made.cluster)
        made.preempt(PREEMPTOR)
        assert [(event.type, event.object.name) for event in seen] == [
            (EventType.MODIFIED, "v1"),
            (EventType.DELETED, "v1"),
            (EventType.MODIFIED, "v2"),
            (EventType.DELETED, "v2"),
        ]
        victim = seen[0].object
        assert isinstance(victim, Pod)
        assert victim.status.conditions == (
            PodCondition(
                "DisruptionTarget",
                "True",
                "PreemptionByScheduler",
                "default-scheduler: preempting to accommodate a higher priority pod",
            ),
        )

    def test_an_event_says_by_whom_and_where(self) -> None:
        made = two_victims()
        made.preempt(PREEMPTOR)
        assert [(e.regarding, e.type, e.reason, e.message, e.related) for e in made.cluster.events] == [
            (f"default/{name}", "Normal", "Preempted", "Preempted by pod uid-p on node n", PREEMPTOR.key)
            for name in ("v1", "v2")
        ]

    def test_one_that_terminates_already_is_left_to_it(self) -> None:
        going = pod("v1", 500, on="n", terminating=True)
        made = scene([node("n")], [going])
        made.cluster.add(PREEMPTOR)
        seen = changes(made.cluster)
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert seen == []
        assert made.cluster.events == ()

    def test_one_that_is_gone_by_now_is_no_problem_and_no_event(self) -> None:
        made = two_victims()
        made.cluster.delete(V1)
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert [event.regarding for event in made.cluster.events] == ["default/v2"]

    def test_another_pod_of_the_same_name_is_left_alone(self) -> None:
        made = two_victims()
        made.cluster.delete(V1)
        made.cluster.add(attrs.evolve(V1, metadata=attrs.evolve(V1.metadata, uid="another")))
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert made.is_there("v1")

    def test_without_room_to_be_made_nobody_goes(self) -> None:
        made = two_victims()
        result, status = made.preempt(pod("p", 501, priority=10))
        assert (result, status.code) == (PostFilterResult.nominate(""), Code.UNSCHEDULABLE)
        assert made.is_there("v1")


class TestForPlugins:
    """`Handle.evict`, by which a plugin makes room without a `PreemptionEvaluator`."""

    def test_victims_on_any_node_go_as_in_a_preemption(self) -> None:
        other = pod("v2", 250, on="m", priority=1)
        made = scene([node("n"), node("m")], [V1, other])
        made.cluster.add(PREEMPTOR)
        seen = changes(made.cluster)
        made.framework.handle.evict([V1, other], preemptor=PREEMPTOR, node_name="n", plugin="Licences")
        assert [(event.type, event.object.name) for event in seen] == [
            (EventType.MODIFIED, "v1"),
            (EventType.DELETED, "v1"),
            (EventType.MODIFIED, "v2"),
            (EventType.DELETED, "v2"),
        ]
        assert [event.message for event in made.cluster.events] == ["Preempted by pod uid-p on node n"] * 2

    def test_with_groups_they_go_after_the_cycle_and_the_preemptor_is_held_back(self) -> None:
        made = scene([node("n")], [V1, V2], gates=FeatureGates.of("GenericWorkload"))
        made.framework.handle.evict([V1, V2], preemptor=PREEMPTOR, node_name="n")
        assert made.is_there("v1")
        assert made.framework.handle.evictions.holds_back(PREEMPTOR.uid)
        made.framework.handle.evictions.carry_out()
        assert not made.is_there("v1")
        assert not made.is_there("v2")

    def test_a_victim_that_waits_for_permission_goes_back_to_the_queue(self) -> None:
        made = scene([node("n")], [V1])
        waiting = WaitingPod(V1, {"Gang": 60.0}, made.framework.handle.clock)
        made.framework.handle.waiting_pods.add(waiting)
        made.framework.handle.evict([V1], preemptor=PREEMPTOR, node_name="n", plugin="Licences")
        status = waiting.poll()
        assert status is not None
        assert (status.message, status.plugin) == ("preempted", "Licences")
        assert made.is_there("v1")

    def test_a_pod_is_not_evicted_for_itself(self) -> None:
        made = two_victims()
        with pytest.raises(ValueError, match="pod default/v1 can't be evicted to make room for itself"):
            made.framework.handle.evict([V1], preemptor=V1, node_name="n")
        assert made.is_there("v1")


class RefusingCluster(InMemoryCluster):
    """Refuses to delete the pods that are named."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def delete(self, obj: Named) -> None:
        if obj.name in self._names:
            raise PermissionError(f"{obj.name} may not be deleted")
        super().delete(obj)


class TestFailure:
    def test_an_eviction_that_fails_ends_it_and_the_pod_is_not_nominated(self) -> None:
        made = two_victims(RefusingCluster("v1"))
        result, status = made.preempt(PREEMPTOR)
        assert result is None
        assert (status.code, status.message) == (Code.ERROR, "PermissionError: v1 may not be deleted")
        assert isinstance(status.error, PermissionError)
        assert made.is_there("v2")
        assert made.cluster.events == ()

    def test_and_lower_nominations_stay(self) -> None:
        made = two_victims(RefusingCluster("v2"))
        lower = nominate(made, "lower", priority=9)
        made.preempt(PREEMPTOR)
        assert nomination(made, lower) == "n"


def wait_at_permit(made: Scene, victim: Pod) -> WaitingPod:
    waiting = WaitingPod(victim, {"Gang": 60.0}, made.framework.handle.clock)
    made.framework.waiting_pods.add(waiting)
    return waiting


class TestWaitingVictims:
    """A victim that isn't bound yet goes back to the queue; there is no reason to delete it."""

    def test_its_wait_is_ended_instead_which_is_no_verdict_on_it(self) -> None:
        made = two_victims()
        waiting = wait_at_permit(made, V1)
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert waiting.poll() == Status.from_error("preempted").with_plugin("Preemptor")
        assert made.is_there("v1")
        assert not made.is_there("v2")
        assert [event.regarding for event in made.cluster.events] == ["default/v1", "default/v2"]

    def test_one_that_was_let_through_just_before_is_deleted(self) -> None:
        made = two_victims()
        wait_at_permit(made, V1).allow("Gang")
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert not made.is_there("v1")


class TestVictimsInPreBind:
    """So does one whose binding cycle has begun, as long as it isn't being bound."""

    def in_pre_bind(self, made: Scene, victim: Pod) -> PodInPreBind:
        found = PodInPreBind(victim)
        made.framework.handle.pods_in_pre_bind.add(found)
        return found

    def test_it_is_cancelled_instead_of_deleted(self) -> None:
        made = two_victims()
        held = self.in_pre_bind(made, V1)
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert held.cancelled == "preempted by Preemptor"
        assert made.is_there("v1")
        assert not made.is_there("v2")
        assert [event.regarding for event in made.cluster.events] == ["default/v1", "default/v2"]

    def test_so_is_one_that_was_just_let_through_at_permit(self) -> None:
        made = two_victims()
        wait_at_permit(made, V1).allow("Gang")
        held = self.in_pre_bind(made, V1)
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert held.cancelled is not None
        assert made.is_there("v1")

    def test_one_that_is_being_bound_is_deleted(self) -> None:
        made = two_victims()
        held = self.in_pre_bind(made, V1)
        assert held.finish() is None
        assert made.preempt(PREEMPTOR) == NOMINATED
        assert held.cancelled is None
        assert not made.is_there("v1")


def nominate(made: Scene, name: str, *, priority: int, on: str = "n") -> Pod:
    waiting = pod(name, 100, priority=priority, nominated=on)
    made.cluster.add(waiting)
    made.nominator.add(PodInfo.of(waiting))
    return waiting


def nomination(made: Scene, waiting: Pod) -> str:
    present = made.cluster.get(Pod, waiting.key)
    assert present is not None
    return present.status.nominated_node_name


class TestNominations:
    def test_those_of_lower_priority_to_this_node_are_taken_back(self) -> None:
        made = scene([node("n"), node("other")], [V1, V2])
        lower = nominate(made, "lower", priority=9)
        elsewhere = nominate(made, "elsewhere", priority=9, on="other")
        made.preempt(PREEMPTOR)
        assert nomination(made, lower) == ""
        assert nomination(made, elsewhere) == "other"

    def test_those_of_equal_or_higher_priority_stay(self) -> None:
        made = scene([node("n", cpu=700)], [pod("v", 700, on="n")])
        equal, higher = nominate(made, "equal", priority=10), nominate(made, "higher", priority=11)
        result, _ = made.preempt(PREEMPTOR)
        assert result == PostFilterResult.nominate("n")
        assert nomination(made, equal) == nomination(made, higher) == "n"

    def test_one_that_can_not_be_taken_back_is_logged_and_no_failure(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        made = two_victims()
        made.cluster.delete(nominate(made, "lower", priority=9))
        with caplog.at_level(logging.WARNING):
            assert made.preempt(PREEMPTOR) == NOMINATED
        assert "can't take back the nomination of pod default/lower to node n" in caplog.text


T = TypeVar("T", bound=Named)


class ForgetfulCluster(InMemoryCluster):
    """Still returns the pods that were deleted, whose deletion nobody was told of."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, Named] = {}

    def get(self, kind: type[T], key: str) -> T | None:
        present = super().get(kind, key)
        return present if present is not None else self._told.get(key)  # type: ignore[return-value]

    def delete(self, obj: Named) -> None:
        present = super().get(type(obj), obj.key)
        if present is None:
            raise NotFoundError(f"{obj.key} doesn't exist")
        super().delete(obj)
        self._told[obj.key] = present

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        if super().get(Pod, pod.key) is None:
            raise NotFoundError(f"{pod.key} doesn't exist")
        super().patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)


class Activations:
    """A queue that notes which pods are made active."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def activate(self, pods: Iterable[Pod]) -> None:
        self.names += [pod.name for pod in pods]

    def activate_at(self, time: float, pods: Iterable[Pod]) -> None:
        raise NotImplementedError


class TestAfterTheCycle:
    """The preemptor is held back until only the last victim is left, whose event brings it back to the queue."""

    def prepare(self, made: Scene, *victims: Pod) -> Activations:
        activations = Activations()
        made.framework.handle.attach(activations)
        preemptor = Preemptor.pod(PREEMPTOR, "n")
        made.framework.handle.evictor.evict_later(victims, preemptor, "Preemptor", [PREEMPTOR])
        return activations

    def test_it_is_let_through_before_the_last_victim_is_deleted_and_not_before(self) -> None:
        made = two_victims()
        evictions = made.framework.handle.evictions
        self.prepare(made, V1, V2)
        assert evictions.holds_back(PREEMPTOR.uid)
        held: list[tuple[str, bool]] = []
        made.cluster.watch(
            lambda event: held.append((event.object.name, evictions.holds_back(PREEMPTOR.uid)))
        )
        held.clear()
        evictions.carry_out()
        assert list(dict.fromkeys(held)) == [("v1", True), ("v2", False)]
        assert not evictions.holds_back(PREEMPTOR.uid)

    def test_where_all_victims_terminate_already_it_is_not_held_back(self) -> None:
        made = two_victims()
        self.prepare(made, pod("v1", 250, on="n", terminating=True))
        assert not made.framework.handle.evictions.holds_back(PREEMPTOR.uid)

    @pytest.mark.parametrize(
        "change",
        [
            lambda cluster: cluster.delete(V1),
            lambda cluster: (
                cluster.delete(V1),
                cluster.add(pod("v1").with_metadata(attrs.evolve(V1.metadata, uid="next"))),
            ),
            lambda cluster: cluster.update(
                V1.with_metadata(attrs.evolve(V1.metadata, deletion_timestamp=datetime.fromtimestamp(0, UTC)))
            ),
            lambda cluster: cluster.update(V1.with_status(attrs.evolve(V1.status, phase=PodPhase.SUCCEEDED))),
        ],
        ids=["gone", "replaced", "terminating", "ended"],
    )
    def test_nor_if_the_only_victim_has_left_since_the_cycle_began(
        self, change: Callable[[InMemoryCluster], object]
    ) -> None:
        made = two_victims()
        self.prepare(made, V1)
        assert made.framework.handle.evictions.holds_back(PREEMPTOR.uid)
        change(made.cluster)
        assert not made.framework.handle.evictions.holds_back(PREEMPTOR.uid)

    def test_if_the_last_victim_left_while_it_was_held_back_it_is_tried_again(self) -> None:
        """The victim's event came and found the gate shut; there is no other."""
        made = two_victims()
        activations = self.prepare(made, V1, V2)
        made.cluster.delete(V2)
        made.framework.handle.evictions.carry_out()
        assert activations.names == ["p"]

    def test_a_last_victim_that_decisions_still_count_brings_the_pod_back_by_its_event_alone(self) -> None:
        """Tried before that event, a preemptor chose the same victims again, and so on without end."""
        made = two_victims()
        activations = self.prepare(made, V1, V2)
        leaving = attrs.evolve(V2.metadata, deletion_timestamp=datetime.fromtimestamp(0, UTC))
        made.cluster.update(V2.with_metadata(leaving))
        made.framework.handle.evictions.carry_out()
        assert activations.names == []

    def test_if_the_last_victim_is_evicted_its_event_alone_brings_the_pod_back(self) -> None:
        made = two_victims()
        activations = self.prepare(made, V1, V2)
        made.framework.handle.evictions.carry_out()
        assert activations.names == []

    def test_after_a_failure_the_rest_is_spared_and_it_is_tried_again(self) -> None:
        made = two_victims(RefusingCluster("v1"))
        activations = self.prepare(made, V1, V2)
        made.framework.handle.evictions.carry_out()
        assert activations.names == ["p"]
        assert made.is_there("v2")
        assert not made.framework.handle.evictions.holds_back(PREEMPTOR.uid)

    def test_lower_nominations_are_taken_back_before_anybody_is_evicted(self) -> None:
        made = two_victims(RefusingCluster("v1"))
        lower = nominate(made, "lower", priority=9)
        self.prepare(made, V1, V2)
        made.framework.handle.evictions.carry_out()
        assert nomination(made, lower) == ""


def test_a_victim_that_is_gone_is_no_failure_though_its_deletion_is_not_known_yet() -> None:
    cluster = ForgetfulCluster()
    made = two_victims(cluster)
    cluster.delete(V1)
    assert made.preempt(PREEMPTOR) == NOMINATED
    assert [event.regarding for event in cluster.events] == ["default/v2"]


class TestThePodItself:
    def test_one_that_is_gone_makes_no_room(self) -> None:
        made = two_victims()
        _, status = made.evaluator.preempt(made.state(PREEMPTOR), PREEMPTOR, made.refused())
        assert (status.code, status.message) == (Code.ERROR, 'pod "p" not found')
        assert made.is_there("v1")

    def test_its_present_state_counts(self) -> None:
        terminating = pod("v", 500, on="n", terminating=True, conditions=[MARKED])
        made = scene([node("n")], [terminating])
        made.cluster.add(PREEMPTOR)
        made.cluster.patch_pod_status(PREEMPTOR, nominated_node_name="n")
        result, status = made.preempt(PREEMPTOR)
        assert result is None
        assert status.message == "not eligible due to a terminating pod on the nominated node."
