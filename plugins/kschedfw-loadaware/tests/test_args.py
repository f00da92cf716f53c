"""Arguments that the original has: they are taken, or the section of the README is named that says why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from kschedfw_loadaware import LoadVariationRiskBalancing, TargetLoadPacking

from kschedfw import KschedfwError
from kschedfw.testing import FakeClock, FrameworkHarness

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NOWHERE = "http://127.0.0.1:9"

Args = Mapping[str, object]


def make(plugin: type[TargetLoadPacking | LoadVariationRiskBalancing], args: Args) -> object:
    return FrameworkHarness(plugin, args={plugin.name: args}, clock=FakeClock()).framework.plugins[
        plugin.name
    ]


@pytest.mark.parametrize(
    "args",
    [
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "TargetLoadPackingArgs",
            "watcherAddress": NOWHERE,
            "metricProvider": {"type": "KubernetesMetricsServer"},
            "targetUtilization": 80,
            "defaultRequests": {"cpu": "2000m", "memory": "1Gi", "ephemeral-storage": "1Gi"},
            "defaultRequestsMultiplier": "1.8",
        },
        {
            "metricProvider": {
                "type": "Prometheus",
                "address": NOWHERE,
                "token": "t",
                "insecureSkipVerify": True,
            }
        },
        {"metricProvider": {"address": NOWHERE}, "defaultRequests": {"memory": "1Gi"}},
    ],
)
def test_what_the_original_takes_loads(args: Args) -> None:
    assert make(TargetLoadPacking, args) is not None


def test_so_does_that_of_load_variation_risk_balancing() -> None:
    args = {"watcherAddress": NOWHERE, "safeVarianceMargin": 1, "safeVarianceSensitivity": 0}
    assert make(LoadVariationRiskBalancing, args) is not None


@pytest.mark.parametrize(
    ("key", "args"),
    [
        ("metricProvider.type", {"metricProvider": {"type": "SignalFx", "address": NOWHERE}}),
        ("metricProvider.address", {"watcherAddress": NOWHERE, "metricProvider": {"address": NOWHERE}}),
        ("targetUtilization", {"targetUtilization": 0}),
        ("targetUtilization", {"targetUtilization": 101}),
        ("defaultRequestsMultiplier", {"defaultRequestsMultiplier": "-1"}),
        ("safeVarianceMargin", {"safeVarianceMargin": -0.5}),
        ("safeVarianceSensitivity", {"safeVarianceSensitivity": -0.5}),
    ],
)
def test_what_is_refused_is_in_the_section_that_the_error_names(key: str, args: Args) -> None:
    plugin = LoadVariationRiskBalancing if key.startswith("safe") else TargetLoadPacking
    with pytest.raises(KschedfwError) as raised:
        make(plugin, args)
    found = re.search(
        rf'{key}: .*; see "(.*)" in the README|{key}: Forbidden: see "(.*)" in', str(raised.value)
    )
    assert found is not None
    _, _, section = README.partition(f"\n## {found[1] or found[2]}\n")
    assert f"`{key}`" in section.partition("\n## ")[0]
