"""For tests of plugins and policies: builders, a harness for single extension points, a contract, a clock.

`PluginContract` needs the extra `testing`, and says so.
"""

from kschedfw.testing.builders import (
    ClaimBuilder,
    NodeBuilder,
    PodBuilder,
    VolumeBuilder,
    make_claim,
    make_node,
    make_pod,
    make_volume,
)
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.decisions import assert_decision, decide
from kschedfw.testing.golden import assert_golden, record_decisions
from kschedfw.testing.harness import FrameworkHarness
from kschedfw.testing.plugin_contract import PluginContract

__all__ = [
    "ClaimBuilder",
    "FakeClock",
    "FrameworkHarness",
    "NodeBuilder",
    "PluginContract",
    "PodBuilder",
    "VolumeBuilder",
    "assert_decision",
    "assert_golden",
    "decide",
    "make_claim",
    "make_node",
    "make_pod",
    "make_volume",
    "record_decisions",
]
