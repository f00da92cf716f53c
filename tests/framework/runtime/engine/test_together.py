"""Nodes that are filtered and scored all together get the answers of the scalar forms, one node after the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from random import Random
from typing import cast

import attrs
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kschedfw import (
    ByDomain,
    Code,
    CycleState,
    EnabledPlugin,
    Evaluation,
    ExtensionPoint,
    FitError,
    Framework,
    FrozenDict,
    IntArray,
    Node,
    NodeInfo,
    NodeSelection,
    NodeTable,
    Parts,
    Plugin,
    PluginByDomain,
    Pod,
    PodInfo,
    Profile,
    Reads,
    Registry,
    ScheduleResult,
    Status,
    Verdicts,
    hookimpl,
    make_claim,
    make_node,
    make_pod,
    make_volume,
)
from kschedfw.api import (
    DeviceClass,
    EmptyDirSource,
    ObjectMeta,
    PersistentVolumeClaim,
    PodPhase,
    Service,
    ServiceSpec,
    Volume,
)
from kschedfw.api.devices import DeviceClassSpec
from kschedfw.config import default_profile
from kschedfw.framework.nodes.arrays import LARGEST_EXACT
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.plugin import AmountsRule
from kschedfw.framework.results import DomainScores, Normalizing
from kschedfw.framework.runtime.engine.passes import Pass
from kschedfw.framework.runtime.engine.steps import small_codes
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity
from kschedfw.plugins.node_name import NodeName
from kschedfw.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kschedfw.plugins.node_resources_fit import NodeResourcesFit
from kschedfw.scheduler import FirstByNameSelector, HostSelector
from kschedfw.testing import strategies
from kschedfw.testing.properties import examples
from tests.framework.runtime.engine.support import (
    COMPILED,
    GPU,
    NIC,
    NUMPY,
    RELATED,
    House,
    decision,
    everything,
    of_kind,
    relative,
    sibling,
    signing,
    snapshot_of,
    some_nodes,
    two_houses,
    use,
    with_strategy,
    zoned_nodes,
)
from tests.framework.support import PluginClass, answering, make_framework, plugin

REQUESTS = st.tuples(
    st.sampled_from([0, 1, 100, 333, 2000]),
    st.sampled_from([0, 1, 2**20, 3 * 2**30, LARGEST_EXACT, LARGEST_EXACT + 1]),
)
EXTENDED = st.fixed_dictionaries(
    {}, optional={"gpus": st.sampled_from([0, 1, 2, 9]), "nics": st.sampled_from([1, 2])}
)


# The plans are the same whatever runs them: test_pass.py compares the two forms of each loop with the plugins, and
# test_steps.py steps of all kinds in both.
@pytest.fixture(autouse=True, params=[COMPILED, pytest.param(NUMPY, marks=pytest.mark.nightly)])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pass:
    """The form of the pass that plans are run with."""
    return use(request.param, monkeypatch)


def alone(pod: Pod) -> Pod:
    """The pod without terms and constraints about other pods."""
    affinity = attrs.evolve(pod.spec.affinity, pod_affinity=None, pod_anti_affinity=None)
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, affinity=affinity, topology_spread_constraints=()))


@st.composite
def roomy_nodes(draw: st.DrawFn) -> Sequence[Node]:
    """Nodes of every kind, most of which have room."""
    found = [draw(strategies.nodes(f"n{number}")) for number in range(draw(st.integers(1, 6)))]
    capacity = make_node().capacity({"cpu": 4, "memory": "8Gi", "pods": 3, GPU: 2}).build().status
    return [
        node
        if draw(st.integers(0, 2)) == 0
        else attrs.evolve(node, status=attrs.evolve(capacity, images=node.status.images))
        for node in found
    ]


def evaluations_of(house: House, strategy: str, nominator: Nominator) -> tuple[Framework, Framework]:
    """A framework that decides by plans, and a scalar one, which look at the same nodes and objects."""
    planned, scalar = (
        Framework(
            Registry(),
            with_strategy(strategy),
            Parts(house.cluster, snapshot=house.snapshot, nominator=nominator),
            evaluation=each,
        )
        for each in (Evaluation.MEMO, Evaluation.SCALAR)
    )
    return planned, scalar


@pytest.mark.slow
@given(data=st.data(), nodes=roomy_nodes(), strategy=st.sampled_from(["LeastAllocated", "MostAllocated"]))
def test_answers_are_those_of_the_scalar_forms_for_any_pods_nodes_strategies_and_sampling(
    data: st.DataObject, nodes: Sequence[Node], strategy: str
) -> None:
    selected = Service(ObjectMeta(name="web", namespace="default"), ServiceSpec(FrozenDict({"app": "web"})))
    house = House(nodes, services=[selected] if data.draw(st.booleans(), "with a service") else [])
    nominator = Nominator()
    planned, scalar = evaluations_of(house, strategy, nominator)
    any_pod = data.draw(strategies.pods("any"))
    templates = [
        any_pod,
        alone(any_pod),
        make_pod("plain").build(),
        make_pod("tolerant").toleration(operator="Exists").image("web:1").build(),
    ]
    for number in range(6):
        template = data.draw(st.sampled_from(templates), "like")
        pod = (
            relative(template, number)
            if data.draw(st.booleans(), "with the same requests")
            else sibling(
                template, number, *data.draw(REQUESTS, "requests"), **data.draw(EXTENDED, "extended")
            )
        )
        house.cache.update_snapshot(house.snapshot)
        start, wanted = data.draw(st.integers(0, len(nodes) - 1)), data.draw(st.integers(1, len(nodes)))
        expected = decision(scalar, pod, start, wanted)
        for _ in range(data.draw(st.integers(1, 2), "times")):
            assert decision(planned, pod, start, wanted) == expected
        host = data.draw(st.sampled_from(nodes), "host")
        there = pod if data.draw(st.integers(0, 3), "with its terms") == 0 else alone(pod)
        house.cache.assume_pod(there.bound_to(host.name))
        if data.draw(st.integers(0, 3)) == 0:
            house.cache.update_node(data.draw(strategies.nodes(host.name), "changed node"))
        if data.draw(st.integers(0, 3)) == 0:
            nominated = relative(there, 100 + number)
            nominator.add(PodInfo.of(nominated), data.draw(st.sampled_from(nodes), "nominated to").name)
    event(f"{'some' if planned.decided_together else 'no'} pods together")
    assert not scalar.decided_together


def test_a_filter_asked_node_by_node_refuses_before_one_that_refuses_beside_nominated_pods() -> None:
    tainted = (
        make_node("n2").capacity(cpu=1, memory="1Gi", pods=9).taint("dedicated", effect="NoSchedule").build()
    )
    house, nominator = House([*some_nodes(2), tainted]), Nominator()
    planned, scalar = evaluations_of(house, "LeastAllocated", nominator)
    house.cache.update_snapshot(house.snapshot)
    nominator.add(PodInfo.of(make_pod("nominated").build()), "n0")
    selecting = make_pod("selecting").node_selector(app="web").requests({GPU: 1}).build()
    tolerant = make_pod("tolerant").toleration(operator="Exists").build()
    # The selector is first met by a plan that other pods have made.
    for pod in (make_pod("plain").build(), tolerant, selecting):
        assert decision(planned, pod, 0, 1) == decision(scalar, pod, 0, 1)


def with_token(pod: Pod) -> Pod:
    """The pod as admission leaves it: with a volume of its own that no plugin reads."""
    volumes = (Volume(f"kube-api-access-{pod.name}"), Volume("scratch", empty_dir=EmptyDirSource()))
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, volumes=volumes))


def decide_alike(planned: House, scalar: House, pods: Sequence[Pod]) -> None:
    """Assert that both houses give pods the same nodes and counts, draw the same numbers, and begin again alike."""
    assert [planned.schedule(pod) for pod in pods] == [scalar.schedule(pod) for pod in pods]
    assert planned.random.getstate() == scalar.random.getstate()
    assert planned.scheduler.next_start_node_index == scalar.scheduler.next_start_node_index
    assert scalar.together == 0


@pytest.mark.parametrize(
    ("percentage", "selector"),
    [(0, None), (100, FirstByNameSelector())],
    ids=["sampled and drawn", "all and first by name"],
)
def test_stream_of_pods_gets_the_same_nodes_draws_and_counts(
    percentage: int, selector: HostSelector | None
) -> None:
    random = Random(1)
    nodes = [
        make_node(f"n{number}")
        .capacity(cpu=random.choice([1, 4, 8]), memory="8Gi", pods=random.choice([2, 110]))
        .build()
        for number in range(150)
    ]
    template = make_pod("pod").build()
    pods = [
        sibling(template, number, random.choice([0, 250, 900, 3000]), random.choice([0, 2**30, 2**33]))
        for number in range(60)
    ]
    pods = [with_token(pod) if number % 2 else pod for number, pod in enumerate(pods)]
    planned, scalar = two_houses(nodes, percentage=percentage, selector=selector)
    decide_alike(planned, scalar, pods)
    assert planned.together == len(pods)


@pytest.mark.parametrize("percentage", [40, 100])
def test_pods_with_terms_and_constraints_get_the_same_nodes(percentage: int) -> None:
    random = Random(2)
    pods = []
    for number in range(50):
        template = random.choice(RELATED)
        pods.append(
            relative(template, number)
            if random.random() < 0.5
            else sibling(template, number, random.choice([0, 250, 900]), random.choice([0, 2**30]))
        )
    planned, scalar = two_houses(zoned_nodes(120), percentage=percentage)
    decide_alike(planned, scalar, pods)
    assert planned.together > 45


def found_and_chosen(house: House, pod: Pod) -> tuple[list[int], int, str] | str:
    """The feasible rows in visiting order, the number looked at, and the node that is chosen among them and taken."""
    state = CycleState()
    try:
        feasible, looked_at = house.scheduler.find(house.framework, state, pod)
    except FitError as error:
        return str(error)
    several = len(feasible) > 1
    chosen = feasible[house.scheduler.choose(house.framework, state, pod, feasible) if several else 0]
    house.cache.assume_pod(pod.bound_to(chosen.name))
    return feasible.rows.tolist(), looked_at, chosen.name


@pytest.mark.parametrize("percentage", [40, 100])
def test_feasible_nodes_and_the_choice_among_them_can_be_had_one_after_the_other(percentage: int) -> None:
    random = Random(5)
    templates = [*RELATED, make_pod("plain").build()]
    requests = [(random.choice([0, 250, 900, 3000]), random.choice([0, 2**30])) for _ in range(40)]
    pods = [sibling(random.choice(templates), number, *each) for number, each in enumerate(requests)]
    planned, scalar = two_houses(zoned_nodes(120), percentage=percentage)
    assert [found_and_chosen(planned, pod) for pod in pods] == [found_and_chosen(scalar, pod) for pod in pods]
    assert planned.random.getstate() == scalar.random.getstate()
    assert planned.together > 35


class TestKeptTotals:
    """The totals of pods with equal requests are kept, and only changed nodes are computed again."""

    def test_equal_pods_get_the_same_nodes_while_pods_come_and_go_and_kinds_take_turns(self) -> None:
        random = Random(3)
        kinds = [
            make_pod(f"kind{cpu}").requests(cpu=f"{cpu}m", memory="1Gi").build() for cpu in (100, 250, 4000)
        ]
        houses = two_houses(zoned_nodes(40), percentage=100)
        placed: list[Pod] = []
        for number in range(150):
            pod = relative(random.choice(kinds), number)
            results = [house.schedule(pod) for house in houses]
            assert results[0] == results[1]
            if isinstance(results[0], ScheduleResult):
                placed.append(pod.bound_to(results[0].suggested_host))
            if len(placed) > 30 and random.random() < 0.7:
                gone = [placed.pop(random.randrange(len(placed))) for _ in range(random.choice([1, 1, 20]))]
                for house in houses:
                    for each in gone:
                        house.cache.remove_pod(each)
        assert houses[0].together == 150

    @pytest.mark.parametrize("nodes", [50, 6], ids=["some are the best to the end", "each becomes worse"])
    def test_equal_pods_are_placed_by_looking_at_the_changed_node_alone(
        self, nodes: int, form: Pass, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        over_all: list[int] = []
        totals_of = form.totals_of

        def counted(*args: object) -> tuple[int, int]:
            over_all.append(1)
            return totals_of(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(form, "totals_of", counted)
        house = House(some_nodes(nodes), percentage=100)
        template = make_pod("pod").requests(cpu="300m").build()
        for number in range(20):
            house.schedule(relative(template, number))
        assert house.together == 20
        assert house.framework.memo_report()["NodeResourcesFit"].rows_asked == 0
        # The first of all, two more until it is known what pure hooks read, and the one whose totals are kept.
        assert len(over_all) <= 4

    @pytest.mark.slow
    def test_totals_that_lag_further_than_the_log_goes_back_are_computed_again(self) -> None:
        houses = two_houses(some_nodes(3), percentage=100)
        template = make_pod("pod").requests(cpu=1).build()
        for house in houses:
            for number in range(3):
                house.schedule(relative(template, number))
            large = make_pod("large").requests(cpu=7).build().bound_to("n0")
            for _ in range(1500):
                house.cache.add_pod(large)
                house.cache.update_snapshot(house.snapshot)
                house.cache.remove_pod(large)
                house.cache.update_snapshot(house.snapshot)
            house.cache.add_pod(large)
        assert houses[0].schedule(relative(template, 4)) == houses[1].schedule(relative(template, 4))
        assert houses[0].framework.memo_report()["NodeResourcesFit"].rows_asked == 0

    def test_refusals_of_a_pods_own_terms_and_its_scores_leave_them_as_they_are(self) -> None:
        """Between equal pods without terms come pods with the same requests, and terms that refuse and score."""
        nodes = zoned_nodes(12)
        houses = two_houses(nodes, percentage=100)
        kinds = [make_pod("plain").build(), *RELATED]
        random = Random(9)
        for number in range(40):
            pod = relative(kinds[0] if number % 2 else random.choice(kinds), number)
            assert houses[0].schedule(pod) == houses[1].schedule(pod)


def test_pod_of_a_known_kind_is_placed_without_a_question_to_any_plugin() -> None:
    house = House(some_nodes(5))
    template = make_pod("pod").build()
    for number in range(3):  # by the first ones it is learned what pure hooks read
        house.schedule(sibling(template, number, 100, 2**20))
    asked = house.rows_asked
    assert isinstance(house.schedule(sibling(template, 3, 170, 2**21)), ScheduleResult)
    assert (house.together, house.rows_asked) == (4, asked)


class TestExtendedResources:
    """They are compared as CPU is, unless something else than the node has them."""

    def house(self, **args: object) -> House:
        nodes = [
            make_node(f"n{number}")
            .capacity({"cpu": 8, "memory": "64Gi", "pods": 110, GPU: number % 3})
            .build()
            for number in range(9)
        ]
        return House(nodes, percentage=100, profile=with_strategy("LeastAllocated", **args))

    def after_three(self, house: House, **asked: int) -> ScheduleResult | str:
        """What a pod gets that asks for this, after three with a GPU."""
        for number in range(3):
            house.schedule(sibling(make_pod("pod").build(), number, 100 + number, 2**20, gpus=1))
        return house.schedule(sibling(make_pod("pod").build(), 3, 200, 2**20, **asked))

    def asks_fit(self, house: House, pod: Pod) -> bool:
        """Whether NodeResourcesFit is called for the pod, and not computed."""
        fit = house.framework.memo_report()["NodeResourcesFit"]
        before = fit.rows_asked
        house.schedule(pod)
        return fit.rows_asked > before

    def test_pods_with_a_gpu_are_placed_without_calls_where_there_is_one(self) -> None:
        house = self.house()
        result = self.after_three(house, gpus=2)
        assert isinstance(result, ScheduleResult)
        assert result.suggested_host in ("n2", "n5", "n8")
        assert not self.asks_fit(house, sibling(make_pod("pod").build(), 4, 250, 2**20, gpus=1))

    def test_pod_that_asks_for_a_resource_that_no_node_has_is_told_so(self) -> None:
        house = self.house()
        assert self.after_three(house, nics=1) == f"0/9 nodes are available: 9 Insufficient {NIC}."
        assert house.together == 4

    def test_where_some_are_ignored_the_hooks_are_called(self) -> None:
        house = self.house(ignoredResources=[GPU])
        assert isinstance(self.after_three(house, gpus=7), ScheduleResult)
        assert self.asks_fit(house, sibling(make_pod("pod").build(), 4, 250, 2**20, gpus=7))

    def test_device_class_that_comes_to_provide_them_is_heeded_though_the_kind_is_known(self) -> None:
        house = self.house()
        assert isinstance(self.after_three(house, gpus=1), ScheduleResult)
        spec = DeviceClassSpec(extended_resource_name=GPU)
        house.cluster.add(DeviceClass(ObjectMeta(name="gpus"), spec))
        assert self.asks_fit(house, sibling(make_pod("pod").build(), 4, 250, 2**20, gpus=1))


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated"])
def test_equal_and_differing_pods_with_gpus_get_the_same_nodes_and_draws(strategy: str) -> None:
    random = Random(4)
    nodes = [
        make_node(f"n{number}")
        .capacity({"cpu": random.choice([4, 8]), "memory": "8Gi", "pods": 110, GPU: random.choice([0, 4])})
        .build()
        for number in range(60)
    ]
    template = make_pod("pod").build()
    pods = [
        sibling(
            template,
            number,
            random.choice([100, 250, random.randrange(900)]),
            2**28,
            gpus=random.choice([1, 1, 2]),
        )
        for number in range(100)
    ]
    planned, scalar = two_houses(nodes, percentage=100, profile=with_strategy(strategy))
    decide_alike(planned, scalar, pods)
    assert planned.together == len(pods)


def test_pod_that_fits_nowhere_is_told_why_though_its_kind_is_known() -> None:
    house = House(some_nodes(5, cpu=1))
    template = make_pod("pod").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 0))
    assert house.schedule(sibling(template, 3, 1001, 0)) == "0/5 nodes are available: 5 Insufficient cpu."


EXACT = 2**44 - 1
"""The most that a pod may request for its amounts to be surely exact; a node may have up to `LARGEST_EXACT`."""


@pytest.mark.parametrize(
    ("there", "requested", "is_computed"),
    [
        (LARGEST_EXACT, EXACT, True),
        (LARGEST_EXACT, EXACT + 1, False),
        (LARGEST_EXACT + 1, 1, False),
    ],
)
def test_amounts_that_floats_dont_hold_exactly_are_not_computed_with(
    there: int, requested: int, is_computed: bool
) -> None:
    nodes = [make_node(name).capacity({"cpu": 8, "memory": there, "pods": 9}).build() for name in ("a", "b")]
    planned, scalar = two_houses(nodes, percentage=100)
    pods = [sibling(make_pod("pod").build(), number, 100, requested) for number in range(3)]
    decide_alike(planned, scalar, pods[:2])
    assert bool(planned.framework.memo_report()["NodeResourcesFit"].rows_asked) is not is_computed


def test_node_that_changes_counts_as_it_is_now() -> None:
    nodes = some_nodes(4)
    house = House(nodes)
    template = make_pod("pod").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 0))
    for node in nodes[1:]:
        house.cache.update_node(attrs.evolve(node, spec=attrs.evolve(node.spec, unschedulable=True)))
    assert {house.host(sibling(template, number, 100, 0)) for number in range(3, 7)} == {"n0"}


def test_term_of_a_pod_on_a_node_is_heeded_though_the_kind_is_known() -> None:
    house = House(some_nodes(3))
    template = make_pod("web").labels(app="web").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 0))
    averse = make_pod("averse").pod_anti_affinity("host", {"app": "web"}).build()
    for name in ("n0", "n1"):
        house.cache.add_pod(sibling(averse, int(name[1:]), 1, 1).bound_to(name))
    result = house.schedule(sibling(template, 3, 100, 0))
    assert isinstance(result, ScheduleResult)
    assert (result.suggested_host, result.feasible_nodes) == ("n2", 1)


_NOT_N1 = Status.unschedulable("node(s) were not n1")


class Picky(Plugin[None]):
    """A filter that promises nothing, and has no batch form."""

    name = "Picky"

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return None if node_info.name == "n1" else _NOT_N1


class Signed(Picky):
    """The same filter with the two promises that let its answers be kept."""

    name = "Signed"
    reads = Reads.NODE

    def sign(self) -> Hashable:
        return ()


class OtherName(NodeName):
    """A subclass that overrides hooks, and no promise of its base."""

    name = "OtherName"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:  # as its base
        return None if node_info.name == "n1" else _NOT_N1

    @hookimpl
    def filter_batch(self, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts:  # as its base
        return Verdicts.refuse(rows != nodes.rows["n1"], _NOT_N1)


class OtherFit(NodeResourcesFit):
    """A subclass that overrides the filter, and not the rule of amounts that its base names."""

    name = "OtherFit"

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:  # type: ignore[override]
        return None if node_info.name == "n1" else _NOT_N1

    @hookimpl
    def filter_batch(self, nodes: NodeTable, rows: IntArray) -> Verdicts:  # type: ignore[override]
        return Verdicts.refuse(rows != nodes.rows["n1"], _NOT_N1)


def registry_with(plugin: PluginClass) -> Registry:
    registry = Registry()
    registry.register(plugin)
    return registry


@pytest.mark.parametrize("plugin", [Picky, Signed, OtherName])
@pytest.mark.parametrize("is_last", [True, False])
def test_filter_of_ones_own_is_asked_together_with_the_others_whatever_it_promises(
    plugin: PluginClass, is_last: bool
) -> None:
    default = default_profile()
    others = default.multi_point
    own = attrs.evolve(others[0], name=plugin.name)
    profile = attrs.evolve(default, multi_point=(*others, own) if is_last else (own, *others))
    house = House(some_nodes(3), profile=profile, registry=registry_with(plugin))
    template = make_pod("pod").build()
    assert {house.host(sibling(template, number, 100, 0)) for number in range(4)} == {"n1"}
    refused = [house.schedule(sibling(template, number, 90_000, 0)) for number in (5, 6)]
    reasons = "3 Insufficient cpu" if is_last else "1 Insufficient cpu, 2 node(s) were not n1"
    assert refused == [f"0/3 nodes are available: {reasons}."] * 2
    # A filter without a batch form, and with others behind it, can't be told from them once all are combined.
    assert house.together == (0 if plugin is Picky and not is_last else 6)


class KeepsToN1(InterPodAffinity):
    """A subclass that overrides the filter, and not the answers by domain that its base gives in its place."""

    name = "KeepsToN1"

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:  # as its base
        return None if node_info.name == "n1" else _NOT_N1

    @hookimpl
    def filter_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> Verdicts:  # as its base
        return Verdicts.refuse(rows != nodes.rows["n1"], _NOT_N1)


@pytest.mark.parametrize(
    ("own", "base"), [(KeepsToN1, InterPodAffinity), (OtherFit, NodeResourcesFit)], ids=["domains", "rule"]
)
def test_what_its_base_promises_doesnt_stand_for_a_subclasss_own_filter(
    own: PluginClass, base: PluginClass
) -> None:
    default = default_profile()
    plugins = [
        attrs.evolve(each, name=own.name if each.name == base.name else each.name)
        for each in default.multi_point
    ]
    profile = attrs.evolve(default, multi_point=tuple(plugins))
    house = House(some_nodes(3), profile=profile, registry=registry_with(own))
    template = make_pod("pod").labels(app="web").pod_anti_affinity("rack", {"app": "other"}).build()
    assert {house.host(sibling(template, number, 100, 0)) for number in range(4)} == {"n1"}
    assert house.together == 4


def test_two_plugins_that_follow_one_rule_are_both_asked() -> None:
    class Twin(NodeResourcesFit):
        name = "Twin"

    default = default_profile()
    fit = next(each for each in default.multi_point if each.name == "NodeResourcesFit")
    profile = attrs.evolve(
        default, multi_point=(*default.multi_point, attrs.evolve(fit, name="Twin", weight=5))
    )
    planned, scalar = two_houses(some_nodes(9), profile=profile, registry=registry_with(Twin), percentage=100)
    template = make_pod("pod").build()
    decide_alike(planned, scalar, [sibling(template, number, 100 * number, 2**28) for number in range(20)])
    assert planned.framework.memo_report()["Twin"].rows_asked


FIT, BALANCE = NodeResourcesFit.name, NodeResourcesBalancedAllocation.name
POINTS = {
    ExtensionPoint.PRE_FILTER: [FIT],
    ExtensionPoint.FILTER: [FIT],
    ExtensionPoint.PRE_SCORE: [FIT, BALANCE],
    ExtensionPoint.SCORE: [FIT, BALANCE],
}


@pytest.mark.parametrize("enabled", range(16))
def test_plugins_that_a_profile_enables_at_some_points_alone_follow_no_rule_there(enabled: int) -> None:
    """Without pre_score, for example, nothing skips the score of balance for a pod that requests nothing."""
    points = {point: plugins for bit, (point, plugins) in enumerate(POINTS.items()) if enabled >> bit & 1}
    planned, scalar = two_houses(zoned_nodes(9), profile=Profile(points=points))
    told: list[list[object]] = [[], []]
    for house, its in zip((planned, scalar), told, strict=True):
        for name, cpu in (("n1", 3), ("n4", 8)):
            house.cache.add_pod(make_pod(f"on-{name}").requests(cpu=cpu).build().bound_to(name))
        house.cache.update_snapshot(house.snapshot)
        for pod in (make_pod("none").build(), make_pod("some").requests(cpu=1, memory="1Gi").build()):
            state, framework = CycleState(), house.framework
            framework.run_pre_filter_plugins(state, pod)
            found = framework.filter_nodes(state, pod, house.snapshot.selection)
            framework.run_pre_score_plugins(state, pod, found.feasible)
            totals, status = framework.total_scores(state, pod, found.feasible)
            its += [
                found.feasible.rows.tolist(),
                str(found.error),
                list(found.refused),
                state.skip_score_plugins,
            ]
            its.append(status.message if totals is None else totals.values.tolist())
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "differing",
    [
        make_pod("pod").toleration("spot", operator="Exists").build(),
        make_pod("pod").node_selector(host="n0").build(),
        make_pod("pod").image("registry.example/other:1").build(),
        make_pod("pod").host_port(80).build(),
    ],
    ids=["toleration", "node selector", "image", "host port"],
)
def test_pod_of_another_signature_is_asked_about_for_the_first_time(differing: Pod) -> None:
    # The image is on one node, so that it matters.
    with_image = make_node("n5").capacity(cpu=8, pods=9).image("registry.example/other:1", size=2**30).build()
    house = House([*some_nodes(5), with_image])
    template = make_pod("pod").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 0))
    asked = house.rows_asked
    assert isinstance(house.schedule(sibling(differing, 3, 100, 0)), ScheduleResult)
    assert house.rows_asked > asked


class TestNominatedPods:
    """Those of equal or higher priority are left room for."""

    def nominated_to(self, nodes: Sequence[Node], count: int) -> Nominator:
        """A nominator with pods of three priorities for so many nodes; some have terms of their own."""
        random, nominator = Random(4), Nominator()
        for number in range(count):
            made = (
                make_pod(f"nominated{number}")
                .labels(app=random.choice("ab"))
                .priority(random.choice([0, 5, 9]))
            )
            if random.random() < 0.2:
                made = made.pod_anti_affinity("host", {"app": "a"})
            pod = sibling(made.build(), 0, random.choice([500, 4000, 8000]), 2**30, gpus=number % 2)
            nominator.add(PodInfo.of(pod), random.choice(nodes).name)
        return nominator

    @pytest.mark.parametrize("count", [1, 6, 25])
    @pytest.mark.parametrize("percentage", [30, 100])
    def test_pods_get_the_same_nodes_and_draws(self, count: int, percentage: int) -> None:
        random, nodes = Random(count), zoned_nodes(30)
        nominator = self.nominated_to(nodes, count)
        houses = two_houses(nodes, percentage=percentage, nominator=nominator)
        templates = [*RELATED, *[make_pod("plain").priority(n).build() for n in (0, 5, 9)]]
        for number in range(80):
            template = random.choice(templates)
            pod = sibling(
                template, number, random.choice([0, 250, 5000]), 2**20, gpus=random.choice([0, 0, 0, 1])
            )
            assert houses[0].schedule(pod) == houses[1].schedule(pod)
            if number % 20 == 19:
                nominator.add(nominator.nominated_pods()[0], f"n{number % 7}")
        assert houses[0].random.getstate() == houses[1].random.getstate()
        assert houses[0].together == 80

    def house(self, amounts: Mapping[str, str | int], crowded: int = 1) -> House:
        """Twelve nodes; a pod with these requests is nominated to each of the first ones."""
        capacity: dict[str, str | int] = {
            "cpu": 1,
            "memory": "1Gi",
            "ephemeral-storage": "1Gi",
            "pods": 2,
            GPU: 1,
        }
        nominator = Nominator()
        house = House(
            [make_node(f"n{number}").capacity(capacity).build() for number in range(12)],
            nominator=nominator,
            percentage=100,
        )
        for number in range(crowded):
            high = make_pod(f"high{number}").uid(f"high{number}").priority(5).requests(amounts)
            nominator.add(PodInfo.of(high.build()), f"n{number}")
        house.cache.update_snapshot(house.snapshot)
        return house

    def refusing(self, house: House, pod: Pod) -> list[int]:
        """The nodes that leave the pod no room."""
        house.cache.update_snapshot(house.snapshot)
        feasible = decision(house.framework, pod, 0, 12)[4]
        return [row for row in range(12) if row not in feasible]  # type: ignore[operator]

    @pytest.mark.parametrize("crowded", [1, 8, 9])
    @pytest.mark.parametrize("resource", ["cpu", "memory", "ephemeral-storage"])
    @pytest.mark.parametrize(("left", "fits"), [(0, True), (1, False)], ids=["all that is left", "one more"])
    def test_each_resource_counts_to_the_last_unit(
        self, crowded: int, resource: str, left: int, fits: bool
    ) -> None:
        whole, taken = {"cpu": (1000, 900)}.get(resource, (2**30, 2**29))
        unit = "m" if resource == "cpu" else ""
        house = self.house({resource: f"{taken}{unit}"}, crowded)
        pod = make_pod("pod").requests({resource: f"{whole - taken + left}{unit}"}).build()
        assert self.refusing(house, pod) == ([] if fits else list(range(crowded)))
        assert house.together == 1

    @pytest.mark.parametrize("crowded", [1, 9])
    def test_their_number_counts(self, crowded: int) -> None:
        house = self.house({}, crowded)
        house.cache.add_pod(make_pod("there").build().bound_to("n0"))
        assert self.refusing(house, make_pod("pod").build()) == [0]

    @pytest.mark.parametrize("priorities", [(4, 6, 5), (6, 5, 4)])
    def test_those_of_a_lower_priority_dont_count(self, priorities: Sequence[int]) -> None:
        house = self.house({"cpu": 1})
        for priority in priorities:
            pod = make_pod("pod").requests(cpu=1).priority(priority).build()
            assert self.refusing(house, pod) == ([] if priority > 5 else [0])

    @pytest.mark.parametrize("order", [("own", "other"), ("other", "own", "other")])
    def test_pods_own_nomination_leaves_it_its_room(self, order: Sequence[str]) -> None:
        house = self.house({"cpu": 1})
        (own,) = house.framework.handle.nominator.nominated_pods()
        other = make_pod("other").priority(5).requests(cpu=1).build()
        for which in order:
            assert self.refusing(house, own.pod if which == "own" else other) == (
                [] if which == "own" else [0]
            )

    @pytest.mark.parametrize("crowded", [2, 11], ids=["a low row", "the last row"])
    def test_they_count_in_a_search_of_a_part_of_the_nodes(self, crowded: int) -> None:
        """The codes of nodes without room are looked up by row, and the last rows are beyond the part's length."""
        house = self.house({"cpu": 1})
        (nominated,) = house.framework.handle.nominator.nominated_pods()
        house.framework.handle.nominator.add(nominated, f"n{crowded}")
        house.cache.update_snapshot(house.snapshot)
        part = NodeSelection.named(house.snapshot.table, [f"n{row}" for row in range(2, 12)])
        state, pod = CycleState(), make_pod("pod").requests(cpu=1).build()
        house.framework.run_pre_filter_plugins(state, pod)
        found = house.framework.filter_nodes(state, pod, part)
        assert found.feasible.rows.tolist() == [row for row in range(2, 12) if row != crowded]
        assert house.together == 1

    def test_withdrawn_and_moved_nominations_count_no_more(self) -> None:
        house = self.house({"cpu": 1})
        nominator, pod = house.framework.handle.nominator, make_pod("pod").requests(cpu=1).build()
        (nominated,) = nominator.nominated_pods()
        assert self.refusing(house, pod) == [0]
        nominator.add(nominated, "n1")
        assert self.refusing(house, pod) == [1]
        nominator.delete(nominated.pod)
        assert self.refusing(house, pod) == []

    @settings(max_examples=examples(20))
    @given(seed=st.integers(0, 2**32 - 1))
    def test_refusals_are_those_of_the_scalar_forms_while_nominations_come_move_and_go(
        self, seed: int
    ) -> None:
        random, nominator = Random(seed), Nominator()
        amounts = [0, 1000, 2000, 4000]
        house = House(
            [
                make_node(f"n{number}")
                .capacity(cpu=random.choice([1, 2, 4]), memory=f"{random.choice([1, 2, 4])}k", pods=3)
                .taint("gone", effect=random.choice(["NoSchedule", "PreferNoSchedule", "PreferNoSchedule"]))
                .build()
                for number in range(12)
            ]
        )
        planned, scalar = evaluations_of(house, "LeastAllocated", nominator)
        asker = make_pod("asker").build()
        for number in range(12):
            for _ in range(random.randrange(4)):
                high = make_pod(f"high{random.randrange(8)}").priority(random.choice([0, 5])).build()
                pod = sibling(high, 0, random.choice(amounts), random.choice(amounts))
                nominator.add(PodInfo.of(pod), f"n{random.randrange(13)}")
            if random.random() < 0.3 and nominator.nominated_pods():
                nominator.delete(random.choice(nominator.nominated_pods()).pod)
            house.cache.update_snapshot(house.snapshot)
            pod = sibling(asker, number, random.choice(amounts), random.choice(amounts))
            assert decision(planned, pod, 0, 12) == decision(scalar, pod, 0, 12)
            house.cache.assume_pod(pod.bound_to(f"n{random.randrange(12)}"))

    def test_their_devices_count(self) -> None:
        house = self.house({GPU: 1})
        assert self.refusing(house, make_pod("pod").requests({GPU: 1}).build()) == [0]
        assert self.refusing(house, make_pod("pod").build()) == []

    @pytest.mark.parametrize("hook", [ValueError("no"), Status.unschedulable("no")])
    def test_plugin_that_fails_to_count_them_ends_the_search(self, hook: object) -> None:
        nominator = Nominator()
        nominator.add(PodInfo.of(make_pod("high").priority(5).build()), "n1")
        follower = plugin("Follower", pre_filter=answering(None), pre_filter_add_pod=answering(hook))
        planned, scalar = (
            make_framework(
                signing(),
                follower,
                snapshot=snapshot_of(9),
                nominator=nominator,
                evaluation=evaluation,
            )
            for evaluation in (Evaluation.MEMO, Evaluation.SCALAR)
        )
        expected = decision(scalar, of_kind("a"), 0, 9)
        assert expected[7], "an error"
        assert decision(planned, of_kind("a"), 0, 9) == expected

    def test_profile_without_a_filter_for_room_leaves_them_none(self) -> None:
        nominator = Nominator()
        nominator.add(PodInfo.of(make_pod("high").priority(5).requests(cpu=1).build()), "n1")
        nodes = [make_node(f"n{number}").capacity(cpu=1, pods=1).build() for number in range(9)]
        framework = make_framework(signing(), nodes=nodes, nominator=nominator)
        assert decision(framework, of_kind("a"), 0, 9)[4] == list(range(9))
        assert framework.decided_together == 1

    def test_they_follow_their_node_to_another_row(self) -> None:
        house = self.house({"cpu": 1})
        pod = make_pod("pod").requests(cpu=1).build()
        assert self.refusing(house, pod) == [0]
        infos = list(house.snapshot.node_infos)
        house.snapshot.replace([*infos[1:], infos[0]])
        assert decision(house.framework, pod, 0, 12)[4] == list(range(11))

    def test_node_that_nobody_has_is_no_trouble(self) -> None:
        house = self.house({"cpu": 1})
        (nominated,) = house.framework.handle.nominator.nominated_pods()
        house.framework.handle.nominator.add(nominated, "gone")
        result = house.schedule(make_pod("pod").requests(cpu=1).build())
        assert isinstance(result, ScheduleResult)
        assert result.feasible_nodes == 12


