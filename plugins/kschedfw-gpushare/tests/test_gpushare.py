"""GpuShare, extension point by extension point, and through the whole scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_gpushare import (
    GPU_COUNT,
    GPU_INDEX,
    GPU_MILLI,
    GPU_MODEL,
    DevicePick,
    GpuShare,
    GpuShareArgs,
    Policy,
    Reservations,
    TypicalPod,
    devices_of,
)
from kschedfw_gpushare.devices import DeviceColumns
from kschedfw_gpushare.fragmentation import Fragmentation

from kschedfw import (
    EnabledPlugin,
    FrozenDict,
    InMemoryCluster,
    KschedfwError,
    Node,
    Pod,
    Profile,
    QueueingHint,
    Registry,
    Scheduler,
    Status,
    default_profile,
    load_configuration,
    make_node,
    make_pod,
    read_manifests,
    scheduler_from_configuration,
)
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.testing import FakeClock, FrameworkHarness
from kschedfw.testing.properties import examples

GPU = "nvidia.com/gpu"


def node(name: str, gpus: int, model: str = "T4", cpu: int = 64) -> Node:
    return make_node(name).labels({GPU_MODEL: model}).capacity({GPU: gpus, "cpu": cpu, "pods": 100}).build()


def pod(name: str = "pod", *, milli: int = 1000, count: int = 1, cpu: int = 0, models: str = "") -> Pod:
    annotations = {GPU_MILLI: str(milli), GPU_COUNT: str(count)} | ({GPU_MODEL: models} if models else {})
    return make_pod(name).uid(name).annotations(annotations).requests(cpu=cpu).build()


def bound(name: str, on: str, milli: int, index: str) -> Pod:
    count = str(len(index.split("-")))
    annotations = {GPU_MILLI: str(milli), GPU_COUNT: count, GPU_INDEX: index}
    return make_pod(name).uid(name).annotations(annotations).node(on).build()


def harness(*nodes: Node, pods: tuple[Pod, ...] = (), args: object = None) -> FrameworkHarness:
    return FrameworkHarness(GpuShare, nodes=nodes, pods=pods, args={} if args is None else {"GpuShare": args})


def messages(statuses: Mapping[str, Status]) -> dict[str, str]:
    return {name: status.message for name, status in statuses.items()}


# Filter


def test_a_share_needs_one_device_with_enough_left() -> None:
    there = harness(
        node("full", 2),
        node("roomy", 2),
        pods=(
            bound("a", "full", 600, "0"),
            bound("b", "full", 700, "1"),
            bound("c", "roomy", 600, "0"),
            bound("d", "roomy", 500, "1"),
        ),
    )
    verdicts = there.filter(pod(milli=500))
    assert messages(verdicts) == {"full": "node(s) had too little left of their GPUs", "roomy": ""}


def test_whole_gpus_are_free_ones() -> None:
    there = harness(
        node("two", 2), node("three", 3), pods=(bound("a", "two", 1, "1"), bound("b", "three", 1, "1"))
    )
    assert messages(there.filter(pod(count=2))) == {
        "two": "node(s) had too little left of their GPUs",
        "three": "",
    }


def test_what_no_eviction_would_change() -> None:
    there = harness(node("none", 0), node("few", 1), node("other", 4, "P100"), node("right", 4, "A10"))
    verdicts = there.filter(pod(count=2, models="A10|T4"))
    assert messages(verdicts) == {
        "none": "node(s) had no GPUs",
        "few": "node(s) had fewer GPUs than the pod asks for",
        "other": "node(s) had GPUs of another model",
        "right": "",
    }
    assert {str(verdicts[name].code) for name in ("none", "few", "other")} == {
        str(Status.unresolvable("").code)
    }


def test_a_pod_that_only_requests_gpus_wants_whole_ones() -> None:
    there = harness(node("a", 2), pods=(bound("x", "a", 100, "0"),))
    assert there.filter(make_pod().requests({GPU: 1}).build())["a"].is_success
    assert not there.filter(make_pod().requests({GPU: 2}).build())["a"].is_success


def test_a_pod_without_gpus_goes_anywhere() -> None:
    there = harness(node("none", 0), node("full", 1), pods=(bound("x", "full", 1000, "0"),))
    assert all(status.is_success for status in there.filter(make_pod().build()).values())


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ({GPU_MILLI: "half"}, f"annotation {GPU_MILLI}: must be a whole number from 0 to 1000, not 'half'"),
        ({GPU_MILLI: "1001"}, f"annotation {GPU_MILLI}: must be a whole number from 0 to 1000, not '1001'"),
        ({GPU_COUNT: "-1"}, f"annotation {GPU_COUNT}: must be a whole number, not '-1'"),
        (
            {GPU_MILLI: "500", GPU_COUNT: "2"},
            f"annotation {GPU_COUNT}: must be 1 with a {GPU_MILLI} below 1000, not 2",
        ),
    ],
)
def test_a_demand_that_makes_no_sense_fits_nowhere(annotations: dict[str, str], text: str) -> None:
    _, status = harness(node("a", 1)).pre_filter(make_pod().annotations(annotations).build())
    assert status.is_rejected
    assert status.message == text


def test_pods_whose_devices_are_not_known_are_where_they_fit_best() -> None:
    stranger = make_pod("stranger").uid("stranger").annotations({GPU_MILLI: "300"}).node("a").build()
    there = harness(node("a", 2), pods=(bound("x", "a", 600, "1"), stranger))
    assert there.filter(pod(milli=1000))["a"].is_success  # so it isn't on device 0
    assert there.filter(pod(milli=100))["a"].is_success


def test_devices_are_never_less_than_empty() -> None:
    there = harness(node("a", 1), pods=(bound("x", "a", 900, "0"), bound("y", "a", 900, "0")))
    assert there.filter(pod(milli=1))["a"].message == "node(s) had too little left of their GPUs"


# Score


def scores(policy: Policy, request: Pod, *nodes: Node, pods: tuple[Pod, ...] = ()) -> dict[str, int]:
    return harness(*nodes, pods=pods, args=GpuShareArgs(policy=policy)).score(request)


def test_dot_product_prefers_little_left_of_what_the_pod_asks_for() -> None:
    # 1 − (64/128 · 32/128 + 8/8 · 4/8) / 2 and 1 − (64/128 · 32/128 + 4/8 · 4/8) / 2
    rated = scores(Policy.DOT_PRODUCT, pod(count=4, cpu=32), node("eight", 8), node("four", 4))
    assert rated == {"eight": 68, "four": 81}


def test_best_fit_leaves_the_least_over() -> None:
    # What is left over: 32/128 and 4/8, 32/128 and 0/8, 0/128 and 4/8; stretched from 0 to 100.
    nodes = [node("eight", 8), node("four", 4), node("small", 8, cpu=32)]
    assert scores(Policy.BEST_FIT, pod(count=4, cpu=32), *nodes) == {"eight": 0, "four": 100, "small": 52}


def test_packing_takes_shared_gpus_then_free_ones_on_nodes_in_use_then_small_free_nodes() -> None:
    nodes = [node("shared", 2), node("used", 2), node("free", 2), node("large", 8)]
    pods = (bound("a", "shared", 400, "1"), bound("b", "used", 900, "0"))
    # 100 − 60/10, 50 − 1, 33 − 2, 33 − 8
    assert scores(Policy.GPU_PACKING, pod(milli=300), *nodes, pods=pods) == {
        "shared": 94,
        "used": 49,
        "free": 31,
        "large": 25,
    }


def test_clustering_puts_pods_beside_their_kind() -> None:
    nodes = [node("shares", 8), node("both", 8), node("free", 8), node("whole", 8)]
    pods = (
        bound("a", "shares", 800, "0"),
        bound("b", "both", 800, "0"),
        bound("c", "both", 1000, "1"),
        bound("d", "whole", 1000, "0"),
    )
    # Fullness of a quarter: 25 · 800 / 8000, 25 · 1800 / 8000, 0, 25 · 1000 / 8000
    assert scores(Policy.GPU_CLUSTERING, pod(milli=100), *nodes, pods=pods) == {
        "shares": 75 + 2,
        "both": 50 + 5,
        "free": 25,
        "whole": 3,
    }


def test_fgd_fills_what_the_workload_could_not_use() -> None:
    args = GpuShareArgs(typical_pods=(TypicalPod(pods=1, gpu_count=1, gpu_milli=1000),))
    nodes = [node("fresh", 1), node("begun", 1)]
    rated = harness(*nodes, pods=(bound("a", "begun", 500, "0"),), args=args).score(pod(milli=500))
    # 500 more are fragmented on the one, 500 fewer on the other: 100 · sigmoid(±0.5).
    assert rated == {"fresh": 37, "begun": 62}


def test_of_equally_good_nodes_the_first_is_best_unless_the_scheduler_is_to_draw() -> None:
    nodes = [node("a", 1), node("b", 2), node("c", 2)]
    request = pod(count=1)
    assert scores(Policy.GPU_PACKING, request, nodes[1], nodes[2]) == {"b": 31, "c": 30}
    assert scores(Policy.GPU_PACKING, make_pod().build(), *nodes) == {"a": 1, "b": 0, "c": 0}
    drawn = GpuShareArgs(policy=Policy.GPU_PACKING, fill_in_order=False)
    assert harness(*nodes, args=drawn).score(request) == {"a": 32, "b": 31, "c": 31}


def test_random_rates_nothing() -> None:
    assert scores(Policy.RANDOM, pod(), node("a", 8), node("b", 1)) == {"a": 0, "b": 0}


# Reserve and bind


@pytest.mark.parametrize(
    ("pick", "indices"),
    [
        (DevicePick.BEST_FIT, {"2"}),
        (DevicePick.WORST_FIT, {"0"}),
        (DevicePick.FGD, {"1"}),
        (DevicePick.RANDOM, {"0", "1", "2", "3"}),
    ],
)
def test_which_device_a_share_gets(pick: DevicePick, indices: set[str]) -> None:
    # 1000, 700, 500 and 600 are left. The workload wants whole GPUs, which device 0 should stay, and 400 of one, which
    # 700 − 300 still are.
    workload = [TypicalPod(pods=1, gpu_count=1, gpu_milli=milli) for milli in (400, 1000)]
    args = GpuShareArgs(device_pick=pick, typical_pods=tuple(workload))
    pods = (bound("x", "a", 300, "1"), bound("y", "a", 500, "2"), bound("z", "a", 400, "3"))
    assert reserved(harness(node("a", 4), pods=pods, args=args), pod("new", milli=300), "a") in indices


def test_whole_gpus_are_the_first_free_ones() -> None:
    there = harness(node("a", 4), pods=(bound("x", "a", 100, "1"),))
    assert reserved(there, pod("new", count=3), "a") == "0-2-3"


def reserved(there: FrameworkHarness, request: Pod, node_name: str) -> str:
    """The devices that a pod is given, as its annotation tells them."""
    stored = there.cluster.add(request)
    there.pre_filter(stored)
    assert there.reserve(stored.bound_to(node_name), node_name).is_success
    assert there.pre_bind(stored.bound_to(node_name), node_name).is_success
    present = there.cluster.get(Pod, stored.key)
    assert present is not None
    assert present.node_name == ""
    return present.annotations[GPU_INDEX]


def test_nothing_is_reserved_where_there_is_no_room() -> None:
    there = harness(node("a", 1), pods=(bound("x", "a", 600, "0"),))
    status = there.reserve(pod("new", milli=500).bound_to("a"), "a")
    assert status.message == "node(s) had too little left of their GPUs"


def test_a_pod_that_is_gone_is_an_error_and_no_other_pod_is_touched() -> None:
    there = harness(node("a", 1))
    gone = pod("gone")
    there.pre_filter(gone)
    there.reserve(gone.bound_to("a"), "a")
    assert "default/gone is gone" in there.pre_bind(gone.bound_to("a"), "a").message


# Coming back


def hint(resource: str, pending: Pod, old: object | None, new: object | None) -> QueueingHint:
    events = harness().framework.events_to_register()["GpuShare"]
    (event,) = (event for event in events if event.resource == resource)
    assert event.hint is not None
    return event.hint(pending, old, new)


def test_a_node_with_enough_gpus_of_the_model_is_worth_a_retry() -> None:
    waiting = pod(count=2, models="T4")
    assert hint("Node", waiting, None, node("a", 2)) is QueueingHint.QUEUE
    assert hint("Node", waiting, None, node("a", 1)) is QueueingHint.SKIP
    assert hint("Node", waiting, None, node("a", 2, "P100")) is QueueingHint.SKIP


def test_a_pod_that_leaves_gpus_is_worth_a_retry() -> None:
    assert hint("AssignedPod", pod(), bound("x", "a", 500, "0"), None) is QueueingHint.QUEUE
    assert hint("AssignedPod", pod(), make_pod("x").node("a").build(), None) is QueueingHint.SKIP


def test_a_change_of_the_pods_own_demand_is_worth_a_retry() -> None:
    assert hint("UnschedulablePod", pod(), pod(), pod(milli=500)) is QueueingHint.QUEUE
    assert hint("UnschedulablePod", pod(), pod(), pod()) is QueueingHint.SKIP
    assert hint("UnschedulablePod", pod(), pod("x"), pod("x", milli=500)) is QueueingHint.SKIP


# Arguments


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"policy": "Best"}, 'policy: Unsupported value: "Best"'),
        ({"devicePick": "First"}, 'devicePick: Unsupported value: "First"'),
        ({"popularity": 0}, "popularity: Invalid value: 0: must be from 1 to 100"),
        ({"largestNodeGpus": 0}, "largestNodeGpus: Invalid value: 0: must be at least 1"),
        ({"largestNodeCpus": 0}, "largestNodeCpus: Invalid value: 0: must be at least 1"),
        ({"gpuResource": ""}, "gpuResource: Required value"),
        ({"typicalPods": [{"pods": 0}]}, "typicalPods[0].pods: Invalid value: 0: must be at least 1"),
        ({"typicalPods": [{"pods": 1, "milliCpu": -1}]}, "typicalPods[0].milliCpu: Invalid value: -1"),
        ({"typicalPods": [{"pods": 1, "gpuMilli": 2000}]}, "typicalPods[0].gpuMilli: Invalid value: 2000"),
        (
            {"typicalPods": [{"pods": 1, "gpuMilli": 500, "gpuCount": 2}]},
            "typicalPods[0].gpuCount: Invalid value: 2: must be from 1 to 1 with a gpuMilli of 500",
        ),
        ({"typicalPods": [{}]}, "typicalPods[0].pods"),
    ],
)
def test_wrong_arguments(args: object, text: str) -> None:
    with pytest.raises(KschedfwError) as raised:
        harness(args=args)
    assert str(raised.value).startswith("GpuShare: ")
    assert text in str(raised.value)


# The whole scheduler


def scheduler(
    cluster: InMemoryCluster, args: object, random: Random | None = None, executor: Later | None = None
) -> Scheduler:
    registry = Registry()
    if "GpuShare" not in registry.names():
        registry.register(GpuShare)
    fit = {"ignoredResources": [GPU]}
    base = default_profile({"NodeResourcesFit": fit, "GpuShare": args})
    profile = Profile([*base.multi_point, EnabledPlugin("GpuShare", weight=1000)], args=base.args)
    return Scheduler(
        cluster, [profile], registry=registry, clock=FakeClock(), random=random, executor=executor
    )


def test_pods_share_gpus_and_a_waiting_one_comes_when_another_goes() -> None:
    cluster = InMemoryCluster([node("a", 2)])
    at_work = scheduler(cluster, GpuShareArgs(policy=Policy.GPU_PACKING))
    for name, milli in (("x", 600), ("y", 400), ("z", 700), ("w", 500)):
        cluster.add(pod(name, milli=milli))
        at_work.run_until_idle()
    placed = {each.name: each.annotations.get(GPU_INDEX) for each in cluster.list(Pod)}
    assert placed == {"x": "0", "y": "0", "z": "1", "w": None}
    (told,) = (each.status.conditions[0].message for each in cluster.list(Pod) if not each.node_name)
    assert told.startswith("0/1 nodes are available: 1 node(s) had too little left of their GPUs.")
    z = cluster.get(Pod, "default/z")
    assert z is not None
    cluster.delete(z)
    clock = at_work.frameworks["default-scheduler"].handle.clock
    assert isinstance(clock, FakeClock)
    clock.advance(60)
    at_work.run_until_idle()
    w = cluster.get(Pod, "default/w")
    assert w is not None
    assert (w.node_name, w.annotations[GPU_INDEX]) == ("a", "1")
    at_work.close()


class Later:
    """An executor that keeps what it is given until it is told."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], None]] = []

    def submit(self, task: Callable[[], None]) -> None:
        self.tasks.append(task)


