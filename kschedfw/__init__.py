"""kschedfw: a pluggable scheduling framework with the semantics of kube-scheduler.

The names below are the public interface, together with `kschedfw.testing` and `kschedfw.explain`; everything
else may change.

For plugin authors: `Plugin`, `hookimpl`, `Status`, `Code`, `CycleState`, `StateKey`, `Handle`, `Reads`, `NodeInfo`,
`PodInfo`, `QueuedPodInfo`, `PreFilterResult`, `PostFilterResult`, `PreBindPreFlightResult`, `NodeTable`, `Verdicts`,
`Pod`, `Node`; for the maps in them `FrozenDict`; for the rules of arguments `FieldError`; for queueing hints
`ClusterEvent`, `EventResource`, `ActionType`, `QueueingHint`; to call in a pod's siblings `activate_pods`; for kinds
of one's own `CustomResource`, `CustomKind`, `CustomObject`, `ObjectMeta`, `Quantity`; for what pods ask for `QosClass`,
`pod_qos_class`; to preempt by rules of one's own `PreemptionEvaluator`, `PreemptionRules`, `PreemptionPlan`,
`NodeToStatus`.
For embedders: `Scheduler`, `Registry`, `Profile`, `EnabledPlugin`, `default_profile`, `load_configuration`,
`SchedulerConfiguration`, `ConfigurationError`, `scheduler_from_configuration`, `Framework`, `Snapshot`, `Cache`,
`Parallelizer`, `GenericScheduler`, `ScheduleResult`, `FitError`, `NoNodesAvailableError`, `SchedulingError`,
`ConcurrentCycleError`, `NodeSelection`, `Evaluation`, `InMemoryCluster`, `VolumeController`, `read_manifests`,
`read_openb_nodes`, `read_openb_pods`.
For everyone: `KschedfwError`, the base of all errors, and `__version__`.
"""

from importlib.metadata import version as _version

from kschedfw.api.custom import CustomKind, CustomObject, CustomResource
from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.manifests import read_manifests
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.quantity import Quantity
from kschedfw.api.requests import QosClass, pod_qos_class
from kschedfw.cluster import InMemoryCluster, VolumeController
from kschedfw.config import ConfigurationError, SchedulerConfiguration, default_profile, load_configuration
from kschedfw.framework.activation import activate_pods
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.diagnosis import FitError, NodeToStatus, NoNodesAvailableError
from kschedfw.framework.evaluation import Evaluation
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.framework import Framework
from kschedfw.framework.handle import Handle
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.node_selection import NodeSelection
from kschedfw.framework.node_table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import Plugin, Reads, hookimpl
from kschedfw.framework.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.preemption import PreemptionEvaluator, PreemptionPlan, PreemptionRules
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.registry import Registry
from kschedfw.framework.results import PostFilterResult, PreBindPreFlightResult, PreFilterResult, Verdicts
from kschedfw.framework.snapshot import Snapshot
from kschedfw.framework.status import Code, Status
from kschedfw.scheduler import (
    Cache,
    ConcurrentCycleError,
    GenericScheduler,
    Scheduler,
    ScheduleResult,
    SchedulingError,
)
from kschedfw.scheduler.from_configuration import scheduler_from_configuration
from kschedfw.simulator.openb import read_openb_nodes, read_openb_pods

__version__ = _version("kschedfw")

__all__ = [
    "ActionType",
    "Cache",
    "ClusterEvent",
    "Code",
    "ConcurrentCycleError",
    "ConfigurationError",
    "CustomKind",
    "CustomObject",
    "CustomResource",
    "CycleState",
    "EnabledPlugin",
    "Evaluation",
    "EventResource",
    "FieldError",
    "FitError",
    "Framework",
    "FrozenDict",
    "GenericScheduler",
    "Handle",
    "InMemoryCluster",
    "KschedfwError",
    "NoNodesAvailableError",
    "Node",
    "NodeInfo",
    "NodeSelection",
    "NodeTable",
    "NodeToStatus",
    "ObjectMeta",
    "Parallelizer",
    "Plugin",
    "Pod",
    "PodInfo",
    "PostFilterResult",
    "PreBindPreFlightResult",
    "PreFilterResult",
    "PreemptionEvaluator",
    "PreemptionPlan",
    "PreemptionRules",
    "Profile",
    "QosClass",
    "Quantity",
    "QueuedPodInfo",
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
    "activate_pods",
    "default_profile",
    "hookimpl",
    "load_configuration",
    "pod_qos_class",
    "read_manifests",
    "read_openb_nodes",
    "read_openb_pods",
    "scheduler_from_configuration",
]
