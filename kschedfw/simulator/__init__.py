"""Replays a cluster: schedules its pending pods in virtual time and reports how it went."""

from kschedfw.simulator.decision import Decision, Outcome
from kschedfw.simulator.openb import OpenbError, openb_notes, read_openb_nodes, read_openb_pods
from kschedfw.simulator.report import Reason, Report, Spread, Utilisation
from kschedfw.simulator.simulation import Simulation

__all__ = [
    "Decision",
    "OpenbError",
    "Outcome",
    "Reason",
    "Report",
    "Simulation",
    "Spread",
    "Utilisation",
    "openb_notes",
    "read_openb_nodes",
    "read_openb_pods",
]
