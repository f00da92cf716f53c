"""What a pod that found no place waits for: room made by preemption, events that may help, gates, or time."""

from __future__ import annotations

import attrs
import pytest

from kschedfw import (
    ActionType,
    ClusterEvent,
    EventResource,
    InMemoryCluster,
    Node,
    Pod,
    PodInfo,
    StandstillError,
    Status,
    make_node,
    make_pod,
)
from kschedfw.api.containers import ContainerStatus, ResourceRequirements
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.manifests import pod_from_manifest
from kschedfw.api.pod import PodStatus
from kschedfw.api.quantity import Quantity
from kschedfw.scheduler.queue.protocol import Place
from tests.framework.support import answering, plugin
from tests.scheduler.stage import (
    NODE_ADDED,
    Stage,
    node,
    pod,
    witness,
)

MINUTE = 60.0


def in_effect(cpu: str) -> PodStatus:
    """The container has been given so much CPU."""
    resources = ResourceRequirements({"cpu": Quantity.parse(cpu)})
    statuses = ContainerStatus("main", allocated_resources=resources.requests, resources=resources)
    return PodStatus(container_statuses=(statuses,))


class TestPreemption:
    def test_victims_go_the_pod_is_nominated_and_then_scheduled(self) -> None:
        stage = Stage(nodes=[node(cpu=2)])
        stage.run(pod("low-a"), pod("low-b"))
        stage.add(pod("vip", cpu="2", priority=100))
        assert stage.scheduler.schedule_one()
        vip = stage.pod("vip")
        assert [each.name for each in stage.cluster.list(Pod)] == ["vip"]
        assert vip.status.nominated_node_name == "n"
        assert stage.nominated("n") == ["vip"]
        assert stage.condition("vip") == (
            "False",
            "Unschedulable",
            "0/1 nodes are available: 1 Insufficient cpu.",
        )
        for victim in ("low-a", "low-b"):
            assert stage.events(victim)[-1] == (
                "Normal",
                "Preempted",
                f"Preempted by pod {vip.uid} on node n",
            )
        assert stage.run() == 1
        assert stage.node_of("vip") == "n"
        assert stage.pod("vip").status.nominated_node_name == ""
        assert stage.nominated("n") == []

    def test_a_lower_pod_does_not_take_the_room_that_was_made(self) -> None:
        stage = Stage(nodes=[node(cpu=2)])
        stage.run(pod("low", cpu="2"))
        stage.add(pod("vip", cpu="2", priority=100))
        assert stage.scheduler.schedule_one()
        vip = stage.pod("vip")
        stage.scheduler.queue.delete(vip)
        stage.scheduler.nominator.add(PodInfo.of(vip))
        assert stage.run(pod("thief", cpu="1", priority=5)) == 1
        assert stage.node_of("thief") == ""

    def test_lower_nominations_to_the_node_are_taken_back(self) -> None:
        stage = Stage(nodes=[node(cpu=2)])
        stage.run(pod("bound", cpu="2"))
        waits = make_pod("waits").requests(cpu="8").priority(5).nominated_node("n").build()
        stage.add(waits)
        stage.add(pod("vip", cpu="2", priority=100))
        assert stage.scheduler.schedule_one()
        assert stage.pod("vip").status.nominated_node_name == "n"
        assert stage.pod("waits").status.nominated_node_name == ""
        assert stage.nominated("n") == ["vip"]

    def test_a_victim_that_waits_for_permission_goes_back_to_the_queue(self) -> None:
        gate = witness("Gate", [], permit=[Status.wait(600)])
        stage = Stage(gate, nodes=[node(cpu=2)])
        stage.run(pod("low", cpu="2"))
        assert stage.waiting() == ["low"]
        stage.run(pod("vip", cpu="2", priority=100))
        assert stage.waiting() == []
        assert stage.node_of("vip") == "n"
        assert stage.place("low") is Place.BACKOFF
        assert stage.condition("low")[1:] == ("SchedulerError", "waiting on permit for pod: preempted")