def test_devices_are_taken_before_the_cluster_knows() -> None:
    cluster, later = InMemoryCluster([node("a", 2)]), Later()
    at_work = scheduler(cluster, GpuShareArgs(policy=Policy.GPU_PACKING), executor=later)
    for name, milli in (("x", 600), ("y", 600), ("z", 400), ("w", 400)):
        cluster.add(pod(name, milli=milli))
        assert at_work.schedule_one()
    assert not any(GPU_INDEX in each.annotations for each in cluster.list(Pod))
    for task in later.tasks:
        task()
    assert [each.annotations[GPU_INDEX] for each in cluster.list(Pod)] == ["0", "1", "0", "1"]
    at_work.close()


def test_the_devices_of_an_attempt_that_failed_mean_nothing() -> None:
    cluster = InMemoryCluster([node("a", 2), bound("x", "a", 1000, "0")])
    at_work = scheduler(cluster, GpuShareArgs())
    failed = pod("failed", milli=700)
    annotations = FrozenDict({**failed.annotations, GPU_INDEX: "0"})
    cluster.add(failed.with_metadata(attrs.evolve(failed.metadata, annotations=annotations)))
    cluster.add(pod("next", milli=300))
    cluster.add(pod("last", milli=300))
    at_work.run_until_idle()
    found = [(each.name, each.node_name, each.annotations.get(GPU_INDEX)) for each in cluster.list(Pod)]
    assert found == [("x", "a", "0"), ("failed", "a", "1"), ("next", "a", "1"), ("last", "", None)]
    at_work.close()


