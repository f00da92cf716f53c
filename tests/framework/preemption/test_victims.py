"""On one node, as few and as unimportant pods are evicted as will do."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import Plugin, Reads, hookimpl, make_node
from kschedfw.api import PodBuilder
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.preemption import PreemptionPlan
from kschedfw.framework.runtime.engine.node_by_node import NodeByNode
from kschedfw.framework.status import Code, Status
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity
from kschedfw.plugins.node_ports import NodePorts
from kschedfw.plugins.node_resources_fit import NodeResourcesFit
from kschedfw.plugins.pod_topology_spread import PodTopologySpread
from kschedfw.testing.properties import examples
from tests.framework.preemption.scenes import Scene, budget, node, pod, scene, victims
from tests.framework.support import plugin

HOST = "kubernetes.io/hostname"
FOO = {"app": "foo"}


class TestReprieve:
    def test_pods_that_need_not_go_stay_the_most_important_first(self) -> None:
        pods = [
            pod("low", 100, on="n", priority=0),
            pod("mid", 300, on="n", priority=100),
        ]
        plan = scene([node("n")], pods).plan(pod("p", 300, priority=1000))
        assert victims(plan.candidates) == {"n": ["mid"]}

    def test_less_important_pods_go_even_if_that_takes_more_of_them(self) -> None:
        pods = [
            pod("big", 400, on="n", priority=10),
            *(pod(f"small-{i}", 50, on="n", priority=1) for i in range(2)),
        ]
        plan = scene([node("n")], pods).plan(pod("p", 100, priority=100))
        assert {*victims(plan.candidates)["n"]} == {"small-0", "small-1"}

    def test_pods_of_equal_or_higher_priority_are_no_victims(self) -> None:
        pods = [
            pod("mid-small", 100, on="n", priority=100),
            pod("low-small", 100, on="n", priority=0),
            pod("mid", 200, on="n", priority=100),
            pod("equal", 100, on="n", priority=1000),
            pod("higher", on="n", priority=2000),
        ]
        plan = scene([node("n")], pods).plan(pod("p", 300, priority=1000))
        assert victims(plan.candidates) == {"n": ["mid", "low-small"]}

    def test_among_equal_priorities_the_pod_that_started_later_goes(self) -> None:
        pods = [
            pod("old", 200, on="n", started=1),
            pod("young", 200, on="n", started=5),
            pod("older", 100, on="n", started=0),
        ]
        plan = scene([node("n")], pods).plan(pod("p", 200, priority=1))
        assert victims(plan.candidates) == {"n": ["young"]}

    def test_a_pod_that_has_not_started_goes_before_those_that_have(self) -> None:
        pods = [pod("starting", 250, on="n"), pod("running", 250, on="n", started=9e9)]
        plan = scene([node("n")], pods).plan(pod("p", 200, priority=1))
        assert victims(plan.candidates) == {"n": ["starting"]}

    def test_victims_are_listed_in_falling_importance(self) -> None:
        pods = [
            pod("low", 100, on="n", priority=0, started=0),
            pod("high-young", 100, on="n", priority=5, started=9),
            pod("high-old", 300, on="n", priority=5, started=1),
        ]
        plan = scene([node("n")], pods).plan(pod("p", 500, priority=10))
        assert victims(plan.candidates) == {"n": ["high-old", "high-young", "low"]}


class TestBudgets:
    def test_who_violates_a_budget_is_spared_first_even_if_less_important(self) -> None:
        pods = [
            pod("protected", 250, on="n", priority=1, labels=FOO),
            pod("important", 250, on="n", priority=9),
        ]
        plan = scene([node("n")], pods, budgets=[budget(0, FOO)]).plan(pod("p", 250, priority=10))
        assert victims(plan.candidates) == {"n": ["important"]}
        assert plan.candidates[0].victims.num_pdb_violations == 0

    def test_violations_are_counted_per_victim_and_victims_stay_in_order_of_importance(self) -> None:
        pods = [
            pod("allowed", 200, on="n", priority=5, labels=FOO),
            pod("over-budget", 200, on="n", priority=3, labels=FOO),
            pod("free", 100, on="n", priority=4),
        ]
        plan = scene([node("n")], pods, budgets=[budget(1, FOO)]).plan(pod("p", 500, priority=10))
        assert victims(plan.candidates) == {"n": ["allowed", "free", "over-budget"]}
        assert plan.candidates[0].victims.num_pdb_violations == 1

    def test_the_budget_is_counted_over_all_potential_victims_also_those_that_are_spared(self) -> None:
        # The budget's one eviction is reckoned to the more important pod, which then stays.
        pods = [
            pod("spared", 100, on="n", priority=5, labels=FOO),
            pod("evicted", 400, on="n", priority=3, labels=FOO),
        ]
        plan = scene([node("n")], pods, budgets=[budget(1, FOO)]).plan(pod("p", 400, priority=10))
        assert victims(plan.candidates) == {"n": ["evicted"]}
        assert plan.candidates[0].victims.num_pdb_violations == 1


class TestOtherFilters:
    def test_who_refuses_the_pod_by_anti_affinity_goes(self) -> None:
        pods = [
            pod("averse", 50, on="a", labels=FOO, build=lambda b: b.pod_anti_affinity(HOST, FOO)),
            pod("bystander", 50, on="a", priority=1),
            pod("important", 50, on="b", priority=10),
        ]
        plan = scene([node("a"), node("b")], pods, plugins=(NodeResourcesFit, InterPodAffinity)).plan(
            pod("p", 50, priority=10, labels=FOO)
        )
        assert victims(plan.candidates) == {"a": ["averse"]}

    def test_spread_is_counted_anew_as_pods_go_and_come_back(self) -> None:
        def spread(builder: PodBuilder) -> PodBuilder:
            return builder.spread("zone", FOO).spread("host", FOO)

        nodes = [
            node("a", zone="z1", host="a"),
            node("b", zone="z1", host="b"),
            node("x", zone="z2", host="x"),
        ]
        pods = [
            pod("a1", on="a", priority=100, labels=FOO),
            pod("a2", on="a", labels=FOO),
            pod("b1", on="b", labels=FOO),
            pod("x1", on="x", priority=1000, labels=FOO),
            pod("x2", on="x", priority=1000, labels=FOO),
        ]
        plan = scene(nodes, pods, plugins=(PodTopologySpread,)).plan(
            pod("p", priority=1000, labels=FOO, build=spread)
        )
        assert victims(plan.candidates) == {"a": ["a2"], "b": ["b1"]}

    def test_a_node_that_another_filter_refuses_is_no_candidate_however_much_room_there_would_be(
        self,
    ) -> None:
        class Labelled(Plugin[None]):
            name = "Labelled"
            reads = Reads.NODE

            @hookimpl
            def filter(self, node_info: NodeInfo) -> Status | None:
                return None if "ours" in node_info.node.labels else Status.unschedulable("not ours")

        pods = [pod("first", 300, on="a"), pod("second", 300, on="b")]
        plan = scene([node("a"), node("b", ours="")], pods, plugins=(NodeResourcesFit, Labelled)).plan(
            pod("p", 300, priority=10)
        )
        assert victims(plan.candidates) == {"b": ["second"]}
        assert plan.rejected.get("a").reasons == ("not ours",)

    def test_room_that_a_nominated_pod_waits_for_is_not_to_be_had(self) -> None:
        made = scene([node("n")], [pod("low", 300, on="n")])
        made.nominator.add(PodInfo.of(pod("first", 300, priority=10)), "n")
        plan = made.plan(pod("p", 300, priority=10))
        assert plan.rejected.get("n").reasons == ("Insufficient cpu",)

    def test_a_less_important_nomination_does_not_count(self) -> None:
        made = scene([node("n")], [pod("low", 300, on="n")])
        made.nominator.add(PodInfo.of(pod("first", 300, priority=5)), "n")
        assert victims(made.plan(pod("p", 300, priority=10)).candidates) == {"n": ["low"]}


class TestNoUse:
    def test_the_filters_reasons_with_all_victims_gone_are_the_nodes(self) -> None:
        plan = scene([node("n", cpu=200)], [pod("low", 100, on="n")]).plan(pod("p", 300, priority=1))
        status = plan.rejected.get("n")
        assert (status.code, status.reasons, status.plugin) == (
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            ("Insufficient cpu",),
            "NodeResourcesFit",
        )

    def test_a_node_without_potential_victims_is_not_even_filtered(self) -> None:
        asked = []

        def refuse() -> Status:
            asked.append(1)
            return Status.unschedulable("no")

        made = scene([node("n")], [pod("same", on="n", priority=1)], plugins=[plugin("No", filter=refuse)])
        status = made.plan(pod("p", priority=1)).rejected.get("n")
        assert not asked
        assert status == Status.unresolvable("No preemption victims found for incoming pod")

    def test_a_pod_that_fits_with_everyone_put_back_is_an_error(self) -> None:
        made = scene([node("n")], [pod("low", on="n")], plugins=[plugin("Yes", filter=lambda: None)])
        plan = made.plan(pod("p", priority=1))
        assert plan.status.code is Code.ERROR
        assert plan.status.message == 'expected at least one victim pod on node "n"'

    def test_a_plugin_that_can_not_follow_a_removal_fails_the_node(self) -> None:
        def fail() -> Status:
            raise LookupError("lost it")

        broken = plugin("Broken", pre_filter=lambda: None, pre_filter_remove_pod=fail)
        plan = scene([node("n")], [pod("low", on="n")], plugins=[broken]).plan(pod("p", priority=1))
        assert plan.status.code is Code.ERROR
        assert plan.status.message == 'running RemovePod on PreFilter plugin "Broken": LookupError: lost it'
        assert plan.rejected.get("n").plugin == "Broken"

    def test_a_plugin_that_can_not_follow_a_return_fails_the_node(self) -> None:
        broken = plugin(
            "Broken", pre_filter=lambda: None, pre_filter_add_pod=lambda: Status.unschedulable("won't")
        )
        made = scene([node("n")], [pod("low", 300, on="n")], plugins=[NodeResourcesFit, broken])
        plan = made.plan(pod("p", 300, priority=1))
        assert plan.status.message == 'running AddPod on PreFilter plugin "Broken": won\'t'


# Properties

FILTERS = (NodePorts, NodeResourcesFit, InterPodAffinity)
SERIAL, PAIR, MANY = Parallelizer(1), Parallelizer(2), Parallelizer(16)


class Counter:
    """State that notices when it is changed rather than its clone."""

    def __init__(self) -> None:
        self.changes = 0

    def clone(self) -> Counter:
        copy = Counter()
        copy.changes = self.changes
        return copy


COUNTER = StateKey[Counter]("Counting.counter")


def start_counting(state: CycleState) -> None:
    state.write(COUNTER, Counter())


def count(state: CycleState) -> None:
    state.read(COUNTER).changes += 1


Counting = plugin(
    "Counting", pre_filter=start_counting, pre_filter_add_pod=count, pre_filter_remove_pod=count
)


@attrs.frozen
class Sketch:
    """A pod that may collide with others in CPU, in its host port, or because one can't stand the other."""

    cpu: int
    priority: int
    started: int
    app: str
    port: bool
    averse: bool

    def pod(self, name: str, on: str = "") -> Pod:
        def build(builder: PodBuilder) -> PodBuilder:
            if self.port:
                builder.host_port(80)
            return builder.pod_anti_affinity(HOST, FOO) if self.averse else builder

        return pod(
            name,
            self.cpu,
            on=on,
            priority=self.priority,
            started=self.started,
            labels={"app": self.app},
            build=build,
        )


