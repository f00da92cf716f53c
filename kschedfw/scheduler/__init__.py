"""The scheduler around the plugins: queue, cache, algorithm, binding, extenders."""

from kschedfw.framework.diagnosis import Diagnosis, FitError, NoNodesAvailableError
from kschedfw.framework.extender import Extender, ExtenderFilterResult
from kschedfw.scheduler.attempt import Attempt
from kschedfw.scheduler.bindings import BindingExecutor, InlineExecutor
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import (
    CacheError,
    ConcurrentCycleError,
    MissingExtraError,
    SchedulingError,
    StandstillError,
)
from kschedfw.scheduler.extenders import ExtenderClient, close_extenders, make_extenders
from kschedfw.scheduler.generic_scheduler import GenericScheduler, ScheduleResult
from kschedfw.scheduler.placement import Placement, PlacementEndedError, commit_together
from kschedfw.scheduler.queue import PodInFlightError
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.scheduling_cycle import Algorithm
from kschedfw.scheduler.select import (
    FirstByNameSelector,
    HostSelector,
    ReservoirSelector,
    RoundRobinSelector,
    num_feasible_nodes_to_find,
)
from kschedfw.scheduler.setup import Setup, UnknownProfileError, objects_of, profiles_of
from kschedfw.scheduler.still_fits import StillFits
from kschedfw.scheduler.structured import Structured

__all__ = [
    "Algorithm",
    "Attempt",
    "BindingExecutor",
    "Cache",
    "CacheError",
    "ConcurrentCycleError",
    "Diagnosis",
    "Extender",
    "ExtenderClient",
    "ExtenderFilterResult",
    "FirstByNameSelector",
    "FitError",
    "GenericScheduler",
    "HostSelector",
    "InlineExecutor",
    "MissingExtraError",
    "NoNodesAvailableError",
    "Place",
    "Placement",
    "PlacementEndedError",
    "PodInFlightError",
    "ReservoirSelector",
    "RoundRobinSelector",
    "ScheduleResult",
    "Scheduler",
    "SchedulingError",
    "Setup",
    "StandstillError",
    "StillFits",
    "Structured",
    "UnknownProfileError",
    "close_extenders",
    "commit_together",
    "make_extenders",
    "num_feasible_nodes_to_find",
    "objects_of",
    "profiles_of",
]
