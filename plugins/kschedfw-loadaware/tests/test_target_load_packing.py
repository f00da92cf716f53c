"""TargetLoadPacking: the scores, worked out by hand from the formula."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pytest
from kschedfw_loadaware import Load, NodeLoad, StaticSource, TargetLoadPacking, TargetLoadPackingArgs

from kschedfw import FrozenDict, KschedfwError, Node, NodeInfo, Pod, Quantity, make_node, make_pod
from kschedfw.api.node import NodeStatus
from kschedfw.testing import FakeClock, FrameworkHarness

NODES = [make_node(name).capacity(cpu=10, memory="10Gi").build() for name in ("a", "b")]


def harness(
    load: dict[str, NodeLoad],
    *,
    nodes: Sequence[Node] = NODES,
    pods: Sequence[Pod] = (),
    target: int = 40,
    now: float = 0,
    window_end: float = 0,
) -> FrameworkHarness:
    class Measured(TargetLoadPacking):
        source = StaticSource(load, end=window_end)

    args = TargetLoadPackingArgs(target_utilization=target)
    return FrameworkHarness(
        Measured, nodes=nodes, pods=pods, args={"TargetLoadPacking": args}, clock=FakeClock(now)
    )


def score(mean: float, pod: Pod, target: int = 40) -> int:
    return harness({"a": NodeLoad(Load(mean))}, target=target).score(pod)["a"]


def limited(cpu: str) -> Pod:
    """A pod that will presumably use that much."""
    return make_pod().limits(cpu=cpu).build()


@pytest.mark.parametrize(
    ("mean", "cpu", "expected"),
    [
        (0, "0", 40),  # idle: the target itself
        (20, "1", 85),  # 30 %: 60 * 30 / 40 + 40
        (30, "1", 100),  # 40 %, just the target
        (30, "1100m", 39),  # 41 %: 40 * 59 / 60 = 39.33
        (60, "1", 20),  # 70 %: 40 * 30 / 60
        (90, "1", 0),  # 100 %: full
        (90, "2", 0),  # 110 %: more than full
    ],
)
def test_the_score_rises_up_to_the_target_and_falls_beyond(mean: float, cpu: str, expected: int) -> None:
    assert score(mean, limited(cpu)) == expected


@pytest.mark.parametrize(
    ("target", "mean", "expected"),
    [
        (60, 50, 100),
        (60, 70, 30),  # 80 %: 60 * 20 / 40
        (80, 0, 83),  # 10 %: 20 * 10 / 80 + 80 = 82.5
        (100, 80, 100),  # 90 %: whatever fits is as good
        (1, 0, 1),  # 10 %: 1 * 90 / 99 = 0.91
    ],
)
def test_the_target_can_be_another(target: int, mean: float, expected: int) -> None:
    assert score(mean, limited("1"), target) == expected


def test_halves_are_rounded_up_as_go_does() -> None:
    # 35 %: 60 * 35 / 40 + 40 = 92.5; Python's round would make 92 of it.
    assert score(20, limited("1500m")) == 93


@pytest.mark.parametrize(
    ("pod", "usage"),
    [
        (make_pod().requests(cpu="500m").limits(cpu=2).build(), 2000),  # the limit, where there is one
        (make_pod().requests(cpu=2).build(), 3000),  # else the request and half as much
        (make_pod().requests(cpu="1m").build(), 2),  # 1.5, rounded
        (make_pod().build(), 1000),  # else what is assumed of any container
        (make_pod().container("a").requests(cpu=1).container("b").limits(cpu=1).build(), 2500),
        (make_pod().requests(cpu=2).overhead(cpu="250m").build(), 3250),
        (make_pod().requests(cpu=2).init_container("i", requests={"cpu": "9"}).build(), 3000),  # it ends
    ],
)
def test_what_a_pod_will_use_is_predicted_from_its_limits_and_requests(pod: Pod, usage: int) -> None:
    assert harness({}).framework.plugins["TargetLoadPacking"].sign(pod) == (usage, 1)
    assert score(0, pod) == score(0, limited(f"{usage}m"))


def test_what_is_assumed_can_be_said() -> None:
    given = {
        "watcherAddress": "http://127.0.0.1:9",
        "defaultRequests": {"cpu": "300m"},
        "defaultRequestsMultiplier": "2",
    }
    framework = FrameworkHarness(
        TargetLoadPacking, args={"TargetLoadPacking": given}, clock=FakeClock()
    ).framework
    plugin = framework.plugins["TargetLoadPacking"]
    assert plugin.sign(make_pod().build()) == (300, 0)
    assert plugin.sign(make_pod().requests(cpu=1).build()) == (2000, 0)


@pytest.mark.parametrize(
    ("requests", "usage"),
    [({"cpu": "300m", "memory": "1Gi"}, 300), ({"memory": "1Gi", "example.com/gpu": 1}, 0), ({}, 0)],
)
def test_only_cpu_is_assumed_whatever_else_is_said(requests: dict[str, object], usage: int) -> None:
    given = {"watcherAddress": "http://127.0.0.1:9", "defaultRequests": requests}
    it = FrameworkHarness(TargetLoadPacking, args={"TargetLoadPacking": given}, clock=FakeClock())
    assert it.framework.plugins["TargetLoadPacking"].sign(make_pod().build()) == (usage, 0)


def test_of_several_figures_the_last_one_counts() -> None:
    it = harness({"a": NodeLoad(Load(90, last=20)), "b": NodeLoad(Load(20, last=None))})
    assert it.score(limited("1")) == {"a": 85, "b": 0}


def test_a_node_without_metrics_gets_nothing() -> None:
    scores = harness({"a": NodeLoad(memory=Load(10))}).score(limited("1"))
    assert scores == {"a": 0, "b": 0}


def test_a_node_without_cpu_counts_as_idle() -> None:
    bare = harness({"a": NodeLoad(Load(50))}, nodes=[make_node("a").build()])
    assert bare.score(limited("1")) == {"a": 40}


def test_the_machines_capacity_counts_not_what_is_left_for_pods() -> None:
    node = make_node("a").capacity(cpu=10).build()
    two = FrozenDict({"cpu": Quantity.parse(2)})
    assert score_on(attrs.evolve(node.status, allocatable=two)) == 85
    # 0.2 · 2 CPUs and one more are 70 %.
    assert score_on(attrs.evolve(node.status, allocatable=two, capacity=FrozenDict())) == 20


def score_on(status: NodeStatus) -> int:
    """The score of a node of which 20 % are used for a pod of one CPU."""
    node = attrs.evolve(make_node("a").build(), status=status)
    return harness({"a": NodeLoad(Load(20))}, nodes=[node]).score(limited("1"))["a"]


# --- pods that came too recently ---


def reserved(load: float, *, at: float, window_end: float) -> int:
    """Node a's score for a second pod of one CPU, where a first one was reserved at that time."""
    it = harness(
        {"a": NodeLoad(Load(load))},
        nodes=NODES[:1],
        pods=[limited("1").bound_to("a")],
        now=at,
        window_end=window_end,
    )
    (info,) = it.snapshot.node_infos
    it.reserve(info.pods[0].pod, "a")
    return it.score(limited("1"))["a"]


