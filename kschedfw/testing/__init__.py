"""For tests of plugins and policies: builders, a harness for single extension points, a clock that stands still."""

from kschedfw.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.harness import FrameworkHarness

__all__ = ["FakeClock", "FrameworkHarness", "NodeBuilder", "PodBuilder", "make_node", "make_pod"]
