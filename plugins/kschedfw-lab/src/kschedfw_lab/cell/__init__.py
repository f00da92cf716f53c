"""Several schedulers on one cluster: on a shared state, and in the other architectures that Omega's authors compare."""

from kschedfw.scheduler import StillFits
from kschedfw_lab.cell.accounts import Accounts
from kschedfw_lab.cell.architecture import (
    ARCHITECTURES,
    MONOLITHIC,
    MULTI_PATH,
    PARTITIONED,
    SHARED_STATE,
    TWO_LEVEL,
    Architecture,
    NodeAccess,
)
from kschedfw_lab.cell.cell import Cell
from kschedfw_lab.cell.local_copy import LocalCopy
from kschedfw_lab.cell.optimistic import OptimisticDecision, OptimisticScheduler
from kschedfw_lab.cell.parallel import RemoteState, StateServer, run_in_threads, schedule_until
from kschedfw_lab.cell.shared_state import (
    Claim,
    ClaimTransaction,
    CommitMode,
    CommitOutcome,
    Conflict,
    Detection,
    Following,
    SharedState,
    State,
)
from kschedfw_lab.cell.turns import ThinkTime

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
    "Claim",
    "ClaimTransaction",
    "CommitMode",
    "CommitOutcome",
    "Conflict",
    "OptimisticDecision",
    "Detection",
    "Following",
    "LocalCopy",
    "NodeAccess",
    "OptimisticScheduler",
    "RemoteState",
    "SharedState",
    "State",
    "StateServer",
    "StillFits",
    "ThinkTime",
    "run_in_threads",
    "schedule_until",
]
