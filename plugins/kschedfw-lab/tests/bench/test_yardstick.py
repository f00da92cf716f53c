"""Which of kube-scheduler's figures a measurement is held against."""

from __future__ import annotations

import time
from typing import Any

import attrs
import pytest
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.results import Measurement, Part
from kschedfw_lab.bench.stage import ADAPTIVE, ALL_NODES, Case
from kschedfw_lab.bench.workloads import find_workload
from kschedfw_lab.bench.yardstick import kube_scheduler_pods_per_second, side_by_side_pods_per_second

from kschedfw import Registry


@pytest.fixture(scope="module")
def measured() -> Measurement:
    return attrs.evolve(
        measure(Case("basic", 10, 0, 1), time.perf_counter, registry=Registry()),
        workload="pod-affinity",
        nodes=5_000,
        initial_pods=5_000,
        percentage=ADAPTIVE,
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, (294, 122)),
        ({"percentage": ALL_NODES}, (92, None)),
        ({"percentage": 50}, (None, None)),
        ({"nodes": 100}, (None, None)),
        ({"part": Part.END_TO_END}, (None, None)),
        ({"workload": "pod-affinity-distinct"}, (None, None)),
        ({"workload": "mixed"}, (261, None)),
    ],
)
def test_figures(
    measured: Measurement, change: dict[str, Any], expected: tuple[float | None, float | None]
) -> None:
    each = attrs.evolve(measured, **change)
    assert find_workload(each.workload).initial_pods == 5_000
    assert (kube_scheduler_pods_per_second(each), side_by_side_pods_per_second(each)) == expected
