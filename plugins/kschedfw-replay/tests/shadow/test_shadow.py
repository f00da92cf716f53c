"""A shadow beside a scheduler: what it says of the decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import attrs
import pytest
from holding import held
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_lab.compare import ConditionError
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison
from kschedfw_replay.shadow.shadow import Shadow
from kschedfw_replay.shadow.tally import Alarm, Tally

from kschedfw import (
    InMemoryCluster,
    Node,
    NodeInfo,
    Plugin,
    Pod,
    Registry,
    Scheduler,
    SchedulerConfiguration,
    Status,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.api import PodCondition
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.config import parse_configuration
from kschedfw.scheduler import FirstByNameSelector, Setup
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples

REGISTRY = Registry()
DEFAULT = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}"
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""


class Room:
    """A cluster with a scheduler of its own, and a shadow that sees what happens in it."""

    def __init__(
        self,
        nodes: Iterable[Node],
        configuration: SchedulerConfiguration | None = None,
        registry: Registry = REGISTRY,
    ) -> None:
        self.clock = FakeClock(1000.0)
        self.cluster = InMemoryCluster(nodes, events_limit=1)
        self.scheduler = Scheduler(
            self.cluster, registry=REGISTRY, clock=self.clock, selector=FirstByNameSelector()
        )
        chosen = parse_configuration(DEFAULT, registry=registry) if configuration is None else configuration
        self.shadow = Shadow(self.cluster, Setup.of("shadow", chosen), clock=self.clock, registry=registry)
        self.cluster.watch(
            lambda _: self.clock.advance(0.02)
        )  # an API server tells of one change after the other
        self.cluster.watch(self.shadow.observe)

    def schedule(self, *pods: Pod) -> list[Comparison]:
        """Let the scheduler decide these pods, one after the other, and compare."""
        for pod in pods:
            self.cluster.add(pod)
            self.scheduler.run_until_idle()
            self.clock.advance(1.0)
        return list(self.shadow.decisions(everything=True))


def node(name: str, cpu: int = 4) -> Node:
    return make_node(name).capacity(cpu=cpu, memory="16Gi", pods=20).build()


def pods(*cpus: int) -> Sequence[Pod]:
    return [make_pod(f"p{number}").requests(cpu=cpu).build() for number, cpu in enumerate(cpus)]


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(15))
def test_the_same_configuration_agrees_with_every_decision(seed: int) -> None:
    random = Random(seed)
    room = Room([node(f"n{number}", random.choice((2, 4, 8))) for number in range(random.randint(1, 4))])
    found: list[Comparison] = []
    for number in range(8):
        made = make_pod(f"p{number}").labels(app=random.choice("ab")).requests(cpu=random.randint(1, 3))
        if random.random() < 0.3:
            made = made.priority(random.randint(1, 9))
        if random.random() < 0.2 and (there := room.cluster.list(Pod)):
            room.cluster.delete(random.choice(there))
        found += room.schedule(made.build())
    assert {each.agreement for each in found} <= {Agreement.SAME, Agreement.TIED}, [
        each.to_json() for each in found if not each.agreement.agrees
    ]
    assert room.shadow.passed_over == 0


def test_a_better_node_is_told_with_the_points_of_each_plugin() -> None:
    room = Room([node("a"), node("b")], parse_configuration(PACKING, registry=REGISTRY))
    *_, last = room.schedule(*pods(1, 1))
    assert (last.agreement, last.ours, last.recorded.node) == (Agreement.BETTER, "a", "b")
    assert last.points == {"NodeResourcesFit": (25, 50)}
    assert last.margin == 25
    assert last.cause is Cause.UNKNOWN


def beside(plugin: type[Plugin]) -> Room:
    """A room in which only the shadow has the plugin."""
    registry = Registry()
    registry.register(plugin)
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {plugin.name}}}]}}}}}}]
"""
    return Room([node("a"), node("b")], parse_configuration(text, registry=registry), registry)


class Picky(Plugin):
    """Refuses node a."""

    name = "Picky"

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) were called a") if node_info.node.name == "a" else None


