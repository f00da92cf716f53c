"""What kube-scheduler v1.36 says of a configuration that it refuses, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from kschedfw.api.field_errors import shown
from tests.config.documents import document, one_profile, refused

ARGS = "profiles[0].pluginConfig[0].args."


def of_args(plugin: str, **args: Any) -> list[str]:
    """What is wrong with a plugin's arguments, without the path to them."""
    errors = refused(one_profile(pluginConfig=[{"name": plugin, "args": args}]))
    assert all(error.startswith(ARGS) for error in errors)
    return [error.removeprefix(ARGS) for error in errors]


def test_a_label_key() -> None:
    two, one = of_args("NodeResourcesFit", ignoredResources=["a/b/c", f"example.com/{64 * 'x'}"])
    assert two == (
        'ignoredResources[0]: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '
        "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
        "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
        "subdomain prefix and '/' (e.g. 'example.com/MyName')"
    )
    assert one.endswith(": name part must be no more than 63 bytes")


def test_a_shape_that_is_missing() -> None:
    assert of_args("NodeResourcesFit", scoringStrategy={"type": "RequestedToCapacityRatio"}) == [
        (
            "scoringStrategy.requestedToCapacityRatio: Required value: "
            "must be specified when type is RequestedToCapacityRatio"
        )
    ]


def added(**expression: Any) -> list[str]:
    terms = [{"matchExpressions": [{"key": "x16", **expression}]}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    errors = of_args("NodeAffinity", addedAffinity={required: {"nodeSelectorTerms": terms}})
    path = f"addedAffinity.{required}.nodeSelectorTerms[0].matchExpressions[0]."
    return [error.removeprefix(path) for error in errors]


def test_the_path_of_a_labels_value_ends_in_its_key() -> None:
    (error,) = added(operator="In", values=[64 * "-"])
    assert error.startswith(
        f'values[0][x16]: Invalid value: "{64 * "-"}": must be no more than 63 bytes; a valid'
    )


def test_lists_are_json() -> None:
    assert added(operator="Gt", values=["1", "2"]) == [
        "values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required"
    ]
    assert added(operator="In") == [
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    ]
    own = {"enabled": [{"name": "PrioritySort"}]}
    profiles = [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": {"queueSort": own}}]
    assert refused(document(profiles=profiles)) == [
        (
            'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"PrioritySort","Weight":0}],'
            '"Disabled":null}: must be the same for all profiles'
        )
    ]


def test_durations_have_units() -> None:
    assert of_args("DynamicResources", filterTimeout="-90s", bindingTimeout="500ms") == [
        'filterTimeout: Invalid value: "-1m30s": must be zero or positive',
        'bindingTimeout: Invalid value: "500ms": must be at least 1 second',
    ]
    election = {"leaseDuration": "5s", "renewDeadline": "1m"}
    assert refused(document(leaderElection=election)) == [
        'leaderElection.leaseDuration: Invalid value: "1m0s": must be greater than `RenewDeadline`'
    ]


def test_the_kinds_of_defaulting_in_their_order() -> None:
    assert of_args("PodTopologySpread", defaultingType="Some") == [
        'defaultingType: Unsupported value: "Some": supported values: "System", "List"'
    ]


@pytest.mark.parametrize("action", [{}, {"whenUnsatisfiable": ""}])
def test_a_constraint_says_what_happens_if_it_cannot_be_met(action: dict[str, str]) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", **action}
    assert of_args("PodTopologySpread", defaultingType="List", defaultConstraints=[constraint]) == [
        "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"
    ]


def test_one_queue_sort_plugin() -> None:
    two = {"enabled": [{"name": "PrioritySort"}, {"name": "Other"}]}
    errors = refused(one_profile(plugins={"queueSort": two}))
    assert errors[0] == (
        "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('a "b" \\', r'"a \"b\" \\"'),
        ("a\n\tb\x00\x1b[31m\x7f", r'"a\n\tb\x00\x1b[31m\x7f"'),
        ("ü\x9b\u2028\ud800", r'"ü\u009b\u2028\ud800"'),
        ({"a": ["\x9b", 1.5, True, None]}, r'{"a":["\u009b",1.5,true,null]}'),
    ],
)
def test_values_are_shown_as_go_shows_them_and_never_move_the_cursor(value: object, text: str) -> None:
    assert shown(value) == text
