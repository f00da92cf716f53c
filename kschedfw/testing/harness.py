"""Runs the extension points of one plugin against a few nodes, without a scheduler around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.clock import Clock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.framework import Framework
from kschedfw.framework.narrowing import not_left_over
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import Profile
from kschedfw.framework.registry import Registry
from kschedfw.framework.results import PreFilterResult
from kschedfw.framework.snapshot import Snapshot
from kschedfw.framework.status import Status
from kschedfw.scheduler.nominator import Nominator


class FrameworkHarness:
    """A framework with one plugin (or several), a snapshot of nodes and pods, and a cycle state that it carries along.

        harness = FrameworkHarness(Rack, nodes=[make_node("a").build()], pods=[])
        pod = make_pod().labels(racks="r1").build()
        assert harness.filter(pod)["a"].reasons == ("node(s) were in the wrong rack",)

    Plugins are given as classes, or as names of installed ones. Bound pods lie on their nodes; `objects` are what
    plugins find in the cluster besides (namespaces, services …). Everything runs on the caller's thread, and
    `random` is seeded with 0, so that a test can't flicker.
    """

    def __init__(
        self,
        *plugins: type[AnyPlugin] | str,
        nodes: Iterable[Node] = (),
        pods: Iterable[Pod] = (),
        objects: Iterable[Named] = (),
        args: Mapping[str, object] | None = None,
        clock: Clock | None = None,
    ) -> None:
        registry = Registry()
        names = [plugin if isinstance(plugin, str) else registry.register(plugin).name for plugin in plugins]
        self.cluster = InMemoryCluster(objects)
        # as stored, with the uids that the cluster gives
        self.snapshot = Snapshot.of(
            [self.cluster.add(node) for node in nodes], [self.cluster.add(pod) for pod in pods]
        )
        self.nominator = Nominator()
        self.state = CycleState()
        self._narrowing: frozenset[str] = frozenset()
        self.framework = Framework(
            registry,
            Profile(names, args=args or {}),
            cluster=self.cluster,
            snapshot=self.snapshot,
            nominator=self.nominator,
            clock=clock,
            random=Random(0),
            parallelizer=Parallelizer(1),
        )

    def pre_filter(self, pod: Pod) -> tuple[PreFilterResult | None, Status]:
        """Start a new cycle for the pod: a fresh state, and pre_filter."""
        self.state = CycleState()
        result, status, self._narrowing = self.framework.run_pre_filter_plugins(self.state, pod)
        return result, status

    def filter(self, pod: Pod) -> dict[str, Status]:
        """pre_filter, then filter: the verdict on every node; where pre_filter rejects, that is every node's."""
        result, status = self.pre_filter(pod)
        if not status.is_success:
            return {info.name: status for info in self.snapshot.node_infos}
        left_over = None if result is None else result.node_names
        return {
            info.name: self.framework.run_filter_plugins_with_nominated_pods(self.state, pod, info)
            if left_over is None or info.name in left_over
            else not_left_over(self._narrowing)
            for info in self.snapshot.node_infos
        }

    def score(self, pod: Pod) -> dict[str, int]:
        """pre_filter, pre_score, score and normalize_score over all nodes: weighted totals by node.

        Raises:
            AssertionError: a plugin failed; the message is its status.
        """
        self.pre_filter(pod)
        status = self.framework.run_pre_score_plugins(self.state, pod, self.snapshot.node_infos)
        if not status.is_success:
            raise AssertionError(status.message)
        scores, status = self.framework.run_score_plugins(self.state, pod, self.snapshot.node_infos)
        if scores is None:
            raise AssertionError(status.message)
        return dict(zip(scores.node_names, map(int, scores.totals), strict=True))

    def reserve(self, pod: Pod, node_name: str) -> Status:
        return self.framework.run_reserve_plugins_reserve(self.state, pod, node_name)

    def unreserve(self, pod: Pod, node_name: str) -> None:
        """Raises AssertionError if the plugin does, since unreserve can't fail."""
        for failure in self.framework.run_reserve_plugins_unreserve(self.state, pod, node_name):
            raise AssertionError(failure.message) from failure.error

    def permit(self, pod: Pod, node_name: str) -> Status:
        return self.framework.run_permit_plugins(self.state, pod, node_name)

    def pre_enqueue(self, pod: Pod) -> Status:
        return self.framework.run_pre_enqueue_plugins(pod)

    def pre_bind_pre_flight(self, pod: Pod, node_name: str) -> Status:
        return self.framework.run_pre_bind_pre_flights(self.state, pod, node_name)

    def pre_bind(self, pod: Pod, node_name: str) -> Status:
        return self.framework.run_pre_bind_plugins(self.state, pod, node_name)

    def bind(self, pod: Pod, node_name: str) -> Status:
        return self.framework.run_bind_plugins(self.state, pod, node_name)

    def post_bind(self, pod: Pod, node_name: str) -> None:
        """Raises AssertionError if the plugin does, since post_bind can't fail."""
        for failure in self.framework.run_post_bind_plugins(self.state, pod, node_name):
            raise AssertionError(failure.message) from failure.error
