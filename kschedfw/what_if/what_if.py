"""Questions about a cluster: what would happen if."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import PurePath
from random import Random
from typing import Self, TypeAlias

from kschedfw.api.custom import CustomObject
from kschedfw.api.kinds import KINDS
from kschedfw.api.manifests import Manifests
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.workloads import Namespace
from kschedfw.cluster import Cluster, InMemoryCluster, RevertibleCluster
from kschedfw.config import SchedulerConfiguration
from kschedfw.explain import Explanation
from kschedfw.framework.clock import VirtualClock
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.cache import CacheDump
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.select import HostSelector
from kschedfw.scheduler.setup import objects_of, scheduler_from_configuration
from kschedfw.what_if.checks import WhatIfError, expect, expect_all, found_text
from kschedfw.what_if.engine import Engine
from kschedfw.what_if.transaction import Transaction
from kschedfw.what_if.undoing import Undoable

Source: TypeAlias = Manifests | Iterable[Named] | Cluster | Scheduler
"""Manifests, objects, a cluster, or a scheduler, whose view is the cluster's and the pods that it has assumed."""


class WhatIf:
    """A private copy of a cluster, with a scheduler that answers questions about it in transactions::

        what_if = WhatIf(read_manifests("cluster.yaml"))
        with what_if.transaction() as trial:
            trial.drain("node-7")
            print(trial.schedule(what_if.pending).refused)

    The copy is shallow, as objects are immutable values, and nothing is ever written to the source. Volumes and
    claims for devices are bound and provisioned as by Kubernetes' controllers; there are no other controllers.

    Every answer is that of a scheduler that has just started on the state at that moment, with random numbers from
    `seed`. It is for one thread at a time: while one uses it or has a transaction open, others get ConcurrentUseError.

    Args:
        source: manifests, objects, a cluster, or a scheduler; a scheduler's view includes the pods that it has
            assumed, and its profiles are the default.
        configuration: the profiles, extenders and sampling; by default kube-scheduler's. It stands instead of
            `profiles`.
        registry: offers the plugins; by default the scheduler's, if the source is one.
        selector: picks one of the nodes with the highest score; by default a random one, from `seed`.
        feature_gates: kube-scheduler's feature gates; by default the scheduler's, if the source is one.

    Its clock stands still at the time when the source's newest object was created.

    Raises:
        WhatIfError: the source is none, or there are two configurations.
        InvalidManifestsError: the manifests have problems.
        PluginError, ProfileError: a profile can't run.
    """

    def __init__(
        self,
        source: Source,
        configuration: SchedulerConfiguration | None = None,
        *,
        registry: Registry | None = None,
        seed: int = 0,
        profiles: Iterable[Profile] | None = None,
        selector: HostSelector | None = None,
        feature_gates: FeatureGates | None = None,
    ) -> None:
        if configuration is not None:
            hint = "; load_configuration reads files"
            expect(SchedulerConfiguration, configuration, "configuration", hint)
        if registry is not None:
            expect(Registry, registry, "registry")
        if profiles is not None:
            profiles = expect_all(Profile, profiles, "profiles")
        if configuration is not None and profiles is not None:
            raise WhatIfError("a configuration has its own profiles: give one or the other")
        self._cluster = _take_over(source)
        if isinstance(source, Scheduler):
            registry = source.registry if registry is None else registry
            feature_gates = source.feature_gates if feature_gates is None else feature_gates
            if profiles is None:
                profiles = [framework.profile for framework in source.frameworks.values()]
        chance = Random(seed)
        clock = VirtualClock(_latest(self._cluster))
        if configuration is not None:
            scheduler = scheduler_from_configuration(
                configuration,
                self._cluster,
                registry=registry,
                clock=clock,
                random=chance,
                selector=selector,
                idle=True,
            )
        else:
            scheduler = Scheduler(
                self._cluster,
                profiles,
                registry=registry,
                clock=clock,
                random=chance,
                parallelizer=Parallelizer(1),
                selector=selector,
                idle=True,
                feature_gates=DEFAULT_GATES if feature_gates is None else feature_gates,
            )
        self._engine = Engine(self._cluster, scheduler, chance)
        self._transaction: Undoable | None = None

    # Reading: the present state, in an open transaction as it is there

    @property
    def cluster(self) -> RevertibleCluster:
        """The private cluster, for reading. Pods that have a place in an open transaction aren't bound in it."""
        with self._engine.one_thread:
            return self._cluster

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self.cluster.list(Node))

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All pods; pods that have a place are on their nodes."""
        with self._engine.one_thread:
            held = self._engine.history.held
            return tuple(held[pod.uid].pod if pod.uid in held else pod for pod in self._cluster.list(Pod))

    @property
    def pending(self) -> tuple[Pod, ...]:
        """The pods that wait for a node: not bound, not being deleted, without gates, for one of the profiles."""
        with self._engine.one_thread:
            held, known = self._engine.history.held, self._engine.scheduler.frameworks
            return tuple(
                pod
                for pod in self._cluster.list(Pod)
                if not (pod.node_name or pod.is_terminal or pod.is_terminating or pod.spec.scheduling_gates)
                and pod.spec.scheduler_name in known
                and pod.uid not in held
            )

    @property
    def feature_gates(self) -> FeatureGates:
        """The scheduler's feature gates."""
        return self._engine.scheduler.feature_gates

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The names of the profiles; pods with other scheduler names wait for another scheduler."""
        return tuple(self._engine.scheduler.frameworks)

    def objects(self) -> Iterator[Named]:
        """Return all objects, referenced ones first and pods last, in an order that manifests could have.

        A scheduler that reads them in this order makes the same decisions: nodes come in the order in which
        they are visited, then the pods on them, then the others. Pods with a place are bound.
        """
        with self._engine.one_thread:
            return iter(tuple(self._objects()))

    def _objects(self) -> Iterator[Named]:
        implied = self._cluster.implied_namespaces
        kinds: Sequence[type[Named]] = (*(each.cls for each in KINDS.values()), CustomObject)
        for kind in kinds:
            if kind not in (Node, Pod):
                for obj in self._cluster.list(kind):
                    if not (isinstance(obj, Namespace) and obj.name in implied):
                        yield obj
        scheduler = self._engine.scheduler
        scheduler.cache.update_snapshot(scheduler.snapshot)
        on_nodes: set[str] = set()
        for info in scheduler.snapshot.node_infos:
            yield info.node
        for info in scheduler.snapshot.node_infos:
            for each in info.pods:
                on_nodes.add(each.pod.uid)
                yield each.pod
        for pod in self.pods:
            if pod.uid not in on_nodes:
                yield pod

    def explain(self, pod: Pod) -> Explanation:
        """Return the decision that would be made on the pod now, and why; nothing changes.

        Raises:
            WhatIfError: no profile has the pod's scheduler name.
        """
        expect(Pod, pod, "pod")
        with self._engine.one_thread:
            return self._engine.explain(pod)

    # Changing

    def transaction(self) -> Transaction:
        """Return a transaction, for a `with` block. Its changes are undone at the end, unless it is committed."""
        with self._engine.one_thread:
            return Transaction(self._engine, self, None)

    def close(self) -> None:
        """Close the plugins and extenders of the private scheduler."""
        with self._engine.one_thread:
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _latest(cluster: RevertibleCluster) -> float:
    """Return the creation time of the newest node or pod, in seconds since the epoch; 0 if none has one."""
    times: list[datetime] = [
        made
        for obj in (*cluster.list(Node), *cluster.list(Pod))
        if (made := obj.metadata.creation_timestamp) is not None
    ]
    return max((time.timestamp() for time in times), default=0.0)


def _take_over(source: Source) -> RevertibleCluster:
    """Return a private cluster with the source's objects at one moment. The source isn't changed.

    Pods that a scheduler has assumed are bound in it.
    """
    if isinstance(source, Manifests):
        return RevertibleCluster(source.objects())
    if isinstance(source, Scheduler):
        lock = source.cluster.lock if isinstance(source.cluster, InMemoryCluster) else nullcontext()
        with lock:
            # Under one lock, so that nothing is written between the two looks; other clusters offer none.
            objects = objects_of(source.cluster)
            seen = source.cache.dump()
        return RevertibleCluster(_as_cached(objects, seen))
    if not isinstance(source, Iterable) and hasattr(source, "watch"):
        return RevertibleCluster(objects_of(source))
    # Callers may pass anything, whatever the types say.
    given: object = source
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return RevertibleCluster(expect_all(Named, given, "source"))
    hint = "; read_manifests reads files" if isinstance(given, str | PurePath) else ""
    raise WhatIfError(
        f"source: expected manifests, objects, a cluster or a scheduler, found {found_text(given)}{hint}"
    )


def _as_cached(objects: Iterable[Named], seen: CacheDump) -> list[Named]:
    """Return the objects as a scheduler sees them: assumed pods are bound, and pods on a node are in its order."""
    # Which pods are victims among equals depends on a node's order of pods.
    order = {pod.uid: (place, pod.node_name) for place, pod in enumerate(seen.pods)}
    others: list[Named] = []
    placed: list[Pod] = []
    for obj in objects:
        if isinstance(obj, Pod) and obj.uid in order:
            placed.append(obj if obj.node_name else obj.bound_to(order[obj.uid][1]))
        else:
            others.append(obj)
    return [*others, *sorted(placed, key=lambda pod: order[pod.uid])]
