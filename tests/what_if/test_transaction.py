"""A transaction: what each operation does, what it answers, and what it refuses."""

from __future__ import annotations

import logging

import attrs
import pytest

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    Node,
    Pod,
    Profile,
    Registry,
    Scheduler,
    Status,
    WhatIf,
    WhatIfError,
    default_profile,
    make_node,
    make_pod,
    read_manifests,
)
from kschedfw.api import (
    PodCondition,
    PodDisruptionBudget,
    PodPhase,
    PodStatus,
    UnhealthyPodEvictionPolicy,
)
from kschedfw.api.manifests import object_from_manifest
from kschedfw.framework.clock import VirtualClock
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.scheduler import FirstByNameSelector
from tests.what_if.builders import budget


def node(name: str, cpu: int = 4) -> Node:
    return make_node(name).capacity(cpu=cpu, memory="16Gi", pods=10).build()


def pod(name: str, cpu: str = "1", *, on: str = "", priority: int = 0, **labels: str) -> Pod:
    return make_pod(name).labels(labels).requests(cpu=cpu).node(on).priority(priority).build()


def of_daemon_set(made: Pod) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": "u", "controller": True}
    found = object_from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": made.name, "namespace": made.namespace, "ownerReferences": [owner]},
            "spec": {"nodeName": made.node_name, "containers": [{"name": "c", "image": "i"}]},
        }
    )
    assert isinstance(found, Pod)
    return found


@pytest.fixture
def what_if() -> WhatIf:
    """Two nodes with one pod of 3 CPUs each, and two pending pods of 2 CPUs."""
    return WhatIf(
        [
            node("n1"),
            node("n2"),
            pod("on-1", "3", on="n1", app="web"),
            pod("on-2", "3", on="n2", app="web"),
            pod("wait-1", "2"),
            pod("wait-2", "2"),
        ]
    )


def placed(what_if: WhatIf) -> dict[str, str]:
    return {each.name: each.node_name for each in what_if.pods if each.node_name}