def refusal(house: House, pod: Pod) -> tuple[object, ...]:
    """What is known of a pod that no node takes, and what preemption does about it."""
    state = CycleState()
    with pytest.raises(FitError) as refused:
        house.scheduler.schedule(house.framework, state, pod)
    diagnosis = refused.value.diagnosis
    preempted, status = house.framework.run_post_filter_plugins(state, pod, diagnosis.node_to_status)
    return (
        str(refused.value),
        list(diagnosis.node_to_status),
        diagnosis.unschedulable_plugins,
        state.skip_filter_plugins,
        preempted,
        status,
        house.scheduler.next_start_node_index,
    )


@pytest.mark.parametrize("percentage", [30, 100])
@pytest.mark.parametrize("is_nominated", [False, True], ids=["", "beside a nominated pod"])
def test_pod_that_no_node_takes_is_refused_for_the_same_reasons_and_preempts_alike(
    percentage: int, is_nominated: bool
) -> None:
    nodes = [
        attrs.evolve(node, spec=attrs.evolve(node.spec, unschedulable=number % 5 == 0))
        for number, node in enumerate(zoned_nodes(12))
    ]
    low = [
        attrs.evolve(pod.bound_to(f"n{number}"), status=attrs.evolve(pod.status, phase=PodPhase.RUNNING))
        for number in range(12)
        for pod in [sibling(make_pod("low").labels(app="a").build(), number, 7000, 2**30)]
    ]
    nominator = Nominator()
    if is_nominated:
        for name in ("n1", "n5"):
            high = make_pod(f"high-{name}").labels(app="a").requests(cpu=1).priority(9).build()
            nominator.add(PodInfo.of(high), name)
    houses = two_houses(nodes, low, percentage=percentage, nominator=nominator)
    templates = [
        make_pod("large").priority(7).build(),
        make_pod("chosen").node_selector(zone="z1").priority(7).build(),
        make_pod("far").labels(app="b").pod_anti_affinity("zone", {"app": "a"}).build(),
        make_pod("spread").labels(app="a").spread("rack", {"app": "a"}).priority(1).build(),
    ]
    amounts = [(2000, 2**20), (9000, 2**20), (3000, 2**37), (1500, 0)]
    for number in range(24):
        pod = sibling(templates[number % 4], number, *amounts[number // 4 % 4])
        first, second = (refusal(house, pod) for house in houses)
        assert first == second
    assert houses[0].together == 24


def test_pods_with_volumes_get_the_same_nodes_while_claims_are_bound_and_gone() -> None:
    random = Random(6)
    nodes = [
        make_node(f"n{number}").capacity(cpu=8, memory="64Gi", pods=4).zone(f"z{number % 3}").build()
        for number in range(20)
    ]
    houses = two_houses(nodes, percentage=100)
    for house in houses:
        for number in range(60):
            claim = make_claim(f"c{number}").requests("1Gi").access_modes("ReadWriteOnce")
            if number % 7:
                volume = make_volume(f"v{number}").capacity("1Gi").access_modes("ReadWriteOnce")
                house.cluster.add(volume.zone(f"z{number % 4}").claimed_by(f"default/c{number}").build())
                claim = claim.bound_to(f"v{number}")
            house.cluster.add(claim.build())
    for number in range(60):
        template = make_pod("pod").claim(f"c{random.randrange(64)}").build()
        pod = sibling(template, number, random.choice([100, 2000]), 2**20)
        assert houses[0].schedule(pod) == houses[1].schedule(pod)
        if number % 20 == 19:
            for house in houses:
                house.cluster.delete(house.cluster.get(PersistentVolumeClaim, f"default/c{number}"))  # type: ignore[arg-type]
    assert houses[0].together > 25


def test_scores_of_a_plugin_that_reads_nodes_alone_are_normalized_for_every_pod() -> None:
    nodes = [
        make_node(f"n{number}")
        .capacity(cpu=8, memory="64Gi", pods=110)
        .taint(f"k{number % 3}", effect="PreferNoSchedule")
        .build()
        for number in range(9)
    ]
    planned, scalar = two_houses(nodes, percentage=100)
    template = make_pod("pod").toleration("k0", operator="Exists").build()
    decide_alike(planned, scalar, [sibling(template, number, 100 * number, 2**20) for number in range(20)])
    assert planned.together == 20


def test_outcome_must_be_read_before_the_next_pod_is_filtered() -> None:
    house = House(some_nodes(4, cpu=1))
    house.cache.update_snapshot(house.snapshot)
    framework = house.framework
    house.cache.add_pod(make_pod("there").requests(cpu=1).build().bound_to("n0"))
    house.cache.update_snapshot(house.snapshot)

    def search(name: str) -> Callable[[], object]:
        state, pod = CycleState(), make_pod(name).requests(cpu=1).build()
        framework.run_pre_filter_plugins(state, pod)
        found = framework.filter_nodes(state, pod, house.snapshot.selection)
        return lambda: (found.feasible.rows, found.refused)

    first, second = search("a"), search("b")
    second()
    with pytest.raises(RuntimeError, match="must be read before the next pod is filtered"):
        first()


def test_any_nodes_can_be_scored_after_a_search_whether_they_have_passed_or_not() -> None:
    nodes = some_nodes(6)
    houses = two_houses(nodes, percentage=100)
    told = []
    for house in houses:
        house.cache.add_pod(make_pod("there").requests(cpu=8).build().bound_to("n2"))
        house.cache.update_snapshot(house.snapshot)
        state, pod, framework = CycleState(), make_pod("pod").requests(cpu=1).build(), house.framework
        framework.run_pre_filter_plugins(state, pod)
        framework.filter_nodes(state, pod, house.snapshot.selection)
        for rows in ([4, 1], [3, 2], [], [2]):
            some = NodeSelection(house.snapshot.table, np.array(rows, dtype=np.int64))
            framework.run_pre_score_plugins(state, pod, some)
            totals, status = framework.total_scores(state, pod, some)
            assert totals is not None
            told.append((rows, status, totals.values.tolist(), totals.best.tolist()))
    assert told[:4] == told[4:]


def test_scores_are_those_of_their_nodes_from_whichever_row_a_search_begins() -> None:
    made = plugin("A", filter=answering(None), score=lambda node_info: int(node_info.name[1:]))
    framework = make_framework(made, snapshot=snapshot_of(12))
    for start in (0, 5):
        told = decision(framework, of_kind("a"), start, 12)
        rows, totals, best = told[4], told[10], told[11]
        assert rows == totals == [*range(start, 12), *range(start)]
        assert best == [11]
    assert framework.decided_together == 2


def planned_and_scalar(
    *plugins: PluginClass, count: int = 12, weight: int = 1, nominator: Nominator | None = None
) -> tuple[Framework, Framework]:
    """Two frameworks with these plugins, all of one weight: one decides by plans, the other by scalar forms."""
    profile = Profile([EnabledPlugin(each.name, weight) for each in plugins])
    planned, scalar = (
        make_framework(
            *plugins, snapshot=snapshot_of(count), profile=profile, nominator=nominator, evaluation=each
        )
        for each in (Evaluation.MEMO, Evaluation.SCALAR)
    )
    return planned, scalar


@pytest.mark.parametrize("start", [0, 5])
def test_best_nodes_of_equal_pods_come_in_the_order_of_the_search(start: int) -> None:
    planned, scalar = planned_and_scalar(signing())
    for _ in range(3):
        told = decision(planned, of_kind("a"), start, 12)
        assert told == decision(scalar, of_kind("a"), start, 12)
        assert told[11] == [*range(start, 12), *range(start)]
    assert planned.decided_together == 3


def test_node_that_the_last_filter_refuses_isnt_among_the_best_though_totals_are_kept() -> None:
    last = plugin("B", filter=lambda node_info: _NOT_N1 if node_info.name == "n0" else None)
    planned, scalar = planned_and_scalar(signing(), last)
    for _ in range(3):
        told = decision(planned, of_kind("a"), 0, 12)
        assert told == decision(scalar, of_kind("a"), 0, 12)
        assert told[11] == [*range(1, 12)]
    assert planned.decided_together == 3


def test_filter_that_follows_pods_is_asked_beside_kept_ones_once_an_answer_couldnt_be_kept() -> None:
    later = Status.unschedulable("later", retry_at=9e9)
    framework, scalar = planned_and_scalar(
        signing(reads=Reads.PODS, filter=lambda node_info: later if node_info.name == "n3" else None)
    )
    for _ in range(3):
        assert decision(framework, of_kind("a"), 0, 12) == decision(scalar, of_kind("a"), 0, 12)
    assert framework.decided_together == 2


@pytest.mark.parametrize("resource", ["cpu", "memory", "ephemeral-storage"])
def test_pod_fits_where_a_resource_that_it_doesnt_request_is_overcommitted(resource: str) -> None:
    capacity: dict[str, str | int] = {"cpu": 1, "memory": "1Gi", "ephemeral-storage": "1Gi", "pods": 9}
    house = House([make_node("n").capacity(capacity).build()])
    large = make_pod("large").requests({resource: "8Gi"}).build()
    house.cache.add_pod(large.bound_to("n"))
    assert house.host(make_pod("pod").build()) == "n"
    assert house.together == 1


def scoring_by_domain(values: Sequence[int], normalizing: Normalizing) -> PluginClass:
    """A plugin whose nodes have these scores in turn, and are all equal without any."""

    def score(node_info: NodeInfo) -> int:
        return values[int(node_info.name[1:]) % len(values)] if values else 0

    def normalize(scores: IntArray) -> IntArray:
        low, high = int(scores.min()), int(scores.max())
        if normalizing is Normalizing.STRETCHED:
            return np.array([int((each - low) / ((high - low) or 1) * 100) for each in scores.tolist()])
        return np.array([100 * (high + low - each) // high if high else 100 for each in scores.tolist()])

    def domain_scores(_self: object, _state: CycleState, nodes: NodeTable) -> DomainScores:
        column = nodes.encoded("turn", lambda info: int(info.name[1:]) % max(len(values), 1))
        scores = [values[turn] for turn in column.values] if values else []
        parts = [ByDomain(column, np.array([*scores, 0], dtype=np.int64))] if values else []
        return DomainScores(parts, normalizing)

    made = plugin("A", PluginByDomain, filter=answering(None), score=score, normalize_score=normalize)
    made.domain_scores = domain_scores  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("normalizing", Normalizing)
@pytest.mark.parametrize(
    "values",
    [(), (0, 0), (3, 1, 2), (1, 2**50, 2**51, LARGEST_EXACT + 1)],
    ids=["equal", "all 0", "few", "too large for floats"],
)
def test_scores_by_domain_are_those_of_single_nodes(values: Sequence[int], normalizing: Normalizing) -> None:
    planned, scalar = planned_and_scalar(scoring_by_domain(values, normalizing), weight=3)
    for _ in range(2):
        assert decision(planned, of_kind("a"), 0, 12) == decision(scalar, of_kind("a"), 0, 12)
    assert planned.decided_together == 2


@pytest.mark.parametrize("is_signed", [True, False], ids=["kept", "asked"])
@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("skipped", ["pre_filter", "pre_score"])
def test_skipped_filter_and_score_dont_count(is_signed: bool, batch: bool, skipped: str) -> None:
    no = Status.unschedulable("no")
    hooks: dict[str, object] = {
        "filter": lambda node_info: no if node_info.name == "n1" else None,
        "score": answering(7),
        skipped: answering(Status.skip()),
    }
    if batch:
        hooks["filter_batch"] = lambda rows: Verdicts.refuse(rows == 1, no)
        hooks["score_batch"] = lambda rows: np.full(len(rows), 7)
    made = signing("A", reads=Reads.PODS, **hooks) if is_signed else plugin("A", **hooks)
    framework = make_framework(made, snapshot=snapshot_of(12))
    for _ in range(3):
        state, pod = CycleState(), of_kind("a")
        framework.run_pre_filter_plugins(state, pod)
        found = framework.filter_nodes(state, pod, everything(framework))
        assert found.count == (12 if skipped == "pre_filter" else 11)
        framework.run_pre_score_plugins(state, pod, found.feasible)
        for nodes in (found.feasible[:3], found.feasible):
            totals, _ = framework.total_scores(state, pod, nodes)
            assert totals is not None
            assert totals.values.tolist() == [7 if skipped == "pre_filter" else 0] * len(nodes)
    assert framework.decided_together == 3


def test_statuses_of_a_batch_form_may_change_from_pod_to_pod() -> None:
    """A second success lets nodes pass, too; a code means what it means in the same answer."""
    success, also, no = Status.success(), Status(Code.SUCCESS), Status.unschedulable("no")
    given: list[tuple[tuple[Status, ...], list[int]]] = [
        ((success, also, no), [0, 1, 2, 1, 2, 0, 0, 0, 0]),
        ((success, no), [0, 1, 0, 1, 0, 0, 0, 0, 0]),
        ((success, no), [0, 0, 0, 1, 0, 0, 0, 0, 1]),
        ((success, no, also), [0, 1, 2, 2, 2, 0, 0, 0, 0]),
        ((success,), [0] * 9),
    ]
    answer = given[0]

    def filter_batch(rows: IntArray) -> Verdicts:
        return Verdicts(np.array(answer[1], dtype=np.int8)[rows], answer[0])

    made = plugin("A", filter=answering(None), filter_batch=filter_batch)
    framework = make_framework(made, snapshot=snapshot_of(9))
    for answer in given * 2:
        statuses, codes = answer
        found = framework.filter_nodes(CycleState(), of_kind("a"), everything(framework))
        expected = [row for row in range(9) if statuses[codes[row]].is_success]
        assert found.feasible.rows.tolist() == expected
        assert {status.message for _, status in found.refused} <= {"no"}
        assert found.refused.count == 9 - len(expected)
    assert framework.decided_together == 10


@pytest.mark.parametrize("length", [0, 1, 8, 10])
def test_answer_for_other_nodes_than_those_asked_about_is_an_error(length: int) -> None:
    statuses, right = (Status.success(), Status.unschedulable("no")), True
    made = plugin(
        "A",
        filter=answering(None),
        filter_batch=lambda rows: Verdicts(np.zeros(len(rows) if right else length, dtype=np.int8), statuses),
    )
    framework = make_framework(made, snapshot=snapshot_of(9))
    for right in (True, False, True):
        found = framework.filter_nodes(CycleState(), of_kind("a"), everything(framework))
        assert (found.error is None, found.count) == (right, 9 if right else 0)


def test_codes_are_given_to_the_pass_in_an_array_that_can_be_written_to() -> None:
    """The compiled pass would be compiled again for any other kind of array, which takes seconds."""
    statuses = (Status.success(), Status.unschedulable("no"))
    read_only = np.array([0, 1], dtype=np.int8)
    read_only.setflags(write=False)
    for codes in (
        read_only,
        np.array([0, 7]),
        np.array([0, 256], dtype=np.int16),
        np.array([0, 1], dtype=np.int8),
    ):
        found = small_codes(Verdicts(codes, statuses))
        assert found.dtype == np.int8
        assert found.flags.writeable
        assert (found != 0).tolist() == [False, True]


def test_rule_of_amounts_is_the_one_of_the_profiles_strategy() -> None:
    rules = [
        cast(
            "NodeResourcesFit", House([], profile=with_strategy(each)).framework.plugins["NodeResourcesFit"]
        ).amounts_rule
        for each in ("LeastAllocated", "MostAllocated")
    ]
    assert rules == [AmountsRule.LEAST_ALLOCATED, AmountsRule.MOST_ALLOCATED]
