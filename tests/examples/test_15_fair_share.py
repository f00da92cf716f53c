"""Namespaces get nodes in turn, and the plugin keeps the rules."""

from __future__ import annotations

import pytest

from kschedfw.testing import PluginContract
from tests.examples.running import loaded, output_as_shown

pytestmark = pytest.mark.slow

FAIR = loaded("15-fair-share", "fair_share.py")


def test_namespaces_are_served_by_their_weights() -> None:
    first, fair, weighted = output_as_shown("15-fair-share", "fair_share.py")
    assert first.split(": ")[1].split() == ["a"] * 6 + ["b"] * 6
    assert fair.split(": ")[1].split() == ["a", "b"] * 6
    assert weighted.split(": ")[1].split()[:6] == ["a", "b", "b", "a", "b", "b"]


class TestFairShare(PluginContract):
    plugin = FAIR.FairShare
    args = FAIR.FairShareArgs({"default": 3})
