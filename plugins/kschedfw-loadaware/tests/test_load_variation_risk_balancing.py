"""LoadVariationRiskBalancing: the scores, worked out by hand from the formula."""

from __future__ import annotations

import pytest
from kschedfw_loadaware import (
    Load,
    LoadVariationRiskBalancing,
    LoadVariationRiskBalancingArgs,
    NodeLoad,
    StaticSource,
)

from kschedfw import KschedfwError, make_node, make_pod
from kschedfw.testing import FakeClock, FrameworkHarness

NAME = "LoadVariationRiskBalancing"


def measured(load: dict[str, NodeLoad]) -> type[LoadVariationRiskBalancing]:
    class Measured(LoadVariationRiskBalancing):
        source = StaticSource(load)

    return Measured


def score(load: NodeLoad | None, *, memory: str = "0", margin: float = 1, sensitivity: float = 1) -> int:
    """What a node with ten CPUs and 10 GiB gets, for a pod of one CPU."""
    node = make_node("node").capacity(cpu=10, memory="10Gi").build()
    args = LoadVariationRiskBalancingArgs(safe_variance_margin=margin, safe_variance_sensitivity=sensitivity)
    plugin = measured({} if load is None else {"node": load})
    it = FrameworkHarness(plugin, nodes=[node], args={NAME: args}, clock=FakeClock())
    return it.score(make_pod().requests(cpu=1, memory=memory).build())["node"]


@pytest.mark.parametrize(
    ("mean", "deviation", "expected"),
    [
        (0, 0, 95),  # only the pod's 10 %: (1 - 0.1 / 2) * 100
        (20, 0, 85),
        (20, 16, 77),  # (1 - (0.3 + 0.16) / 2) * 100
        (20, 5, 83),  # 82.5, rounded up
        (90, 0, 50),
        (95, 0, 50),  # a node can't be more than full
        (95, 100, 0),
        (-10, -10, 95),  # nor less than empty
        (20, 300, 35),
    ],
)
def test_half_of_the_risk_is_the_mean_and_half_the_deviation(
    mean: float, deviation: float, expected: int
) -> None:
    assert score(NodeLoad(cpu=Load(mean, deviation))) == expected


@pytest.mark.parametrize(
    ("margin", "sensitivity", "expected"),
    [
        (1, 1, 77),
        (0, 1, 85),  # variation doesn't count
        (2, 1, 69),  # (1 - (0.3 + 0.32) / 2) * 100
        (100, 1, 35),  # at most all
        (1, 2, 65),  # √0.16 = 0.4
        (2, 2, 45),  # the root is taken first: 2 * 0.4
        (1, 0.5, 84),  # 0.16² = 0.0256: 83.72
        (1, 0, 85),  # 0.16^∞
    ],
)
def test_margin_and_sensitivity(margin: float, sensitivity: float, expected: int) -> None:
    load = NodeLoad(cpu=Load(20, 16))
    assert score(load, margin=margin, sensitivity=sensitivity) == expected


def test_the_riskier_resource_counts() -> None:
    # CPU 85; memory: half used, and a fifth more by the pod: (1 - 0.7 / 2) * 100
    assert score(NodeLoad(Load(20), Load(50)), memory="2Gi") == 65
    assert score(NodeLoad(Load(80), Load(10)), memory="2Gi") == 55


def test_where_only_one_was_measured_it_is_that_one() -> None:
    assert score(NodeLoad(memory=Load(50)), memory="2Gi") == 65
    assert score(NodeLoad(cpu=Load(20)), memory="2Gi") == 85


def test_a_node_without_metrics_gets_nothing() -> None:
    assert score(None) == 0
    assert score(NodeLoad()) == 0


def test_a_node_that_has_none_of_a_resource_gets_nothing() -> None:
    plugin = measured({"node": NodeLoad(Load(10), Load(10))})
    node = make_node("node").capacity(cpu=10).build()
    it = FrameworkHarness(plugin, nodes=[node], clock=FakeClock())
    assert it.score(make_pod().build()) == {"node": 0}


@pytest.mark.parametrize("field", ["safeVarianceMargin", "safeVarianceSensitivity"])
def test_wrong_arguments_are_named(field: str) -> None:
    with pytest.raises(KschedfwError, match=f"{field}: Invalid value: -1"):
        FrameworkHarness(
            LoadVariationRiskBalancing, args={NAME: {"watcherAddress": "http://127.0.0.1:9", field: -1}}
        )
