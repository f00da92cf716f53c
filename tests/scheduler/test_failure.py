"""What is told, and where the pod goes, when an attempt ends without a node."""

from __future__ import annotations

import pytest

from kschedfw import (
    CycleState,
    InMemoryCluster,
    KschedfwError,
    Pod,
    PostFilterResult,
    Profile,
    StateKey,
    Status,
    make_pod,
)
from kschedfw.api.pod import PodCondition
from kschedfw.cluster.errors import LostRaceError
from kschedfw.scheduler.failure import truncated
from kschedfw.scheduler.queue.protocol import Place
from tests.framework.support import answering, plugin
from tests.scheduler.stage import NODE_ADDED, Stage, node, pod


class Unreachable(InMemoryCluster):
    """A cluster to which the connection is lost now and then, for reads of pods, or for patches."""

    lost = ""

    def get(self, kind, key):  # type: ignore[no-untyped-def]  # as in the base
        if self.lost == "get" and kind is Pod:
            raise ConnectionError("lost")
        return super().get(kind, key)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        if self.lost == "patch":
            raise ConnectionError("lost")
        super().patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)


class TestWords:
    def test_a_pod_without_any_node(self) -> None:
        stage = Stage()
        stage.run(pod())
        assert stage.condition() == ("False", "Unschedulable", "no nodes available to schedule pods")
        assert stage.events() == [("Warning", "FailedScheduling", "no nodes available to schedule pods")]

    def test_a_pod_that_fits_nowhere_says_what_the_filters_and_preemption_said(self) -> None:
        stage = Stage(nodes=[node(cpu=1)])
        stage.run(pod(cpu="2"))
        message = (
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        assert stage.condition() == ("False", "Unschedulable", message)
        assert stage.events() == [("Warning", "FailedScheduling", message)]
        assert stage.place() is Place.UNSCHEDULABLE

    @pytest.mark.parametrize(
        ("point", "message"),
        [
            ("pre_filter", 'running PreFilter plugin "Broken": OSError: down'),
            ("filter", 'running "Broken" filter plugin: OSError: down'),
            ("pre_score", 'running PreScore plugin "Broken": OSError: down'),
            ("score", 'plugin "Broken" failed with: OSError: down'),
        ],
    )
    def test_an_error_of_a_plugin_in_the_scheduling_cycle(self, point: str, message: str) -> None:
        stage = Stage(plugin("Broken", **{point: answering(OSError("down"))}), nodes=[node("a"), node("b")])
        assert stage.run(pod()) == 1
        status, reason, said = stage.condition()
        assert (status, reason) == ("False", "SchedulerError")
        assert message in said
        assert stage.place() is Place.BACKOFF

    def test_the_event_is_cut_at_1024_characters_the_condition_is_not(self) -> None:
        long = "x" * 2000
        stage = Stage(plugin("Long", filter=answering(Status.unresolvable(long))), nodes=[node()])
        stage.run(pod())
        ((_, _, message),) = stage.events()
        assert len(message) == 1024
        assert message.endswith("x ...")
        assert long in stage.condition()[2]

    def test_what_is_short_enough_is_left_alone(self) -> None:
        assert truncated("x" * 1024) == "x" * 1024

    def test_what_changes_nothing_is_not_written_again(self) -> None:
        stage = Stage(nodes=[node(cpu=1)])
        stage.run(pod(cpu="2"))
        version = stage.cluster.resource_version
        stage.scheduler.queue.activate([stage.pod()])
        assert stage.run() == 1
        assert stage.cluster.resource_version == version
        assert stage.cluster.events[0].count == 2


class TestWhetherItComesBack:
    def test_a_pod_that_was_deleted_meanwhile_does_not(self) -> None:
        cluster = InMemoryCluster()

        def meddle(pod: Pod) -> Status:
            cluster.delete(pod)
            return Status.unschedulable("no")

        stage = Stage(plugin("Meddler", filter=meddle), cluster=cluster, nodes=[node()])
        assert stage.run(pod()) == 1
        assert stage.scheduler.queue.pending_pods()[0] == []
        assert not stage.scheduler.queue.in_flight_pods()
        assert stage.events() == []

    def test_a_pod_of_the_same_name_is_another_one(self) -> None:
        cluster = InMemoryCluster()
        again: list[Pod] = []

        def replace(pod: Pod) -> Status:
            if not again:
                cluster.delete(pod)
                again.append(cluster.add(make_pod("pod").uid("second").build()))
            return Status.unresolvable("no")

        no = plugin("Meddler", filter=replace, events_to_register=answering([NODE_ADDED]))
        stage = Stage(no, cluster=cluster, nodes=[node()])
        assert stage.run(pod()) == 2
        assert [each.uid for each in stage.scheduler.queue.pending_pods()[0]] == ["second"]

    def test_a_pod_that_is_queued_already_stays_as_it_is(self) -> None:
        cluster = InMemoryCluster()
        stages: list[Stage] = []

        def meddle(pod: Pod) -> Status:
            stages[0].scheduler.queue.done(pod.uid)
            stages[0].scheduler.queue.add(pod)
            stages[0].scheduler.stop()
            return Status.unresolvable("no")

        stages.append(Stage(plugin("Meddler", filter=meddle), cluster=cluster, nodes=[node()]))
        stages[0].run(pod())
        assert stages[0].place() is Place.ACTIVE

    def test_a_pod_that_was_bound_meanwhile_does_not(self) -> None:
        cluster = InMemoryCluster()

        def meddle(pod: Pod) -> Status:
            cluster.bind(pod, "n")
            return Status.unschedulable("no")

        stage = Stage(plugin("Meddler", filter=meddle), cluster=cluster, nodes=[node()])
        assert stage.run(pod()) == 1
        assert stage.place() is None
        assert stage.condition() == ("True", "", "")
        assert stage.in_cache() == {"n": {"pod"}}

    @pytest.mark.parametrize(
        ("lost", "place"),
        [
            ("get", Place.BACKOFF),
            ("patch", Place.UNSCHEDULABLE),
        ],  # preemption failed, so it is worth another look
    )
    def test_if_the_cluster_can_not_be_reached_the_pod_is_kept(self, lost: str, place: Place) -> None:
        cluster = Unreachable()
        picky = plugin(
            "Picky",
            filter=answering(Status.unresolvable("no")),
            events_to_register=answering([NODE_ADDED]),
        )
        stage = Stage(picky, cluster=cluster, nodes=[node()])
        stage.add(pod())
        cluster.lost = lost
        assert stage.run() == 1
        cluster.lost = ""
        assert stage.place() is place

    def test_failed_pod_is_requeued_in_its_present_state(self) -> None:
        cluster = InMemoryCluster()

        def relabel(pod: Pod) -> Status:
            cluster.update(make_pod("pod").requests(cpu="1").labels(new="yes").build())
            return Status.unresolvable("no")

        no = plugin("Meddler", filter=relabel, events_to_register=answering([NODE_ADDED]))
        stage = Stage(no, cluster=cluster, nodes=[node()])
        stage.run(pod())
        (pending,) = stage.scheduler.queue.pending_pods()[0]
        assert pending.labels == {"new": "yes"}


class TestNomination:
    def stage(self, *answers: object, nominated: str = "", error: bool = False) -> Stage:
        """One attempt of a pod that fits nowhere, with a post_filter that answers so."""
        refuse = OSError("down") if error else Status.unschedulable("no")
        hooks = {"post_filter": answering(answers[0])} if answers else {}
        no = plugin("No", filter=answering(refuse), events_to_register=answering([NODE_ADDED]), **hooks)
        profile = Profile(["No", "PrioritySort"])
        stage = Stage(no, nodes=[node("a"), node("b")], profiles=[profile])
        stage.run(make_pod().nominated_node(nominated).build() if nominated else pod())
        return stage

    def test_the_node_that_post_filter_made_room_on(self) -> None:
        stage = self.stage((PostFilterResult.nominate("a"), Status.success()))
        assert stage.nominated("a") == ["pod"]
        assert stage.pod().status.nominated_node_name == "a"

    def test_new_nomination_replaces_the_earlier_one(self) -> None:
        stage = self.stage((PostFilterResult.nominate("a"), Status.success()), nominated="b")
        assert stage.nominated("a") == ["pod"]
        assert stage.nominated("b") == []
        assert stage.pod().status.nominated_node_name == "a"

    def test_nomination_is_cleared_where_no_room_can_be_made(self) -> None:
        stage = self.stage((PostFilterResult.nominate(""), Status.unschedulable("no")), nominated="b")
        assert stage.nominated("b") == []
        assert stage.pod().status.nominated_node_name == ""

    @pytest.mark.parametrize("result", [None, PostFilterResult()])
    def test_a_post_filter_without_an_opinion_leaves_it(self, result: PostFilterResult | None) -> None:
        stage = self.stage((result, Status.unschedulable("no")), nominated="b")
        assert stage.nominated("b") == ["pod"]
        assert stage.pod().status.nominated_node_name == "b"

    @pytest.mark.parametrize("error", [True, False])
    def test_an_error_or_a_profile_without_post_filter_takes_it_back(self, error: bool) -> None:
        stage = self.stage(nominated="b", error=error)
        assert stage.nominated("b") == []
        assert stage.pod().status.nominated_node_name == ""

    def test_what_post_filter_says_stands_at_the_end(self) -> None:
        stage = self.stage((None, Status.unschedulable("nobody would go")))
        assert stage.condition()[2] == "0/2 nodes are available: 2 no. nobody would go"


class TestMakingRoomFails:
    """An error of post_filter is logged with plugin and hook; the condition has its text alone, as kube-scheduler's."""

    MAY = "post_filter may answer only Success, Error, Unschedulable or UnschedulableAndUnresolvable"
    WRONG = "post_filter must return a pair of a PostFilterResult or None and a Status or None, not "

    @pytest.mark.parametrize(
        ("answer", "said", "place"),
        [
            ((None, Status.from_error("no disk")), "no disk", Place.UNSCHEDULABLE),
            (Status.unschedulable("no"), f"{WRONG}{Status.unschedulable('no')!r}", Place.UNSCHEDULABLE),
            (None, f"{WRONG}None", Place.UNSCHEDULABLE),
            ((None, Status.skip()), f"Skip, but {MAY}", Place.UNSCHEDULABLE),
            (KschedfwError("no disk"), "no disk", Place.UNSCHEDULABLE),
            (KeyError("rack"), "KeyError: 'rack'", Place.BACKOFF),
        ],
    )
    def test_whatever_it_returns_or_raises(
        self, answer: object, said: str, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        refuse, fail = answering(Status.unschedulable("no")), answering(answer)
        events = answering([NODE_ADDED])
        stage = Stage(
            plugin("No", filter=refuse, post_filter=fail, events_to_register=events),
            nodes=[node()],
            profiles=[Profile(["No", "PrioritySort"])],
        )
        stage.run(pod())
        (record,) = (each for each in caplog.records if each.levelname == "ERROR")
        assert (
            record.getMessage()
            == f'making room for default/pod failed: running PostFilter plugin "No": {said}'
        )
        assert bool(record.exc_info) is isinstance(answer, KeyError)
        assert stage.condition() == ("False", "Unschedulable", f"0/1 nodes are available: 1 no. {said}")
        assert stage.place() is place

    def test_a_refusal_is_no_failure(self, caplog: pytest.LogCaptureFixture) -> None:
        no = Status.unschedulable("no")
        refusing = plugin("No", filter=answering(no), post_filter=answering((None, no)))
        Stage(refusing, nodes=[node()], profiles=[Profile(["No", "PrioritySort"])]).run(pod())
        assert not [each for each in caplog.records if each.levelname == "ERROR"]

    @pytest.mark.parametrize(
        ("refusing_hook", "refusal", "is_failure"),
        [
            ("pre_filter", Status.unresolvable("no"), False),
            ("pre_filter", Status.unresolvable(), False),
            ("filter", Status.unresolvable("no"), True),
        ],
    )
    def test_missing_state_is_a_failure_unless_a_pre_filter_has_refused_the_pod(
        self, refusing_hook: str, refusal: Status, is_failure: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        def read(state: CycleState) -> tuple[None, Status]:
            return None, Status.unschedulable(str(state.read(StateKey[int]("Late.key"))))

        hooks = {refusing_hook: answering(refusal), "events_to_register": answering([NODE_ADDED])}
        first = plugin("First", **hooks)
        stage = Stage(
            first,
            plugin("Late", post_filter=read),
            nodes=[node()],
            profiles=[Profile(["First", "Late", "PrioritySort"])],
        )
        stage.run(pod())
        assert ["making room for" in each.getMessage() for each in caplog.records] == [True] * is_failure
        assert stage.condition()[2].endswith(" Late.key: not found in the cycle state")


@pytest.mark.parametrize(
    ("error", "is_traced"),
    [(RuntimeError("a bug"), True), (KschedfwError("it is gated"), False)],
)
def test_only_what_should_not_happen_is_logged_with_its_traceback(
    error: Exception, is_traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(plugin("Broken", filter=answering(error)), nodes=[node()])
    stage.run(pod())
    (record,) = (each for each in caplog.records if each.name == "kschedfw.scheduler.failure")
    assert str(error) in record.getMessage()
    assert bool(record.exc_info) is is_traced


class TestLostRaces:
    """Another scheduler was faster: the pod is tried again at once, and nothing is written."""

    def stage(self, losses: int) -> Stage:
        left = iter([LostRaceError("too late")] * losses)

        def bind() -> Status:
            if (lost := next(left, None)) is not None:
                raise lost
            return Status.skip()

        return Stage(plugin("Race", bind=bind), nodes=[node()])

    def test_some_are_followed_by_another_attempt(self) -> None:
        stage = self.stage(5)
        assert stage.run(pod()) == 6
        assert stage.place() is None
        assert [reason for _, reason, _ in stage.events()] == ["Scheduled"]

    def test_one_after_another_are_followed_by_a_backoff(self) -> None:
        stage = self.stage(6)
        assert stage.run(pod()) == 6
        assert stage.place() is Place.BACKOFF
        assert "too late" in stage.condition()[2]
