"""Packing against spreading: what a run measures, and that policies do what they are named after."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import attrs
import pytest
from kschedfw_lab.packing.churn import churn
from kschedfw_lab.packing.compaction import compacted
from kschedfw_lab.packing.loss_system import LossSystem
from kschedfw_lab.packing.policies import Policy
from kschedfw_lab.packing.workload import Trace, gpus_of

from kschedfw import Pod


def with_gpus(trace: Trace, count: int) -> Pod:
    return next(pod for pod in trace.pods if gpus_of(pod) == count)


class TestLossSystem:
    def test_packing_fills_one_machine_and_spreading_all(self, trace: Trace) -> None:
        in_use: dict[Policy, int] = {}
        for policy in Policy:
            with LossSystem(trace.nodes, policy, Random(0)) as system:
                assert all(system.place(with_gpus(trace, 1)) for _ in range(6))
                in_use[policy] = sum(bool(node.pods) for node in system.allocations())
        assert in_use[Policy.SPREADING] == 6
        assert in_use[Policy.PACKING] <= 3, "the first pods fill small machines"

    def test_a_pod_that_fits_nowhere_is_refused_and_gone(self, trace: Trace) -> None:
        with LossSystem(trace.nodes, Policy.PACKING, Random(0)) as system:
            large = with_gpus(trace, 8)
            placed = [system.place(large) for _ in range(7)]
            assert [pod is None for pod in placed] == [False] * 6 + [True]
            assert placed[0] is not None
            system.remove(placed[0])
            assert system.place(large) is not None, "there is room again"


class TestChurn:
    @pytest.mark.parametrize("policy", Policy)
    def test_a_seed_says_it_all(self, trace: Trace, policy: Policy) -> None:
        assert churn(trace, policy, 1) == churn(trace, policy, 1)

    def test_all_policies_get_the_same_pods(self, trace: Trace) -> None:
        found = [churn(trace, policy, 3) for policy in Policy]
        assert len({(each["arrived"], each["arrived.large"]) for each in found}) == 1

    def test_shares_are_shares_and_counts_are_of_machines(self, trace: Trace) -> None:
        for metric, value in churn(trace, Policy.SPREADING, 2).items():
            if metric.startswith(("refused", "utilisation", "stranded")):
                assert 0 <= value <= 1, metric
            elif metric.startswith(("empty", "room")):
                assert 0 <= value <= len(trace.nodes), metric

    def test_the_load_is_what_it_says(self, trace: Trace) -> None:
        def mean(metric: str) -> float:
            return sum(churn(trace, Policy.PACKING, seed)[metric] for seed in range(8)) / 8

        assert 0.5 < mean("utilisation.gpus") < 0.9

    @pytest.mark.slow
    def test_spreading_refuses_large_pods(self, trace: Trace) -> None:
        def refused(policy: Policy) -> float:
            found: list[Mapping[str, float]] = [churn(trace, policy, seed, lifetimes=8) for seed in range(4)]
            return sum(each["refused.large"] * each["arrived.large"] for each in found)

        assert refused(Policy.SPREADING) > refused(Policy.PACKING)


class TestCompaction:
    def test_it_is_the_least_number_of_machines(self, trace: Trace) -> None:
        one = attrs.evolve(trace, pods=(with_gpus(trace, 8),))
        found = compacted(one, Policy.PACKING, 1, pods=3)
        order = trace.shuffled_nodes(Random("compaction 1"))
        large = [number for number, node in enumerate(order, 1) if node.labels.get(MODEL) == "G2"]
        assert found == large[2], "the third machine with eight GPUs is the last that is needed"

    def test_what_fits_into_no_number_needs_one_more_than_there_are(self, trace: Trace) -> None:
        one = attrs.evolve(trace, pods=(with_gpus(trace, 8),))
        assert compacted(one, Policy.PACKING, 1, pods=7) == len(trace.nodes) + 1

    def test_without_gpus_only_cpu_and_memory_count(self, trace: Trace) -> None:
        pods = trace.without_gpus().pods
        assert all(gpus_of(pod) == 0 for pod in pods)
        assert [pod.requests.amounts.milli_cpu for pod in pods] == [
            pod.requests.amounts.milli_cpu for pod in trace.pods
        ]
        few, more = (compacted(each, Policy.PACKING, 2, pods=16) for each in (trace.without_gpus(), trace))
        assert few <= more


MODEL = "alibabacloud.com/gpu-card-model"
