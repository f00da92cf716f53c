"""A pod that is placed in one pass gets the node that the hooks would have given it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from random import Random

import attrs
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kschedfw import (
    Cache,
    Code,
    CycleState,
    FitError,
    Framework,
    FrozenDict,
    GenericScheduler,
    InMemoryCluster,
    IntArray,
    Node,
    NodeInfo,
    NodeSelection,
    NodeTable,
    PlanPart,
    Plugin,
    Pod,
    PodInfo,
    Profile,
    Reads,
    Registry,
    ScheduleResult,
    Snapshot,
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
    ResourceRequirements,
    Service,
    ServiceSpec,
    Volume,
)
from kschedfw.api.devices import DeviceClassSpec
from kschedfw.config import default_profile, parse_configuration
from kschedfw.framework.metrics import MeasuredPoint, MetricsRecorder, NoMetrics
from kschedfw.framework.nodes.arrays import LARGEST_EXACT
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.runtime.plans import pass_in_use
from kschedfw.framework.runtime.plans.passes import Pass
from kschedfw.framework.runtime.plans.planner import BestNodes, NoneFeasible
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity
from kschedfw.plugins.node_name import NodeName
from kschedfw.scheduler import FirstByNameSelector, HostSelector
from kschedfw.scheduler.generic_scheduler import DecisionObserver
from kschedfw.testing import strategies

REGISTRY = Registry()
REQUESTS = st.tuples(
    st.sampled_from([0, 1, 100, 333, 2000]),
    st.sampled_from([0, 1, 2**20, 3 * 2**30, LARGEST_EXACT, LARGEST_EXACT + 1]),
)
EXTENDED = st.fixed_dictionaries(
    {}, optional={"gpus": st.sampled_from([0, 1, 2, 9]), "nics": st.sampled_from([1, 2])}
)


@pytest.fixture(autouse=True, params=["numpy", "compiled"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pass:
    """The form of the pass that plans are run with; every test is about both."""
    if request.param == "compiled":
        pytest.importorskip("numba", reason="needs the extra fast")
    made = pass_in_use.compiled_pass() if request.param == "compiled" else pass_in_use.with_numpy()
    assert made is not None
    monkeypatch.setattr(pass_in_use.PassInUse, "for_nodes", lambda _self, _nodes: made)
    return made


GPU = "nvidia.com/gpu"
OTHER = "example.com/nic"


def with_strategy(strategy: str, **args: object) -> Profile:
    """The default profile with this scoring strategy of CPU and memory."""
    scored = {"type": strategy, "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": scored, **args}}]}
        ],
    }
    return parse_configuration(document, "test", REGISTRY).profiles[0].profile()


def sibling(pod: Pod, number: int, cpu: int, memory: int, **extended: int) -> Pod:
    """A pod that differs from another in its name, and in what its first container requests."""
    first, *others = pod.spec.containers
    requests = {"cpu": f"{cpu}m", "memory": str(memory)}
    requests |= {{"gpus": GPU, "nics": OTHER}[name]: str(amount) for name, amount in extended.items()}
    first = attrs.evolve(first, resources=ResourceRequirements(requests=requests))
    name = f"{pod.name}-{number}"
    return attrs.evolve(
        pod,
        metadata=attrs.evolve(pod.metadata, name=name, uid=name),
        spec=attrs.evolve(pod.spec, containers=(first, *others)),
    )


def some_nodes(count: int, cpu: int = 8) -> list[Node]:
    return [
        make_node(f"n{number}").labels(host=f"n{number}").capacity(cpu=cpu, memory="64Gi", pods=110).build()
        for number in range(count)
    ]


def relative(pod: Pod, number: int) -> Pod:
    """A pod like another, but for its name."""
    name = f"{pod.name}-{number}"
    return attrs.evolve(pod, metadata=attrs.evolve(pod.metadata, name=name, uid=name))


def alone(pod: Pod) -> Pod:
    """The pod without terms and constraints about other pods."""
    affinity = attrs.evolve(pod.spec.affinity, pod_affinity=None, pod_anti_affinity=None)
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, affinity=affinity, topology_spread_constraints=()))


class House:
    """Nodes and pods on them, and a scheduler with a profile, for one pod after another."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pods: Sequence[Pod] = (),
        *,
        profile: Profile | None = None,
        registry: Registry | None = None,
        services: Sequence[Service] = (),
        percentage: int = 0,
        nominator: Nominator | None = None,
        metrics: MetricsRecorder | None = None,
        selector: HostSelector | None = None,
        in_one_pass: bool = True,
    ) -> None:
        self.cluster = InMemoryCluster((*nodes, *services))
        self.cache, self.snapshot = Cache(), Snapshot()
        for node in nodes:
            self.cache.add_node(node)
        for pod in pods:
            self.cache.add_pod(pod)
        self.framework = Framework(
            REGISTRY if registry is None else registry,
            default_profile() if profile is None else profile,
            cluster=self.cluster,
            snapshot=self.snapshot,
            nominator=nominator,
            metrics=metrics,
        )
        if not in_one_pass:
            self.framework._planner = None
        self.scheduler = GenericScheduler(
            self.cache,
            self.snapshot,
            random=Random(7),
            percentage_of_nodes_to_score=percentage,
            selector=selector,
        )
        self.placed = 0
        """How many pods were placed in one pass."""

    def schedule(self, pod: Pod, observer: DecisionObserver | None = None) -> ScheduleResult | str:
        """The result, after which the pod counts on its node; the reason where it fits nowhere."""
        outcomes: list[object] = []
        place = self.framework.best_nodes

        def watched(state: CycleState, pod: Pod, start: int, wanted: int) -> BestNodes | NoneFeasible | None:
            best = place(state, pod, start, wanted)
            outcomes.append(best)
            return best

        self.framework.best_nodes = watched  # type: ignore[method-assign]
        try:
            result = self.scheduler.schedule(self.framework, CycleState(), pod, observer=observer)
        except FitError as error:
            return str(error)
        finally:
            self.framework.best_nodes = place  # type: ignore[method-assign]
        self.placed += any(best is not None for best in outcomes)
        self.cache.assume_pod(pod.bound_to(result.suggested_host))
        return result