REQUESTS = st.lists(
    st.tuples(st.sampled_from([100, 300, 500, 999, 1000]), st.sampled_from([1, 1, 2, 3]), st.booleans()),
    min_size=1,
    max_size=25,
)


@settings(max_examples=examples(75))
@given(REQUESTS, st.sampled_from(Policy), st.sampled_from([None, *DevicePick]), st.integers(0, 99))
def test_no_device_is_ever_given_away_twice(
    requests: list[tuple[int, int, bool]], policy: Policy, pick: DevicePick | None, seed: int
) -> None:
    cluster, random = InMemoryCluster([node("a", 4), node("b", 2), node("c", 0)]), Random(seed)
    at_work = scheduler(cluster, GpuShareArgs(policy=policy, device_pick=pick), random)
    for number, (milli, count, one_goes) in enumerate(requests):
        cluster.add(pod(f"pod-{number}", milli=milli, count=count if milli == 1000 else 1))
        at_work.run_until_idle()
        running = [each for each in cluster.list(Pod) if each.node_name]
        if one_goes and running:
            cluster.delete(random.choice(running))
        taken: Counter[tuple[str, str]] = Counter()
        for each in cluster.list(Pod):
            if each.node_name:
                for device in each.annotations[GPU_INDEX].split("-"):
                    taken[each.node_name, device] += int(each.annotations[GPU_MILLI])
        assert all(amount <= 1000 for amount in taken.values()), taken
        assert set(taken) <= {("a", "0"), ("a", "1"), ("a", "2"), ("a", "3"), ("b", "0"), ("b", "1")}
    at_work.close()


