"""The plugins' access to the cluster's state, the clock, the random generator, and threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from random import Random
from typing import Protocol, TypeVar

import attrs

from kschedfw.api import Pod
from kschedfw.api.records import define
from kschedfw.framework.clock import Clock
from kschedfw.framework.cluster_client import ClusterClient
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.devices import DeviceBackedResources, device_backed_resources
from kschedfw.framework.eviction import Evictor, Harm, Preemptor
from kschedfw.framework.extender import Extender
from kschedfw.framework.gate_table import GENERIC_WORKLOAD
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.groups import GroupStates
from kschedfw.framework.metrics import MetricsRecorder
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts, PendingEvictions
from kschedfw.framework.plugin_metrics import SECONDS, Counter, Gauge, Histogram, MetricKind, PluginMetric
from kschedfw.framework.status import Status
from kschedfw.framework.versions.v1_37 import PREEMPTION_METRICS
from kschedfw.framework.waiting_pods import PodsInPreBind, WaitingPods

KeptT = TypeVar("KeptT")


class PluginsRunner(Protocol):
    """The plugins' calls to the other plugins of their profile (kube-scheduler `fwk.PluginsRunner`).

    Call these in a scheduling cycle, with the state of that cycle or a `clone()` of it. A status other than
    success names the plugin that gave it.
    """

    def run_pre_filter_add_pod(
        self, state: CycleState, pod: Pod, to_add: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Update the state as if `to_add` were on the node."""
        ...

    def run_pre_filter_remove_pod(
        self, state: CycleState, pod: Pod, to_remove: PodInfo, node_info: NodeInfo
    ) -> Status:
        """Update the state as if `to_remove` were gone from the node."""
        ...

    def run_filter_plugins(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Return success, or the first refusal in profile order."""
        ...

    def run_filter_plugins_with_nominated_pods(
        self, state: CycleState, pod: Pod, node_info: NodeInfo, *, other_pods_only: bool = False
    ) -> Status:
        """Like `run_filter_plugins`, and the node must also pass with its nominated pods of equal or higher priority.

        With `other_pods_only`, call only the filters that read the pods of a node, because the node object has
        passed already.
        """
        ...

    def wanted_room(
        self, state: CycleState, pod: Pod, node_info: NodeInfo
    ) -> tuple[int, int, int, int] | None:
        """Return the CPU, memory, ephemeral storage and number of pods that must be free, if nothing else decides.

        Return None where another filter refuses the node, may read its pods, or the node has nominated pods:
        `run_filter_plugins_with_nominated_pods` must be called then.
        """
        ...

    def kept_column(
        self, state: CycleState, pod: Pod, key: Hashable, make: Callable[[], KeptT]
    ) -> KeptT | None:
        """Return the value kept under `key` for pods like this one. Call `make` and keep its result if there is none.

        Return None if the filters' answers to this pod can't be kept.
        """
        ...


class PodActivator(Protocol):
    """The scheduling queue, as far as plugins use it (kube-scheduler `fwk.PodActivator`)."""

    def activate(self, pods: Iterable[Pod]) -> None: ...

    def activate_at(self, time: float, pods: Iterable[Pod]) -> None: ...


@define(eq=False)
class Handle:
    """The argument of every plugin's constructor (kube-scheduler `fwk.Handle`).

    No plugin reads the wall clock or the global random generator; both come from here.
    """

    profile_name: str
    parts: Parts
    _framework: PluginsRunner | None = None
    _activator: PodActivator | None = None
    # Attributes of its own, since plugins read them several times for each pod.
    cluster: ClusterClient = attrs.field(init=False, repr=False)
    """The objects of the cluster, which plugins may read and write."""
    snapshot: Snapshot = attrs.field(init=False, repr=False)
    """Nodes and pods as of the current scheduling cycle; it must not be read outside of it."""

    def __attrs_post_init__(self) -> None:
        self.cluster, self.snapshot = self.parts.cluster, self.parts.snapshot

    @property
    def nominator(self) -> Nominator:
        """The pods that wait for room on a node."""
        return self.parts.nominator

    @property
    def waiting_pods(self) -> WaitingPods:
        """The pods that permit plugins hold back, of all profiles of the scheduler."""
        return self.parts.waiting_pods

    @property
    def pods_in_pre_bind(self) -> PodsInPreBind:
        """The pods in pre_bind, of all profiles of the scheduler."""
        return self.parts.pods_in_pre_bind

    @property
    def groups(self) -> GroupStates:
        """The members of groups, as the scheduler knows them now.

        In a group's own cycle, MEMBER_STATES in the cycle's state is to be read instead.
        """
        return self.parts.groups

    @property
    def evictions(self) -> PendingEvictions:
        """The evictions that `evict` has put off to the end of the cycle."""
        return self.parts.evictions

    @property
    def clock(self) -> Clock:
        """The time, which is virtual in a simulation."""
        return self.parts.clock

    @property
    def random(self) -> Random:
        """The random generator."""
        return self.parts.random

    @property
    def parallelizer(self) -> Parallelizer:
        """The threads that a plugin may use."""
        return self.parts.parallelizer

    @property
    def extenders(self) -> tuple[Extender, ...]:
        """The extenders that are called after the plugins."""
        return self.parts.extenders

    @property
    def metrics(self) -> MetricsRecorder:
        """The recorder of metrics."""
        return self.parts.metrics

    @property
    def feature_gates(self) -> FeatureGates:
        """kube-scheduler's feature gates."""
        return self.parts.feature_gates

    @property
    def framework(self) -> PluginsRunner:
        """The framework that this handle belongs to, for plugins such as preemption that ask "what if".

        Raises:
            RuntimeError: in a plugin's constructor, while the framework is still being made.
        """
        if self._framework is None:
            raise RuntimeError(
                "handle.framework can't be used in a plugin's __init__: the framework isn't made yet"
            )
        return self._framework

    def evict(
        self,
        victims: Sequence[Pod],
        *,
        preemptor: Pod,
        node_name: str,
        plugin: str = "",
        violations: int = 0,
    ) -> None:
        """Evict pods that are in the way of `preemptor`, from post_filter, which then nominates `node_name`.

        Victims may be on any node. Each gets the condition DisruptionTarget and the event Preempted, is counted by the
        metric of victims, and is deleted; one that waits at permit or is in pre_bind goes back to the queue instead.
        Victims that are terminating are passed over. Nominations to the node of less important pods are cleared. So
        DefaultPreemption evicts (kube-scheduler v1.36 `prepareCandidate`).

        It is done at once; where pods are scheduled in groups (gate GenericWorkload), at the end of the cycle, and
        until then the preemptor isn't tried again. Nobody is asked whether the victims' budgets allow it:
        `DisruptionBudgets` knows. `plugin`, the plugin's name, is in the statuses of victims that weren't bound yet.
        `violations` is the number of victims that budgets don't allow; since v1.37 a metric has it.

        Raises:
            ValueError: a victim is the preemptor itself.
            Exception: whatever the cluster raises, except that a victim is gone; further victims stay.
        """
        if any(victim.uid == preemptor.uid for victim in victims):
            raise ValueError(f"victims: pod {preemptor.key} can't be evicted to make room for itself")
        whom = Preemptor.pod(preemptor, node_name)
        if self.feature_gates.enabled(GENERIC_WORKLOAD):
            harm = None
            if self.feature_gates.follows(PREEMPTION_METRICS):
                harm = Harm.of_pods(self.cluster, victims, violations)
            self.evictor.evict_later(victims, whom, plugin, [preemptor], harm)
        else:
            self.evictor.evict(victims, whom, plugin)

    @property
    def evictor(self) -> Evictor:
        """The evictions for a preemptor of any kind; plugins call `evict`."""
        return Evictor(self.parts, self.activate)

    @cached_property
    def devices(self) -> DeviceBackedResources:
        """The extended resources that devices provide (kube-scheduler `SharedDRAManager`).

        Looked up when first asked for: a cluster whose pods request no extended resources loads nothing for devices.

        Raises:
            ExtensionError: the installed support for devices can't be loaded.
        """
        return device_backed_resources(self.cluster)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move these pods to the active ones, even if they wait for other events or back off.

        The gates of a gated pod are asked again. A pod in flight is tried again after its backoff, if it comes
        back. Pods that aren't in the scheduling queue are ignored. Without a queue this does nothing.
        """
        if self._activator is not None:
            self._activator.activate(pods)

    def activate_at(self, time: float, pods: Iterable[Pod]) -> None:
        """Activate these pods at a time, in seconds since the epoch on `clock`, which is virtual in a simulation.

        Several times may be set for a pod. They are dropped when it is bound or deleted. A plugin that refuses a pod
        until a time sets `retry_at` of its status instead.

        Raises:
            ValueError: the time is no finite number.
        """
        if self._activator is not None:
            self._activator.activate_at(time, pods)

    # Metrics of the plugin's own. They are made in its constructor, and have the label `profile` before their own ones.
    # Each of these methods raises ValueError if the name can't be one, is kube-scheduler's, or is another metric's.

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Return a counter of the plugin's own, such as `rack_refusals_total`; `text` says what it counts."""
        metric = PluginMetric(MetricKind.COUNTER, name, text, labels)
        return Counter(metric, self.profile_name, self.metrics.plugin_metric(metric))

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """Return a gauge of the plugin's own, for a number that goes up and down; `text` says which."""
        metric = PluginMetric(MetricKind.GAUGE, name, text, labels)
        return Gauge(metric, self.profile_name, self.metrics.plugin_metric(metric))

    def histogram(self, name: str, text: str, *labels: str, buckets: Sequence[float] = SECONDS) -> Histogram:
        """Return a histogram of the plugin's own; `buckets` are the upper bounds of its buckets."""
        metric = PluginMetric(MetricKind.HISTOGRAM, name, text, labels, tuple(buckets))
        return Histogram(metric, self.profile_name, self.metrics.plugin_metric(metric))

    def attach(self, activator: PodActivator) -> None:
        """Set the queue of the framework's pods, which is made after the framework."""
        self._activator = activator
