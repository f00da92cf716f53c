"""The parts that a scheduler, its frameworks, their handles and its cycles share, listed once."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import attrs

from kschedfw.api import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.cluster_client import ClusterClient
from kschedfw.framework.eviction import PendingEvictions
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
