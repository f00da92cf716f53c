"""Differences between manifests."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from kschedfw_kubernetes.cluster.patches import contains, merge_patch

scalars = st.one_of(st.integers(-2, 2), st.sampled_from(["", "a", "b"]), st.booleans())
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


def applied(target: Any, patch: Any) -> Any:
    """RFC 7386's own algorithm."""
    if not isinstance(patch, dict):
        return patch
    target = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = applied(target.get(key), value)
    return target


@given(objects, objects)
def test_a_patch_makes_one_of_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge_patch(old, new)
    assert applied(old, patch) == new
    assert (patch == {}) == (old == new and str(old) == str(new)) or patch == {}


@given(objects, objects, objects)
def test_what_it_doesnt_know_of_stays(old: dict[str, Any], new: dict[str, Any], more: dict[str, Any]) -> None:
    unknown = {f"unknown-{key}": value for key, value in more.items()}
    assert applied({**old, **unknown}, merge_patch(old, new)) == {**new, **unknown}


@given(objects, objects)
def test_after_a_patch_it_is_contained(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert contains(new, merge_patch(old, new))


def test_what_differs_isnt_contained() -> None:
    assert not contains({"a": 1}, {"a": 2})
    assert not contains({"a": {"b": 1}}, {"a": None})
    assert not contains({}, {"a": {"b": 1}})
    assert not contains({"a": [1]}, {"a": [1, 2]})
    assert contains({"a": [{"b": 1, "default": 2}]}, {"a": [{"b": 1}]})
    assert contains({}, {"a": None, "b": {}})
