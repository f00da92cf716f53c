"""Ages in tables are those that kubectl shows."""

from __future__ import annotations

import pytest
from kschedfw_apiserver.tables import short_duration

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (47 * HOUR, "47h"),
        (2 * DAY + HOUR, "2d1h"),
        (729 * DAY, "729d"),
        (3 * 365 * DAY + 7 * DAY, "3y7d"),
        (9 * 365 * DAY, "9y"),
    ],
)
def test_two_units_where_the_first_says_too_little(seconds: int, text: str) -> None:
    assert short_duration(seconds) == text
