"""Coscheduling, as it shows in a whole scheduler."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest
from kschedfw_coscheduling import POD_GROUP_LABEL, Coscheduling, PodGroup, PodGroupSpec
from tests.gang_stage import Stage, gang, group, node, pod, profile

from kschedfw import (
    FrozenDict,
    InMemoryCluster,
    KschedfwError,
    ObjectMeta,
    Plugin,
    Pod,
    Quantity,
    Registry,
    Scheduler,
    Status,
    hookimpl,
    make_pod,
)
from kschedfw.testing import FakeClock, FrameworkHarness


class TestAllOrNothing:
    def test_a_gang_that_fits_is_placed(self) -> None:
        stage = Stage(node("n", 3), group("train", 3), *gang("train", 3))
        stage.run()
        assert len(stage.bound("train")) == 3

    def test_a_gang_that_does_not_fit_leaves_the_room_to_others(self) -> None:
        stage = Stage(node("n", 3), group("train", 4), *gang("train", 4), pod("web", cpu=3))
        stage.run()
        assert stage.bound() == {"web"}
        assert stage.waiting() == []

    def test_more_pods_than_necessary_are_placed_as_far_as_they_fit(self) -> None:
        stage = Stage(node("n", 3), group("train", 2), *gang("train", 5))
        stage.run()
        assert len(stage.bound("train")) == 3

    def test_one_that_fits_nowhere_is_no_obstacle_where_enough_are_left(self) -> None:
        stage = Stage(node("n", 3), group("train", 3), pod("giant", "train", cpu=9), *gang("train", 3))
        stage.run()
        assert len(stage.bound("train")) == 3

    def test_it_is_given_up_as_soon_as_too_few_are_left(self) -> None:
        stage = Stage(node("n", 19), group("train", 20), *gang("train", 20))
        stage.run()
        assert stage.waiting() == []
        assert "optimistic rejection in PostFilter" in stage.message("train-0")

    @pytest.mark.parametrize(
        ("fitting", "percentage", "waits"),
        [(19, 0, False), (19, 4, False), (19, 5, True), (18, 10, True), (17, 10, False), (1, 100, True)],
    )
    def test_it_goes_on_waiting_if_no_more_is_missing_than_it_may(
        self, fitting: int, percentage: int, waits: bool
    ) -> None:
        args: dict[str, object] = {"podGroupRejectPercentage": percentage}
        stage = Stage(node("n", fitting), group("train", 20), *gang("train", 20), args=args)
        stage.run()
        assert len(stage.waiting()) == (fitting if waits else 0)
        told = f"podGroup default/train misses no more than {percentage}% of its minMember"
        assert (told in stage.message("train-19")) == waits
        stage.run(node("m", 20 - fitting), after=10)
        assert len(stage.bound()) == 20

    def test_then_the_first_wait_that_ends_is_the_end_for_all(self) -> None:
        stage = Stage(
            node("n", 9), group("train", 10), *gang("train", 10), args={"podGroupRejectPercentage": 10}
        )
        stage.run()
        assert len(stage.waiting()) == 9
        stage.run(after=60)
        assert stage.waiting() == []

    def test_a_pod_beyond_what_is_needed_is_told_so(self) -> None:
        stage = Stage(node("n", 2), group("train", 2), *gang("train", 2))
        stage.run()
        stage.run(pod("train-2", "train"))
        assert "podGroup default/train has reached its minMember" in stage.message("train-2")

    def test_one_that_fits_nowhere_is_told_whether_the_others_may_do(self) -> None:
        stage = Stage(node("n", 3), group("train", 3), pod("giant", "train", cpu=9), *gang("train", 3))
        stage.scheduler.schedule_one()
        assert "podGroup default/train can still reach its minMember" in stage.message("giant")

    def test_pods_without_a_group_go_their_own_way(self) -> None:
        stage = Stage(node("n", 1), pod("one"), pod("two"))
        stage.run()
        assert len(stage.bound()) == 1

    def test_groups_of_a_name_in_two_namespaces_are_two(self) -> None:
        elsewhere = make_pod("other").namespace("team").labels({POD_GROUP_LABEL: "train"}).build()
        foreign = PodGroup(ObjectMeta(name="train", namespace="team"), PodGroupSpec(1))
        stage = Stage(node("n", 9), group("train", 2), foreign, *gang("train", 1), elsewhere)
        stage.run()
        assert stage.bound() == {"other"}

    def test_a_large_gang_is_given_up_without_growing_the_stack(self) -> None:
        stage = Stage(node("n", 99), group("train", 400), *gang("train", 400))
        stage.run()
        assert stage.waiting() == []
        assert stage.bound() == set()

    def test_holds_with_binding_on_threads_too(self) -> None:
        registry = Registry()
        registry.register(Coscheduling)
        cluster = InMemoryCluster([node("n", 5), node("m", 5), group("a", 7), group("b", 7), group("c", 3)])
        for each in (*gang("a", 7), *gang("b", 7), *gang("c", 3)):
            cluster.add(each)
        with ThreadPoolExecutor(4) as executor:
            scheduler = Scheduler(cluster, [profile()], registry=registry, executor=executor)
            scheduler.run_until_idle()
            scheduler.close()
        bound = [each.labels[POD_GROUP_LABEL] for each in cluster.list(Pod) if each.node_name]
        assert (bound.count("a"), bound.count("b")) == (7, 0)
        assert bound.count("c") in (0, 3)  # b may give back its places only after c was tried


class TestTwoGangs:
    def test_that_only_fit_alone_come_one_after_the_other(self) -> None:
        stage = Stage(node("n", 4), group("a", 3), group("b", 3), *gang("a", 3), *gang("b", 3))
        stage.run()
        assert (len(stage.bound("a")), len(stage.bound("b"))) == (3, 0)
        for each in gang("a", 3):
            stage.cluster.delete(stage.pod(each.name))
        stage.run()
        assert len(stage.bound("b")) == 3

    def test_that_do_not_fit_at_all_do_not_chase_each_other(self) -> None:
        stage = Stage(node("n", 4), group("a", 5), group("b", 5), *gang("a", 5), *gang("b", 5))
        first = stage.run()
        assert first <= 2 * 10 + 2
        assert [stage.run(after=10) for _ in range(3)] == [0, 0, 0]

    def test_each_gets_through_even_if_their_pods_were_made_by_turns(self) -> None:
        pods = [each for pair in zip(gang("a", 3), gang("b", 3), strict=True) for each in pair]
        stage = Stage(node("n", 3), group("a", 3), group("b", 3), *pods)
        stage.run()
        assert stage.bound() == {"a-0", "a-1", "a-2"}


class TestTheQueue:
    def order(self, *pods: Pod) -> list[str]:
        stage = Stage(*pods)
        return [each.name for each in stage.scheduler.queue.pending_pods()[0]]

    def test_keeps_siblings_together_in_the_place_of_the_first(self) -> None:
        assert self.order(pod("a-0", "a"), pod("web"), pod("a-1", "a"), pod("b-0", "b"), pod("a-2", "a")) == [
            "a-0",
            "a-1",
            "a-2",
            "web",
            "b-0",
        ]

    def test_puts_higher_priority_first(self) -> None:
        assert self.order(pod("a-0", "a"), pod("web", priority=5), pod("a-1", "a", priority=9)) == [
            "a-1",
            "web",
            "a-0",
        ]

    def test_forgets_a_gang_that_is_gone(self) -> None:
        stage = Stage(pod("a-0", "a"), pod("web"))
        stage.cluster.delete(stage.pod("a-0"))
        stage.cluster.add(pod("a-1", "a"))
        assert [each.name for each in stage.scheduler.queue.pending_pods()[0]] == ["web", "a-1"]

    def test_puts_a_gang_that_failed_behind_those_that_came_before_that(self) -> None:
        stage = Stage(node("n", 3), group("a", 4), *gang("a", 4), pod("web", cpu=4))
        stage.run()
        assert stage.bound() == set()
        stage.run(node("m", 4))
        assert stage.bound() == {"web"}

    def test_puts_it_before_those_that_come_later(self) -> None:
        stage = Stage(node("n", 3), group("a", 4), *gang("a", 4))
        stage.run()
        stage.run(pod("web", cpu=4), after=5)
        stage.run(node("m", 4))
        assert len(stage.bound("a")) == 4
        assert "web" not in stage.bound()

    def test_gives_a_gang_its_place_back_once_it_is_placed(self) -> None:
        stage = Stage(
            node("n", 3), group("a", 4), *gang("a", 4), pod("a-large", "a", cpu=9), pod("web", cpu=9)
        )
        stage.run()
        stage.run(node("m", 1))
        assert len(stage.bound("a")) == 4
        stage.run(after=20)  # nobody is backing off any more
        stage.run(node("x", 9))
        assert "a-large" in stage.bound()
        assert "web" not in stage.bound()

    def test_is_a_strict_order_whatever_fails(self) -> None:
        stage = Stage(
            node("n", 3), *(group(name, 4) for name in "ab"), *gang("a", 4), *gang("b", 4), pod("web")
        )
        stage.run()
        stage.run(node("m", 3), after=3)
        (framework,) = stage.scheduler.frameworks.values()
        plugin = framework.plugins["Coscheduling"]
        assert isinstance(plugin, Coscheduling)
        infos = [
            stage.scheduler.queue.get(each.uid) for each in stage.cluster.list(Pod) if not each.node_name
        ]
        known = [each for each in infos if each is not None]
        assert len(known) >= 4
        for one in known:
            assert not plugin.queue_sort(one, one)
            for other in known:
                assert one is other or plugin.queue_sort(one, other) != plugin.queue_sort(other, one)


class TestWhoIsMissing:
    def test_too_few_are_refused_at_once(self) -> None:
        stage = Stage(node("n", 9), group("train", 3), *gang("train", 2))
        stage.run()
        assert stage.waiting() == []
        assert (
            "pre-filter pod train-1 cannot find enough sibling pods, current pods number: 2, "
            "minMember of group: 3" in stage.message("train-1")
        )

    def test_the_last_one_brings_the_others_along(self) -> None:
        stage = Stage(node("n", 9), group("train", 3), *gang("train", 2))
        stage.run()
        stage.run(pod("train-2", "train"))
        assert len(stage.bound("train")) == 3

    def test_without_the_group_its_pods_wait_for_it(self) -> None:
        stage = Stage(node("n", 9), *gang("train", 2))
        stage.run()
        assert "PodGroup default/train not found" in stage.message("train-0")
        stage.run(group("train", 2))
        assert len(stage.bound("train")) == 2

    def test_a_group_that_asks_for_fewer_lets_them_in(self) -> None:
        stage = Stage(node("n", 9), group("train", 3), *gang("train", 2))
        stage.run()
        found = stage.cluster.get(PodGroup, "default/train")
        assert found is not None
        stage.cluster.update(attrs.evolve(found, spec=PodGroupSpec(2)))
        stage.run()
        assert len(stage.bound("train")) == 2

    def test_gated_siblings_do_not_count_until_they_are_free(self) -> None:
        gated = make_pod("train-1").labels({POD_GROUP_LABEL: "train"}).scheduling_gate("wait").build()
        stage = Stage(node("n", 9), group("train", 2), pod("train-0", "train"), gated)
        stage.run()
        assert stage.waiting() == []
        present = stage.pod("train-1")
        stage.cluster.update(attrs.evolve(present, spec=attrs.evolve(present.spec, scheduling_gates=())))
        stage.run()
        assert len(stage.bound("train")) == 2

    def test_one_that_is_made_again_joins_those_that_run(self) -> None:
        stage = Stage(node("n", 9), group("train", 3), *gang("train", 3))
        stage.run()
        stage.cluster.delete(stage.pod("train-1"))
        stage.run(pod("again", "train"))
        assert stage.bound("train") == {"train-0", "again", "train-2"}

    def test_a_group_that_makes_no_sense_is_named(self) -> None:
        stage = Stage(node("n", 9), group("train", 0).as_custom_object(), *gang("train", 2))
        stage.run()
        assert (
            "PodGroup default/train: spec.minMember: Invalid value: 0: must be at least 1"
            in stage.message("train-0")
        )


class EndsAWait(Plugin):
    """Ends the wait of `train-0` during the permit of another pod, as a binding thread may at any time."""

    name = "EndsAWait"
    during = ""

    @hookimpl
    def permit(self, pod: Pod) -> Status | None:
        for waiting in self.handle.waiting_pods:
            if (waiting.pod.name, pod.name) == ("train-0", self.during):
                waiting.reject(self.name, "not this one")
        return None


class HoldsBack(Plugin):
    """Keeps `train-1` from becoming active, which nobody can foresee."""

    name = "HoldsBack"

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return Status.unresolvable("not yet") if pod.name == "train-1" else None


class TestWaiting:
    def waiting_stage(self, *, args: dict[str, object] | None = None, **spec: object) -> Stage:
        stage = Stage(
            node("n", 9), group("train", 2, **spec), *gang("train", 2), plugins=[HoldsBack], args=args
        )
        stage.run()
        assert stage.waiting() == ["train-0"]
        return stage

    def test_ends_after_a_minute(self) -> None:
        stage = self.waiting_stage()
        stage.run(after=59)
        assert stage.waiting() == ["train-0"]
        stage.run(after=1)
        assert stage.waiting() == []
        assert "rejected due to timeout after waiting 1m0s at plugin Coscheduling" in stage.message("train-0")

    @pytest.mark.parametrize(
        ("args", "spec"),
        [({"permitWaitingTimeSeconds": 5}, {}), ({}, {"schedule_timeout_seconds": 5})],
    )
    def test_ends_when_the_profile_or_the_group_says(
        self, args: dict[str, object], spec: dict[str, object]
    ) -> None:
        stage = self.waiting_stage(args=args, **spec)
        stage.run(after=5)
        assert stage.waiting() == []

    def test_of_one_that_times_out_ends_that_of_all(self) -> None:
        stage = Stage(node("n", 9), group("train", 4), *gang("train", 4), plugins=[HoldsBack])
        stage.run()
        assert stage.waiting() == ["train-0", "train-2", "train-3"]
        (framework,) = stage.scheduler.frameworks.values()
        next(iter(framework.waiting_pods)).reject("Other", "not this one")
        assert stage.waiting() == []
        assert "rejection in Unreserve" in stage.message("train-3")

    @pytest.mark.parametrize("during", ["train-2", "train-3"])
    def test_ends_for_a_pod_that_was_about_to_wait_too(self, during: str) -> None:
        ends = type("EndsAWait", (EndsAWait,), {"during": during})
        stage = Stage(node("n", 9), group("train", 5), *gang("train", 5), plugins=[HoldsBack], after=[ends])
        stage.run()
        assert stage.waiting() == []
        assert "rejection in Unreserve" in stage.message(during)


class TestTryingAgain:
    def full(self, *more: PodGroup | Pod) -> Stage:
        stage = Stage(node("n", 3), group("train", 4), *gang("train", 4), *more)
        stage.run()
        assert stage.bound() == set()
        return stage

    @pytest.mark.parametrize(
        "help_",
        [
            lambda stage: stage.cluster.add(node("m", 1)),
            lambda stage: stage.cluster.update(
                attrs.evolve(stage.cluster.list(type(node("n", 3)))[0], status=node("n", 4).status)
            ),
        ],
        ids=["a node is added", "a node grows"],
    )
    def test_a_gang_comes_back_at_once_when_there_is_room(self, help_: Callable[[Stage], object]) -> None:
        stage = self.full()
        help_(stage)
        stage.run()
        assert len(stage.bound("train")) == 4

    def test_it_comes_back_when_a_pod_ends(self) -> None:
        stage = Stage(node("n", 4), pod("web", priority=1), group("train", 4), *gang("train", 4))
        stage.run()
        assert stage.bound() == {"web"}
        stage.cluster.delete(stage.pod("web"))
        stage.run()
        assert len(stage.bound("train")) == 4

    def test_it_does_not_come_back_for_nothing(self) -> None:
        stage = self.full()
        stage.run(pod("giant", cpu=9))
        assert stage.run(after=30) == 0

    def test_while_nothing_happens_it_is_left_alone_for_the_backoff(self) -> None:
        stage = Stage(node("n", 3), group("train", 4), *gang("train", 5), args={"podGroupBackoffSeconds": 30})
        stage.run()
        assert "podGroup default/train failed recently" in stage.message("train-4")


class TestMinResources:
    def stage(self, cpu: str, nodes: int = 2) -> Stage:
        needs = FrozenDict({"cpu": Quantity.parse(cpu)})
        stage = Stage(
            *(node(f"n{i}", 3) for i in range(nodes)),
            pod("web", priority=1),
            group("train", 2, min_resources=needs),
            *gang("train", 2),
        )
        stage.run()
        return stage

    def test_that_are_free_let_the_gang_in(self) -> None:
        assert len(self.stage("5").bound("train")) == 2

    def test_that_are_not_keep_it_out_until_they_are(self) -> None:
        stage = self.stage("5500m")
        assert stage.bound("train") == set()
        assert "resource gap of PodGroup default/train: cpu: 500m" in stage.message("train-0")
        stage.run(node("more", 1))
        assert len(stage.bound("train")) == 2

    def test_count_pods_too(self) -> None:
        stage = Stage(group("train", 2, min_resources=FrozenDict({})), *gang("train", 2))
        assert stage.run() == 2


class TestArguments:
    @pytest.mark.parametrize("name", ["permitWaitingTimeSeconds", "podGroupBackoffSeconds"])
    def test_below_zero_make_no_sense(self, name: str) -> None:
        with pytest.raises(KschedfwError, match=f"Coscheduling: {name}: Invalid value: -1: must be greater"):
            FrameworkHarness(Coscheduling, args={"Coscheduling": {name: -1}}, clock=FakeClock())

    @pytest.mark.parametrize("value", [-1, 101])
    def test_a_percentage_is_one(self, value: int) -> None:
        args = {"Coscheduling": {"podGroupRejectPercentage": value}}
        with pytest.raises(
            KschedfwError, match=f"podGroupRejectPercentage: Invalid value: {value}: must be bet"
        ):
            FrameworkHarness(Coscheduling, args=args, clock=FakeClock())

    def test_of_zero_are_unset_as_in_go(self) -> None:
        harness = FrameworkHarness(
            Coscheduling, args={"Coscheduling": {"permitWaitingTimeSeconds": 0}}, clock=FakeClock()
        )
        assert harness.framework.plugins["Coscheduling"].args.permit_waiting_time_seconds == 60
