"""Fragmentation, as worked out by hand and by its definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_gpushare import GPU_MILLI, GPU_MODEL, TypicalPod, typical_pods
from kschedfw_gpushare.devices import Room
from kschedfw_gpushare.fragmentation import NOWHERE, Fragmentation

from kschedfw import make_pod

SHARE = TypicalPod(pods=2, milli_cpu=1000, gpu_count=1, gpu_milli=500)
WHOLE = TypicalPod(pods=1, milli_cpu=4000, gpu_count=1, gpu_milli=1000)
NO_GPU = TypicalPod(pods=1, milli_cpu=1000)
WORKLOAD = Fragmentation([SHARE, WHOLE, NO_GPU])


def room(cpu: int, *gpus: int, model: str = "T4") -> Room:
    return Room(
        cpu=np.array([cpu]),
        gpus=np.array([gpus], dtype=np.int64),
        counts=np.array([len(gpus)]),
        kinds=np.zeros(1, dtype=np.int64),
        models=np.zeros(1, dtype=np.int64),
        model_names=[model],
    )


def test_what_is_on_too_small_devices_is_fragmented_for_pods_that_fit_and_all_of_it_for_others() -> None:
    # 300 for each of the two shares, 300 for the whole one, 1300 for the pod that wants no GPU.
    assert WORKLOAD.amounts(room(4000, 1000, 300)).tolist() == [600 + 300 + 1300]


def test_without_the_cpu_for_a_pod_idle_gpus_are_of_no_use_to_it() -> None:
    assert WORKLOAD.amounts(room(3999, 1000, 300)).tolist() == [600 + 1300 + 1300]
    assert WORKLOAD.amounts(room(999, 1000, 300)).tolist() == [2600 + 1300 + 1300]


def test_all_of_it_is_fragmented_where_there_are_fewer_devices_than_a_pod_wants() -> None:
    pair = Fragmentation([TypicalPod(pods=1, gpu_count=2, gpu_milli=1000)])
    assert pair.amounts(room(1000, 1000, 999)).tolist() == [1999]
    assert pair.amounts(room(1000, 1000, 1000, 999)).tolist() == [999]


def test_another_model_is_of_no_use() -> None:
    picky = Fragmentation([TypicalPod(pods=1, gpu_count=1, gpu_milli=500, gpu_card_model="A10|P100")])
    assert picky.amounts(room(1000, 800, model="T4")).tolist() == [800]
    assert picky.amounts(room(1000, 800, model="P100")).tolist() == [0]


def test_nothing_idle_is_not_fragmented() -> None:
    assert WORKLOAD.amounts(room(64_000, 0, 0)).tolist() == [0]
    assert WORKLOAD.amounts(room(64_000)).tolist() == [0]


def test_a_share_belongs_where_nothing_else_fits() -> None:
    # Of 2200, 2600 are fragmented with 700 and 300 left, 2000 with 1000 and 0; either way the whole one lacks CPU.
    gains = WORKLOAD.gains_by_device(room(4000, 1000, 300), milli_cpu=1000, milli=300)
    assert gains.tolist() == [[-400, 200]]
    # 100 · sigmoid(−0.1) and 100 · sigmoid(0.05): a gain counts in GPUs, by pod of the workload.
    assert WORKLOAD.scores(gains).tolist() == [[47, 51]]


def test_a_device_that_is_too_full_is_no_place() -> None:
    gains = WORKLOAD.gains_by_device(room(4000, 1000, 300), milli_cpu=1000, milli=301)
    assert gains[0, 1] == NOWHERE
    assert WORKLOAD.scores(gains)[0, 1] == 0


def test_whole_gpus_are_the_first_free_ones() -> None:
    # From (300, 1000, 1000), 2300 for no GPU and 300 for each other, to (300, 0, 1000).
    before, after = 2300 + 3 * 300, 1300 + 3 * 300
    gains = WORKLOAD.gains(room(8000, 300, 1000, 1000), milli_cpu=1000, count=1)
    assert gains.tolist() == [before - after]


def test_cpu_alone_can_strand_gpus() -> None:
    assert WORKLOAD.gains(room(4000, 1000), milli_cpu=1000, count=0).tolist() == [-1000]


def test_a_score_is_50_where_nothing_changes_and_where_no_workload_is_known() -> None:
    assert WORKLOAD.scores(np.array([-1, 0, 1])).tolist() == [49, 50, 50]
    assert Fragmentation([]).scores(np.array([-1, 0, 1])).tolist() == [50, 50, 50]


TYPICAL = st.builds(
    lambda pods, cpu, gpus, models: TypicalPod(pods, cpu, gpus[0], gpus[1], models if gpus[0] else ""),
    st.integers(1, 50),
    st.sampled_from([0, 500, 1000, 4000]),
    st.sampled_from([(0, 0), (1, 1), (1, 300), (1, 500), (1, 999), (1, 1000), (2, 1000), (4, 1000)]),
    st.sampled_from(["", "", "T4", "A10|P100"]),
)
DEVICES = st.lists(st.sampled_from([0, 1, 299, 300, 500, 700, 1000]), max_size=4)
CPUS = st.sampled_from([0, 499, 500, 1000, 3999, 4000, 64_000])


def by_definition(workload: Sequence[TypicalPod], cpu: int, gpus: Sequence[int], model: str) -> int:
    """Pod by pod and device by device."""
    amount = 0
    for pod in workload:
        wide = [left for left in gpus if left >= pod.gpu_milli]
        fits = pod.gpu_count and cpu >= pod.milli_cpu and len(wide) >= pod.gpu_count
        if fits and (not pod.gpu_card_model or model in pod.gpu_card_model.split("|")):
            amount += pod.pods * sum(left for left in gpus if left < pod.gpu_milli)
        else:
            amount += pod.pods * sum(gpus)
    return amount


@given(st.lists(TYPICAL, min_size=1, max_size=6), CPUS, DEVICES, st.sampled_from(["T4", "P100", ""]))
def test_it_is_what_the_definition_says(
    workload: list[TypicalPod], cpu: int, gpus: list[int], model: str
) -> None:
    expected = by_definition(workload, cpu, gpus, model)
    assert Fragmentation(workload).amounts(room(cpu, *gpus, model=model)).tolist() == [expected]


@given(st.lists(TYPICAL, min_size=1, max_size=6), CPUS, DEVICES, st.sampled_from([1, 300, 999]))
def test_a_gain_is_the_difference_that_a_pod_makes(
    workload: list[TypicalPod], cpu: int, gpus: list[int], milli: int
) -> None:
    fragmentation = Fragmentation(workload)
    before = by_definition(workload, cpu, gpus, "T4")
    expected = [
        before - by_definition(workload, cpu - 400, [*gpus[:device], left - milli, *gpus[device + 1 :]], "T4")
        if left >= milli
        else NOWHERE
        for device, left in enumerate(gpus)
    ]
    assert fragmentation.gains_by_device(room(cpu, *gpus), 400, milli).tolist() == [expected]


@given(st.integers(1, 10_000), st.fractions(-8, 8))
def test_a_score_is_the_sigmoid_of_the_gain_in_gpus(pods: int, gpus: Fraction) -> None:
    gain = round(gpus * 1000 * pods)
    score = int(Fragmentation([TypicalPod(pods)]).scores(np.array([gain]))[0])
    exact = 100 / (1 + math.exp(-gain / (1000 * pods)))
    assert score - 1e-9 <= exact < score + 1 + 1e-9


def test_typical_pods_are_the_most_frequent_ones() -> None:
    share = make_pod().requests(cpu="1").annotations({GPU_MILLI: "500"})
    picky = make_pod().requests(cpu="1").annotations({GPU_MILLI: "500", GPU_MODEL: "T4|A10"})
    whole = make_pod().requests({"cpu": "2", "nvidia.com/gpu": 2})
    plain = make_pod().requests(cpu="250m")
    nonsense = make_pod().annotations({GPU_MILLI: "lots"})
    pods = [each.build() for each in [share] * 10 + [picky] * 6 + [whole] * 3 + [plain] + [nonsense] * 9]
    assert typical_pods(pods, "nvidia.com/gpu", 95) == (
        TypicalPod(10, 1000, 1, 500),
        TypicalPod(6, 1000, 1, 500, "A10|T4"),
        TypicalPod(3, 2000, 2, 1000),
    )
    assert len(typical_pods(pods, "nvidia.com/gpu", 96)) == 4
    assert typical_pods(pods, "nvidia.com/gpu", 50) == (TypicalPod(10, 1000, 1, 500),)
    assert typical_pods([], "nvidia.com/gpu", 95) == ()
