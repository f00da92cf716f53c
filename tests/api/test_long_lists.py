"""The items of a long JSON list are read as each alone is, whatever the items before them were."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw.api.json_shapes import JsonShapes
from kschedfw.api.manifests import FieldValidation, parse_manifests
from kschedfw.testing.strategies import Manifest

_LONG = 300
"""Pods whose JSON is longer than what is read at once."""


def pod(number: int, **fields: Any) -> Manifest:
    labels = {"app": f"app-{number % 3}", "example.com/tier": "front"}
    container = {
        "name": "main",
        "image": "example.com/app:1",
        "ports": [{"containerPort": 8080 + number % 2, "name": "http"}],
        "resources": {"requests": {"cpu": f"{1 + number % 7}", "memory": "64Mi"}},
        "env": [{"name": f"SETTING_{each}", "value": "a value of no meaning"} for each in range(9)],
    }
    token = {"name": f"token-{number:05}", "projected": {"sources": [{"serviceAccountToken": {}}]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:05}", "namespace": "shop", "labels": labels, **fields},
        "spec": {"containers": [container], "nodeName": f"n{number % 9}", "volumes": [token]},
        "status": {"phase": "Running", "startTime": f"2026-01-01T00:00:{number % 60:02}Z"},
    }


CHANGES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "duplicate key": lambda text: text.replace('"nodeName"', '"nodeName": "n1", "nodeName"'),
    "duplicate key in an ignored field": lambda text: text.replace('"value":', '"value": "", "value":', 1),
    "unknown field": lambda text: text.replace('"nodeName"', '"nodName"'),
    "invalid name": lambda text: text.replace('"pod-', '"Pod-'),
    "invalid label": lambda text: text.replace('"front"', '"front door"'),
    "invalid node name": lambda text: text.replace('"nodeName": "n', '"nodeName": "N'),
    "invalid quantity": lambda text: text.replace('"64Mi"', '"64MB"'),
    "invalid time": lambda text: text.replace("2026-01", "2026-13"),
    "number for a text": lambda text: text.replace('"front"', "1"),
    "null for a text": lambda text: text.replace('"front"', "null"),
    "text for a number": lambda text: text.replace("8080", '"8080"').replace("8081", '"8081"'),
    "another version": lambda text: text.replace('"v1"', '"v2"'),
    "another kind": lambda text: text.replace('"Pod"', '"Secret"'),
    "quotes and backslashes": lambda text: text.replace("of no meaning", 'of \\"no\\" meaning\\\\'),
    "escaped key": lambda text: text.replace('"example.com/tier"', '"example.com/\\u0074ier"'),
    "key twice, once escaped": lambda text: text.replace('"app":', '"\\u0061pp": "other", "app":'),
    "half of a pair": lambda text: text.replace("of no meaning", "of no \\ud800 meaning"),
    "object in a text": lambda text: text.replace("of no meaning", '}},{\\"apiVersion\\": \\"v1\\"'),
    "uid": lambda text: text.replace('"namespace"', '"uid": "u-1", "namespace"'),
    "no status": lambda text: text.replace('"phase": "Running", ', "").replace('"startTime"', '"reason"'),
    "huge number": lambda text: text.replace("8080", "8" * 99).replace("8081", "8" * 99),
}


def outcome(text: str, **options: Any) -> tuple[list[Any], list[str], list[str]]:
    """Return the objects, and what is told of the others and of these."""
    found = parse_manifests(text, **options)
    problems, warnings = (
        [f"{each.subject}: {', '.join(map(str, each.errors))}" for each in several]
        for several in (found.problems, found.warnings)
    )
    return list(found.objects(skip_invalid=True)), problems, warnings


def as_list(items: list[str], separator: str = ", ") -> str:
    return f'{{"apiVersion": "v1", "kind": "List", "items": [{separator.join(items)}]}}'


@pytest.mark.parametrize(
    ("separator", "validation"),
    [
        (", ", FieldValidation.STRICT),
        (",\n        ", FieldValidation.STRICT),
        (",", FieldValidation.WARN),
        (",", FieldValidation.IGNORE),
    ],
)
def test_odd_items_are_told_of_and_the_others_are_read(separator: str, validation: FieldValidation) -> None:
    names = list(CHANGES)
    items = [
        CHANGES[names[number // 4 % len(names)] if number % 4 == 3 else "as it is"](json.dumps(pod(number)))
        for number in range(_LONG)
    ]
    text = as_list(items, separator)
    assert len(text) > 2 << 17
    alone = [outcome(item, field_validation=validation) for item in items]
    expected = tuple([each for found in alone for each in found[part]] for part in range(3))
    assert outcome(text, field_validation=validation) == expected


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(list(CHANGES)), max_size=3), st.lists(st.sampled_from(list(CHANGES)), max_size=3)
)
def test_no_item_changes_what_is_read_of_another(before: list[str], after: list[str]) -> None:
    def changed(number: int, changes: list[str]) -> str:
        text = json.dumps(pod(number))
        for change in changes:
            text = CHANGES[change](text)
        return text

    filler = [json.dumps(pod(number)) for number in range(160)]
    first, last = changed(200, before), changed(201, after)
    read, problems, _ = outcome(as_list([first, *filler, last, filler[0].replace("pod-", "last-")]))
    expected = [outcome(item) for item in (first, last)]
    assert problems == [each for one in expected for each in one[1]]
    assert [each for each in read if each.key in ("shop/pod-00200", "shop/pod-00201")] == [
        each for one in expected for each in one[0]
    ]


def test_a_key_that_comes_twice_makes_another_shape() -> None:
    shapes = JsonShapes()
    shapes.learn('{"a": {"b": "1"}, "c": 2}')
    assert shapes.has('{"a": {"b": "x:y"}, "c": 2}')
    for other in (
        '{"a": {"b": "1"}, "a": 2}',
        '{"a": {"b": "1"}, "c": 3}',
        '{"a": {"b": "1", "b": "1"}, "c": 2}',
        '{"a": {"b": "1"}, "c": 2} ',
        '{"a": {"b\\"": "1"}, "c": 2}',
    ):
        assert not shapes.has(other)


def test_an_object_whose_keys_have_escapes_is_not_learned() -> None:
    shapes = JsonShapes()
    shapes.learn('{"a\\"": "1"}')
    assert not shapes.has('{"a\\\\": "1"}')
