"""What a plugin sees, and what runs it."""

from kschedfw.framework.cycle_state import CycleState, StateKey, StateKeyError
from kschedfw.framework.diagnosis import Diagnosis, FitError, NodeToStatus, NoNodesAvailableError
from kschedfw.framework.errors import (
    HookError,
    PluginError,
    PluginLoadError,
    PluginNotFoundError,
    ProfileError,
)
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.snapshot import NodeNotFoundError, Snapshot
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import Plugin, hookimpl, hookspec
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kschedfw.framework.results import PostFilterResult, PreBindPreFlightResult, PreFilterResult, Verdicts
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.runtime.totals import NodeScores, PluginScores
from kschedfw.framework.status import Code, Status
from kschedfw.framework.waiting_pods import WaitingPod, WaitingPods

__all__ = [
    "Code",
    "CycleState",
    "Diagnosis",
    "EnabledPlugin",
    "ExtensionPoint",
    "FitError",
    "Framework",
    "Handle",
    "HookError",
    "NoNodesAvailableError",
    "NodeInfo",
    "NodeNotFoundError",
    "NodeScores",
    "NodeTable",
    "NodeToStatus",
    "Parallelizer",
    "Plugin",
    "PluginError",
    "PluginLoadError",
    "PluginNotFoundError",
    "PluginScores",
    "PodInfo",
    "PostFilterResult",
    "PreBindPreFlightResult",
    "PreFilterResult",
    "Profile",
    "ProfileError",
    "QueuedPodInfo",
    "Reads",
    "Registry",
    "Snapshot",
    "StateKey",
    "StateKeyError",
    "Status",
    "Verdicts",
    "WaitingPod",
    "WaitingPods",
    "hookimpl",
    "hookspec",
]
