"""From a place that is reserved to a pod that is bound, and what is undone if that fails on the way."""

from __future__ import annotations

import attrs
import pytest

from kschedfw import ActionType, ClusterEvent, EventResource, InMemoryCluster, Pod, Status
from kschedfw.api.pod import PodCondition
from kschedfw.cluster import ClusterError
from kschedfw.framework.cycle_state import CycleState, activate_pods
from kschedfw.scheduler.queue.protocol import Place
from tests.framework.support import answering, plugin
from tests.scheduler.stage import NODE_ADDED, Stage, node, pod, witness
from tests.scheduler.test_extender import Helper

SCHEDULED = ("Normal", "Scheduled", "Successfully assigned default/pod to n")


class TestSuccess:
    def test_every_plugin_is_asked_in_profile_order_and_none_unreserves(self) -> None:
        journal: list[str] = []
        stage = Stage(witness("A", journal), witness("B", journal), nodes=[node()])
        assert stage.run(pod()) == 1
        points = ("reserve", "permit", "pre_bind", "bind", "post_bind")
        assert journal == [f"{name}.{point} pod" for point in points for name in "AB"]
        assert stage.node_of() == "n"
        assert stage.condition() == ("True", "", "")
        assert stage.events() == [SCHEDULED]
        assert stage.in_cache() == {"n": {"pod"}}
        assert stage.place() is None
        assert not stage.scheduler.queue.in_flight_pods()

    def test_the_first_bind_plugin_that_does_not_skip_is_the_last_one_asked(self) -> None:
        journal: list[str] = []
        cluster = InMemoryCluster()

        def bind(pod: Pod, node_name: str) -> None:
            cluster.bind(pod, node_name)

        stage = Stage(plugin("Binder", bind=bind), witness("B", journal), cluster=cluster, nodes=[node()])
        stage.run(pod())
        assert "B.bind pod" not in journal
        assert stage.node_of() == "n"

    def test_post_bind_can_not_fail(self, caplog: pytest.LogCaptureFixture) -> None:
        journal: list[str] = []
        stage = Stage(
            witness("A", journal, post_bind=OSError("log full")), witness("B", journal), nodes=[node()]
        )
        stage.run(pod())
        assert stage.node_of() == "n"
        assert journal[-2:] == ["A.post_bind pod", "B.post_bind pod"]
        assert [record.message for record in caplog.records] == [
            'running PostBind plugin "A": OSError: log full'
        ]
        assert stage.events() == [SCHEDULED]


REFUSED = Status.unschedulable("no way")
FAILURES = [
    ("reserve", REFUSED, "Unschedulable", "0/1 nodes are available: 1 no way."),
    ("reserve", OSError("down"), "SchedulerError", 'running Reserve plugin "B": OSError: down'),
    ("permit", REFUSED, "Unschedulable", "0/1 nodes are available: 1 no way."),
    ("permit", OSError("down"), "SchedulerError", 'running Permit plugin "B": OSError: down'),
    # From pre_bind on, a refusal waits for no event, and its message is the plugin's own.
    ("pre_bind", REFUSED, "Unschedulable", "no way"),
    ("pre_bind", OSError("down"), "SchedulerError", 'running PreBind plugin "B": OSError: down'),
    ("bind", REFUSED, "Unschedulable", "no way"),
    ("bind", OSError("down"), "SchedulerError", 'running Bind plugin "B": OSError: down'),
]


class RefusesNominations(InMemoryCluster):
    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        if nominated_node_name:
            raise ClusterError("no")
        super().patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)