@pytest.mark.parametrize(
    ("at", "window_end", "expected"),
    [
        (1000, 900, 85),  # after the window: 10 + 10 + 10 %
        (1000, 1000, 85),
        (1000, 1059, 85),  # within the last minute of it
        (1000, 1060, 70),  # a minute is enough: 10 + 10 %
        (1000, 9999, 70),
    ],
)
def test_pods_that_cant_be_in_the_metrics_yet_are_added(at: float, window_end: float, expected: int) -> None:
    assert reserved(10, at=at, window_end=window_end) == expected


def test_a_pod_that_was_given_up_isnt_added() -> None:
    it = harness({"a": NodeLoad(Load(10))})
    pod = it.cluster.add(limited("1"))
    for _ in range(2):
        it.reserve(pod, "a")
        it.unreserve(pod, "a")
        it.unreserve(pod, "a")
        it.unreserve(pod, "b")
    plugin = it.framework.plugins["TargetLoadPacking"]
    assert isinstance(plugin, TargetLoadPacking)
    node = it.snapshot.get("a")
    assert node is not None
    assert plugin.score(limited("1"), NodeInfo.of(node.node, [pod.bound_to("a")])) == 70


def test_a_pod_that_is_gone_isnt_added() -> None:
    it = harness({"a": NodeLoad(Load(10))})
    it.reserve(limited("1"), "a")  # the snapshot hasn't got it on the node
    assert it.score(limited("1"))["a"] == 70


def test_the_batch_form_counts_them_in() -> None:
    random = np.random.default_rng(0)
    means = {f"node-{index}": NodeLoad(Load(float(random.uniform(-5, 110)))) for index in range(40)}
    nodes = [make_node(f"node-{index}").capacity(cpu=index % 7).build() for index in range(45)]
    pods = [
        make_pod(f"p{i}").uid(f"p{i}").limits(cpu=f"{i * 37}m").node(f"node-{i}").build() for i in range(30)
    ]
    it = harness(means, nodes=nodes, pods=pods)
    plugin = it.framework.plugins["TargetLoadPacking"]
    assert isinstance(plugin, TargetLoadPacking)
    for pod in pods[::2]:
        it.reserve(pod, pod.node_name)
    rows = np.array([*range(44, 10, -1), 0, 5], dtype=np.int64)
    asking = make_pod().requests(cpu="777m").build()
    scores = plugin.score_batch(asking, it.snapshot.table, rows)
    assert scores.dtype == np.int64
    assert scores.tolist() == [plugin.score(asking, it.snapshot.node_infos[row]) for row in rows]
    assert len(set(scores.tolist())) > 10


# --- arguments ---


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "metricProvider.address must name an API server, since this doesn't run in a pod"),
        ({"metricProvider": {"type": "File"}}, "metricProvider.address must say where the File is"),
        (
            {"watcherAddress": "http://a", "metricProvider": {"type": "File", "address": "load.json"}},
            "metricProvider.address: Forbidden: the metrics come from watcherAddress",
        ),
        ({"watcherAddress": "load-watcher:2020"}, "must begin with http:// or https://"),
        (
            {"metricProvider": {"type": "Datadog", "address": "http://a"}},
            'metricProvider.type: Unsupported value: "Datadog"',
        ),
        (
            {"metricProvider": {"type": "Prometheus", "address": "prometheus:9090"}},
            'metricProvider.address: Invalid value: "prometheus:9090"',
        ),
        (
            {"watcherAddress": "http://a", "targetUtilization": 0},
            "targetUtilization: Invalid value: 0: must be from 1 to 100",
        ),
        (
            {"watcherAddress": "http://a", "defaultRequestsMultiplier": "lots"},
            'defaultRequestsMultiplier: Invalid value: "lots": must be a number, at least 0',
        ),
        (
            {"watcherAddress": "http://a", "defaultRequests": {"cpu": "many"}},
            "defaultRequests.cpu",
        ),
    ],
)
def test_wrong_arguments_are_named(args: dict[str, object], text: str) -> None:
    with pytest.raises(KschedfwError) as raised:
        FrameworkHarness(TargetLoadPacking, args={"TargetLoadPacking": args})
    assert text in str(raised.value)