def test_the_example_of_the_readme() -> None:
    example = Path(__file__).parents[1] / "example"
    registry = Registry()
    if "GpuShare" not in registry.names():
        registry.register(GpuShare)
    manifests = read_manifests(example / "cluster.yaml")
    assert not manifests.problems
    cluster = InMemoryCluster([*manifests.nodes, *manifests.pods])
    configuration = load_configuration(example / "profile.yaml", registry)
    at_work = scheduler_from_configuration(configuration, cluster, registry=registry, clock=FakeClock())
    at_work.run_until_idle()
    found = {each.name: (each.node_name, each.annotations.get(GPU_INDEX)) for each in cluster.list(Pod)}
    shared, free = found["notebook-1"][0], found["training"][0]
    assert {shared, free} == {"gpu-1", "gpu-2"}
    assert found == {
        "notebook-1": (shared, "0"),
        "notebook-2": (shared, "0"),
        "inference": (shared, "1"),
        "training": (free, "0-1"),
        "fine-tuning": ("", None),
    }
    at_work.close()


# For policies of others


def test_the_readmes_policy_reads_what_is_left_of_each_device() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (block,) = (each for each in readme.split("```python\n")[1:] if "class FullestDevice" in each)
    names: dict[str, Any] = {}
    exec(block.partition("```")[0], names)
    nodes = [node("free", 2), node("shared", 2)]
    there = FrameworkHarness(names["FullestDevice"], nodes=nodes, pods=[bound("a", "shared", 700, "0")])
    assert there.score(pod(milli=300)) == {"free": 0, "shared": 70}