def by_hooks(
    house: House, pod: Pod, start: int, wanted: int
) -> tuple[list[int], int, int] | list[tuple[str, Status]] | None:
    """The best rows, how many nodes are feasible and how many were looked at, as hooks tell.

    If none passes, the nodes with their refusals; None if a pre_filter has refused the pod, or left few nodes over.
    """
    framework, state = house.framework, CycleState()
    left_over, status, _ = framework.run_pre_filter_plugins(state, pod)
    if not status.is_success or left_over is not None:
        return None
    nodes = NodeSelection.whole(house.snapshot.table, start)
    found = framework.filter_nodes(state, pod, nodes, wanted)
    if not len(found.feasible):
        return list(found.refused)
    assert framework.run_pre_score_plugins(state, pod, found.feasible).is_success
    totals, _ = framework.total_scores(state, pod, found.feasible)
    assert totals is not None
    return found.feasible.rows[totals.best].tolist(), len(found.feasible), found.processed


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


@given(data=st.data(), nodes=roomy_nodes(), strategy=st.sampled_from(["LeastAllocated", "MostAllocated"]))
def test_best_nodes_are_those_of_the_hooks_for_any_pods_nodes_strategies_and_sampling(
    data: st.DataObject, nodes: Sequence[Node], strategy: str
) -> None:
    selected = Service(ObjectMeta(name="web", namespace="default"), ServiceSpec(FrozenDict({"app": "web"})))
    house = House(
        nodes,
        services=[selected] if data.draw(st.booleans(), "with a service") else [],
        profile=with_strategy(strategy),
    )
    any_pod = data.draw(strategies.pods("any"))
    templates = [
        any_pod,
        alone(any_pod),
        make_pod("plain").build(),
        make_pod("tolerant").toleration(operator="Exists").image("web:1").build(),
    ]
    passes = 0
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
        for _ in range(2):  # it isn't known the first time
            best = house.framework.best_nodes(CycleState(), pod, start, wanted)
        expected = by_hooks(house, pod, start, wanted)
        if isinstance(best, NoneFeasible):
            assert list(best.refused) == expected
        elif best is not None:
            passes += 1
            assert (list(best.rows), best.feasible, best.looked_at) == expected
        host = data.draw(st.sampled_from(nodes), "host")
        there = pod if data.draw(st.integers(0, 3), "with its terms") == 0 else alone(pod)
        house.cache.assume_pod(there.bound_to(host.name))
        if data.draw(st.integers(0, 3)) == 0:
            house.cache.update_node(data.draw(strategies.nodes(host.name), "changed node"))
    event(f"{'some' if passes else 'no'} pods in one pass")


