"""A commit check: whether a pod still passes its profile's filters on a node of the shared state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from kschedfw.api import Node, Pod
from kschedfw.cluster import EventType, WatchEvent
from kschedfw.cluster.protocol import Handler
from kschedfw.config import default_profile
from kschedfw.framework.cluster_client import ClusterClient
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.parts import Parts
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.cache import Cache
from kschedfw.scheduler.errors import CacheError


class Journalled(ClusterClient, Protocol):
    """A cluster with a journal of its changes."""

    def journal(self, write: Handler) -> Callable[[], None]:
        """Call `write` with every change, as `InMemoryCluster.journal` does. Return a function that ends it."""
        ...


class StillFits:
    """A `FitCheck` that runs all filters of the pod's profile on one node of the shared state.

    So a claim conflicts where resources, host ports or volumes are taken, where new pods violate its affinity
    or spread constraints, and where the node has changed. Pods whose scheduler name has no profile here are
    checked by the first profile. Nominated pods aren't counted, and no extender is asked. The check has plugins
    of its own.

    Raises:
        PluginError, ProfileError: a profile can't run.
    """

    def __init__(
        self,
        truth: Journalled,
        profiles: Iterable[Profile] | None = None,
        *,
        registry: Registry | None = None,
    ) -> None:
        self._cache = Cache()
        self._snapshot = Snapshot()
        registry = Registry() if registry is None else registry
        self._frameworks = {
            profile.scheduler_name: Framework(registry, profile, Parts(truth, snapshot=self._snapshot))
            for profile in ((default_profile(),) if profiles is None else profiles)
        }
        self._unfollow = truth.journal(self._follow)

    def close(self) -> None:
        """Stop following the shared state."""
        self._unfollow()
        for framework in self._frameworks.values():
            framework.close()

    def reserve(self, pod: Pod, node_name: str) -> str:
        """Count the pod on the node if it fits there. Return why it doesn't fit; empty if it does (see `FitCheck`)."""
        if reason := self._refusal(pod, node_name):
            return f"it doesn't fit node {node_name} any more: {reason}"
        self._cache.assume_pod(pod.bound_to(node_name))
        return ""

    def release(self, pod: Pod, node_name: str) -> None:
        """Undo `reserve` (see `FitCheck`)."""
        self._cache.forget_pod(pod.bound_to(node_name))

    def _refusal(self, pod: Pod, node_name: str) -> str:
        self._cache.update_snapshot(self._snapshot)
        node = self._snapshot.find(node_name)
        if node is None:
            return "there is no such node"
        first = next(iter(self._frameworks.values()))
        framework, state = self._frameworks.get(pod.spec.scheduler_name, first), CycleState()
        left, status, _ = framework.run_pre_filter_plugins(state, pod)
        if status.is_success and left is not None and node_name not in left.node_names:
            return "other nodes are left over by pre_filter"
        if status.is_success:
            status = framework.run_filter_plugins(state, pod, node)
        return "" if status.is_success else status.message

    def _follow(self, event: WatchEvent) -> None:
        obj, deleted = event.object, event.type is EventType.DELETED
        if isinstance(obj, Node):
            if deleted:
                self._cache.remove_node(obj)
            else:
                self._cache.update_node(obj)
        elif isinstance(obj, Pod) and obj.node_name:
            self._follow_pod(obj, gone=deleted or obj.is_terminal)

    def _follow_pod(self, pod: Pod, *, gone: bool) -> None:
        if gone:
            # Raised for a pod that had ended, and so was removed before its deletion.
            with suppress(CacheError):
                self._cache.remove_pod(pod)
        # Adding confirms a pod that `reserve` has assumed.
        elif self._cache.get_pod(pod) is None or self._cache.is_assumed(pod):
            self._cache.add_pod(pod)
        else:
            self._cache.update_pod(pod)
