"""The plugins' access to the cluster's state, the clock, the random generator, and threads."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from random import Random
from typing import Final, Protocol, TypeVar

import attrs

from kschedfw.api import Named, Pod, PodCondition
from kschedfw.framework.clock import Clock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import ConflictError, IncompleteClusterError
from kschedfw.framework.extender import Extender
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.groups import GroupStates
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin_metrics import SECONDS, Counter, Gauge, Histogram, MetricKind, PluginMetric
from kschedfw.framework.status import Status
from kschedfw.framework.waiting_pods import PodsInPreBind, WaitingPods


class PendingPreemption(Protocol):
    """The evictions for one preemptor."""

    @property
    def holds_back(self) -> bool:
        """True while the preemptor mustn't be tried again: it would preempt the same victims once more."""
        ...

    def carry_out(self) -> None:
        """Evict the victims. Never hold the preemptor back again."""
        ...


class PendingEvictions:
    """The preemptions that are decided and not carried out. Thread-safe.

    kube-scheduler evicts on goroutines; here the scheduler calls `carry_out` after each cycle, so that the
    order is always the same. A preemptor that comes back to the queue before that is held back by a gate.
    """

    def __init__(self) -> None:
        # Replaced and never changed, since gates are asked on the threads of watches.
        self._pending: tuple[tuple[str, PendingPreemption], ...] = ()
        self._lock = threading.Lock()

    def start(self, preemptor: str, preemption: PendingPreemption) -> None:
        """Queue a preemption for the end of the cycle. `preemptor` is the uid of a pod or of a group."""
        with self._lock:
            self._pending = (*self._pending, (preemptor, preemption))

    def holds_back(self, preemptor: str) -> bool:
        """Return whether the preemptor has to wait until its victims are evicted."""
        return any(uid == preemptor and preemption.holds_back for uid, preemption in self._pending)

    def carry_out(self) -> None:
        """Carry out all preemptions, one after the other."""
        while self._pending:
            first = self._pending[0]
            try:
                # Outside of the lock: the events of deletions may ask `holds_back`, or start preemptions.
                first[1].carry_out()
            finally:
                with self._lock:
                    self._pending = tuple(each for each in self._pending if each is not first)


_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
"""The most attempts of an update that conflicts (client-go `retry.DefaultRetry`)."""

ObjectT = TypeVar("ObjectT", bound=Named)
KeptT = TypeVar("KeptT")


class ClusterClient(Protocol):
    """The part of a cluster that plugins may read and write; `kschedfw.cluster.Cluster` is one."""

    def get(self, kind: type[ObjectT], key: str) -> ObjectT | None:
        """Return the object by `namespace/name` (or `name` where cluster-scoped), or None."""
        ...

    def list(self, kind: type[ObjectT], namespace: str | None = None) -> Sequence[ObjectT]:
        """Return all objects of a kind, of one namespace or of all."""
        ...

    def add(self, obj: ObjectT) -> ObjectT:
        """Create the object and return it as stored; refused if the name is taken."""
        ...

    def update(self, obj: ObjectT) -> ObjectT:
        """Replace the object and return it as stored.

        Raises ConflictError if the stored object has changed since `obj` was read; see `retry_on_conflict`.
        """
        ...

    def bind(self, pod: Pod, node_name: str) -> None: ...

    def delete(self, obj: Named) -> None: ...

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None: ...

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None: ...


def retry_on_conflict(cluster: ClusterClient, obj: ObjectT, change: Callable[[ObjectT], ObjectT]) -> ObjectT:
    """Write `change(obj)`, and return it as stored; nothing is written where `change` returns what it got.

    If others have changed the object since `obj` was read, `change` is applied to what they have made of it: as
    client-go's RetryOnConflict, five times in all.

    Raises:
        ConflictError: others were faster each time, or another object has the name by now.
        Exception: whatever `change` and the cluster raise.
    """
    for _ in range(_ATTEMPTS - 1):
        changed = change(obj)
        if changed is obj:
            return obj
        try:
            return cluster.update(changed)
        except ConflictError as conflict:
            obj = _present(cluster, obj, conflict)
    changed = change(obj)
    return obj if changed is obj else cluster.update(changed)


