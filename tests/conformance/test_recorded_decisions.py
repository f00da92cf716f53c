"""kschedfw decides as kube-scheduler v1.36 was observed to decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from kschedfw.framework.registry import Registry
from kschedfw.testing.conformance.compare import differences, not_compared
from kschedfw.testing.conformance.decide import decide
from kschedfw.testing.conformance.scenario import read_scenarios

DATA = Path(__file__).parent / "data"

# Decisions per category, so that a category can't quietly shrink to nothing.
COMPARED = {
    "resources": 485,
    "taints": 373,
    "node_affinity": 347,
    "inter_pod": 464,
    "spread": 516,
    "ports": 377,
    "images": 375,
    "mixed": 771,
    "large": 80,
    "preemption": 293,
}

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("category", sorted(COMPARED))
def test_every_decision_of_the_category_is_kube_schedulers(category: str, registry: Registry) -> None:
    compared = 0
    found = []
    for scenario in read_scenarios(DATA / f"{category}.jsonl.gz"):
        assert not_compared(scenario) is None
        decisions = decide(scenario, registry)
        compared += len(decisions)
        assert all("postFilter" in decision for decision in decisions)
        found += [str(difference) for difference in differences(scenario, decisions)]
    assert found == []
    assert compared == COMPARED[category]


@pytest.mark.parametrize(("category", "reason"), [("volumes", "volumes"), ("config", "configurations")])
def test_categories_of_later_features_are_named_as_not_compared(category: str, reason: str) -> None:
    reasons = [not_compared(scenario) for scenario in read_scenarios(DATA / f"{category}.jsonl.gz")]
    assert sum(found is not None and reason in found for found in reasons) >= 130