def with_token(pod: Pod) -> Pod:
    """The pod as admission leaves it: with a volume of its own that no plugin reads."""
    volumes = (Volume(f"kube-api-access-{pod.name}"), Volume("scratch", empty_dir=EmptyDirSource()))
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, volumes=volumes))


@pytest.mark.parametrize("selector", [None, FirstByNameSelector()], ids=["drawn", "first by name"])
@pytest.mark.parametrize("percentage", [0, 100])
def test_stream_of_pods_gets_the_same_nodes_draws_and_counts_as_by_hooks(
    percentage: int, selector: HostSelector | None
) -> None:
    random = Random(1)
    nodes = [
        make_node(f"n{number}")
        .capacity(cpu=random.choice([1, 4, 8]), memory="8Gi", pods=random.choice([2, 110]))
        .build()
        for number in range(300)
    ]
    template = make_pod("pod").build()
    pods = [
        sibling(template, number, random.choice([0, 250, 900, 3000]), random.choice([0, 2**30, 2**33]))
        for number in range(250)
    ]
    pods = [with_token(pod) if number % 2 else pod for number, pod in enumerate(pods)]
    one, other = (
        House(nodes, percentage=percentage, selector=selector, in_one_pass=planned)
        for planned in (True, False)
    )
    assert [one.schedule(pod) for pod in pods] == [other.schedule(pod) for pod in pods]
    assert one.scheduler._random.getstate() == other.scheduler._random.getstate()
    assert (one.placed > 200, other.placed) == (True, 0)


def zoned_nodes(count: int) -> list[Node]:
    return [
        make_node(f"n{number}")
        .labels(host=f"n{number}", zone=f"z{number % 3}")
        .capacity(cpu=8, memory="64Gi", pods=3)
        .build()
        for number in range(count)
    ]


RELATED = [
    make_pod("spread").labels(app="a").spread("zone", {"app": "a"}),
    make_pod("evenly").labels(app="a").spread("zone", {"app": "a"}, hard=False),
    make_pod("near").labels(app="a").pod_affinity("zone", {"app": "a"}),
    make_pod("far").labels(app="b").pod_anti_affinity("host", {"app": "b"}),
    make_pod("drawn").labels(app="a").pod_affinity("host", {"app": "a"}, weight=10),
    make_pod("repelled").labels(app="b").pod_anti_affinity("zone", {"app": "a"}, weight=10),
]


