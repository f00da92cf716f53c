"""A configuration that is refused must be refused for the recorded reason, in whatever detail."""

from __future__ import annotations

import pytest

from kschedfw.api.field_errors import FieldError, UnknownField
from tests.conformance.compare import same_reason

PROFILE = "initializing profiles: creating profile for scheduler name default-scheduler: "
MISSING = FieldError.invalid(
    "profiles[0].plugins.score.enabled[0]",
    "Rack",
    'plugin "Rack" does not exist: no installed distribution offers it '
    '(profile "default-scheduler" wants it at score)',
)
MISPLACED = FieldError.invalid(
    "profiles[0].plugins.score.enabled[0]",
    "NodeName",
    'plugin "NodeName" does not extend score; its extension points: filter',
)
WEIGHT = FieldError.invalid("profiles[0].pluginConfig[0].args.resources[0].weight", 101, "not in valid range")
UNKNOWN = UnknownField.among("profiles[0].foo", ["plugins"])


@pytest.mark.parametrize(
    ("recorded", "error"),
    [
        (f'{PROFILE}ScorePlugin "Rack" does not exist', MISSING),
        (f'{PROFILE}plugin "NodeName" does not extend ScorePlugin plugin', MISPLACED),
        (
            f'{PROFILE}initializing plugin "Fit": resources[0].weight: Invalid value: 101: not in valid range',
            WEIGHT,
        ),
        (str(WEIGHT), WEIGHT),
        ('strict decoding error: unknown field "profiles[0].foo"', UNKNOWN),
    ],
)
def test_it_is_recognised_among_other_errors_and_told_from_them(recorded: str, error: FieldError) -> None:
    others = [each for each in (MISSING, MISPLACED, WEIGHT, UNKNOWN) if each is not error]
    assert same_reason(recorded, [*others, error])
    assert not same_reason(recorded, others)


@pytest.mark.parametrize(
    "recorded",
    [
        f'{PROFILE}FilterPlugin "Rock" does not exist',
        PROFILE.replace("default", "other") + 'ScorePlugin "Rack" does not exist',
        f'{PROFILE}plugin "NodeName" does not extend ReservePlugin plugin',
        'strict decoding error: unknown field "foo", unknown field "bar"',
        "yaml: line 5: mapping values are not allowed in this context",
    ],
)
def test_what_merely_looks_alike_is_another_reason(recorded: str) -> None:
    assert not same_reason(recorded, [MISSING, MISPLACED, WEIGHT, UNKNOWN])
