"""The example prints what its README shows, and its plugin keeps the rules."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from kschedfw import Pod, make_pod
from kschedfw.testing import PluginContract
from tests.examples.running import loaded, output_as_shown

pytestmark = pytest.mark.slow

LICENCES = loaded("13-making-room", "licences.py")


def test_a_licence_changes_hands_and_is_kept_from_the_pod_that_lost_it() -> None:
    first, again, ended = "\n".join(output_as_shown("13-making-room", "licences.py")).split("\nthe ")
    assert "default/nightly: Preempted: Preempted by pod urgent on node b" in first
    assert "default/urgent: Scheduled: Successfully assigned default/urgent to b" in first
    assert "Preempted" not in again
    assert "default/nightly: Scheduled" in ended


class TestLicences(PluginContract):
    plugin = LICENCES.Licences
    args = LICENCES.LicencesArgs({"solver": 2})

    def pods(self) -> st.SearchStrategy[Pod]:
        names = st.sampled_from(["solver", "solver", "unknown", ""])
        return st.builds(licensed, names, st.sampled_from([0, 10]))


def licensed(licence: str, priority: int) -> Pod:
    labels = {LICENCES.LICENCE: licence} if licence else {}
    return make_pod().labels(labels).requests(cpu="100m").priority(priority).build()