@pytest.mark.parametrize("percentage", [40, 100])
def test_pods_with_terms_and_constraints_get_the_same_nodes_in_one_pass_as_by_hooks(percentage: int) -> None:
    random = Random(2)
    templates = [each.build() for each in RELATED]
    pods = []
    for number in range(160):
        template = random.choice(templates)
        pods.append(
            relative(template, number)
            if random.random() < 0.5
            else sibling(template, number, random.choice([0, 250, 900]), random.choice([0, 2**30]))
        )
    nodes = zoned_nodes(150)
    one, other = (House(nodes, percentage=percentage, in_one_pass=planned) for planned in (True, False))
    assert [one.schedule(pod) for pod in pods] == [other.schedule(pod) for pod in pods]
    assert one.scheduler._random.getstate() == other.scheduler._random.getstate()
    assert (one.placed > 100, other.placed) == (True, 0)


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
def test_feasible_nodes_found_in_one_pass_and_the_choice_among_them_are_those_of_the_hooks(
    percentage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(5)
    templates = [*(each.build() for each in RELATED), make_pod("plain").build()]
    requests = [(random.choice([0, 250, 900, 3000]), random.choice([0, 2**30])) for _ in range(160)]
    pods = [sibling(random.choice(templates), number, *each) for number, each in enumerate(requests)]
    one, other = (House(zoned_nodes(150), percentage=percentage, in_one_pass=each) for each in (True, False))
    passes, feasible_rows = 0, one.framework.feasible_rows

    def watched(state: CycleState, pod: Pod, start: int, wanted: int) -> tuple[IntArray, int] | None:
        nonlocal passes
        found = feasible_rows(state, pod, start, wanted)
        passes += found is not None
        return found

    monkeypatch.setattr(one.framework, "feasible_rows", watched)
    assert [found_and_chosen(one, pod) for pod in pods] == [found_and_chosen(other, pod) for pod in pods]
    assert one.scheduler._random.getstate() == other.scheduler._random.getstate()
    assert passes > 100


def test_equal_pods_get_the_same_nodes_as_by_hooks_while_pods_come_and_go_and_kinds_take_turns() -> None:
    random = Random(3)
    kinds = [make_pod(f"kind{cpu}").requests(cpu=f"{cpu}m", memory="1Gi").build() for cpu in (100, 250, 4000)]
    houses = [House(zoned_nodes(40), in_one_pass=planned, percentage=100) for planned in (True, False)]
    placed: list[Pod] = []
    for number in range(150):
        pod = relative(random.choice(kinds), number)
        results = [house.schedule(pod) for house in houses]
        assert results[0] == results[1]
        if isinstance(results[0], ScheduleResult):
            placed.append(pod.bound_to(results[0].suggested_host))
        if len(placed) > 30 and random.random() < 0.7:
            for gone in [placed.pop(random.randrange(len(placed))) for _ in range(random.choice([1, 1, 20]))]:
                for house in houses:
                    house.cache.remove_pod(gone)
    assert houses[0].placed > 100


def test_equal_pods_are_placed_by_looking_at_the_changed_node_alone(
    form: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    over_all: list[int] = []
    totals_of = form.totals_of

    def counted(*args: object) -> tuple[int, int]:
        over_all.append(1)
        return totals_of(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(form, "totals_of", counted)
    house = House(some_nodes(50), percentage=100)
    template = make_pod("pod").requests(cpu="100m").build()
    for number in range(20):
        house.schedule(relative(template, number))
    assert house.placed == 19
    assert len(over_all) == 2  # the first of all, and the one whose totals are kept


def test_pod_of_a_known_shape_is_placed_without_a_question_to_any_plugin() -> None:
    house = House(some_nodes(5))
    template = make_pod("pod").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 2**20))
    asked = {name: counts.rows_asked for name, counts in house.framework.memo_report().items()}
    result = house.schedule(sibling(template, 3, 170, 2**21))
    assert isinstance(result, ScheduleResult)
    assert house.placed == 3
    assert asked == {name: counts.rows_asked for name, counts in house.framework.memo_report().items()}


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
        """What a pod gets that asks for this, after three with a GPU; these make its shape known."""
        for number in range(3):
            house.schedule(sibling(make_pod("pod").build(), number, 100 + number, 2**20, gpus=1))
        return house.schedule(sibling(make_pod("pod").build(), 3, 200, 2**20, **asked))

    def test_pods_with_a_gpu_are_placed_in_one_pass_where_there_is_one(self) -> None:
        house = self.house()
        result = self.after_three(house, gpus=2)
        assert isinstance(result, ScheduleResult)
        assert result.suggested_host in ("n2", "n5", "n8")
        assert house.placed == 3

    def test_pod_that_asks_for_a_resource_that_no_node_has_is_told_so(self) -> None:
        house = self.house()
        message = self.after_three(house, nics=1)
        assert message == f"0/9 nodes are available: 9 Insufficient {OTHER}."

    def test_where_some_are_ignored_hooks_are_called(self) -> None:
        house = self.house(ignoredResources=[GPU])
        result = self.after_three(house, gpus=7)
        assert isinstance(result, ScheduleResult)
        assert house.placed == 0

    def test_device_class_that_comes_to_provide_them_is_heeded_though_the_shape_is_known(self) -> None:
        house = self.house()
        assert isinstance(self.after_three(house, gpus=1), ScheduleResult)
        spec = DeviceClassSpec(extended_resource_name=GPU)
        house.cluster.add(DeviceClass(ObjectMeta(name="gpus"), spec))
        before = house.placed
        house.schedule(sibling(make_pod("pod").build(), 4, 250, 2**20, gpus=1))
        assert house.placed == before


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated"])
def test_equal_and_differing_pods_with_gpus_get_the_same_nodes_and_draws_as_by_hooks(strategy: str) -> None:
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
        for number in range(150)
    ]
    one, other = (
        House(nodes, percentage=100, profile=with_strategy(strategy), in_one_pass=planned)
        for planned in (True, False)
    )
    assert [one.schedule(pod) for pod in pods] == [other.schedule(pod) for pod in pods]
    assert one.scheduler._random.getstate() == other.scheduler._random.getstate()
    assert (one.placed > 50, other.placed) == (True, 0)