class TestTryingAgain:
    def test_when_a_node_is_added_on_which_it_fits(self) -> None:
        stage = Stage(nodes=[node(cpu=1)])
        stage.run(pod(cpu="3"))
        assert stage.place() is Place.UNSCHEDULABLE
        assert stage.run(node("small", cpu=2), after=MINUTE) == 0
        assert stage.run(node("large", cpu=4)) == 1
        assert stage.node_of() == "large"

    def test_not_when_what_changed_can_not_help(self) -> None:
        stage = Stage(nodes=[node(cpu=1)])
        stage.run(pod(cpu="3"))
        stage.run(make_pod("elsewhere").scheduler_name("somebody").build(), after=MINUTE)
        relabelled = attrs.evolve(
            node(cpu=1), metadata=attrs.evolve(node().metadata, labels=FrozenDict({"a": "b"}), uid="")
        )
        stage.cluster.update(relabelled)
        assert stage.run() == 0

    def test_when_a_pod_that_was_in_its_way_goes(self) -> None:
        stage = Stage(nodes=[node(cpu=1)])
        stage.run(pod("first"))
        stage.run(pod("second"))
        stage.delete("first")
        assert stage.run(after=MINUTE) == 1
        assert stage.node_of("second") == "n"

    def test_when_a_pod_that_was_in_its_way_has_been_made_smaller_in_place(self) -> None:
        stage = Stage(nodes=[node(cpu=4)])
        stage.run(pod("first", cpu="4"))
        stage.run(pod("second", cpu="3"))
        asked = attrs.evolve(stage.pod("first"), spec=pod("first", cpu="1", on="n").spec)
        stage.cluster.update(asked.with_status(in_effect("4")))
        assert stage.run(after=MINUTE) == 0  # its containers still have what they had
        stage.cluster.update(stage.pod("first").with_status(in_effect("1")))
        assert stage.run(after=MINUTE) == 1
        assert stage.node_of("second") == "n"

    def test_when_a_node_declares_the_feature_that_it_needs(self) -> None:
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
        container = {"name": "main", "restartPolicy": "Never", "restartPolicyRules": [rule]}
        pending = pod_from_manifest({"metadata": {"name": "pod"}, "spec": {"containers": [container]}})
        stage = Stage(nodes=[make_node("n").build()])
        stage.run(pending)
        assert stage.condition()[2].startswith(
            "0/1 nodes are available: 1 node(s) didn't match Pod's required features."
        )
        declared = make_node("n").declared_features("RestartAllContainersOnContainerExits").build()
        stage.cluster.update(declared)
        assert stage.run(after=MINUTE) == 1
        assert stage.node_of() == "n"

    def test_when_something_helpful_happens_during_its_own_attempt(self) -> None:
        cluster = InMemoryCluster()
        added: list[Node] = []

        def too_late(pod: Pod) -> Status | None:
            if not added:
                added.append(cluster.add(node("late")))
                return Status.unresolvable("no")
            return None

        late = plugin("Late", filter=too_late, events_to_register=answering([NODE_ADDED]))
        stage = Stage(late, cluster=cluster, nodes=[node()])
        assert stage.run(pod()) == 2
        assert stage.node_of()

    def test_after_five_minutes_in_any_case(self) -> None:
        # Its plugin has changed its mind, and nobody told.
        answers = [Status.unresolvable("no")]
        moody = plugin(
            "Moody",
            filter=lambda: answers.pop() if answers else None,
            events_to_register=answering([NODE_ADDED]),
        )
        stage = Stage(moody, nodes=[node()])
        stage.run(pod())
        assert stage.run(after=5 * MINUTE) == 0
        assert stage.run(after=1) == 1
        assert stage.node_of() == "n"

    @pytest.mark.parametrize(("events", "retried"), [(None, True), ([], False), ([NODE_ADDED], True)])
    def test_on_every_event_without_the_hook_and_on_none_if_it_names_none(
        self, events: list[ClusterEvent] | None, retried: bool
    ) -> None:
        hooks = {} if events is None else {"events_to_register": answering(events)}
        stage = Stage(plugin("No", filter=answering(Status.unschedulable("no")), **hooks), nodes=[node()])
        stage.run(pod())
        stage.add(node("other"))
        assert (stage.run(after=MINUTE) > 0) is retried
        assert stage.run(after=6 * MINUTE) > 0

    def test_when_the_plugin_says_so(self) -> None:
        answers = [Status.pending("not yet")]
        claims = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        waits = plugin(
            "Waits",
            filter=lambda: answers[0] if answers else None,
            events_to_register=answering([claims]),
        )
        stage = Stage(waits, nodes=[node()])
        stage.run(pod())
        answers.clear()
        stage.scheduler.queue.move_all_to_active_or_backoff(claims, None, None)
        assert stage.run() == 1, "pending pods skip the backoff"


class TestWhileTheClockStandsStill:
    def test_a_gang_that_refuses_itself_again_and_again_is_an_error(self) -> None:
        """No event is named, so a member's own condition, which the scheduler writes, has it tried again."""
        stage: Stage

        def permit(pod: Pod) -> Status:
            waiting = stage.scheduler.waiting_pods
            if pod.name != "last":
                return Status.wait(30)
            for each in waiting:
                each.reject("Gang", "the gang is too small")
            return Status.unschedulable("the gang is too small")

        stage = Stage(plugin("Gang", permit=permit), nodes=[node(cpu=8)])
        with pytest.raises(StandstillError) as caught:
            stage.run(pod("first"), pod("second"), pod("last"))
        assert "default/last" in caught.value.pods
        assert caught.value.plugins == ["Gang"]
        assert f"tried {caught.value.attempts} times while the clock stood still" in str(caught.value)
        assert "events_to_register" in str(caught.value)

    @pytest.mark.slow
    def test_a_chain_of_pods_that_wait_for_one_another_is_none(self) -> None:
        """Each placed pod has all others tried again, which is slow, and ends."""
        placed: set[str] = set()

        def permit(pod: Pod) -> Status | None:
            number = int(pod.name)
            if number and str(number - 1) not in placed:
                return Status.unschedulable("its predecessor has no node")
            placed.add(pod.name)
            return None

        stage = Stage(plugin("Chain", permit=permit), nodes=[node(cpu=200)])
        stage.run(*(make_pod(str(number)).priority(number).build() for number in range(110)))
        assert len(placed) == 110


class TestGates:
    def test_a_pod_with_gates_waits_until_the_last_one_is_removed(self) -> None:
        stage = Stage(nodes=[node()])
        assert stage.run(make_pod().requests(cpu="1").scheduling_gate("quota", "image").build()) == 0
        assert stage.place() is Place.GATED
        assert stage.condition() == (
            "False",
            "SchedulingGated",
            "Scheduling is blocked due to non-empty scheduling gates",
        )
        stage.cluster.update(make_pod().requests(cpu="1").scheduling_gate("image").build())
        assert stage.run() == 0
        stage.cluster.update(pod())
        assert stage.run() == 1
        assert stage.node_of() == "n"
