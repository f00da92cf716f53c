"""The scheduler around the plugins: the algorithm, the cache, nominations, extenders."""

from kschedfw.framework.diagnosis import Diagnosis, FitError, NoNodesAvailableError
from kschedfw.framework.extender import Extender, ExtenderFilterResult
from kschedfw.scheduler.bindings import BindingExecutor, InlineExecutor
from kschedfw.scheduler.cache import Cache, CacheError
from kschedfw.scheduler.errors import ConcurrentCycleError, SchedulingError
from kschedfw.scheduler.generic_scheduler import GenericScheduler, ScheduleResult, num_feasible_nodes_to_find
from kschedfw.scheduler.placement import Placement, PlacementEndedError
from kschedfw.scheduler.queue import PodInFlightError
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.select import (
    FirstByNameSelector,
    HostSelector,
    ReservoirSelector,
    RoundRobinSelector,
    Selection,
    select_host,
)

__all__ = [
    "Cache",
    "BindingExecutor",
    "CacheError",
    "ConcurrentCycleError",
    "Diagnosis",
    "Extender",
    "ExtenderFilterResult",
    "FirstByNameSelector",
    "FitError",
    "GenericScheduler",
    "HostSelector",
    "InlineExecutor",
    "NoNodesAvailableError",
    "Placement",
    "PlacementEndedError",
    "PodInFlightError",
    "ReservoirSelector",
    "RoundRobinSelector",
    "ScheduleResult",
    "Scheduler",
    "SchedulingError",
    "Selection",
    "num_feasible_nodes_to_find",
    "select_host",
]