def test_pod_that_fits_nowhere_is_told_why_though_its_shape_is_known() -> None:
    house = House(some_nodes(5, cpu=1))
    template = make_pod("pod").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 0))
    assert house.schedule(sibling(template, 3, 1001, 0)) == "0/5 nodes are available: 5 Insufficient cpu."


def test_node_that_changes_counts_as_it_is_now() -> None:
    nodes = some_nodes(4)
    house = House(nodes)
    template = make_pod("pod").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 0))
    for node in nodes[1:]:
        house.cache.update_node(attrs.evolve(node, spec=attrs.evolve(node.spec, unschedulable=True)))
    results = [house.schedule(sibling(template, number, 100, 0)) for number in range(3, 7)]
    assert {result.suggested_host for result in results if isinstance(result, ScheduleResult)} == {"n0"}


def test_term_of_a_pod_on_a_node_is_heeded_though_the_shape_is_known() -> None:
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


def test_nominated_pods_are_left_room_for_though_the_shape_is_known() -> None:
    nominator = Nominator()
    house = House(some_nodes(2, cpu=1), nominator=nominator)
    template = make_pod("pod").build()
    for number in range(2):
        house.schedule(sibling(template, number, 10, 0))
    nominated = sibling(make_pod("high").priority(5).build(), 0, 900, 0)
    nominator.add(PodInfo.of(nominated), "n0")
    hosts = [house.schedule(sibling(template, number, 200, 0)) for number in (2, 3)]
    assert {result.suggested_host for result in hosts if isinstance(result, ScheduleResult)} == {"n1"}


_NOT_N1 = Status.unschedulable("node(s) were not n1")


class Picky(Plugin[None]):
    """A filter that says nothing of shapes."""

    name = "Picky"

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return None if node_info.name == "n1" else _NOT_N1


