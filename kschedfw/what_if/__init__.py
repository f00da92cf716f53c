"""Questions about a private copy of a cluster: would pods fit if nodes came, went or were drained, or pods came?"""

from kschedfw.what_if.checks import ConcurrentUseError, WhatIfError
from kschedfw.what_if.engine import Progress
from kschedfw.what_if.results import (
    Evictions,
    Feasibility,
    Outcome,
    Placed,
    Refused,
    Replicas,
    Schedule,
    Waiting,
)
from kschedfw.what_if.transaction import Transaction
from kschedfw.what_if.what_if import WhatIf

__all__ = [
    "ConcurrentUseError",
    "Evictions",
    "Feasibility",
    "Outcome",
    "Placed",
    "Progress",
    "Refused",
    "Replicas",
    "Schedule",
    "Transaction",
    "Waiting",
    "WhatIf",
    "WhatIfError",
]
