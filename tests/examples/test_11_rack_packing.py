"""A group gets one rack, or two neighbouring ones."""

from __future__ import annotations

import pytest

from tests.examples.running import output_as_shown

pytestmark = pytest.mark.slow


def test_a_group_that_fits_into_a_rack_gets_one_and_a_larger_one_gets_neighbours() -> None:
    small, large = output_as_shown("11-rack-packing", "rack_packing.py")
    assert small == "small: node-0, node-1"
    assert large == "large: node-0, node-1, node-2, node-3"