def sketches(*, port: bool = True) -> st.SearchStrategy[Sketch]:
    return st.builds(
        Sketch,
        cpu=st.sampled_from([50, 100, 200, 400]),
        priority=st.integers(-2, 3),
        started=st.integers(0, 3),
        app=st.sampled_from(["foo", "bar"]),
        port=st.booleans() if port else st.just(False),
        averse=st.integers(0, 4).map(lambda drawn: drawn == 0),
    )


# Only the first pod of a node can have the port; with more, kube-scheduler itself loses count.
NODES = st.lists(
    st.tuples(st.lists(sketches(), max_size=1), st.lists(sketches(port=False), max_size=4)),
    min_size=1,
    max_size=5,
)


@attrs.frozen
class Cluster:
    """Drawn as sketches, which are short enough to be shown when a property fails."""

    on_nodes: list[tuple[list[Sketch], list[Sketch]]]
    incoming: Sketch
    allowed: int

    @property
    def nodes(self) -> list[Node]:
        return [node(f"n{i}") for i in range(len(self.on_nodes))]

    @property
    def pods(self) -> list[Pod]:
        return [
            sketch.pod(f"n{i}-{k}", f"n{i}")
            for i, (first, rest) in enumerate(self.on_nodes)
            for k, sketch in enumerate([*first, *rest])
        ]

    @property
    def preemptor(self) -> Pod:
        return self.incoming.pod("incoming")

    def scene(self, **options: Any) -> Scene:
        return scene(
            self.nodes, self.pods, **{"plugins": FILTERS, "budgets": [budget(self.allowed, FOO)], **options}
        )


