"""kschedfw: a pluggable scheduling framework with the semantics of kube-scheduler.

The names below are the public interface, together with those in `__all__` of `kschedfw.api`, `kschedfw.cluster`,
`kschedfw.simulator`, `kschedfw.compare`, `kschedfw.explain` and `kschedfw.testing`; everything else may change.

The reference in the documentation (docs/reference.md) has them by audience.
"""

from importlib.metadata import version as _version

from kschedfw.api.builders import make_claim, make_node, make_pod, make_volume
from kschedfw.api.custom import CustomKind, CustomObject, CustomResource
from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import FieldError
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.manifests import FieldValidation, read_manifests
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.quantity import Quantity
from kschedfw.api.requests import QosClass, pod_qos_class
from kschedfw.api.resource import Resource
from kschedfw.cluster import ClaimController, InMemoryCluster, VolumeController
from kschedfw.config import ConfigurationError, SchedulerConfiguration, default_profile, load_configuration
from kschedfw.framework.activation import activate_pods
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.diagnosis import FitError, NodeToStatus, NoNodesAvailableError
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.handle import ClusterClient, Handle
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.preemption import (
    Candidate,
    DisruptionBudgets,
    PreemptionEvaluator,
    PreemptionPlan,
    PreemptionRules,
    Victims,
)
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.results import PostFilterResult, PreBindPreFlightResult, PreFilterResult, Verdicts
from kschedfw.framework.runtime.evaluation import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Code, Status
from kschedfw.scheduler import (
    Cache,
    ConcurrentCycleError,
    GenericScheduler,
    Placement,
    PlacementEndedError,
    PodInFlightError,
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
    "Candidate",
    "Clock",
    "ClusterClient",
    "ClusterEvent",
    "ClaimController",
    "Code",
    "ConcurrentCycleError",
    "ConfigurationError",
    "CustomKind",
    "CustomObject",
    "CustomResource",
    "CycleState",
    "DisruptionBudgets",
    "EnabledPlugin",
    "Evaluation",
    "EventResource",
    "FieldError",
    "FieldValidation",
    "FitError",
    "Framework",
    "FrozenDict",
    "GenericScheduler",
    "Handle",
    "InMemoryCluster",
    "IntArray",
    "KschedfwError",
    "NoNodesAvailableError",
    "Node",
    "NodeInfo",
    "NodeSelection",
    "NodeTable",
    "NodeToStatus",
    "ObjectMeta",
    "Parallelizer",
    "Placement",
    "PlacementEndedError",
    "Plugin",
    "Pod",
    "PodInFlightError",
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
    "Resource",
    "ScheduleResult",
    "Scheduler",
    "SchedulerConfiguration",
    "SchedulingError",
    "Snapshot",
    "StateKey",
    "Status",
    "SystemClock",
    "Verdicts",
    "Victims",
    "VolumeController",
    "__version__",
    "activate_pods",
    "default_profile",
    "hookimpl",
    "load_configuration",
    "make_claim",
    "make_node",
    "make_pod",
    "make_volume",
    "pod_qos_class",
    "read_manifests",
    "read_openb_nodes",
    "read_openb_pods",
    "scheduler_from_configuration",
]
