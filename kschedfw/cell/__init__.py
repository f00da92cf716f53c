"""Several schedulers on one cluster: on a shared state, and by the other architectures that Omega's authors compare."""

from kschedfw.cell.accounts import Accounts
from kschedfw.cell.architecture import (
    ARCHITECTURES,
    MONOLITHIC,
    MULTI_PATH,
    PARTITIONED,
    SHARED_STATE,
    TWO_LEVEL,
    Architecture,
    NodeAccess,
)
from kschedfw.cell.cell import Cell
from kschedfw.cell.optimistic import Decision, OptimisticScheduler
from kschedfw.cell.think_time import ThinkTime
from kschedfw.scheduler.still_fits import StillFits

__all__ = [
    "ARCHITECTURES",
    "MONOLITHIC",
    "MULTI_PATH",
    "PARTITIONED",
    "SHARED_STATE",
    "TWO_LEVEL",
    "Accounts",
    "Architecture",
    "Cell",
    "Decision",
    "NodeAccess",
    "OptimisticScheduler",
    "StillFits",
    "ThinkTime",
]