class Broken(Plugin):
    """Fails."""

    name = "Broken"

    @hookimpl
    def filter(self) -> Status | None:
        raise RuntimeError("no inventory")


def shadowed(plugin: type[Plugin]) -> tuple[Comparison, Tally]:
    """What a shadow with the plugin says of a decision for node a."""
    (comparison,) = beside(plugin).schedule(*pods(1))
    tally = Tally()
    tally.add(comparison)
    return comparison, tally


def test_a_node_that_a_plugin_here_refuses_is_told_with_the_plugin() -> None:
    comparison, tally = shadowed(Picky)
    assert comparison.agreement is Agreement.REFUSED_HERE
    assert (comparison.plugin, comparison.reason) == ("Picky", "node(s) were called a")
    assert tally.to_json()["refusals"] == [
        {"plugin": "Picky", "reason": "node(s) were called a", "decisions": 1}
    ]


def test_a_plugin_that_fails_is_named_and_nothing_ends() -> None:
    comparison, tally = shadowed(Broken)
    assert (comparison.agreement, comparison.plugin) == (Agreement.FAILED, "Broken")
    assert "no inventory" in comparison.reason
    assert tally.failures == Counter(Broken=1)


def test_a_pod_that_only_the_cluster_refuses_has_a_node_here() -> None:
    room = Room([node("a")])
    (pod,) = pods(1)
    room.cluster.add(pod)
    message = "0/1 nodes are available: a whim."
    condition = PodCondition("PodScheduled", "False", "Unschedulable", message)
    room.cluster.patch_pod_status(pod, condition=condition)
    (comparison,) = room.shadow.decisions(everything=True)
    assert (comparison.agreement, comparison.ours) == (Agreement.PLACED_HERE, "a")
    assert comparison.reason == message


def test_nothing_is_written_whatever_is_decided() -> None:
    room = Room([node("a", cpu=2)])
    before = room.schedule(*pods(2))
    high = make_pod("high").priority(10).requests(cpu=2).build()
    found = room.schedule(high)
    assert {each.agreement for each in (*before, *found)} == {Agreement.SAME}
    assert {pod.name for pod in room.cluster.list(Pod)} == {"high"}  # the scheduler evicted, once


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("agreement<99%", True),
        ("agreement < 50%", False),
        ("failed", False),
        ("same>=1", True),
        ("better==1", True),
        ("unknown>50%", False),
        ("p99>0", True),
        ("failed or better + unknown > 0 and same", True),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    room = Room([node("a"), node("b")], parse_configuration(PACKING, registry=REGISTRY))
    tally = Tally()
    alarm = Alarm.parse(text)
    assert not alarm.holds(tally)
    for number, comparison in enumerate(room.schedule(*pods(1, 1))):
        tally.add(attrs.evolve(comparison, seconds=0.001 * (number + 1)))
    assert alarm.holds(tally) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [("agreement <= 99%", False), ("decisions < 100", True), ("agreement < 99% or decisions < 1", True)],
)
def test_without_a_decision_only_conditions_on_their_number_hold(text: str, holds: bool) -> None:
    assert Alarm.parse(text).holds(Tally()) is holds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("agreement<<9", "a metric or a number is missing before '<'"),
        ("agreemnet<9", "there is no metric 'agreemnet'; there are decisions, agreement, "),
        ("p99<5%", "a percentage can't be compared with a number"),
        ("baseline.same>1", "so the baseline has none"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConditionError, match=why):
        Alarm.parse(text)


def test_a_better_node_may_be_one_at_which_the_cluster_did_not_look() -> None:
    """Of 120 nodes kube-scheduler looks for 100 that fit."""
    room = Room([node(f"n{number}", 8 if number == 119 else 4) for number in range(120)])
    (found,) = room.schedule(*pods(1))
    assert (found.agreement, found.cause) == (Agreement.BETTER, Cause.PARTIAL_SEARCH)
    assert (found.recorded.node, found.ours, found.feasible) == ("n0", "n119", 120)