class OtherName(NodeName):
    """A subclass that overrides hooks, and not what its base says of shapes. Its answers follow `reads` and `sign`."""

    name = "OtherName"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:  # as its base
        return None if node_info.name == "n1" else _NOT_N1

    @hookimpl
    def filter_batch(self, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts:  # as its base
        return Verdicts.refuse(rows != nodes.rows["n1"], _NOT_N1)


class Signed(Picky):
    """The same filter with the two promises of the memo."""

    name = "Signed"
    reads = Reads.NODE

    def sign(self) -> Hashable:
        return ()


@pytest.mark.parametrize(("plugin", "placed"), [(Picky, 0), (Signed, 3), (OtherName, 3)])
def test_part_of_a_plugin_that_says_nothing_of_shapes_follows_from_what_it_reads_and_signs(
    plugin: type[Plugin[None]], placed: int
) -> None:
    registry = Registry()
    registry.register(plugin)
    default = default_profile()
    profile = attrs.evolve(default, multi_point=(*default.multi_point, plugin.name))
    house = House(some_nodes(3), profile=profile, registry=registry)
    template = make_pod("pod").build()
    results = [house.schedule(sibling(template, number, 100, 0)) for number in range(4)]
    assert {result.suggested_host for result in results if isinstance(result, ScheduleResult)} == {"n1"}
    assert house.placed == placed
    refused = [house.schedule(sibling(template, number, 90_000, 0)) for number in (5, 6)]
    assert (
        refused == ["0/3 nodes are available: 3 Insufficient cpu."] * 2
    )  # the plugin comes last in the profile


class KeepsToN1(InterPodAffinity):
    """A subclass that overrides the filter, and not the answers by domain that its base gives in its place."""

    name = "KeepsToN1"

    def plan_part(self, pod: Pod) -> PlanPart | None:  # as its base
        return PlanPart.POD

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:  # as its base
        return None if node_info.name == "n1" else _NOT_N1

    @hookimpl
    def filter_batch(self, state: CycleState, nodes: NodeTable, rows: IntArray) -> Verdicts:  # as its base
        return Verdicts.refuse(rows != nodes.rows["n1"], _NOT_N1)


def test_answers_by_domain_of_its_base_dont_stand_for_a_subclasss_own_filter() -> None:
    registry = Registry()
    registry.register(KeepsToN1)
    default = default_profile()
    plugins = [
        attrs.evolve(each, name=each.name.replace("InterPodAffinity", "KeepsToN1"))
        for each in default.multi_point
    ]
    house = House(some_nodes(3), profile=attrs.evolve(default, multi_point=tuple(plugins)), registry=registry)
    template = make_pod("pod").labels(app="web").pod_anti_affinity("rack", {"app": "other"}).build()
    results = [house.schedule(sibling(template, number, 100, 0)) for number in range(4)]
    assert {result.suggested_host for result in results if isinstance(result, ScheduleResult)} == {"n1"}
    assert house.placed


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
def test_pod_of_another_shape_or_signature_is_asked_about_for_the_first_time(differing: Pod) -> None:
    house = House(some_nodes(5))
    template = make_pod("pod").build()
    for number in range(3):
        house.schedule(sibling(template, number, 100, 0))
    asked = sum(counts.rows_asked for counts in house.framework.memo_report().values())
    result = house.schedule(sibling(differing, 3, 100, 0))
    assert isinstance(result, ScheduleResult)
    assert sum(counts.rows_asked for counts in house.framework.memo_report().values()) > asked


def nominated_to(nodes: Sequence[Node], count: int, random: Random) -> Nominator:
    """A nominator with pods of three priorities for so many nodes; some have terms of their own."""
    nominator = Nominator()
    for number in range(count):
        made = (
            make_pod(f"nominated{number}").labels(app=random.choice("ab")).priority(random.choice([0, 5, 9]))
        )
        if random.random() < 0.2:
            made = made.pod_anti_affinity("host", {"app": "a"})
        pod = sibling(made.build(), 0, random.choice([500, 4000, 8000]), 2**30, gpus=number % 2)
        nominator.add(PodInfo.of(pod), random.choice(nodes).name)
    return nominator


@pytest.mark.parametrize("count", [1, 6, 25])
@pytest.mark.parametrize("percentage", [30, 100])
def test_nominated_pods_of_equal_or_higher_priority_are_left_room_for_as_by_hooks(
    count: int, percentage: int
) -> None:
    random = Random(count)
    nodes = zoned_nodes(30)
    nominators = [nominated_to(nodes, count, Random(4)) for _ in range(2)]
    houses = [
        House(nodes, percentage=percentage, in_one_pass=not index, nominator=nominators[index])
        for index in range(2)
    ]
    templates = [
        *(each.build() for each in RELATED),
        *[make_pod("plain").priority(n).build() for n in (0, 5, 9)],
    ]
    for number in range(120):
        template = random.choice(templates)
        pod = sibling(
            template, number, random.choice([0, 250, 5000]), 2**20, gpus=random.choice([0, 0, 0, 1])
        )
        assert houses[0].schedule(pod) == houses[1].schedule(pod)
        if number % 30 == 29:
            moved = nominators[0].nominated_pods()[0]
            for nominator in nominators:
                nominator.add(moved, f"n{number % 7}")
    assert houses[0].scheduler._random.getstate() == houses[1].scheduler._random.getstate()
    assert houses[0].placed >= (20 if count == 25 else 50)


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
def test_pod_that_no_node_takes_is_refused_for_the_reasons_that_the_hooks_give(percentage: int) -> None:
    nodes = [
        attrs.evolve(node, spec=attrs.evolve(node.spec, unschedulable=number % 5 == 0))
        for number, node in enumerate(zoned_nodes(12))
    ]
    low = [
        attrs.evolve(pod.bound_to(f"n{number}"), status=attrs.evolve(pod.status, phase=PodPhase.RUNNING))
        for number in range(12)
        for pod in [sibling(make_pod("low").labels(app="a").build(), number, 7000, 2**30)]
    ]
    houses = [House(nodes, low, percentage=percentage, in_one_pass=planned) for planned in (True, False)]
    templates = [
        make_pod("large").priority(7).build(),
        make_pod("chosen").node_selector(zone="z1").priority(7).build(),
        make_pod("far").labels(app="b").pod_anti_affinity("zone", {"app": "a"}).build(),
        make_pod("spread").labels(app="a").spread("rack", {"app": "a"}).priority(1).build(),
    ]
    amounts = [(2000, 2**20), (9000, 2**20), (3000, 2**37), (1500, 0)]
    outcomes: list[object] = []
    best_nodes = houses[0].framework.best_nodes

    def watched(state: CycleState, pod: Pod, start: int, wanted: int) -> BestNodes | NoneFeasible | None:
        outcomes.append(best_nodes(state, pod, start, wanted))
        return outcomes[-1]  # type: ignore[return-value]

    houses[0].framework.best_nodes = watched  # type: ignore[method-assign]
    for number in range(24):
        pod = sibling(templates[number % 4], number, *amounts[number // 4 % 4])
        first, second = (refusal(house, pod) for house in houses)
        assert first == second
    assert sum(isinstance(each, NoneFeasible) for each in outcomes) >= 18


def test_pods_with_volumes_get_the_same_nodes_in_one_pass_as_by_hooks_while_claims_are_bound_and_gone() -> (
    None
):
    random = Random(6)
    nodes = [
        make_node(f"n{number}").capacity(cpu=8, memory="64Gi", pods=4).zone(f"z{number % 3}").build()
        for number in range(20)
    ]
    houses = [House(nodes, percentage=100, in_one_pass=planned) for planned in (True, False)]
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
    assert houses[0].placed > 25


def test_scores_of_a_plugin_that_reads_nodes_alone_are_normalized_for_every_pod_in_one_pass() -> None:
    nodes = [
        make_node(f"n{number}")
        .capacity(cpu=8, memory="64Gi", pods=110)
        .taint(f"k{number % 3}", effect="PreferNoSchedule")
        .build()
        for number in range(9)
    ]
    houses = [House(nodes, percentage=100, in_one_pass=planned) for planned in (True, False)]
    template = make_pod("pod").toleration("k0", operator="Exists").build()
    for number in range(20):
        pod = sibling(template, number, 100 * number, 2**20)
        assert houses[0].schedule(pod) == houses[1].schedule(pod)
    assert houses[0].placed == 19


class Told(NoMetrics):
    """What a recorder is told about each pod. One that reads is told its counts when it asks for them."""

    def __init__(self, reads: bool = False) -> None:
        self.points: list[tuple[MeasuredPoint, Code]] = []
        self.seconds: list[float] = []
        self.asked: Counter[tuple[str, MeasuredPoint]] = Counter()
        self.reads = reads
        self.tell: list[Callable[[], None]] = []

    def extension_point(self, point: MeasuredPoint, code: Code, profile: str, seconds: float) -> None:
        self.points.append((point, code))
        self.seconds.append(seconds)

    def plugin_evaluations(self, plugin: str, point: MeasuredPoint, profile: str, count: int) -> None:
        self.asked[plugin, point] += count

    def before_reading(self, tell: Callable[[], None]) -> bool:
        self.tell.append(tell)
        return self.reads

    def taken(self) -> tuple[list[tuple[MeasuredPoint, Code]], Counter[tuple[str, MeasuredPoint]]]:
        """The points and the evaluations since the last call."""
        for tell in self.tell:
            tell()
        points, asked = self.points, self.asked
        self.points, self.asked = [], Counter()
        return points, asked


POINTS = [MeasuredPoint.PRE_FILTER, MeasuredPoint.FILTER, MeasuredPoint.PRE_SCORE, MeasuredPoint.SCORE]


@pytest.mark.parametrize("reads", [False, True], ids=["told for each pod", "told when it reads"])
class TestRecorder:
    """A recorder is told of a pod that is placed in one pass what it is told of one that hooks place."""

    def test_points_and_plugins_of_each_pod_are_those_of_the_hooks(self, reads: bool) -> None:
        random = Random(11)
        templates = [*(each.build() for each in RELATED), make_pod("plain").build()]
        one, other = Told(reads), Told(reads)
        houses = [
            House(zoned_nodes(12), percentage=100, metrics=told, in_one_pass=told is one)
            for told in (one, other)
        ]
        for number in range(40):
            pod = sibling(random.choice(templates), number, random.choice([0, 250]), 2**20)
            placed = houses[0].placed
            assert houses[0].schedule(pod) == houses[1].schedule(pod)
            (points, asked), (by_hooks, called) = one.taken(), other.taken()
            assert points == by_hooks
            if houses[0].placed > placed:
                assert asked.keys() == called.keys() | kept_by(houses[1], asked)
                assert {count for (_, point), count in asked.items() if point is POINTS[0]} == {1}
                assert {count for (_, point), count in asked.items() if point is POINTS[1]} == {12}
        assert houses[0].placed > 20

    def test_single_feasible_node_isnt_scored(self, reads: bool) -> None:
        told = Told(reads)
        house = House(some_nodes(1), metrics=told)
        template = make_pod("pod").build()
        for number in range(3):
            told.taken()
            house.schedule(sibling(template, number, 100, 0))
        points, asked = told.taken()
        assert house.placed == 2
        assert [point for point, _ in points] == POINTS[:2]
        assert {point for _, point in asked} == set(POINTS[:2])

    def test_cycle_of_the_sample_calls_the_hooks_one_by_one(self, reads: bool) -> None:
        house = House(some_nodes(4), metrics=Told(reads))
        template = make_pod("pod").build()
        for number in range(3):
            house.schedule(sibling(template, number, 100, 0))
        state = CycleState()
        state.record_plugin_metrics = True
        assert house.framework.best_nodes(state, sibling(template, 9, 50, 0), 0, 4) is None
        assert house.framework.best_nodes(CycleState(), sibling(template, 9, 50, 0), 0, 4) is not None

    def test_search_without_a_choice_tells_of_filters_alone(self, reads: bool) -> None:
        told = Told(reads)
        house = House(some_nodes(4), metrics=told)
        template = make_pod("pod").build()
        for number in range(3):
            told.taken()
            house.scheduler.find(house.framework, CycleState(), sibling(template, number, 100, 0))
        assert [point for point, _ in told.taken()[0]] == POINTS[:2]


def kept_by(house: House, asked: Collection[tuple[str, MeasuredPoint]]) -> set[tuple[str, MeasuredPoint]]:
    """Those that hooks weren't called for, since their answers were kept."""
    counts = house.framework.memo_report()
    return {
        (plugin, point)
        for plugin, point in asked
        if point in POINTS[1::2] and plugin in counts and not counts[plugin].objection
    }


def test_durations_of_points_are_those_of_the_plugins_that_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    house = House(zoned_nodes(6), percentage=100, metrics=told)
    pods = [relative(RELATED[1].build(), number) for number in range(4)]  # soft constraints alone
    for pod in pods[:3]:
        house.schedule(pod)
    clock = [0.0]
    monkeypatch.setattr(house.framework._planner, "_now", lambda: clock[0])
    spread = next(each for each in house.framework._planner._plugins if each.name == "PodTopologySpread")  # type: ignore[union-attr]
    pre_score = spread.pre_score

    def slow(*arguments: object) -> object:
        clock[0] += 5.0
        return pre_score(*arguments)  # type: ignore[misc]

    monkeypatch.setattr(spread, "pre_score", slow)
    told.taken()
    told.seconds.clear()
    house.schedule(pods[3])
    assert told.seconds == [0.0, 0.0, 5.0, 0.0]
