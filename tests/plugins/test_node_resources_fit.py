"""NodeResourcesFit: nodes with enough room, and how full they should get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.builders import PodBuilder
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.runtime.args import ArgsError
from kschedfw.framework.status import Code, Status
from kschedfw.plugins._resources import Usage, amount_text
from kschedfw.plugins.node_resources_fit import (
    NodeResourcesFit,
    NodeResourcesFitArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
    Shortage,
    UtilizationShapePoint,
    shortages,
)
from kschedfw.plugins.node_resources_fit.scoring import least_allocated, most_allocated, value_at
from kschedfw.plugins.node_resources_fit.shortage import verdict as verdict_on
from kschedfw.testing import FrameworkHarness

NAME = "NodeResourcesFit"
PLUGIN: Any = NodeResourcesFit
GPU, NIC = "example.com/gpu", "example.com/nic"
MIB = 1024 * 1024

LEAST, MOST, RATIO = ScoringStrategyType


def named(amounts: Mapping[str, str | int]) -> dict[str, str | int]:
    return {{"gpu": GPU, "nic": NIC, "storage": "ephemeral-storage"}.get(k, k): v for k, v in amounts.items()}


def node(name: str = "node", **capacity: str | int) -> Node:
    return make_node(name).capacity(named(capacity)).build()


def requesting(builder: PodBuilder, amounts: Mapping[str, str | int]) -> PodBuilder:
    amounts = named(amounts)
    # The API wants a limit for what can't be shared.
    return builder.requests(amounts).limits({name: amount for name, amount in amounts.items() if "/" in name})


def pod(where: str = "", **requests: str | int) -> Pod:
    builder = requesting(make_pod(f"on-{where or 'none'}"), requests)
    return builder.node(where).build() if where else builder.build()


def harness(
    *nodes: Node, pods: tuple[Pod, ...] = (), args: NodeResourcesFitArgs | None = None
) -> FrameworkHarness:
    return FrameworkHarness(PLUGIN, nodes=nodes, pods=pods, args={} if args is None else {NAME: args})


def verdict(new: Pod, machine: Node, *pods: Pod, args: NodeResourcesFitArgs | None = None) -> Status:
    return harness(machine, pods=pods, args=args).filter(new)[machine.name]


class TestFilter:
    def test_a_pod_may_take_exactly_what_is_left(self) -> None:
        machine, busy = node(cpu=4, memory=1000), pod("node", cpu=3, memory=600)
        assert verdict(pod(cpu=1, memory=400), machine, busy).is_success

    def test_what_is_short_is_a_refusal_that_preemption_may_change(self) -> None:
        machine, busy = node(cpu=4, memory=1000), pod("node", cpu=3, memory=600)
        status = verdict(pod(cpu="1001m", memory=400), machine, busy)
        assert status.code is Code.UNSCHEDULABLE
        assert status.reasons == ("Insufficient cpu",)

    def test_everything_short_is_named_in_a_fixed_order(self) -> None:
        machine = node(cpu=4, memory=1000, storage=1000, gpu=4, nic=4, pods=1)
        busy = pod("node", cpu=4, memory=1000, storage=1000, gpu=4, nic=4)
        status = verdict(pod(cpu=1, memory=1, storage=1, gpu=1, nic=1), machine, busy)
        assert status.code is Code.UNSCHEDULABLE
        assert status.reasons == (
            "Too many pods",
            "Insufficient cpu",
            "Insufficient memory",
            "Insufficient ephemeral-storage",
            f"Insufficient {GPU}",
            f"Insufficient {NIC}",
        )

    @pytest.mark.parametrize("resource", ["cpu", "memory", "storage", "gpu"])
    def test_more_than_the_whole_node_has_is_unresolvable(self, resource: str) -> None:
        machine = node(cpu=4, memory=4, storage=4, gpu=4)
        more, all_of_it = (requesting(make_pod(), {resource: amount}).build() for amount in (5, 4))
        assert verdict(more, machine).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert verdict(all_of_it, machine).is_success

    def test_one_unresolvable_shortage_makes_the_refusal_unresolvable(self) -> None:
        status = verdict(pod(cpu=1, memory=2000), node(cpu=4, memory=1000), pod("node", cpu=4))
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == ("Insufficient cpu", "Insufficient memory")

    def test_an_extended_resource_that_the_node_has_not_got_is_short(self) -> None:
        status = verdict(pod(gpu=1), node(cpu=4))
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == (f"Insufficient {GPU}",)

    def test_too_many_pods_can_always_be_resolved(self) -> None:
        status = verdict(pod(), node(pods=0))
        assert status.code is Code.UNSCHEDULABLE
        assert status.reasons == ("Too many pods",)

    def test_who_asks_for_nothing_fits_even_where_too_much_was_given_away(self) -> None:
        machine, busy = node(cpu=1, memory=100), pod("node", cpu=2, memory=200)
        assert verdict(pod(), machine, busy).is_success
        assert verdict(pod(cpu=0, gpu=0), machine, busy).is_success
        assert verdict(pod(memory=1), machine, busy).reasons == ("Insufficient memory",)

    def test_init_containers_raise_the_request_to_their_peak(self) -> None:
        builder = make_pod().requests(cpu=1).init_container("big", requests={"cpu": 3})
        assert verdict(builder.build(), node(cpu=3)).is_success
        assert not verdict(
            builder.init_container("bigger", requests={"cpu": 4}).build(), node(cpu=3)
        ).is_success

    def test_sidecars_and_overhead_are_added(self) -> None:
        builder = make_pod().requests(cpu=1).init_container("mesh", requests={"cpu": 1}, sidecar=True)
        assert verdict(builder.build(), node(cpu=2)).is_success
        assert not verdict(builder.overhead(cpu="1m").build(), node(cpu=2)).is_success

    @pytest.mark.parametrize(
        ("args", "ignored"),
        [
            (NodeResourcesFitArgs(), False),
            (NodeResourcesFitArgs(ignored_resources=(GPU,)), True),
            (NodeResourcesFitArgs(ignored_resources=(NIC,)), False),
            (NodeResourcesFitArgs(ignored_resource_groups=("example.com",)), True),
            (NodeResourcesFitArgs(ignored_resource_groups=("example",)), False),
        ],
    )
    def test_extended_resources_can_be_ignored_by_name_or_group(
        self, args: NodeResourcesFitArgs, ignored: bool
    ) -> None:
        assert verdict(pod(gpu=1), node(cpu=4), args=args).is_success is ignored

    def test_resources_of_kubernetes_itself_cannot_be_ignored(self) -> None:
        args = NodeResourcesFitArgs(ignored_resources=("cpu", "hugepages-2Mi"))
        big = (
            make_pod().requests({"cpu": 2, "hugepages-2Mi": "4Mi"}).limits({"cpu": 2, "hugepages-2Mi": "4Mi"})
        )
        reasons = verdict(big.build(), node(cpu=1), args=args).reasons
        assert reasons == ("Insufficient cpu", "Insufficient hugepages-2Mi")

    def test_without_pre_filter_it_is_an_error(self) -> None:
        run = harness(node(cpu=1))
        status = run.framework.run_filter_plugins(CycleState(), pod(cpu=1), run.snapshot.node_infos[0])
        assert status.code is Code.ERROR

    def test_shortages_tell_the_numbers(self) -> None:
        info = NodeInfo.of(node(cpu=4, pods=10), [pod("node", cpu=3)])
        (short,) = shortages(pod(cpu=2).requests.amounts, info)
        assert short == Shortage("cpu", requested=2000, used=3000, capacity=4000)


AMOUNT = st.integers(0, 6)
AMOUNTS = st.tuples(AMOUNT, AMOUNT, AMOUNT, AMOUNT)


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_a_pod_fits_exactly_if_nothing_is_short(
    new: tuple[int, ...], taken: tuple[int, ...], capacity: tuple[int, ...]
) -> None:
    wanted, used, there = (
        dict(zip(("cpu", "memory", "storage", "gpu"), amounts, strict=True))
        for amounts in (new, taken, capacity)
    )
    info = NodeInfo.of(
        make_node("node").capacity(named(there)).build(),
        [requesting(make_pod(), used).node("node").build()],
    )
    demand = requesting(make_pod(), wanted).build().requests.amounts
    expected = all(not wanted[name] or used[name] + wanted[name] <= there[name] for name in wanted)
    assert (verdict_on(demand, info) is None) is expected
    assert (not shortages(demand, info)) is expected


def strategy(
    kind: ScoringStrategyType, *resources: tuple[str, int], shape: tuple[tuple[int, int], ...] = ()
) -> NodeResourcesFitArgs:
    ratio = (
        RequestedToCapacityRatio(tuple(UtilizationShapePoint(*point) for point in shape)) if shape else None
    )
    return NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(kind, tuple(ResourceSpec(*spec) for spec in resources), ratio)
    )


def score(
    new: Pod, *nodes: Node, pods: tuple[Pod, ...] = (), args: NodeResourcesFitArgs | None = None
) -> list[int]:
    return list(harness(*nodes, pods=pods, args=args).score(new).values())


class TestLeastAllocated:
    def test_it_is_the_default_and_averages_the_free_shares(self) -> None:
        # CPU 25 % free, memory 50 %; then 50 % and 50 %
        new = pod(cpu=3, memory=5000)
        assert score(new, node(cpu=4, memory=10000), node("b", cpu=6, memory=10000)) == [37, 50]

    def test_what_runs_already_counts(self) -> None:
        assert score(
            pod(cpu=1, memory=100), node(cpu=4, memory=1000), pods=(pod("node", cpu=1, memory=400),)
        ) == [50]

    def test_containers_that_request_nothing_count_as_100m_and_200_mib(self) -> None:
        machine = node(cpu=1, memory=1000 * MIB)
        assert score(make_pod().build(), machine) == [(90 + 80) // 2]
        assert score(make_pod().build(), machine, pods=(make_pod("old").node("node").build(),)) == [
            (80 + 60) // 2
        ]

    def test_more_than_there_is_leaves_nothing_free(self) -> None:
        assert score(pod(cpu=5, memory=500), node(cpu=4, memory=1000)) == [25]

    def test_a_resource_that_the_node_has_not_got_does_not_count(self) -> None:
        assert score(pod(cpu=1), node(cpu=4)) == [75]
        assert score(pod(), node()) == [0]

    def test_each_share_is_rounded_down_and_then_their_average(self) -> None:
        args = strategy(LEAST, ("cpu", 1), ("memory", 1))
        assert score(pod(cpu=1, memory=1), node(cpu=3, memory=1000), args=args) == [(66 + 99) // 2]

    def test_weights(self) -> None:
        args = strategy(LEAST, ("cpu", 3), ("memory", 1))
        assert score(pod(cpu=1, memory=1000), node(cpu=4, memory=1000), args=args) == [56]

    def test_an_extended_resource_counts_only_for_pods_that_want_it(self) -> None:
        args = strategy(LEAST, ("cpu", 1), (GPU, 1))
        machine = node(cpu=4, gpu=4)
        assert score(pod(cpu=2), machine, args=args) == [50]
        assert score(pod(cpu=2, gpu=4), machine, args=args) == [25]

    def test_ephemeral_storage_counts_for_all(self) -> None:
        args = strategy(LEAST, ("ephemeral-storage", 1))
        assert score(pod(), node(storage=100), pods=(pod("node", storage=30),), args=args) == [70]

    def test_pods_are_no_resource_to_score(self) -> None:
        assert score(pod(cpu=1), node(cpu=4), args=strategy(LEAST, ("pods", 1))) == [0]


class TestMostAllocated:
    def test_it_averages_the_used_shares(self) -> None:
        args = strategy(MOST, ("cpu", 1), ("memory", 1))
        new = pod(cpu=3, memory=5000)
        assert score(new, node(cpu=4, memory=10000), node("b", cpu=6, memory=10000), args=args) == [62, 50]

    def test_each_share_is_rounded_down(self) -> None:
        assert score(pod(cpu=2), node(cpu=3), args=strategy(MOST, ("cpu", 1))) == [66]

    def test_more_than_there_is_is_full(self) -> None:
        assert score(pod(cpu=9), node(cpu=4), args=strategy(MOST, ("cpu", 1))) == [100]

    def test_weights_and_missing_resources(self) -> None:
        args = strategy(MOST, ("cpu", 2), ("memory", 1), (GPU, 5))
        assert score(pod(cpu=1, memory=1000), node(cpu=4, memory=1000, gpu=1), args=args) == [50]
        assert score(pod(cpu=1), node(), args=args) == [0]


class TestRequestedToCapacityRatio:
    RISING = ((0, 0), (100, 10))
    FALLING = ((0, 10), (100, 0))

    def test_a_rising_line_packs_and_a_falling_one_spreads(self) -> None:
        new, machine = pod(cpu=1, memory=400), node(cpu=4, memory=1000)
        resources = (("cpu", 1), ("memory", 1))
        assert score(new, machine, args=strategy(RATIO, *resources, shape=self.RISING)) == [
            33
        ]  # 32.5 is rounded
        assert score(new, machine, args=strategy(RATIO, *resources, shape=self.FALLING)) == [68]

    def test_a_resource_that_earns_nothing_does_not_even_weigh(self) -> None:
        args = strategy(RATIO, ("cpu", 1), ("memory", 9), shape=((50, 0), (100, 10)))
        assert score(pod(cpu=3, memory=100), node(cpu=4, memory=1000), args=args) == [50]
        assert score(pod(cpu=1, memory=100), node(cpu=4, memory=1000), args=args) == [0]

    def test_more_than_there_is_counts_as_full(self) -> None:
        args = strategy(RATIO, ("cpu", 1), shape=((0, 1), (100, 7)))
        assert score(pod(cpu=9), node(cpu=4), args=args) == [70]

    def test_an_amount_that_wrapped_around_counts_as_the_nearest_end_of_the_line(self) -> None:
        args = strategy(RATIO, ("memory", 1), shape=((0, 1), (100, 7)))
        assert score(pod(memory=2**63), node(memory=1000), args=args) == [10]
        assert score(pod(memory=2**63), node(memory=2**64 - 1), args=args) == [70]

    @pytest.mark.parametrize(
        ("utilization", "value"),
        [(0, 20), (10, 20), (15, 30), (20, 40), (21, 38), (23, 34), (40, 0), (90, 0)],
    )
    def test_the_line_between_and_beyond_its_points(self, utilization: int, value: int) -> None:
        shape = [UtilizationShapePoint(*point) for point in ((10, 2), (20, 4), (40, 0))]
        assert value_at(shape, utilization) == value

    def test_what_is_left_over_is_cut_off_towards_zero(self) -> None:
        rising = [UtilizationShapePoint(0, 0), UtilizationShapePoint(30, 1)]
        falling = [UtilizationShapePoint(0, 1), UtilizationShapePoint(30, 0)]
        assert value_at(rising, 1) == 0
        assert value_at(falling, 1) == 10


AMOUNT = st.integers(0, 1000)
USAGE = st.builds(Usage, st.integers(1, 1000), AMOUNT, AMOUNT, st.integers(1, 100))


@given(st.lists(USAGE, max_size=5))
def test_scores_are_within_bounds(usages: list[Usage]) -> None:
    assert 0 <= least_allocated(usages) <= 100
    assert 0 <= most_allocated(usages) <= 100


@given(st.lists(USAGE, min_size=1, max_size=5))
def test_least_and_most_allocated_are_opposites_up_to_rounding(usages: list[Usage]) -> None:
    assert 98 <= least_allocated(usages) + most_allocated(usages) <= 100


def test_scoring_works_without_its_pre_score() -> None:
    run = harness(node(cpu=4))
    scores, _ = run.framework.run_score_plugins(CycleState(), pod(cpu=1), run.snapshot.node_infos)
    assert scores is not None
    assert list(scores.totals) == [75]


def test_pods_with_the_same_requests_share_their_answers() -> None:
    plugin = harness().framework.plugins[NAME]
    assert plugin.sign(pod(cpu=1, gpu=1)) == plugin.sign(pod(cpu=1, gpu=1))
    assert plugin.sign(pod(cpu=1, gpu=1)) != plugin.sign(pod(cpu=1, gpu=2))
    assert hash(plugin.sign(pod(cpu=1, gpu=1)))


class TestArgs:
    def test_the_defaults(self) -> None:
        args = NodeResourcesFitArgs()
        assert args.scoring_strategy.type is LEAST
        assert args.scoring_strategy.resources == (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
        assert not [*args.validate()]

    def test_no_resources_means_cpu_and_memory(self) -> None:
        assert ScoringStrategy(MOST, ()).resources == (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))

    @pytest.mark.parametrize("weight", [-1, 0, 101])
    def test_weights_go_from_1_to_100(self, weight: int) -> None:
        (error,) = strategy(LEAST, ("cpu", weight)).validate()
        assert error.path == "scoringStrategy.resources[0].weight"
        assert str(error).endswith(
            f"Invalid value: {weight}: resource weight of cpu not in valid range (0, 100]"
        )

    @pytest.mark.parametrize("weight", [1, 100])
    def test_the_bounds_are_allowed(self, weight: int) -> None:
        assert not [*strategy(LEAST, ("cpu", weight)).validate()]

    def test_the_shape_must_rise_in_utilization_and_stay_within_bounds(self) -> None:
        args = strategy(RATIO, shape=((50, 1), (20, 11), (101, -1), (-1, 10)))
        path = "scoringStrategy.requestedToCapacityRatio.shape"
        assert [*map(str, args.validate())] == [
            f"{path}[1].utilization: Invalid value: 20: values must be sorted in increasing order",
            f"{path}[1].score: Invalid value: 11: not in valid range [0, 10]",
            f"{path}[2].utilization: Invalid value: 101: not in valid range [0, 100]",
            f"{path}[2].score: Invalid value: -1: not in valid range [0, 10]",
            f"{path}[3].utilization: Invalid value: -1: not in valid range [0, 100]",
        ]

    def test_equal_utilizations_are_not_sorted(self) -> None:
        assert len([*strategy(RATIO, shape=((50, 1), (50, 2))).validate()]) == 1

    def test_a_ratio_needs_a_shape(self) -> None:
        (missing,) = strategy(RATIO).validate()
        assert missing.path == "scoringStrategy.requestedToCapacityRatio"
        empty = ScoringStrategy(RATIO, requested_to_capacity_ratio=RequestedToCapacityRatio())
        (missing,) = NodeResourcesFitArgs(scoring_strategy=empty).validate()
        assert str(missing) == (
            "scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"
        )

    def test_an_unknown_strategy_is_told_what_there_is(self) -> None:
        unknown: Any = "Random"
        (error,) = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(unknown)).validate()
        assert str(error) == (
            'scoringStrategy.type: Unsupported value: "Random": '
            'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
        )

    def test_ignored_names_must_be_names(self) -> None:
        args = NodeResourcesFitArgs(
            ignored_resources=("example.com/gpu", "example.com/", "-gpu"),
            ignored_resource_groups=("example.com", "example.com/gpu", "under_score.", "a/b/c"),
        )
        assert [error.path for error in args.validate()] == [
            "ignoredResources[1]",
            "ignoredResources[1]",
            "ignoredResources[2]",
            "ignoredResourceGroups[1]",
            "ignoredResourceGroups[2]",
            "ignoredResourceGroups[3]",
            "ignoredResourceGroups[3]",
        ]

    def test_they_are_read_from_a_configuration(self) -> None:
        written = {
            "ignoredResources": [GPU],
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "memory", "weight": 3}],
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                },
            },
        }
        run = FrameworkHarness(PLUGIN, args={NAME: written})
        expected = strategy(RATIO, ("memory", 3), shape=((0, 0), (100, 10))).scoring_strategy
        assert run.framework.plugins[NAME].args == NodeResourcesFitArgs((GPU,), (), expected)

    @pytest.mark.parametrize(
        "scoring",
        [{"type": "Fullest"}, {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}],
    )
    def test_a_bad_configuration_is_refused(self, scoring: dict[str, object]) -> None:
        with pytest.raises(ArgsError, match="scoringStrategy"):
            FrameworkHarness(PLUGIN, args={NAME: {"scoringStrategy": scoring}})


class TestQueueing:
    def hint(self, index: int, new: Pod, before: object, after: object) -> QueueingHint:
        event = harness().framework.events_to_register()[NAME][index]
        assert event.hint is not None
        return event.hint(new, before, after)

    def test_the_deletion_of_a_pod_that_had_or_was_promised_a_node_helps(self) -> None:
        waiting = make_pod().nominated_node("node").build()
        assert self.hint(0, pod(cpu=1), pod("node"), None) is QueueingHint.QUEUE
        assert self.hint(0, pod(cpu=1), waiting, None) is QueueingHint.QUEUE
        assert self.hint(0, pod(cpu=1), make_pod().build(), None) is QueueingHint.SKIP
        assert self.hint(0, pod(cpu=1), None, None) is QueueingHint.SKIP

    def test_a_running_pod_that_gives_back_what_is_wanted_helps(self) -> None:
        assert self.hint(0, pod(cpu=1), pod("node", cpu=2), pod("node", cpu=1)) is QueueingHint.QUEUE
        assert self.hint(0, pod(gpu=1), pod("node", gpu=2), pod("node", gpu=1)) is QueueingHint.QUEUE
        assert self.hint(0, pod(memory=1), pod("node", cpu=2), pod("node", cpu=1)) is QueueingHint.SKIP
        assert self.hint(0, pod(cpu=1), pod("node", cpu=1), pod("node", cpu=2)) is QueueingHint.SKIP
        assert (
            self.hint(0, make_pod().uid("a").requests(cpu=1).build(), pod(cpu=2), pod(cpu=1))
            is QueueingHint.SKIP
        )

    def test_scaling_down_the_pod_itself_helps(self) -> None:
        large, small = (make_pod().uid("a").requests(cpu=cpu).build() for cpu in (2, 1))
        assert self.hint(0, large, large, small) is QueueingHint.QUEUE

    def test_a_new_node_helps_if_the_pod_fits_onto_it(self) -> None:
        assert self.hint(1, pod(cpu=1), None, node(cpu=1)) is QueueingHint.QUEUE
        assert self.hint(1, pod(cpu=2), None, node(cpu=1)) is QueueingHint.SKIP
        assert self.hint(1, pod(cpu=2), None, None) is QueueingHint.SKIP

    def test_a_changed_node_helps_if_it_grew_where_it_matters(self) -> None:
        assert self.hint(1, pod(cpu=1), node(cpu=1), node(cpu=2)) is QueueingHint.QUEUE
        assert self.hint(1, pod(gpu=1), node(gpu=1), node(gpu=2)) is QueueingHint.QUEUE
        assert self.hint(1, pod(cpu=1), node(cpu=2, memory=1), node(cpu=2, memory=2)) is QueueingHint.SKIP
        assert self.hint(1, pod(cpu=1), node(cpu=2, pods=1), node(cpu=2, pods=2)) is QueueingHint.QUEUE
        assert self.hint(1, pod(), node(cpu=1), node(cpu=2)) is QueueingHint.SKIP


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 80, "80m"),
        ("cpu", 4000, "4"),
        ("memory", 1023, "1023"),
        ("memory", 3 << 29, "1.5Gi"),
        ("ephemeral-storage", 1 << 41, "2Ti"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("example.com/gpu", 2048, "2048"),
    ],
)
def test_amounts_are_told_in_the_unit_in_which_people_read_them(name: str, amount: int, text: str) -> None:
    assert amount_text(name, amount) == text
