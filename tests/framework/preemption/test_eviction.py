"""Carrying a preemption out."""

from __future__ import annotations

import logging

import attrs
import pytest

from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodCondition
from kschedfw.cluster import EventType, InMemoryCluster, WatchEvent
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
