"""What is kept from pod to pod, of dry runs and of room for nominated pods, is what anew would be found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import Any, ClassVar

import attrs
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api import PodBuilder
from kschedfw.api.pod import Pod
from kschedfw.api.workloads import PodDisruptionBudget
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.extender import Victims
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parts import Parts
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.preemption import PreemptionEvaluator, PreemptionRules
from kschedfw.framework.preemption.candidates import Candidate, best_candidates
from kschedfw.framework.preemption.dry_run import LowestPriorities, Outcomes
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.plugins.node_ports import NodePorts
from kschedfw.plugins.node_resources_fit import NodeResourcesFit
from kschedfw.plugins.node_unschedulable import NodeUnschedulable
from kschedfw.testing import FakeClock
from tests.framework.preemption.scenes import Scene, budget, node, pod, scene, victims
from tests.framework.support import plugin

FOO = {"app": "foo"}
FILTERS = (NodeUnschedulable, NodePorts, NodeResourcesFit)


@attrs.frozen
class Sketch:
    """A pod, `covered` by a disruption budget or not, with or without a host port."""

    cpu: int
    priority: int
    started: int
    covered: bool
    port: bool

    def pod(self, name: str, on: str = "") -> Pod:
        def build(builder: PodBuilder) -> PodBuilder:
            return builder.host_port(80) if self.port else builder

        return pod(
            name,
            self.cpu,
            on=on,
            priority=self.priority,
            started=self.started,
            labels=FOO if self.covered else {},
            build=build,
        )


SKETCHES = st.builds(
    Sketch,
    cpu=st.sampled_from([100, 300]),
    priority=st.integers(0, 2),
    started=st.integers(0, 1),
    covered=st.booleans(),
    port=st.booleans(),
)
INCOMING = st.builds(
    Sketch, st.sampled_from([300, 400]), st.integers(1, 2), st.just(0), st.just(False), st.booleans()
)
NODE = st.integers(0, 3)


@attrs.define
class Twins:
    """One cluster before two frameworks, of which one keeps what it finds."""

    keeping: Scene
    forgetful: Scene
    bound: int = 0

    @classmethod
    def of(cls, wanted: int, seed: int) -> Twins:
        limits = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": wanted}
        keeping = scene(
            [node(f"n{i}") for i in range(4)],
            plugins=FILTERS,
            budgets=[budget(1, FOO)],
            limits=limits,
            seed=seed,
        )
        handle = keeping.framework.handle
        registry = Registry(entry_points=False)
        for each in FILTERS:
            registry.register(each)
        framework = Framework(
            registry,
            Profile([each.name for each in FILTERS]),
            Parts(
                keeping.cluster,
                snapshot=keeping.snapshot,
                nominator=keeping.nominator,
                clock=FakeClock(),
                random=Random(seed),
                parallelizer=handle.parallelizer,
            ),
            evaluation=Evaluation.SCALAR,
        )
        rules = PreemptionRules(framework.handle, **limits)
        evaluator = PreemptionEvaluator("Preemptor", framework.handle, rules)
        return cls(keeping, Scene(framework, keeping.cluster, keeping.nominator, evaluator, rules))

    def change(self, index: int, how: Callable[[NodeInfo], object]) -> None:
        snapshot = self.keeping.snapshot
        if f"n{index}" in snapshot:
            info = snapshot.get(f"n{index}").clone()
            how(info)
            snapshot.update([info])

    def bind(self, sketch: Sketch, index: int) -> None:
        self.bound += 1
        bound = sketch.pod(f"bound-{self.bound}", f"n{index}")
        self.change(index, lambda info: info.add_pod(PodInfo.of(bound)))

    def remove(self, index: int) -> None:
        self.change(index, lambda info: info.pods and info.remove_pod(info.pods[0].pod))

    def cordon(self, index: int) -> None:
        def toggle(info: NodeInfo) -> None:
            spec = attrs.evolve(info.node.spec, unschedulable=not info.node.spec.unschedulable)
            info.set_node(attrs.evolve(info.node, spec=spec))

        self.change(index, toggle)

    def rearrange(self, order: Sequence[int]) -> None:
        known = {info.name: info for info in self.keeping.snapshot.node_infos}
        self.keeping.snapshot.replace(
            known.get(f"n{index}") or NodeInfo.of(node(f"n{index}")) for index in order
        )

    def allow(self, disruptions: int) -> None:
        cluster = self.keeping.cluster
        for each in cluster.list(PodDisruptionBudget):
            cluster.delete(each)
        cluster.add(budget(disruptions, FOO))

    def answers(self, incoming: Pod) -> tuple[object, object]:
        return _answer(self.keeping, incoming), _answer(self.forgetful, incoming)


def _answer(made: Scene, incoming: Pod) -> object:
    state = made.state(incoming)
    table = made.snapshot.table
    outcome = made.framework.filter_nodes(state, incoming, NodeSelection.whole(table, start=1 % len(table)))
    plan = made.evaluator.plan(state, incoming, NodeToStatus(codes=outcome.refused))
    filtered = ([info.name for info in outcome.feasible], dict(outcome.refused))
    return filtered, plan.status, plan.result, tuple(plan.candidates), tuple(plan.tied), dict(plan.rejected)


STEPS = st.one_of(
    st.builds(lambda sketch, index: lambda twins: twins.bind(sketch, index), SKETCHES, NODE),
    st.builds(lambda sketch, index: lambda twins: twins.bind(sketch, index), SKETCHES, NODE),
    st.builds(lambda index: lambda twins: twins.remove(index), NODE),
    st.builds(lambda index: lambda twins: twins.cordon(index), NODE),
    st.builds(
        lambda sketch, name, index: (
            lambda twins: twins.keeping.nominator.add(PodInfo.of(sketch.pod(name)), f"n{index}")
        ),
        INCOMING,
        st.sampled_from("abc"),
        NODE,
    ),
    st.builds(lambda name: lambda twins: twins.keeping.nominator.delete(pod(name)), st.sampled_from("abc")),
    st.builds(lambda allowed: lambda twins: twins.allow(allowed), st.integers(0, 2)),
    st.builds(
        lambda order, count: lambda twins: twins.rearrange(order[:count]),
        st.permutations(range(4)),
        st.integers(1, 4),
    ),
)


@given(
    st.lists(st.tuples(SKETCHES, NODE), min_size=4, max_size=10),
    st.lists(st.tuples(st.lists(STEPS, max_size=2), INCOMING, st.sampled_from("abcd")), max_size=12),
    st.integers(0, 4),
    st.integers(0, 3),
)
def test_whatever_has_changed_since_the_answer_is_that_of_a_framework_that_keeps_nothing(
    bound: list[tuple[Sketch, int]],
    cycles: list[tuple[list[Callable[[Twins], None]], Sketch, str]],
    wanted: int,
    seed: int,
) -> None:
    twins = Twins.of(wanted, seed)
    for sketch, index in bound:
        twins.bind(sketch, index)
    for steps, incoming, name in cycles:
        for step in steps:
            step(twins)
        kept, anew = twins.answers(incoming.pod(name))
        assert kept == anew


def chosen(made: Scene, incoming: Pod) -> dict[str, list[str]]:
    return victims(made.plan(incoming).candidates)


class Asking(Plugin):
    """Notes which nodes it is asked about."""

    name = "Asking"
    reads = Reads.PODS
    asked: ClassVar[list[str]] = []

    def sign(self, pod: Pod) -> Hashable:
        return ()

    @hookimpl
    def filter(self, node_info: NodeInfo) -> None:
        self.asked.append(node_info.name)


class TestWhatIsKept:
    def made(self, **options: Any) -> Scene:
        Asking.asked.clear()
        nodes, low = [node("n0"), node("n1")], [pod(f"v{i}", 500, on=f"n{i}") for i in range(2)]
        return scene(nodes, low, plugins=[Asking, NodeResourcesFit], **options)

    def test_a_node_is_tried_once_for_all_pods_alike(self) -> None:
        made = self.made()
        both = {"n0": ["v0"], "n1": ["v1"]}
        assert chosen(made, pod("a", 400, priority=1)) == both
        assert sorted(set(Asking.asked)) == ["n0", "n1"]
        assert chosen(made, pod("a2", 400, priority=1)) == both  # what comes twice is kept
        Asking.asked.clear()
        assert chosen(made, pod("b", 400, priority=1)) == both
        assert Asking.asked == []

    def test_another_priority_is_another_question(self) -> None:
        made = self.made()
        assert len(chosen(made, pod("a", 400, priority=1))) == 2
        assert chosen(made, pod("b", 400, priority=0)) == {}

    def test_a_nomination_takes_the_room_of_pods_that_come_later(self) -> None:
        made = self.made()
        assert len(chosen(made, pod("a", 400, priority=1))) == 2
        assert len(chosen(made, pod("a2", 400, priority=1))) == 2  # what comes twice is kept
        Asking.asked.clear()
        made.nominator.add(PodInfo.of(pod("a", 400, priority=1)), "n0")
        assert chosen(made, pod("b", 400, priority=1)) == {"n1": ["v1"]}
        assert set(Asking.asked) == {"n0"}
        made.nominator.delete(pod("a"))
        assert len(chosen(made, pod("b", 400, priority=1))) == 2

    def test_its_own_nomination_is_no_obstacle_but_is_one_for_others(self) -> None:
        made = self.made()
        first, second = pod("a", 400, priority=1), pod("b", 400, priority=1)
        made.nominator.add(PodInfo.of(first), "n0")
        for _ in range(2):
            assert chosen(made, second) == {"n1": ["v1"]}
            assert len(chosen(made, first)) == 2

    def test_a_budget_that_changes_is_seen(self) -> None:
        made = self.made(limits={"min_candidate_nodes_percentage": 100})
        assert len(chosen(made, pod("a", 400, priority=1))) == 2
        made.cluster.add(budget(0, {"app": "none"}))
        Asking.asked.clear()
        assert len(chosen(made, pod("b", 400, priority=1))) == 2
        assert Asking.asked

    def test_rules_of_ones_own_are_asked_each_time(self) -> None:
        class Nobody(PreemptionRules):
            def may_preempt(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
                return victim.pod.name != "v0"

        made = self.made(rules=Nobody)
        for name in "ab":
            Asking.asked.clear()
            assert chosen(made, pod(name, 400, priority=1)) == {"n1": ["v1"]}
            assert set(Asking.asked) == {"n1"}

    def test_nothing_is_kept_where_a_filter_looks_at_other_nodes(self) -> None:
        far = plugin("Far", filter=lambda: None)
        nodes, low = [node("n0")], [pod("v0", 500, on="n0")]
        made = scene(nodes, low, plugins=[Asking, NodeResourcesFit, far])
        for name in "ab":
            Asking.asked.clear()
            assert chosen(made, pod(name, 400, priority=1)) == {"n0": ["v0"]}
            assert Asking.asked


def test_filters_that_read_the_node_alone_are_asked_once_in_a_trial() -> None:
    asked: list[str] = []
    fixed = plugin("Fixed", filter=lambda node_info: asked.append(node_info.name), reads=Reads.NODE)
    low = [pod(f"v{i}", 100, on="n0") for i in range(5)]
    made = scene([node("n0")], low, plugins=[fixed, NodeResourcesFit])
    assert len(chosen(made, pod("a", 300, priority=1))["n0"]) == 3
    assert asked == ["n0"]


@given(
    st.lists(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=1, max_size=3), max_size=6)
)
def test_columns_choose_the_candidates_that_the_criteria_choose(drawn: list[list[tuple[int, int]]]) -> None:
    table = NodeTable([NodeInfo.of(node(f"n{i}")) for i in range(len(drawn))])
    outcomes = Outcomes(table)
    for row, on_node in enumerate(drawn):
        pods = tuple(
            pod(f"v{row}-{i}", priority=priority, started=started)
            for i, (priority, started) in enumerate(sorted(on_node, reverse=True))
        )
        outcomes.add(row, f"n{row}", Victims(pods, num_pdb_violations=on_node[0][1]))
    candidates = outcomes.candidates(table, table.all_rows)
    assert candidates == [Candidate(f"n{row}", outcomes.victims[row]) for row in range(len(drawn))]
    assert tuple(best_candidates(candidates)) == tuple(best_candidates(tuple(candidates)))


def test_the_lowest_priority_on_a_node_follows_its_pods() -> None:
    infos = [NodeInfo.of(node("n0"), [pod("a", priority=1)]), NodeInfo.of(node("n1"))]
    table = NodeTable(infos)
    lowest = LowestPriorities(table)
    assert lowest.without_lower(1, table, table.all_rows).tolist() == [0, 1]
    assert lowest.without_lower(2, table, table.all_rows).tolist() == [1]
    changed = infos[1].clone()
    changed.add_pod(PodInfo.of(pod("b", priority=-5)))
    table.update(1, changed)
    assert lowest.without_lower(1, table, table.all_rows).tolist() == [0]
