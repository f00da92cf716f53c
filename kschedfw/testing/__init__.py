"""Tools for tests of plugins and policies: a harness for single extension points, decisions, whole clusters, a
contract, a clock.

`PluginContract` needs the extra `testing`.
"""

from kschedfw.testing.clock import FakeClock
from kschedfw.testing.cluster_assertions import (
    assert_evicted,
    assert_no_overcommit,
    assert_placed,
    assert_spread,
)
from kschedfw.testing.commands import Command, CommandResult
from kschedfw.testing.decisions import assert_decision, decide
from kschedfw.testing.golden import assert_golden, record_decisions
from kschedfw.testing.harness import FrameworkHarness
from kschedfw.testing.plugin_contract import PluginContract
from kschedfw.testing.waking import Gap

__all__ = [
    "Command",
    "CommandResult",
    "FakeClock",
    "FrameworkHarness",
    "Gap",
    "PluginContract",
    "assert_decision",
    "assert_evicted",
    "assert_golden",
    "assert_no_overcommit",
    "assert_placed",
    "assert_spread",
    "decide",
    "record_decisions",
]