class TestFailure:
    @pytest.mark.parametrize(("point", "answer", "reason", "message"), FAILURES)
    def test_whatever_fails_everything_is_let_go_and_the_pod_comes_back(
        self, point: str, answer: object, reason: str, message: str
    ) -> None:
        journal: list[str] = []
        stage = Stage(
            witness("A", journal),
            witness("B", journal, **{point: [answer]}),
            witness("C", journal),
            nodes=[node()],
        )
        assert stage.run(pod()) == 1
        assert journal[-3:] == ["C.unreserve pod", "B.unreserve pod", "A.unreserve pod"]
        assert journal[-4] == f"B.{point} pod"
        assert stage.condition() == ("False", reason, message)
        assert stage.events() == [("Warning", "FailedScheduling", message)]
        assert stage.in_cache() == {}
        assert not stage.scheduler.queue.in_flight_pods()
        waits = message.startswith("0/1 nodes are available")
        assert stage.place() is (Place.UNSCHEDULABLE if waits else Place.BACKOFF)
        if waits:
            stage.run(node("later"), after=60)
        else:
            assert stage.run() == 0, "it backs off"
            assert stage.run(after=2.0) == 1
        assert stage.node_of() in ("n", "later")
        assert journal.count("A.unreserve pod") == 1

    def test_what_unreserve_raises_keeps_no_other_plugin_from_letting_go(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        journal: list[str] = []
        stage = Stage(
            witness("A", journal, reserve=[REFUSED]),
            witness("B", journal, unreserve=OSError("stuck")),
            nodes=[node()],
        )
        stage.run(pod())
        assert journal[-2:] == ["B.unreserve pod", "A.unreserve pod"]
        assert 'running Unreserve plugin "B": OSError: stuck' in caplog.text
        assert stage.in_cache() == {}

    def test_if_no_plugin_binds_that_is_an_error(self) -> None:
        skips = plugin("DefaultBinder", bind=answering(Status.skip()))
        stage = Stage(skips, nodes=[node()])
        stage.run(pod())
        assert stage.condition() == ("False", "SchedulerError", "no bind plugin would bind pod default/pod")

    def test_a_bind_that_raised_although_it_succeeded_is_not_repeated(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        journal: list[str] = []

        class LosesAnswers(InMemoryCluster):
            def bind(self, pod: Pod, node_name: str) -> None:
                super().bind(pod, node_name)
                raise TimeoutError("no answer")

        stage = Stage(witness("A", journal), nodes=[node()], cluster=LosesAnswers())
        assert stage.run(pod()) == 1
        assert stage.run(after=60) == 0
        assert journal[-1] == "A.unreserve pod"
        assert stage.node_of() == "n"
        assert stage.condition() == ("True", "", "")
        assert stage.in_cache() == {"n": {"pod"}}
        assert stage.events() == []
        assert "already in added state" not in caplog.text
        assert stage.place() is None

    def test_the_room_of_a_pod_whose_binding_failed_is_offered_to_others(self) -> None:
        journal: list[str] = []
        stage = Stage(witness("A", journal, permit=[Status.wait(60)]), nodes=[node(cpu=1)])
        stage.run(pod("first"), pod("second"))
        assert stage.place("second") is Place.UNSCHEDULABLE
        stage.run(after=60)
        assert stage.node_of("second") == "n"
        assert stage.place("first") is Place.UNSCHEDULABLE

    def test_a_pod_is_not_tried_again_for_the_room_that_it_gave_back_itself(self) -> None:
        stage = self.with_impatient(RefusesNominations())
        assert stage.place() is Place.UNSCHEDULABLE

    def test_a_pod_that_waited_for_permission_is_tried_again_when_its_nomination_ends(self) -> None:
        """As in kube-scheduler, which then wakes all pods of its priority, and so the pod itself."""
        stage = self.with_impatient(InMemoryCluster())
        assert stage.pod().status.nominated_node_name == ""
        assert stage.place() is Place.BACKOFF

    @staticmethod
    def with_impatient(cluster: InMemoryCluster) -> Stage:
        """A pod's wait for permission has ended; its plugin waits for pods to go."""
        pod_deleted = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
        impatient = plugin(
            "Impatient", permit=answering(Status.wait(1)), events_to_register=answering([pod_deleted])
        )
        stage = Stage(impatient, nodes=[node()], cluster=cluster)
        stage.add(pod())
        assert stage.scheduler.schedule_one()
        stage.clock.advance(1)
        stage.scheduler.tick()
        return stage


@attrs.define
class Binder(Helper):
    """An extender that binds."""

    failure: Exception | None = None
    binds: bool = True
    bound: list[tuple[str, str]] = attrs.field(factory=list)

    @property
    def is_binder(self) -> bool:
        return self.binds

    def bind(self, pod: Pod, node_name: str) -> None:
        self.bound.append((pod.name, node_name))
        if self.failure is not None:
            raise self.failure


class TestExtender:
    def test_one_that_binds_is_asked_before_and_instead_of_the_plugins(self) -> None:
        journal: list[str] = []
        binder, second = Binder(), Binder()
        stage = Stage(witness("A", journal), nodes=[node()], extenders=[Binder(binds=False), binder, second])
        stage.run(pod())
        assert binder.bound == [("pod", "n")]
        assert second.bound == []
        assert "A.bind pod" not in journal
        assert journal[-1] == "A.post_bind pod"
        assert stage.events() == [SCHEDULED]
        # It hasn't told the cluster yet.
        assert stage.in_cache() == {"n": {"pod*"}}
        stage.cluster.bind(stage.pod(), "n")
        assert stage.in_cache() == {"n": {"pod"}}

    def test_one_that_is_not_interested_leaves_it_to_the_plugins(self) -> None:
        binder = Binder(interested=False)
        stage = Stage(nodes=[node()], extenders=[binder])
        stage.run(pod())
        assert binder.bound == []
        assert stage.node_of() == "n"

    def test_its_failure_is_final_for_this_attempt(self) -> None:
        journal: list[str] = []
        stage = Stage(
            witness("A", journal), nodes=[node()], extenders=[Binder(failure=OSError("unreachable"))]
        )
        stage.run(pod())
        assert "A.bind pod" not in journal
        assert journal[-1] == "A.unreserve pod"
        assert stage.condition() == ("False", "SchedulerError", "OSError: unreachable")


class TestActivation:
    @pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind", "post_bind"])
    def test_pods_that_a_hook_asks_for_are_tried_when_its_own_pod_has_made_it(self, point: str) -> None:
        siblings: list[Pod] = []

        def call_in(state: CycleState, pod: Pod) -> None:
            activate_pods(state, *siblings)

        refuse_first = witness("Refuse", [], reserve=[Status.unschedulable("not yet")])
        gang = plugin("Gang", **{point: call_in})
        stage = Stage(gang, refuse_first, nodes=[node()])
        stage.run(pod("sibling"))
        assert stage.place("sibling") is Place.UNSCHEDULABLE
        siblings.append(stage.pod("sibling"))
        assert stage.run(pod("leader")) == 2
        assert stage.node_of("sibling") == "n"

    def test_nothing_is_activated_for_a_pod_that_fails(self) -> None:
        siblings: list[Pod] = []
        gang = plugin(
            "Gang",
            reserve=lambda state: activate_pods(state, *siblings),
            permit=lambda pod: Status.unschedulable("no"),
            events_to_register=answering([NODE_ADDED]),
        )
        stage = Stage(gang, nodes=[node()])
        stage.run(pod("sibling"))
        siblings.append(stage.pod("sibling"))
        assert stage.run(pod("leader")) == 1
