"""Both plugins keep the contract that every plugin must keep."""

from __future__ import annotations

from kschedfw_loadaware import (
    Load,
    LoadVariationRiskBalancing,
    LoadVariationRiskBalancingArgs,
    NodeLoad,
    StaticSource,
    TargetLoadPacking,
    TargetLoadPackingArgs,
)

from kschedfw import FrozenDict, Quantity
from kschedfw.testing import PluginContract

# Some nodes were measured, some only half, and some not at all.
SOURCE = StaticSource(
    {
        "node-0": NodeLoad(Load(3, 1), Load(10)),
        "node-1": NodeLoad(Load(17.3, 8.25), Load(60, 13)),
        "node-2": NodeLoad(Load(39.9, last=12)),
        "node-3": NodeLoad(memory=Load(80, 20)),
        "node-4": NodeLoad(Load(97, 33), Load(99, 1)),
        "node-5": NodeLoad(),
        "node-6": NodeLoad(Load(50, last=None)),
    }
)


class Packing(TargetLoadPacking):
    source = SOURCE


class Balancing(LoadVariationRiskBalancing):
    source = SOURCE


class TestTargetLoadPacking(PluginContract):
    plugin = Packing
    args = TargetLoadPackingArgs(default_requests=FrozenDict({"cpu": Quantity.parse("300m")}))


class TestLoadVariationRiskBalancing(PluginContract):
    plugin = Balancing
    args = LoadVariationRiskBalancingArgs(safe_variance_margin=1.5, safe_variance_sensitivity=2.5)
