"""Errors of scheduling, except for pods that fit nowhere."""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw.api.errors import KschedfwError
from kschedfw.api.records import define
from kschedfw.framework.status import Status


class MissingExtraError(KschedfwError, ImportError):
    """The error of using a part whose optional dependencies aren't installed; says how to install them."""


@define(eq=False)
class SnapshotMismatchError(KschedfwError):
    """The error of a framework that was made with another snapshot than the one that the scheduler updates."""

    scheduler_name: str

    def __str__(self) -> str:
        return (
            f"profile {self.scheduler_name!r}: its framework has another snapshot than the scheduler; "
            "give both the same one: Framework(..., Parts(cluster, snapshot=snapshot))"
        )


class CacheError(KschedfwError):
    """The error of a call that needs the pod or node in another state; names the pod or node."""


class ConcurrentCycleError(KschedfwError, RuntimeError):
    """The error of two scheduling cycles at the same time: one of them can't see the pod that the other assumed."""


@define(eq=False)
class StandstillError(KschedfwError, RuntimeError):
    """Pods are tried again and again while the clock stands still, so that `run_until_idle` would never return."""

    pods: Sequence[str]
    attempts: int
    plugins: Sequence[str]

    def __str__(self) -> str:
        more = f" and {len(self.pods) - 3} more" if len(self.pods) > 3 else ""
        whose = f", refused by {', '.join(self.plugins)}" if self.plugins else ""
        return (
            f"{', '.join(self.pods[:3])}{more}: tried {self.attempts} times while the clock stood still{whose}. A "
            "plugin without events_to_register has its pods tried again after every change, also after those that its "
            "refusals make. Have it name the events that help, or move the clock between attempts (schedule_one)"
        )


class BindingCancelledError(KschedfwError):
    """The error of a binding cycle that the executor cancelled before it began."""

    def __str__(self) -> str:
        return "the executor cancelled the binding cycle"


class SchedulingError(KschedfwError):
    """The failure of a plugin or extender. Carries the status, which names the plugin; its exception is the cause."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status
        self.__cause__ = status.error

    def __str__(self) -> str:
        return self.status.message