def clusters() -> st.SearchStrategy[Cluster]:
    return st.builds(Cluster, NODES, sketches(), st.integers(0, 2))


def fits(nodes: list[Node], pods: list[Pod], preemptor: Pod, node_name: str) -> bool:
    """Whether the filters pass, all counted from scratch."""
    made = scene(nodes, pods, plugins=FILTERS)
    info = made.snapshot.get(node_name)
    return made.framework.run_filter_plugins(made.state(preemptor), preemptor, info).is_success


def filtered(made: Scene, preemptor: Pod) -> NodeToStatus:
    """What the filters say of the nodes that refuse the pod; preemption leaves the others alone."""
    state = made.state(preemptor)
    statuses = {
        info.name: made.framework.run_filter_plugins(state, preemptor, info)
        for info in made.snapshot.node_infos
    }
    return NodeToStatus({name: status for name, status in statuses.items() if not status.is_success})


@given(clusters())
def test_victims_are_lower_in_priority_enough_and_each_of_them_is_needed(cluster: Cluster) -> None:
    made, preemptor = cluster.scene(), cluster.preemptor
    for candidate in made.plan(preemptor, filtered(made, preemptor)).candidates:
        evicted = candidate.victims.pods
        assert evicted
        assert all(victim.node_name == candidate.node_name for victim in evicted)
        assert all(victim.priority < preemptor.priority for victim in evicted)
        others = [each for each in cluster.pods if each not in evicted]
        assert fits(cluster.nodes, others, preemptor, candidate.node_name)
        for spared in evicted:
            assert not fits(cluster.nodes, [*others, spared], preemptor, candidate.node_name)


