"""Several schedulers on one cluster: on a shared state, and by the other architectures that Omega's authors compare."""

from kschedfw.cell.accounts import Accounts
from kschedfw.cell.optimistic import Decision, OptimisticScheduler
from kschedfw.cell.still_fits import StillFits

__all__ = ["Accounts", "Decision", "OptimisticScheduler", "StillFits"]
