"""For tests of plugins and policies: builders, a harness for single extension points, a contract, a clock.

`EvaluationContract` needs the extra `testing`, and says so.
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
from kschedfw.testing.evaluation_contract import EvaluationContract
from kschedfw.testing.harness import FrameworkHarness

__all__ = [
    "ClaimBuilder",
    "EvaluationContract",
    "FakeClock",
    "FrameworkHarness",
    "NodeBuilder",
    "PodBuilder",
    "VolumeBuilder",
    "make_claim",
    "make_node",
    "make_pod",
    "make_volume",
]
