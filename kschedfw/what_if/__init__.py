"""Transactions on a private copy of a cluster: what would be if nodes came, went or were drained, or pods came."""

from kschedfw.what_if.errors import ConcurrentUseError, WhatIfError
from kschedfw.what_if.results import Evictions, Feasibility, Placed, Refused, Replicas, Schedule, Waiting
from kschedfw.what_if.transaction import Transaction
from kschedfw.what_if.what_if import WhatIf

__all__ = [
    "ConcurrentUseError",
    "Evictions",
    "Feasibility",
    "Placed",
    "Refused",
    "Replicas",
    "Schedule",
    "Transaction",
    "Waiting",
    "WhatIf",
    "WhatIfError",
]
