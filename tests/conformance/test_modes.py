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


@pytest.mark.parametrize(
    ("mode", "recorded"),
    [(mode, recorded) for mode in Mode for recorded in (False, True) if recorded or mode is not Mode.MEMO],
)
@pytest.mark.parametrize("category", CATEGORIES)
def test_the_first_scenarios_of_the_category_are_decided_as_recorded(
    category: str, mode: Mode, recorded: bool, registry: Registry
) -> None:
    for scenario in islice(pod_scenarios(DATA / f"{category}.jsonl.gz"), 4):
        decided = decide_in(mode, scenario, registry, recorded=recorded)
        found = [str(each) for each in differences(scenario, decided.decisions)]
        assert found == []