@settings(max_examples=examples(75))
@given(REQUESTS, st.integers(0, 99))
def test_what_is_kept_of_nodes_is_what_they_have(requests: list[tuple[int, int, bool]], seed: int) -> None:
    """A gauge and the devices of nodes, as pods come and go and a node comes, as if looked at for the first time."""
    cluster, random = InMemoryCluster([node("a", 4), node("c", 0)]), Random(seed)
    typical = TypicalPod(pods=2, gpu_count=1, gpu_milli=500), TypicalPod(pods=1, gpu_count=2, gpu_milli=1000)
    at_work = scheduler(cluster, GpuShareArgs(typical_pods=typical), random)
    plugin = at_work.frameworks["default-scheduler"].plugins["GpuShare"]
    assert isinstance(plugin, GpuShare)
    table, reservations = at_work.snapshot.table, Reservations.of(at_work.snapshot)
    gauge = plugin.gauge(table)
    for number, (milli, count, one_goes) in enumerate(requests):
        if number == 5:
            cluster.add(node("b", 2, model="P100", cpu=1))
        cluster.add(pod(f"pod-{number}", milli=milli, count=count if milli == 1000 else 1))
        at_work.run_until_idle()
        running = [each for each in cluster.list(Pod) if each.node_name]
        if one_goes and running:
            cluster.delete(random.choice(running))
        at_work.cache.update_snapshot(at_work.snapshot)
        if number == 6:
            table.rebuild(table.node_infos, table.rows)
        columns = DeviceColumns(table, lambda info: devices_of(info, GPU, reservations))
        room = columns.room(table.all_rows)
        useless, gpus = Fragmentation(typical).amounts(room).sum() / 3, 1000 * room.counts.sum()
        idle = room.total.sum()
        assert gauge.shares() == pytest.approx((useless / gpus, useless / idle if idle else 0.0))
        for info in table.node_infos:
            changed = info.clone()
            changed.add_pod(PodInfo.of(bound("what-if", info.name, 1000, "0")))
            for each in (info, changed):
                assert plugin._devices(each) == devices_of(each, GPU, reservations)
    at_work.close()
