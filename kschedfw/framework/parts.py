"""The parts that a scheduler, its frameworks, their handles and its cycles share, listed once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol

import attrs

from kschedfw.api import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.cluster_client import ClusterClient
from kschedfw.framework.extender import Extender
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.groups import GroupStates
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder, PluginSampling
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.waiting_pods import PodsInPreBind, WaitingPods


def _seeded() -> Random:
    # Ties aren't secrets, and a fixed seed makes runs reproducible.
    return Random(0)


def _in_order(extenders: Iterable[Extender]) -> tuple[Extender, ...]:
    return tuple(extenders)


class PendingPreemption(Protocol):
    """The evictions for one preemptor."""

    @property
    def holds_back(self) -> bool:
        """True while the preemptor mustn't be tried again: it would preempt the same victims once more."""
        ...

    def carry_out(self) -> object:
        """Evict the victims. Never hold the preemptor back again."""
        ...


class PendingEvictions:
    """The preemptions that are decided and not carried out. Thread-safe.

    kube-scheduler evicts on goroutines; here the scheduler calls `carry_out` after each cycle, so that the
    order is always the same. A preemptor that comes back to the queue before that is held back by a gate.

    `counts` tells whether decisions still count a pod, because the scheduler hasn't been told yet that it is gone.
    """

    def __init__(self, counts: Callable[[Pod], bool]) -> None:
        self.counts = counts
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


@frozen(eq=False)
class Parts:
    """The objects that the frameworks of a scheduler share; `Scheduler` makes one for all of them.

    Only the cluster has to be given. By default the snapshot is empty, the clock is the system's, the random generator
    is seeded with 0, hooks are called on 16 threads, and nothing is recorded. `plugin_sampling` picks the calls of
    pre_enqueue in which single plugins are measured; cycles say it in their state. `binds_in_background` says that
    other threads bind pods, so what takes long and isn't urgent, such as loading Numba, had better wait.
    """

    cluster: ClusterClient
    snapshot: Snapshot = attrs.field(factory=Snapshot)
    nominator: Nominator = attrs.field(factory=Nominator)
    waiting_pods: WaitingPods = attrs.field(factory=WaitingPods)
    pods_in_pre_bind: PodsInPreBind = attrs.field(factory=PodsInPreBind)
    clock: Clock = attrs.field(factory=SystemClock)
    random: Random = attrs.field(factory=_seeded)
    parallelizer: Parallelizer = attrs.field(factory=Parallelizer)
    extenders: tuple[Extender, ...] = attrs.field(default=(), converter=_in_order)
    metrics: MetricsRecorder = NO_METRICS
    plugin_sampling: PluginSampling | None = None
    feature_gates: FeatureGates = DEFAULT_GATES
    binds_in_background: bool = False
    groups: GroupStates = attrs.field(factory=GroupStates)
    evictions: PendingEvictions = attrs.field(
        default=attrs.Factory(lambda parts: PendingEvictions(parts._is_present), takes_self=True)
    )

    def _is_present(self, pod: Pod) -> bool:
        # Without a scheduler's cache the cluster's state is all that decisions know.
        present = self.cluster.get(Pod, pod.key)
        return present is not None and present.uid == pod.uid