def _present(cluster: ClusterClient, obj: ObjectT, conflict: ConflictError) -> ObjectT:
    """Return the state that an update of this one has met. Raises the conflict if it can't be known."""
    if isinstance(told := conflict.present, type(obj)):
        return told
    present = cluster.get(type(obj), obj.key)
    if present is None or present.uid != obj.uid:
        raise conflict
    # A cluster that reads from a copy may not have the other's change yet: a repeated update would fail again.
    if present.metadata.resource_version == obj.metadata.resource_version:
        raise conflict
    return present


def record_event(
    cluster: ClusterClient,
    regarding: Named,
    type: str,
    reason: str,
    message: str,
    related: Named | None = None,
) -> None:
    """Record an event by `cluster.record_event`. Log failures and never raise: no attempt should fail for an event."""
    try:
        # Clusters whose `record_event` was written before there was `related` miss only the events of preemption.
        others = () if related is None else (related,)
        cluster.record_event(regarding, type, reason, message, *others)
    # A cluster may raise anything, and no attempt should fail for an event.
    except Exception as error:
        _log.warning("can't record event %s of %s: %s", reason, regarding.key, error)


def check_cluster(cluster: object, protocol: type, who: str) -> None:
    """Check that an object has the methods of `ClusterClient`, or of another protocol for clusters.

    Raises:
        IncompleteClusterError: it is a class, or lacks methods.
    """
    where = f"{protocol.__module__}.{protocol.__qualname__}"
    if isinstance(cluster, type):
        raise IncompleteClusterError(
            f"{who} needs a cluster, not the class {cluster.__name__}: make an instance of it"
        )
    methods = [
        name
        for base in reversed(protocol.__mro__)
        for name, member in vars(base).items()
        if callable(member) and not name.startswith("_")
    ]
    if coroutines := [name for name in methods if inspect.iscoroutinefunction(getattr(cluster, name, None))]:
        raise IncompleteClusterError(
            f"{who} needs a cluster whose methods are plain functions; of {type(cluster).__name__}, "
            f"{', '.join(coroutines)} {'is' if len(coroutines) == 1 else 'are'} async, and nobody would await that"
        )
    missing = [name for name in methods if not callable(getattr(cluster, name, None))]
    if missing:
        lacking = f"{', '.join(missing)} ({len(missing)} of {len(methods)} methods)"
        raise IncompleteClusterError(
            f"{who} needs a cluster; {type(cluster).__name__} lacks {lacking}. What they do: {where}"
        )


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


@attrs.define(eq=False)
class Handle:
    """The argument of every plugin's constructor (kube-scheduler `fwk.Handle`).

    No plugin reads the wall clock or the global random generator; both come from here.

    `snapshot` is the state of nodes and pods as of the current scheduling cycle; it must not be read outside of
    it. `waiting_pods` and `pods_in_pre_bind` are those of all profiles of the scheduler. `groups` has the
    members of groups, as the scheduler knows them now; in a group's own cycle, MEMBER_STATES in the cycle's
    state is to be read instead. `framework` runs the profile's hooks, for plugins such as preemption that ask
    "what if".
    """

    profile_name: str
    snapshot: Snapshot
    cluster: ClusterClient
    nominator: Nominator
    waiting_pods: WaitingPods
    clock: Clock
    random: Random
    parallelizer: Parallelizer
    extenders: tuple[Extender, ...] = ()
    metrics: MetricsRecorder = NO_METRICS
    pods_in_pre_bind: PodsInPreBind = attrs.field(factory=PodsInPreBind)
    feature_gates: FeatureGates = DEFAULT_GATES
    groups: GroupStates = attrs.field(factory=GroupStates)
    evictions: PendingEvictions = attrs.field(factory=PendingEvictions)
    _framework: PluginsRunner | None = None
    _activator: PodActivator | None = None

    @property
    def framework(self) -> PluginsRunner:
        """The framework that this handle belongs to.

        Raises:
            RuntimeError: in a plugin's constructor, while the framework is still being made.
        """
        if self._framework is None:
            raise RuntimeError(
                "handle.framework can't be used in a plugin's __init__: the framework isn't made yet"
            )
        return self._framework

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