class TestCauseOfSlowBindings:
    """An API server under load tells of a binding seconds after the decision, and of a deletion in between."""

    SPREADING = PACKING.replace("MostAllocated", "LeastAllocated")

    def compared(self, *events: tuple[float, WatchEvent]) -> list[Comparison]:
        """Tell a shadow of nodes with 6, 8 and 4 CPUs and a pod that takes 6 of b, then of these events."""
        nodes = [node("a", cpu=6), node("b", cpu=8), node("c", cpu=4)]
        clock, setup = FakeClock(1000.0), Setup.of("shadow", parse_configuration(self.SPREADING))
        shadow = Shadow(InMemoryCluster(), setup, clock=clock)
        found: list[Comparison] = []
        beginning = [(0.0, WatchEvent(EventType.ADDED, each)) for each in (*nodes, self.LARGE)]
        told = 0.0
        for at, event in (*beginning, *events):
            clock.advance(at - told)
            told = at
            found += shadow.decisions()
            shadow.observe(event)
        return [*found, *shadow.decisions(everything=True)]

    LARGE = make_pod("large").requests(cpu=6).node("b").build()
    FIRST, SECOND = make_pod("first").requests(cpu=1).build(), make_pod("second").requests(cpu=1).build()

    @staticmethod
    def binding(pod: Pod, node: str) -> WatchEvent:
        after = attrs.evolve(pod, spec=attrs.evolve(pod.spec, node_name=node))
        return WatchEvent(EventType.MODIFIED, after, pod)

    def test_a_deletion_since_the_pod_came_is_a_race(self) -> None:
        (found,) = self.compared(
            (10.0, WatchEvent(EventType.ADDED, self.FIRST)),
            (11.0, WatchEvent(EventType.DELETED, self.LARGE)),
            (12.4, WatchEvent(EventType.ADDED, make_node("d").unschedulable().build())),
            (13.0, self.binding(self.FIRST, "a")),
        )
        assert (found.agreement, found.ours, found.cause) == (Agreement.BETTER, "b", Cause.RACE)

    def test_a_deletion_before_the_pod_came_explains_nothing(self) -> None:
        (found,) = self.compared(
            (9.0, WatchEvent(EventType.DELETED, self.LARGE)),
            (10.0, WatchEvent(EventType.ADDED, self.FIRST)),
            (13.0, self.binding(self.FIRST, "a")),
        )
        assert (found.agreement, found.ours, found.cause) == (Agreement.BETTER, "b", Cause.UNKNOWN)

    def test_a_pod_that_was_tried_before_keeps_its_node(self) -> None:
        """Node c is the best only where the first pod is on a, and the large one still on b."""
        _, found = self.compared(
            (10.0, WatchEvent(EventType.ADDED, self.FIRST)),
            (10.1, WatchEvent(EventType.ADDED, self.SECOND)),
            (11.0, WatchEvent(EventType.DELETED, self.LARGE)),
            (13.0, self.binding(self.FIRST, "a")),
            (14.0, self.binding(self.SECOND, "c")),
        )
        assert (found.agreement, found.ours, found.cause) == (Agreement.BETTER, "b", Cause.RACE)


def test_nothing_is_kept_of_pods_that_are_gone() -> None:
    room = Room([node("a"), node("b")])

    def come_and_go(numbers: range) -> int:
        """What the shadow holds after pods with these numbers; each third one fits nowhere."""
        for number in numbers:
            came = make_pod(f"p{number}").requests(cpu=99 if number % 3 == 0 else 1).build()
            list(room.schedule(came))
            room.cluster.delete(present(room.cluster, came))
            list(room.shadow.decisions(everything=True))
        return held(room.shadow)

    before = come_and_go(range(100))
    # The scheduler's cache keeps the UIDs of the pods that it tried last, and a limited number of them.
    assert come_and_go(range(100, 200)) <= before + 200


def present(cluster: InMemoryCluster, pod: Pod) -> Pod:
    found = cluster.get(Pod, pod.key)
    assert found is not None
    return found
