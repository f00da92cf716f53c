"""The replay of a cluster: its pending pods are scheduled in virtual time, and the results reported."""

from kschedfw.simulator.arrivals import LONGEST, SHORTEST, Arrivals, ArrivalsError
from kschedfw.simulator.decision import Decision, Outcome
from kschedfw.simulator.failures import Failures
from kschedfw.simulator.openb import (
    GPU,
    NAMESPACE,
    PODS_PER_NODE,
    OpenbError,
    openb_notes,
    read_openb_nodes,
    read_openb_pods,
)
from kschedfw.simulator.report import Peak, Reason, Replay, Report, Spread, Utilisation
from kschedfw.simulator.simulation import LONGEST_ATTEMPT, Simulation
from kschedfw.simulator.state import ANNOTATIONS
from kschedfw.simulator.timeline import Timeline

__all__ = [
    "ANNOTATIONS",
    "GPU",
    "LONGEST",
    "LONGEST_ATTEMPT",
    "NAMESPACE",
    "PODS_PER_NODE",
    "SHORTEST",
    "Arrivals",
    "ArrivalsError",
    "Decision",
    "Failures",
    "OpenbError",
    "Outcome",
    "Peak",
    "Reason",
    "Replay",
    "Report",
    "Simulation",
    "Spread",
    "Timeline",
    "Utilisation",
    "openb_notes",
    "read_openb_nodes",
    "read_openb_pods",
]
