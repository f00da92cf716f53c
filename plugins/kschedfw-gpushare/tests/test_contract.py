"""GpuShare keeps the contract that every plugin must keep, whatever the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from kschedfw_gpushare import (
    GPU_COUNT,
    GPU_INDEX,
    GPU_MILLI,
    GPU_MODEL,
    GpuShare,
    GpuShareArgs,
    Policy,
    TypicalPod,
)

from kschedfw import FrozenDict, Node, Pod, make_node, make_pod
from kschedfw.testing import PluginContract

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

TYPICAL = (
    TypicalPod(pods=3, milli_cpu=500),
    TypicalPod(pods=5, milli_cpu=1000, gpu_count=1, gpu_milli=500),
    TypicalPod(pods=2, milli_cpu=4000, gpu_count=1, gpu_milli=1000, gpu_card_model="T4|P100"),
    TypicalPod(pods=1, milli_cpu=2000, gpu_count=2, gpu_milli=1000),
)


def sharing(pod: Pod, milli: str, count: str, index: str) -> Pod:
    annotations = {GPU_MILLI: milli, GPU_COUNT: count} | ({GPU_INDEX: index} if index else {})
    return pod.with_metadata(attrs.evolve(pod.metadata, annotations=FrozenDict(annotations)))


def of_model(pod: Pod, models: str) -> Pod:
    annotations = FrozenDict({**pod.annotations, GPU_MODEL: models})
    return pod.with_metadata(attrs.evolve(pod.metadata, annotations=annotations))


def gpu_node(model: str, gpus: int, cpu: int) -> Node:
    return (
        make_node("node")
        .labels({GPU_MODEL: model, "kubernetes.io/hostname": "node"})
        .capacity({"nvidia.com/gpu": gpus, "cpu": cpu, "memory": "64Gi", "pods": 20})
        .build()
    )


class GpuShareContract(PluginContract):
    plugin = GpuShare
    max_examples = 6

    def pods(self) -> SearchStrategy[Pod]:
        from hypothesis import strategies as st

        plain = st.builds(
            lambda cpu: make_pod("pod").requests(cpu=f"{cpu}m").build(), st.sampled_from([100, 1500])
        )
        shares = st.builds(
            sharing,
            plain,
            st.sampled_from(["300", "500", "1000", "lots"]),
            st.sampled_from(["1", "1", "2"]),
            st.sampled_from(["", "0", "1", "0-1", "7", "first"]),
        )
        whole = st.just(make_pod("pod").requests({"nvidia.com/gpu": 1}).build())
        models = st.sampled_from(["T4", "P100|V100"])
        return super().pods() | shares | shares | st.builds(of_model, shares | whole, models)

    def nodes(self) -> SearchStrategy[Node]:
        from hypothesis import strategies as st

        with_gpus = st.builds(
            gpu_node, st.sampled_from(["T4", "P100"]), st.sampled_from([0, 1, 2, 4]), st.sampled_from([1, 8])
        )
        return super().nodes() | with_gpus | with_gpus


class TestFgd(GpuShareContract):
    args = GpuShareArgs(typical_pods=TYPICAL)


class TestFgdOfAWorkloadThatIsLearnt(GpuShareContract):
    args = GpuShareArgs()


class TestDotProduct(GpuShareContract):
    args = GpuShareArgs(policy=Policy.DOT_PRODUCT)


class TestBestFit(GpuShareContract):
    args = GpuShareArgs(policy=Policy.BEST_FIT)


class TestGpuPacking(GpuShareContract):
    args = GpuShareArgs(policy=Policy.GPU_PACKING, fill_in_order=False)


class TestGpuClustering(GpuShareContract):
    args = GpuShareArgs(policy=Policy.GPU_CLUSTERING)


class TestRandom(GpuShareContract):
    args = GpuShareArgs(policy=Policy.RANDOM)
