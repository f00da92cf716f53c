"""In every mode the decisions are kube-scheduler's; the command compares all of them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from kschedfw.framework.runtime.registry import Registry
from tests.conformance.compare import differences
from tests.conformance.modes import Mode, decide_in, pod_scenarios

DATA = Path(__file__).parent / "data"
CATEGORIES = [
    "resources",
    "taints",
    "node_affinity",
    "inter_pod",
    "spread",
    "ports",
    "images",
    "mixed",
    "preemption",
    "dra",
    "quirks",
    "podlevel",
    "declared",
    "full",
]

pytestmark = [pytest.mark.conformance, pytest.mark.slow]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("category", CATEGORIES)
def test_the_first_scenarios_of_the_category_are_decided_as_recorded_with_a_recorder_and_without(
    category: str, mode: Mode, registry: Registry
) -> None:
    planned = 0
    for index, scenario in enumerate(islice(pod_scenarios(DATA / f"{category}.jsonl.gz"), 4)):
        decided = decide_in(mode, scenario, registry, recorded=index % 2 == 0)
        planned += decided.planned
        assert [str(each) for each in differences(scenario, decided.decisions)] == []
    assert (planned > 0) == (mode is Mode.PLAN)
