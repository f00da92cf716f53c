"""docs/writing-plugins.md says of every event what has to change for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kschedfw import ActionType, ClusterEvent, EventResource

PAGE = Path(__file__).parents[2] / "docs" / "writing-plugins.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("\n## Coming back\n")[2].partition("\n### ")[0]


@pytest.mark.parametrize("resource", EventResource)
def test_every_resource_has_a_row(resource: EventResource) -> None:
    assert f"`{resource.name}`" in SECTION


@pytest.mark.parametrize(
    ("resource", "action"),
    [
        (resource, action)
        for resource in (EventResource.UNSCHEDULED_POD, EventResource.NODE)
        for action in ActionType.UPDATE
        if ClusterEvent(resource, action).can_happen
    ],
)
def test_every_update_of_pods_and_nodes_has_a_row(resource: EventResource, action: ActionType) -> None:
    assert f"| `{resource.name}` | `{action.name}` |" in SECTION


def test_every_action_is_named() -> None:
    assert [name for name in ActionType.__members__ if f"`{name}`" not in SECTION] == []