@given(clusters())
def test_a_dry_run_leaves_snapshot_and_state_as_they_were(cluster: Cluster) -> None:
    made, preemptor = cluster.scene(plugins=(*FILTERS, Counting)), cluster.preemptor
    infos = made.snapshot.node_infos
    before = [(info.pods, info.requested, len(info.used_ports), info.generation) for info in infos]
    state = made.state(preemptor)
    version = made.cluster.resource_version

    made.evaluator.plan(state, preemptor, made.refused())

    assert before == [(info.pods, info.requested, len(info.used_ports), info.generation) for info in infos]
    assert state.read(COUNTER).changes == 0
    assert made.cluster.resource_version == version


AMOUNTS = st.tuples(st.sampled_from([0, 100, 200]), st.integers(0, 2), st.integers(0, 1))
"""Millicores, GiB of memory and of storage."""


def sized(name: str, amounts: tuple[int, int, int], priority: int, on: str = "") -> Pod:
    cpu, memory, storage = amounts
    requests = {"memory": f"{memory}Gi", "ephemeral-storage": f"{storage}Gi"}
    return pod(name, cpu, on=on, priority=priority, build=lambda builder: builder.requests(requests))


@given(
    st.lists(st.tuples(AMOUNTS, st.integers(0, 2)), min_size=3, max_size=4),
    AMOUNTS,
    st.integers(0, 2),
    st.booleans(),
)
@settings(max_examples=examples(500, usual=75))
def test_where_only_room_decides_the_amounts_give_the_same_victims_as_the_filters(
    running: list[tuple[tuple[int, int, int], int]],
    wanted: tuple[int, int, int],
    allowed: int,
    nominated: bool,
) -> None:
    storage = {"ephemeral-storage": "2Gi"}
    small = make_node("n").capacity(storage, cpu="400m", memory="4Gi", pods=4).build()
    pods = [sized(f"p{index}", amounts, priority, "n") for index, (amounts, priority) in enumerate(running)]
    preemptor = sized("incoming", wanted, 2)

    def planned() -> object:
        made = scene([small], pods, budgets=[budget(allowed, {})])
        if nominated:
            made.nominator.add(PodInfo.of(sized("first", (100, 1, 0), 3)), "n")
        return summary(made.plan(preemptor))

    by_amounts = planned()
    with patch.object(NodeByNode, "only_room_decides", return_value=False) as asked:
        by_filters = planned()

    assert by_amounts == by_filters
    assert asked.called == any(each.priority < 2 for each in pods)


def summary(plan: PreemptionPlan) -> object:
    return (plan.status, plan.result, plan.candidates, plan.tied, dict(plan.rejected))


@given(clusters(), st.integers(1, 5), st.integers(0, 10))
def test_parallelism_does_not_matter(cluster: Cluster, wanted: int, seed: int) -> None:
    limits = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": wanted}
    serial, *parallel = [
        summary(cluster.scene(parallelizer=each, seed=seed, limits=limits).plan(cluster.preemptor))
        for each in (SERIAL, PAIR, MANY)
    ]
    assert parallel == [serial, serial]
