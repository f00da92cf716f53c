"""kschedfw decides as kube-scheduler v1.36 was observed to decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from kschedfw.framework.runtime.registry import Registry
from tests.conformance.check import refusal
from tests.conformance.compare import differences, refused_otherwise
from tests.conformance.decide import decide
from tests.conformance.modes import pod_scenarios

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
    "config": 620,
    "volumes": 376,
    "dra": 462,
    "quirks": 65,
    "podlevel": 432,
    "declared": 443,
    "full": 767,
}
REFUSED_CONFIGURATIONS = 20

pytestmark = [pytest.mark.conformance, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("category", sorted(COMPARED))
def test_every_decision_of_the_category_is_kube_schedulers(category: str, registry: Registry) -> None:
    compared = 0
    found = []
    for scenario in pod_scenarios(DATA / f"{category}.jsonl.gz"):
        if scenario.error is not None:
            continue
        decisions = decide(scenario, registry)
        compared += len(decisions)
        assert all("postFilter" in decision for decision in decisions)
        found += [str(difference) for difference in differences(scenario, decisions)]
    assert found == []
    assert compared == COMPARED[category]


def test_every_configuration_is_refused_that_kube_scheduler_refuses_and_for_its_reason(
    registry: Registry,
) -> None:
    scenarios = [each for each in pod_scenarios(DATA / "config.jsonl.gz") if each.error is not None]
    found = [
        str(difference)
        for scenario in scenarios
        for difference in refused_otherwise(scenario, refusal(scenario, registry))
    ]
    assert found == []
    assert len(scenarios) == REFUSED_CONFIGURATIONS