class TestAsking:
    def test_feasible_nodes_and_why_not_the_others(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            small, large = trial.can_schedule(pod("new")), trial.can_schedule(what_if.pending[0])
        assert small
        assert small.nodes == ("n1", "n2")
        assert not small.message
        assert not large
        assert large.message == "0/2 nodes are available: 2 Insufficient cpu."
        assert large.diagnosis.unschedulable_plugins == {"NodeResourcesFit"}

    def test_all_feasible_nodes_count_whatever_part_a_scheduler_would_look_at(self) -> None:
        what_if = WhatIf(node(f"n{number}") for number in range(300))
        with what_if.transaction() as trial:
            assert len(trial.can_schedule(pod("new")).nodes) == 300

    def test_a_gate_and_an_unknown_scheduler_are_reasons(self, what_if: WhatIf) -> None:
        gated = make_pod("gated").scheduling_gate("example.com/gate").build()
        with what_if.transaction() as trial:
            assert "waiting for scheduling gates" in trial.can_schedule(gated).message
            other = trial.can_schedule(make_pod("other").scheduler_name("mine").build())
        assert other.message == "no profile has the scheduler name 'mine'; there is 'default-scheduler'"

    def test_no_nodes(self) -> None:
        with WhatIf([]).transaction() as trial:
            assert trial.can_schedule(pod("new")).message == "no nodes available to schedule pods"
            assert trial.schedule([pod("new")]).refused[0].message == "no nodes available to schedule pods"

    def test_a_pod_on_a_node_cannot_be_asked_about(self, what_if: WhatIf) -> None:
        with (
            what_if.transaction() as trial,
            pytest.raises(WhatIfError, match="pod default/on-1 is on node n1 already"),
        ):
            trial.can_schedule(pod("on-1"))

    def test_claims_from_templates_are_made_for_the_question_alone(self) -> None:
        objects = read_manifests("examples/devices/cluster.yaml", "examples/devices/pods.yaml")
        what_if = WhatIf(objects)
        before = list(what_if.objects())
        asked = next(each for each in what_if.pending if each.spec.resource_claims)
        new = asked.with_metadata(attrs.evolve(asked.metadata, name="new", uid=""))
        new = new.with_status(attrs.evolve(new.status, resource_claim_statuses=()))
        with what_if.transaction() as trial:
            assert trial.can_schedule(new).nodes == trial.can_schedule(asked).nodes
        assert list(what_if.objects()) == before

    def test_an_explanation_leaves_nothing_behind(self, what_if: WhatIf) -> None:
        before = list(what_if.objects())
        assert what_if.explain(what_if.pending[0]).message.startswith("0/2 nodes are available")
        assert list(what_if.objects()) == before


class TestScheduling:
    def test_pods_take_places_and_others_see_that(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            trial.add_nodes(node("new", 3))
            done = trial.schedule(what_if.pending)
            assert [(each.pod.name, each.node_name) for each in done.placed] == [("wait-1", "new-1")]
            assert [each.pod.name for each in done.refused] == ["wait-2"]
            assert done.refused[0].message == "0/3 nodes are available: 3 Insufficient cpu."
            assert [each.name for each in what_if.pending] == ["wait-2"]
            assert placed(what_if) == {"on-1": "n1", "on-2": "n2", "wait-1": "new-1"}
        assert [each.name for each in what_if.pending] == ["wait-1", "wait-2"]
        assert placed(what_if) == {"on-1": "n1", "on-2": "n2"}

    def test_the_more_important_pod_comes_first(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            trial.add_nodes(node("new", 2))
            done = trial.schedule([*what_if.pending, pod("vip", "2", priority=9)])
            assert [each.pod.name for each in done.placed] == ["vip"]

    def test_victims_go_and_come_back(self, what_if: WhatIf) -> None:
        vip = pod("vip", "4", priority=9)
        with what_if.transaction() as trial:
            assert not trial.schedule([vip])
            trial.delete(what_if.cluster.get(Pod, vip.key) or vip)
            done = trial.schedule([vip], preempt=True)
            (found,) = done.placed
            (victim,) = found.victims
            assert (victim.name, victim.node_name) in (("on-1", "n1"), ("on-2", "n2"))
            assert found.node_name == victim.node_name
            assert victim.name not in placed(what_if)
        assert placed(what_if) == {"on-1": "n1", "on-2": "n2"}

    def test_a_pod_with_a_place_can_be_a_victim_and_holds_its_place_again_after_a_revert(
        self, what_if: WhatIf
    ) -> None:
        with what_if.transaction() as trial:
            trial.preempt(*[each for each in what_if.pods if each.node_name])
            trial.delete(*[each for each in what_if.nodes if each.name == "n2"])
            assert trial.schedule(what_if.pending)
            with trial.transaction() as nested:
                (found,) = nested.schedule([pod("vip", "4", priority=9)], preempt=True).placed
                assert sorted(each.name for each in found.victims) == ["wait-1", "wait-2"]
                assert sorted(each.name for each in what_if.pending) == ["wait-1", "wait-2"]
            assert placed(what_if) == {"wait-1": "n1", "wait-2": "n1"}
            assert not trial.can_schedule(pod("more"))

    def test_as_many_as_fit_and_what_stops_the_next(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            found = trial.schedule_as_many(pod("small", "500m"))
            assert found.count == 4
            assert found.by_node == {"n1": 2, "n2": 2}
            assert [each.pod.name for each in found.placed] == ["small-1", "small-2", "small-3", "small-4"]
            assert found.refusal is not None
            assert found.refusal.message == "0/2 nodes are available: 2 Insufficient cpu."
            assert len(what_if.pods) == 8
        with what_if.transaction() as trial:
            assert trial.schedule_as_many(pod("small", "500m"), at_most=3).refusal is None

    def test_a_place_cannot_be_taken_twice(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            trial.add_nodes(node("new"))
            done = trial.schedule(what_if.pending[:1])
            with pytest.raises(WhatIfError, match="pod default/wait-1 is on node new-1 already"):
                trial.schedule([done.placed[0].pod])


class TestExplaining:
    def test_a_pod_is_explained_at_its_turn_in_the_queue(self) -> None:
        """The more important pod takes the room that the other one would have."""
        objects = [node("one", cpu=1), node("two", cpu=1), pod("first", priority=10), pod("second")]
        with WhatIf(objects, selector=FirstByNameSelector()) as what_if, what_if.transaction() as trial:
            first, second = what_if.pending
            assert trial.explain(second).node == "one"
            assert trial.explain(second, [first]).node == "two"
            assert trial.explain(first, [second]).node == "one"
            assert what_if.pending == (first, second), "nothing has changed"
            placed = trial.schedule([first, second]).placed
            assert [each.node_name for each in placed] == ["one", "two"]

    def test_the_search_goes_on_where_the_pods_before_left_it(self) -> None:
        """Of 150 nodes 100 are searched, each time from another one on."""
        nodes = [node(f"node-{number:03}") for number in range(150)]
        pods = [pod(f"pod-{number}") for number in range(5)]
        with WhatIf([*nodes, *pods], seed=3) as what_if, what_if.transaction() as trial:
            explained = [trial.explain(each, pods) for each in pods]
            assert [each.filter.start for each in explained if each.filter is not None] == [
                0,
                100,
                50,
                0,
                100,
            ]
            placed = trial.schedule(pods).placed
            assert [each.node for each in explained] == [each.node_name for each in placed]

    def test_a_pod_that_is_on_a_node_has_no_turn(self) -> None:
        with (
            WhatIf([node("one"), pod("there", on="one")]) as what_if,
            what_if.transaction() as trial,
            pytest.raises(WhatIfError, match="pod default/there is on node one already"),
        ):
            trial.explain(what_if.pods[0])


class TestChanging:
    def test_nodes_get_free_names_and_their_own_hostname(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            first = trial.add_nodes(node("n"), 1)
            second = trial.add_nodes(node("n"), 2)
        assert [each.name for each in (*first, *second)] == ["n-1", "n-2", "n-3"]
        assert [each.labels["kubernetes.io/hostname"] for each in second] == ["n-2", "n-3"]

    def test_a_drain_evicts_what_it_may(self) -> None:
        mine = [pod("web-1", on="n1", app="web"), pod("web-2", on="n1", app="web"), pod("free", on="n1")]
        what_if = WhatIf(
            [node("n1"), node("n2"), *mine, of_daemon_set(pod("daemon", on="n1")), budget(1, app="web")]
        )
        with what_if.transaction() as trial:
            drained = trial.drain("n1")
            assert [each.name for each in drained.evicted] == ["web-1", "free"]
            assert [(each.name, why) for each, why in drained.blocked] == [
                ("web-2", "its eviction would violate PodDisruptionBudget budget")
            ]
            assert [each.name for each in drained.staying] == ["daemon"]
            assert not drained
            assert [each.name for each in what_if.pending] == ["web-1", "free"]
            assert {each.node_name for each in trial.schedule(drained.evicted).placed} == {"n2"}
            (left,) = what_if.cluster.list(PodDisruptionBudget)
            assert left.status.disruptions_allowed == 0
        (left,) = what_if.cluster.list(PodDisruptionBudget)
        assert left.status.disruptions_allowed == 1
        assert not what_if.pending

    def test_two_budgets_block(self) -> None:
        second = budget(1, app="web")
        second = second.with_metadata(attrs.evolve(second.metadata, name="other"))
        what_if = WhatIf([node("n1"), pod("web", on="n1", app="web"), budget(1, app="web"), second])
        with what_if.transaction() as trial:
            ((_, why),) = trial.drain("n1").blocked
        assert why == (
            "more than one PodDisruptionBudget covers it, which an eviction doesn't support: budget, other"
        )

    @pytest.mark.parametrize(
        ("policy", "current", "desired", "phase", "goes"),
        [
            (UnhealthyPodEvictionPolicy.IF_HEALTHY_BUDGET, 1, 2, PodPhase.RUNNING, False),
            (UnhealthyPodEvictionPolicy.IF_HEALTHY_BUDGET, 2, 2, PodPhase.RUNNING, True),
            (UnhealthyPodEvictionPolicy.IF_HEALTHY_BUDGET, 0, 0, PodPhase.RUNNING, False),
            (UnhealthyPodEvictionPolicy.IF_HEALTHY_BUDGET, 1, 2, PodPhase.PENDING, True),
            (UnhealthyPodEvictionPolicy.ALWAYS_ALLOW, 1, 2, PodPhase.RUNNING, True),
        ],
    )
    def test_an_unready_pod_goes_if_the_budget_is_healthy_or_says_always(
        self, policy: UnhealthyPodEvictionPolicy, current: int, desired: int, phase: PodPhase, goes: bool
    ) -> None:
        given = budget(0, app="web")
        limit = attrs.evolve(
            given,
            spec=attrs.evolve(given.spec, unhealthy_pod_eviction_policy=policy),
            status=attrs.evolve(given.status, current_healthy=current, desired_healthy=desired),
        )
        web = pod("web", on="n1", app="web")
        unready = web.with_status(PodStatus(phase=phase, conditions=(PodCondition("Ready", "False"),)))
        ready = pod("ready", on="n1", app="web")
        with WhatIf([node("n1"), unready, ready, limit]).transaction() as trial:
            drained = trial.drain("n1")
        assert [each.name for each in drained.evicted] == (["web"] if goes else [])

    def test_pods_with_a_place_lose_it_in_a_drain(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            trial.add_nodes(node("new"))
            trial.schedule(what_if.pending)
            assert [each.name for each in trial.drain("new-1").evicted] == ["wait-1", "wait-2"]
            assert [each.name for each in what_if.pending] == ["wait-1", "wait-2"]

    def test_cordon_and_uncordon(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            trial.cordon("n1")
            assert trial.can_schedule(pod("new")).nodes == ("n2",)
            trial.uncordon("n1")
            assert trial.can_schedule(pod("new")).nodes == ("n1", "n2")

    def test_an_update_goes_by_name(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            trial.update(node("n1", 8))
            assert trial.schedule(what_if.pending)

    def test_preempted_pods_are_gone_until_they_are_restored(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            on_1 = what_if.pods[0]
            trial.preempt(on_1)
            assert trial.can_schedule(what_if.pending[0]).nodes == ("n1",)
            with trial.transaction() as nested:
                nested.restore(on_1)
                assert not nested.can_schedule(what_if.pending[0])
            assert trial.can_schedule(what_if.pending[0]).nodes == ("n1",)
            trial.restore(on_1)
            assert not trial.can_schedule(what_if.pending[0])
            assert what_if.pods[0] is on_1
            with pytest.raises(
                WhatIfError, match="isn't preempted, so it can't be restored; preempted: none"
            ):
                trial.restore(on_1)

    def test_a_deleted_node_takes_places_with_it(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            trial.add_nodes(node("new"))
            trial.schedule(what_if.pending)
            trial.delete(node("new-1"))
            assert [each.name for each in what_if.pending] == ["wait-1", "wait-2"]


class TestErrors:
    @pytest.mark.parametrize(
        ("operation", "message"),
        [
            (lambda trial: trial.drain("n9"), "there is no node 'n9'; there is n1, n2"),
            (lambda trial: trial.cordon("n1", "n9"), "there is no node 'n9'; there is n1, n2"),
            (lambda trial: trial.delete(pod("x")), "there is no pod default/x; there is default/on-1, "),
            (lambda trial: trial.update(node("n9")), "there is no node n9; there is n1, n2"),
            (lambda trial: trial.add(node("n1")), "Node n1 already exists"),
            (lambda trial: trial.add_nodes(node("n"), -1), "count: expected a number of nodes from 0 on"),
            (lambda trial: trial.preempt(pod("wait-1")), "pod default/wait-1 isn't on a node"),
            (lambda trial: trial.update(pod("wait-1", on="n1")), "an update can't change the node of pod"),
        ],
    )
    def test_one_line_says_what_is_wrong(self, what_if: WhatIf, operation: object, message: str) -> None:
        assert callable(operation)
        with what_if.transaction() as trial, pytest.raises(WhatIfError) as caught:
            operation(trial)
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)
        with what_if.transaction() as trial:
            assert trial.can_schedule(pod("new")).nodes == ("n1", "n2")

    def test_transactions_are_used_one_at_a_time(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            with pytest.raises(WhatIfError, match="a transaction is open already"), what_if.transaction():
                pass
            with (
                trial.transaction(),
                pytest.raises(WhatIfError, match="a nested transaction is open"),
            ):
                trial.cordon("n1")
        with pytest.raises(WhatIfError, match="the transaction has ended"):
            trial.cordon("n1")
        with pytest.raises(WhatIfError, match="use it in a `with` statement"):
            what_if.transaction().cordon("n1")

    def test_an_error_in_the_block_reverts(self, what_if: WhatIf) -> None:
        with pytest.raises(WhatIfError), what_if.transaction() as trial:
            trial.drain("n1", "n9")
        with pytest.raises(WhatIfError), what_if.transaction() as trial:
            trial.delete(what_if.nodes[0], node("n9"))
        assert [each.name for each in what_if.nodes] == ["n1", "n2"]
        assert placed(what_if) == {"on-1": "n1", "on-2": "n2"}

    def test_a_source_that_is_none(self) -> None:
        with pytest.raises(
            WhatIfError, match="expected manifests, objects, a cluster or a scheduler, found int"
        ):
            WhatIf(3)  # type: ignore[arg-type]
        with pytest.raises(WhatIfError, match="expected objects such as nodes and pods, found 'x'"):
            WhatIf(["x"])  # type: ignore[list-item]


class TestCommit:
    def test_places_become_bindings(self, what_if: WhatIf) -> None:
        with what_if.transaction() as trial:
            with trial.transaction() as nested:
                nested.add_nodes(node("new"))
                nested.commit()
            trial.schedule(what_if.pending)
            trial.commit()
        assert placed(what_if) == {"on-1": "n1", "on-2": "n2", "wait-1": "new-1", "wait-2": "new-1"}
        assert all(each.node_name for each in what_if.cluster.list(Pod))
        with what_if.transaction() as trial:
            trial.drain("new-1")
        assert placed(what_if)["wait-1"] == "new-1"


class _Licences(Plugin):
    """Two pods at most may have one; a third-party plugin with a state of its own."""

    name = "Licences"
    taken = 0

    @hookimpl
    def filter(self) -> Status | None:
        return Status.unschedulable("no licence left") if self.taken >= 2 else None

    @hookimpl
    def reserve(self) -> None:
        self.taken += 1

    @hookimpl
    def unreserve(self) -> None:
        self.taken -= 1


class _Forgetful(Plugin):
    """It can't undo."""

    name = "Forgetful"

    @hookimpl
    def reserve(self) -> None:
        pass


def _with(plugin: type[Plugin]) -> tuple[Registry, Profile]:
    registry = Registry()
    registry.register(plugin)
    return registry, Profile([*default_profile().multi_point, EnabledPlugin(plugin.name)])


class TestPlugins:
    def test_what_a_plugin_has_reserved_is_undone_by_its_unreserve(self) -> None:
        registry, profile = _with(_Licences)
        what_if = WhatIf([node("n1")], registry=registry, profiles=[profile])
        for _ in range(2):
            with what_if.transaction() as trial:
                found = trial.schedule_as_many(pod("user"))
                assert found.count == 2
                assert found.refusal is not None
                assert found.refusal.message == "0/1 nodes are available: 1 no licence left."

    def test_one_that_cannot_undo_is_named_once(self, caplog: pytest.LogCaptureFixture) -> None:
        registry, profile = _with(_Forgetful)
        with caplog.at_level(logging.WARNING, "kschedfw.what_if"):
            what_if = WhatIf([node("n1")], registry=registry, profiles=[profile])
            for _ in range(2):
                with what_if.transaction() as trial:
                    trial.schedule([pod("a")])
        assert [record.getMessage() for record in caplog.records] == [
            "plugin Forgetful has reserve and no unreserve: what it reserves in a transaction stays reserved after it"
        ]


class _Patient(Plugin):
    """Nobody ever gets its permission."""

    name = "Patient"

    @hookimpl
    def permit(self) -> Status:
        return Status.wait(60.0)


class TestWaiting:
    def test_who_still_waits_at_the_end_is_not_bound(self) -> None:
        registry, profile = _with(_Patient)
        what_if = WhatIf([node("n1"), pod("a")], registry=registry, profiles=[profile])
        with what_if.transaction() as trial:
            assert not trial.schedule(what_if.pending)
            assert not what_if.pending
            with pytest.raises(WhatIfError, match="default/a for one: its permit plugins still wait"):
                trial.commit()
        assert [each.name for each in what_if.pending] == ["a"]
        with what_if.transaction() as trial:
            (found,) = trial.schedule(what_if.pending).waiting
            assert (found.pod.name, found.node_name, found.plugins) == ("a", "n1", ("Patient",))


class TestSources:
    def test_a_cluster_is_not_written_to(self) -> None:
        cluster = InMemoryCluster([node("n1"), pod("wait")])
        before = cluster.resource_version
        with WhatIf(cluster) as what_if, what_if.transaction() as trial:
            trial.schedule(what_if.pending)
            trial.commit()
        assert cluster.resource_version == before

    def test_a_running_scheduler_is_seen_with_the_pods_that_it_has_assumed_and_with_its_profiles(
        self,
    ) -> None:
        cluster = InMemoryCluster([node("n1"), pod("wait", "3"), pod("other", "3")])
        profile = Profile(default_profile().multi_point, scheduler_name="mine")
        scheduler = Scheduler(cluster, [default_profile(), profile], clock=VirtualClock())
        waiting = cluster.get(Pod, "default/wait")
        assert waiting is not None
        with scheduler.place(waiting), WhatIf(scheduler) as what_if:
            assert placed(what_if) == {"wait": "n1"}
            assert [each.name for each in what_if.pending] == ["other"]
            with what_if.transaction() as trial:
                assert not trial.schedule(what_if.pending)
                assert trial.can_schedule(make_pod("third").scheduler_name("mine").build())
        scheduler.close()

    def test_a_running_schedulers_pods_are_in_its_order_by_which_it_is_decided_among_equal_victims(
        self,
    ) -> None:
        cluster = InMemoryCluster([node("n1"), *(pod(name, on="n1") for name in "abcd")])
        scheduler = Scheduler(cluster, clock=VirtualClock())
        present = cluster.get(Pod, "default/a")
        assert present is not None
        cluster.update(attrs.evolve(present, status=attrs.evolve(present.status, phase=PodPhase.RUNNING)))
        with WhatIf(scheduler) as what_if:
            assert [each.name for each in what_if.pods] == ["d", "b", "c", "a"]
        scheduler.close()

    def test_manifests(self) -> None:
        what_if = WhatIf(read_manifests("examples/sample-cluster"))
        assert len(what_if.nodes) == 200
