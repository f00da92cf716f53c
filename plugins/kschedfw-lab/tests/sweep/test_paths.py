"""Places in configuration documents."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab import SweepError
from kschedfw_lab.sweep.paths import set_at

DOCUMENT: dict[str, Any] = {
    "parallelism": 4,
    "profiles": [
        {
            "schedulerName": "a",
            "pluginConfig": [{"name": "Fit", "args": {"x": 1, "weights": {"nvidia.com/gpu": 5}}}],
        },
        {"schedulerName": "b"},
    ],
}


def changed(path: str, value: object, document: Any = DOCUMENT) -> Any:
    content = copy.deepcopy(document)
    set_at(content, path, value)
    return content


def test_a_key() -> None:
    assert changed("parallelism", 8)["parallelism"] == 8
    assert changed("podMaxBackoffSeconds", 8)["podMaxBackoffSeconds"] == 8


def test_an_item_by_its_place_or_by_its_name() -> None:
    for path in ("profiles[0].pluginConfig[0].args.x", "profiles[a].pluginConfig[Fit].args.x"):
        assert changed(path, 2)["profiles"][0]["pluginConfig"][0]["args"]["x"] == 2


def test_a_key_with_other_characters_is_in_brackets() -> None:
    found = changed("profiles[0].pluginConfig[Fit].args.weights[nvidia.com/gpu]", 7)
    assert found["profiles"][0]["pluginConfig"][0]["args"]["weights"] == {"nvidia.com/gpu": 7}


def test_what_is_missing_on_the_way_is_made() -> None:
    assert changed("profiles[0].pluginConfig[Fit].args.y", 1, {}) == {
        "profiles": [{"pluginConfig": [{"name": "Fit", "args": {"y": 1}}]}]
    }
    assert changed("profiles[b].pluginConfig[New].args.y", 1)["profiles"][1] == {
        "schedulerName": "b",
        "pluginConfig": [{"name": "New", "args": {"y": 1}}],
    }
    assert changed("profiles[c].percentageOfNodesToScore", 5)["profiles"][2] == {
        "schedulerName": "c",
        "percentageOfNodesToScore": 5,
    }


def test_none_takes_away() -> None:
    assert "parallelism" not in changed("parallelism", None)
    assert changed("profiles[a]", None)["profiles"] == [{"schedulerName": "b"}]
    assert changed("nothing", None) == DOCUMENT


def test_whole_objects_and_items_are_values() -> None:
    assert changed("profiles[1]", {"schedulerName": "z"})["profiles"][1] == {"schedulerName": "z"}
    assert changed("profiles", [])["profiles"] == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is no path"),
        ("profiles[", "is no path"),
        ("[0]", "is no path"),
        ("profiles..x", "is no path"),
        ("profiles[0]x", "is no path"),
        ("a." * 400 + "a", "is no path"),
        ("profiles.schedulerName", "profiles is a list in the document; say which item"),
        ("profiles[5].x", "profiles has 2 items in the document, so profiles[5] has no place in it"),
        ("parallelism.x", "parallelism is int in the document, so parallelism.x has no place in it"),
    ],
)
def test_paths_without_a_place_are_refused(path: str, why: str) -> None:
    with pytest.raises(SweepError) as caught:
        changed(path, 1)
    assert why in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    with suppress(SweepError):
        changed(text, 1)
