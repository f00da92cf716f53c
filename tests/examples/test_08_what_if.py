"""The answers are right by hand count, and asking changes nothing."""

from __future__ import annotations

import pytest

from tests.examples.running import output_as_shown

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return output_as_shown("08-what-if", "what_if.py")


def test_the_price_of_all_that_is_needed_decides(lines: list[str]) -> None:
    enough = [line.split(": ")[0] for line in lines if "are enough" in line]
    assert enough == ["compute", "memory", "large"]
    assert "Cheapest is 3 × large, for 165 cents per hour:" in lines


def test_a_shape_that_can_never_help_says_for_whom_and_why(lines: list[str]) -> None:
    small = next(number for number, line in enumerate(lines) if line.startswith("small: "))
    assert lines[small].endswith("no number is enough for etl-1, etl-2")
    assert lines[small + 1].startswith("  etl-1: 0/")
    assert lines[small + 1].endswith("Insufficient cpu. no new claims to deallocate")


def test_every_pod_has_its_place_in_the_cheapest_answer(lines: list[str]) -> None:
    cheapest = next(number for number, line in enumerate(lines) if line.startswith("Cheapest"))
    placed = [pod for line in lines[cheapest + 1 : -1] for pod in line.partition(": ")[2].split(", ")]
    assert sorted(placed) == [
        *("api-1", "api-2", "api-3", "cache-1", "cache-2", "etl-1", "etl-2"),
        *("web-n1", "web-n2"),
    ]


def test_the_original_is_untouched(lines: list[str]) -> None:
    assert lines[-1] == "Writes to the cluster meanwhile: 0"
