"""Pods that can wait start when power is clean, and the plugin keeps the rules."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st

from kschedfw import Node, Pod, make_node, make_pod
from kschedfw.testing import PluginContract
from tests.examples.running import loaded, output_as_shown

pytestmark = pytest.mark.slow

CARBON = loaded("14-carbon-aware", "carbon.py")


def test_a_pod_waits_for_sun_or_wind_but_not_beyond_its_deadline() -> None:
    _, *started = output_as_shown("14-carbon-aware", "carbon.py")
    assert [line.split()[:2] for line in started] == [
        ["06:00", "default/web"],
        ["08:00", "default/report"],
        ["09:00", "default/training"],
        ["20:00", "default/backup"],
    ]


class TestCarbonAware(PluginContract):
    plugin = CARBON.CarbonAware
    args = CARBON.CarbonAwareArgs({"south": CARBON.SUN, "north": CARBON.WIND})
    start_time = datetime(2026, 6, 1, 8, 58, tzinfo=UTC)

    def pods(self) -> st.SearchStrategy[Pod]:
        return st.sampled_from(["", "soon", "2026-06-01T09:30:00Z", "2026-06-01T23:00:00Z"]).map(waiting)

    def nodes(self) -> st.SearchStrategy[Node]:
        return st.sampled_from(["south", "north", "east"]).map(
            lambda zone: make_node().capacity(cpu=4, memory="8Gi", pods=9).zone(zone).build()
        )


def waiting(start_by: str) -> Pod:
    pod = make_pod().requests(cpu=1)
    return (pod.annotations({CARBON.START_BY: start_by}) if start_by else pod).build()
