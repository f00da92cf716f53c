"""Arguments that the original has: they are taken, or the README is named that says why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kschedfw_topoaware import NodeResourceTopologyMatch, NodeResourceTopologyMatchArgs

from kschedfw import KschedfwError
from kschedfw.testing import FrameworkHarness

NAME = "NodeResourceTopologyMatch"
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def made(**args: object) -> NodeResourceTopologyMatchArgs:
    plugin = FrameworkHarness(NodeResourceTopologyMatch, args={NAME: args}).framework.plugins[NAME]
    assert isinstance(plugin, NodeResourceTopologyMatch)
    return plugin.args


@pytest.mark.parametrize(
    ("period", "detect", "method"),
    [(0, "None", "Autodetect"), (5, "All", "All"), (60, "OnlyExclusiveResources", "OnlyExclusiveResources")],
)
def test_all_that_the_original_says_of_its_cache_loads(period: int, detect: str, method: str) -> None:
    args = made(
        scoringStrategy={"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 0}]},
        cacheResyncPeriodSeconds=period,
        discardReservedNodes=False,
        cache={
            "foreignPodsDetect": detect,
            "resyncMethod": method,
            "informerMode": "Shared",
            "resyncScope": "OnlyResources",
        },
        preemptionMode="Disabled",
    )
    assert args.cache.foreign_pods_detect == detect
    assert [each.weight for each in args.scoring_strategy.resources] == [1]


@pytest.mark.parametrize("weight", [1, 100, 5000])
def test_a_weight_may_be_as_large_as_one_likes(weight: int) -> None:
    args = made(scoringStrategy={"resources": [{"name": "cpu", "weight": weight}]})
    assert [each.weight for each in args.scoring_strategy.resources] == [weight]


@pytest.mark.parametrize(("key", "value"), [("discardReservedNodes", True), ("preemptionMode", "Enabled")])
def test_what_isnt_here_is_refused_with_the_section_that_says_why(key: str, value: object) -> None:
    with pytest.raises(KschedfwError) as raised:
        made(**{key: value})
    found = re.search(rf'{key}: Forbidden: see "(.*)" in the README of kschedfw-topoaware', str(raised.value))
    assert found is not None
    _, _, section = README.partition(f"\n## {found[1]}\n")
    assert f"`{key}`" in section.partition("\n## ")[0]


def test_values_that_the_original_doesnt_know_either_are_named() -> None:
    with pytest.raises(KschedfwError, match=r'cache\.resyncMethod: Unsupported value: "Never"'):
        made(cache={"resyncMethod": "Never"})
