"""kschedfw: a pluggable scheduling framework with the semantics of kube-scheduler.

The names below are the public interface, together with `kschedfw.testing`; everything else may change.

For plugin authors: `Plugin`, `hookimpl`, `Status`, `Code`, `CycleState`, `StateKey`, `Handle`, `Reads`, `NodeInfo`,
`PodInfo`, `PreFilterResult`, `PostFilterResult`, `NodeTable`, `Verdicts`, `Pod`, `Node`; for the rules of arguments
`FieldError`; for queueing hints `ClusterEvent`, `EventResource`, `ActionType`, `QueueingHint`.
For embedders: `Scheduler`, `Registry`, `Profile`, `EnabledPlugin`, `default_profile`, `load_configuration`,
`SchedulerConfiguration`, `ConfigurationError`, `scheduler_from_configuration`, `Framework`, `Snapshot`, `Cache`,
`Parallelizer`, `GenericScheduler`, `ScheduleResult`, `FitError`, `NoNodesAvailableError`, `SchedulingError`,
`NodeSelection`, `Evaluation`, `InMemoryCluster`, `VolumeController`, `read_manifests`.
For everyone: `KschedfwError`, the base of all errors, and `__version__`.
"""

from importlib.metadata import version as _version

from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError
from kschedfw.api.manifests import read_manifests
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster, VolumeController
from kschedfw.config import ConfigurationError, SchedulerConfiguration, default_profile, load_configuration
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.diagnosis import FitError, NoNodesAvailableError
from kschedfw.framework.evaluation import Evaluation
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.framework import Framework
from kschedfw.framework.handle import Handle
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.node_selection import NodeSelection
from kschedfw.framework.node_table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.pod_info import PodInfo
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.registry import Registry
from kschedfw.framework.results import PostFilterResult, PreFilterResult, Verdicts
from kschedfw.framework.snapshot import Snapshot
from kschedfw.framework.status import Code, Status
from kschedfw.scheduler import Cache, GenericScheduler, Scheduler, ScheduleResult, SchedulingError
from kschedfw.scheduler.from_configuration import scheduler_from_configuration

__version__ = _version("kschedfw")

__all__ = [
    "ActionType",
    "Cache",
    "ClusterEvent",
    "Code",
    "ConfigurationError",
    "CycleState",
    "EnabledPlugin",
    "Evaluation",
    "EventResource",
    "FieldError",
    "FitError",
    "Framework",
    "GenericScheduler",
    "Handle",
    "InMemoryCluster",
    "KschedfwError",
    "NoNodesAvailableError",
    "Node",
    "NodeInfo",
    "NodeSelection",
    "NodeTable",
    "Parallelizer",
    "Plugin",
    "Pod",
    "PodInfo",
    "PostFilterResult",
    "PreFilterResult",
    "Profile",
    "QueueingHint",
    "Reads",
    "Registry",
    "ScheduleResult",
    "Scheduler",
    "SchedulerConfiguration",
    "SchedulingError",
    "Snapshot",
    "StateKey",
    "Status",
    "Verdicts",
    "VolumeController",
    "__version__",
    "default_profile",
    "hookimpl",
    "load_configuration",
    "read_manifests",
    "scheduler_from_configuration",
]
