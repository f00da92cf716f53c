"""The in-tree plugins, those of older versions included, keep the contract that every plugin must keep."""

from __future__ import annotations

from importlib.metadata import distribution

import pytest

from kschedfw.testing import PluginContract
from tests.scheduler.waking.gaps import gaps_of

pytestmark = pytest.mark.slow

ATTRIBUTES: dict[str, dict[str, object]] = {
    # It asks the filters what they would say were other pods gone.
    "DefaultPreemption": {"beside": ("NodeResourcesFit", "NodePorts", "InterPodAffinity")},
    "NodeLabel": {"args": {"presentLabels": ["app"], "absentLabelsPreference": ["tier"]}},
    "ServiceAffinity": {"args": {"affinityLabels": ["app"], "antiAffinityLabelsPreference": ["tier"]}},
    "RequestedToCapacityRatio": {
        "args": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    },
}

GAPS = gaps_of(complete_hints=False)

for _plugin in distribution("kschedfw").entry_points.select(group="kschedfw"):
    _attributes = {
        "plugin": _plugin.name,
        "max_examples": 6,
        "gaps": GAPS,
        **ATTRIBUTES.get(_plugin.name, {}),
    }
    globals()[f"Test{_plugin.name}"] = type(f"Test{_plugin.name}", (PluginContract,), _attributes)
