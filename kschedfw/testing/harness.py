"""A harness for the extension points of a plugin with a few nodes, without a scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from kschedfw.api import Named, Node, Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import Score
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import ProfileError
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.outcome import NodeScores
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import Profile
from kschedfw.framework.results import PreBindPreFlightResult, PreFilterResult, not_left_over
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.scheduler.event_handlers import events_between
from kschedfw.testing.configured import wrong_args
from kschedfw.testing.manifest_reader import ManifestReader

ObjectT = TypeVar("ObjectT", Node, Pod)

_GIVEN: Final = frozenset({"state", "pod", "nodes", "node_name", "node_info"})
_WITH_STATUS: Final = tuple(
    spec.name for spec in HOOKS.values() if spec.codes is not None and set(spec.arguments) <= _GIVEN
)
"""The hooks that answer with a status, of which `own_status` has all arguments."""


def _check_given(pod: object, node_name: object = "") -> None:
    """Raise TypeError unless these are a pod and the name of a node."""
    if isinstance(pod, Mapping):
        raise TypeError("pod: expected a Pod, found a mapping; harness.pod(…) makes one of a manifest")
    _check_is(Pod, "pod", pod, "a Pod")
    _check_is(str, "node_name", node_name, "the name of a node")


def _check_is(kind: type, argument: str, given: object, expected: str) -> None:
    if not isinstance(given, kind):
        hint = (
            f"; {type(given).__name__}.build() makes it"
            if hasattr(given, "build") and kind is not str
            else ""
        )
        raise TypeError(f"{argument}: expected {expected}, found {type(given).__name__}{hint}")


class FrameworkHarness:
    """A framework with one plugin (or several), a snapshot of nodes and pods, and the state of the present cycle.

        harness = FrameworkHarness(Rack, nodes=[make_node("a").build()], pods=[])
        pod = make_pod().labels(racks="r1").build()
        assert harness.filter(pod)["a"].reasons == ("node(s) were in the wrong rack",)

    Plugins are classes, which replace installed plugins of the same names, or names of installed plugins. Bound pods
    are on their nodes; `objects` are further objects in the cluster (namespaces, services …). `feature_gates` say which
    version of Kubernetes the plugins decide as. Everything runs on the caller's thread, and `random` is seeded with 0,
    so that tests are deterministic.

    `args` are by the plugins' names. Those of a plugin that is neither given nor installed are a ProfileError.

    Nodes and pods may be manifests. They are read as from a file, or with `lenient` less strictly: names, uids and
    containers may be missing, several may have the same name, and what the API server would refuse is accepted. Of
    several with the same name, the cluster has the first, and all are on their nodes.
    """

    def __init__(
        self,
        *plugins: type[AnyPlugin] | str,
        nodes: Iterable[Node | Mapping[str, object]] = (),
        pods: Iterable[Pod | Mapping[str, object]] = (),
        objects: Iterable[Named] = (),
        args: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        feature_gates: FeatureGates = DEFAULT_GATES,
        lenient: bool = False,
    ) -> None:
        registry = Registry()
        names = [
            plugin if isinstance(plugin, str) else registry.register(plugin, replace=True).name
            for plugin in plugins
        ]
        if problem := wrong_args(args or {}, registry, names):
            raise ProfileError(problem)
        self._manifests = ManifestReader(lenient=lenient)
        self.cluster = InMemoryCluster(objects)
        # As stored, with the uids that the cluster gives.
        self.snapshot = Snapshot.of(
            [self._stored(self._manifests.node(node)) for node in nodes],
            [self._stored(self._manifests.pod(pod)) for pod in pods],
        )
        self.nominator = Nominator()
        self.state = CycleState()
        self._narrowing: frozenset[str] = frozenset()
        self.framework = Framework(
            registry,
            Profile(names, args=args or {}),
            Parts(
                self.cluster,
                snapshot=self.snapshot,
                nominator=self.nominator,
                clock=SystemClock() if clock is None else clock,
                parallelizer=Parallelizer(1),
                feature_gates=feature_gates,
            ),
        )

    def _stored(self, obj: ObjectT) -> ObjectT:
        there = self.cluster.get(type(obj), obj.metadata.key) is not None
        return obj if there and self._manifests.lenient else self.cluster.add(obj)

    def pod(self, manifest: Mapping[str, object]) -> Pod:
        """Return a pod from a manifest, read like the harness's other pods; it isn't added to the cluster."""
        return self._manifests.pod(manifest)

    def pre_filter(self, pod: Pod) -> tuple[PreFilterResult | None, Status]:
        """Start a new cycle for the pod: a fresh state, and pre_filter.

        Return the nodes that are left (None: all), and the combined status of all pre_filters.
        """
        _check_given(pod)
        self.state = CycleState()
        result, status, self._narrowing = self.framework.run_pre_filter_plugins(self.state, pod)
        return result, status

    def filter(self, pod: Pod) -> dict[str, Status]:
        """Run pre_filter, then filter, and return the status of every node.

        A rejection by pre_filter is the status of every node.
        """
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
        """Run pre_filter, pre_score, score and normalize_score for all nodes, and return weighted totals by node.

        Raises:
            AssertionError: a plugin failed; the message is its status.
        """
        scores = self._scored(pod)
        return dict(zip(scores.node_names, map(int, scores.totals), strict=True))

    def _scored(self, pod: Pod) -> NodeScores:
        self.pre_filter(pod)
        status = self.framework.run_pre_score_plugins(self.state, pod, self.snapshot.node_infos)
        if not status.is_success:
            raise AssertionError(status.message)
        scores, status = self.framework.run_score_plugins(self.state, pod, self.snapshot.node_infos)
        if scores is None:
            raise AssertionError(status.message)
        return scores

    def scores(self, pod: Pod) -> dict[str, dict[str, Score]]:
        """Return the raw score, the normalized score, and the weight, by plugin and node.

        Raises:
            AssertionError: a plugin failed; the message is its status.
        """
        found = self._scored(pod)
        return {
            name: {
                node: Score(raw, normalized, each.weight)
                for node, raw, normalized in zip(
                    found.node_names, each.raw.tolist(), each.normalized.tolist(), strict=True
                )
            }
            for name, each in found.by_plugin.items()
        }

    def own_status(self, hook: str, pod: Pod, node_name: str = "", *, plugin: str = "") -> Status:
        """Call a single hook of the plugin, and return its unchanged status.

        `filter` and `pre_score` begin a new cycle with pre_filter, and for `pre_score` all nodes are feasible;
        other hooks use the present cycle's state. None, a PreFilterResult and a PreBindPreFlightResult count as
        success, the last as skip if its `skip` is set.

        `plugin` is needed if several plugins have this hook.

        Raises:
            ValueError: the hook doesn't return a status, or several plugins have it and `plugin` is missing.
            NodeNotFoundError: there is no node of this name for `filter`.
            TypeError: the answer isn't a status.
            Exception: whatever the hook raises.
        """
        _check_given(pod, node_name)
        if hook not in _WITH_STATUS:
            raise ValueError(
                f"{hook!r} gives no status alone; these hooks do: {', '.join(sorted(_WITH_STATUS))}"
            )
        known = [name for name in self.framework.plugins if hook in self.framework.hooks_of(name)]
        whose = [name for name in known if plugin in ("", name)]
        if len(whose) != 1:
            raise ValueError(
                f"plugin={plugin!r}: one is needed that has the hook {hook!r}; those are: {', '.join(known) or 'none'}"
            )
        if hook in ("filter", "pre_score"):
            self.pre_filter(pod)
        arguments = HOOKS[hook].arguments
        given = {
            "state": self.state,
            "pod": pod,
            "nodes": self.snapshot.node_infos,
            "node_name": node_name,
            "node_info": self.snapshot.get(node_name) if "node_info" in arguments else None,
        }
        answer = self.framework.hooks_of(whose[0])[hook](*(given[name] for name in arguments))
        if isinstance(answer, PreBindPreFlightResult) and answer.skip:
            return Status.skip()
        if answer is None or isinstance(answer, PreFilterResult | PreBindPreFlightResult):
            return Status.success()
        if not isinstance(answer, Status):
            raise TypeError(f"{hook} must return None or a Status, not {answer!r}")
        return answer

    def hint(self, pod: Pod, old: Named | None, new: Named | None, *, plugin: str = "") -> QueueingHint:
        """Return QUEUE if a change leads to another attempt of the rejected pod, else SKIP.

        An object was added (`old` is None), changed, or deleted (`new` is None); the events are derived from
        that as by the scheduler. `plugin` is the plugin that rejected the pod; by default any plugin of the
        harness.

        Raises:
            ValueError: both objects are None, or there is no plugin of this name.
            Exception: whatever the hint raises; for a scheduler that counts as QUEUE.
        """
        _check_given(pod)
        for argument, given in (("old", old), ("new", new)):
            if given is not None:
                _check_is(Named, argument, given, "an object of the API")
        if plugin and plugin not in self.framework.plugins:
            raise ValueError(f"plugin={plugin!r}: the harness has {', '.join(self.framework.plugins)}")
        happened = list(events_between(old, new))
        registered = self.framework.events_to_register()
        for name in [plugin] if plugin else self.framework.plugins:
            if name not in registered:
                # A plugin without subscriptions is retried on every event.
                return QueueingHint.QUEUE
            for each in registered[name]:
                if any(map(each.matches, happened)):
                    said = QueueingHint.QUEUE if each.hint is None else each.hint(pod, old, new)
                    if said is QueueingHint.QUEUE:
                        return said
        return QueueingHint.SKIP

    def reserve(self, pod: Pod, node_name: str) -> Status:
        _check_given(pod, node_name)
        return self.framework.run_reserve_plugins_reserve(self.state, pod, node_name)

    def unreserve(self, pod: Pod, node_name: str) -> None:
        """Run unreserve. Raise AssertionError if the plugin raises, since unreserve can't fail."""
        _check_given(pod, node_name)
        for failure in self.framework.run_reserve_plugins_unreserve(self.state, pod, node_name):
            raise AssertionError(failure.message) from failure.error

    def permit(self, pod: Pod, node_name: str) -> Status:
        _check_given(pod, node_name)
        return self.framework.run_permit_plugins(self.state, pod, node_name)

    def pre_enqueue(self, pod: Pod) -> Status:
        _check_given(pod)
        return self.framework.run_pre_enqueue_plugins(pod)

    def pre_bind_pre_flight(self, pod: Pod, node_name: str) -> Status:
        _check_given(pod, node_name)
        return self.framework.run_pre_bind_pre_flights(self.state, pod, node_name)

    def pre_bind(self, pod: Pod, node_name: str) -> Status:
        _check_given(pod, node_name)
        return self.framework.run_pre_bind_plugins(self.state, pod, node_name)

    def bind(self, pod: Pod, node_name: str) -> Status:
        _check_given(pod, node_name)
        return self.framework.run_bind_plugins(self.state, pod, node_name)

    def post_bind(self, pod: Pod, node_name: str) -> None:
        """Run post_bind. Raise AssertionError if the plugin raises, since post_bind can't fail."""
        _check_given(pod, node_name)
        for failure in self.framework.run_post_bind_plugins(self.state, pod, node_name):
            raise AssertionError(failure.message) from failure.error
