"""Evaluates the plugins of a profile for requests of the extender protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, NoReturn, TypeVar

import attrs

from kschedfw import (
    MAX_EXTENDER_PRIORITY,
    MAX_NODE_SCORE,
    Clock,
    Code,
    CycleState,
    ExtensionPoint,
    Framework,
    InMemoryCluster,
    NodeInfo,
    NodeSelection,
    Parallelizer,
    Parts,
    Pod,
    Profile,
    Registry,
    Status,
    SystemClock,
    not_left_over,
)
from kschedfw.api import ManifestError, pod_from_manifest
from kschedfw.cluster import Cluster
from kschedfw_kubernetes.extender_server.errors import AbandonedError, EvaluationError, RequestError
from kschedfw_kubernetes.extender_server.state import ClusterState, SentNodes
from kschedfw_kubernetes.http_extender.go_json import Json, decode, manifest
from kschedfw_kubernetes.http_extender.wire import (
    ExtenderArgs,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    FilterResult,
    HostPriorityList,
    MetaVictims,
)

_KEPT_POD_BYTES: Final = 64 << 10
UNKNOWN_NODE: Final = "node(s) not known to the extender"


ResultT = TypeVar("ResultT")


@attrs.frozen(eq=False)
class _Question:
    """The pod and the nodes of a request. `unknown` has names of nodes that aren't in the cluster."""

    pod: Pod
    nodes: NodeSelection
    unknown: Sequence[str] = ()


@attrs.frozen(eq=False)
class _Verdicts:
    """The names of the nodes that pass, in the request's order, and the reasons why others don't."""

    passed: Sequence[str]
    refused: Mapping[str, Status]


class _Interruptible(Parallelizer):
    """A parallelizer that stops before the next piece of work if the client has disconnected."""

    def __init__(self, parallelism: int) -> None:
        super().__init__(parallelism)
        self.abandoned = threading.Event()
        """The event of the request that is being answered."""

    def check(self) -> None:
        """Raise AbandonedError if the client no longer waits."""
        if self.abandoned.is_set():
            raise AbandonedError

    def map_until(
        self, pieces: int, work: Callable[[int], ResultT], enough: Callable[[ResultT], bool]
    ) -> list[ResultT]:
        def checked(piece: int) -> ResultT:
            self.check()
            return work(piece)

        return super().map_until(pieces, checked, enough)


class Evaluator:
    """An evaluator of requests, one at a time. Thread-safe.

    A caller may set the event `abandoned`; then the call raises AbandonedError, after the hook that is running.

    Raises the errors of `Framework`.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        registry: Registry | None = None,
        cluster: Cluster | None = None,
        parallelism: int = 1,
        max_nodes: int = 1 << 16,
        clock: Clock | None = None,
    ) -> None:
        self._knows_cluster = cluster is not None
        self._max_nodes = max_nodes
        self._parallelizer = _Interruptible(parallelism)
        self._framework = Framework(
            Registry() if registry is None else registry,
            profile,
            Parts(
                InMemoryCluster() if cluster is None else cluster,
                clock=SystemClock() if clock is None else clock,
                parallelizer=self._parallelizer,
            ),
        )
        weights = map(profile.weight, self._framework.plugins_at(ExtensionPoint.SCORE))
        self._highest_total = MAX_NODE_SCORE * sum(weights)
        self._state = ClusterState(cluster, self._framework.handle.snapshot)
        self._sent = SentNodes()
        self._lock = threading.Lock()

    def filter(self, args: ExtenderArgs, abandoned: threading.Event | None = None) -> FilterResult:
        """Return the nodes that pass, in the form in which they were sent.

        Raises:
            RequestError: the request is invalid.
            EvaluationError: a plugin failed.
            AbandonedError: the event was set.
        """
        with self._turn(abandoned):
            question = self._question(args)
            verdicts = self._verdicts(question)
            # Read the names before the next request may rewrite the snapshot's table, whose rows the nodes are.
            names = question.nodes.names
        unresolvable = dict.fromkeys(question.unknown, UNKNOWN_NODE)
        failed: dict[str, str] = {}
        for name, status in verdicts.refused.items():
            where = unresolvable if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else failed
            where[name] = status.message
        if args.nodes is None:
            return FilterResult(None, tuple(verdicts.passed), failed, unresolvable)
        passed = set(verdicts.passed)
        sent = zip(names, args.nodes, strict=True)
        return FilterResult([json for name, json in sent if name in passed], None, failed, unresolvable)

    def prioritize(self, args: ExtenderArgs, abandoned: threading.Event | None = None) -> HostPriorityList:
        """Return the nodes' weighted scores, scaled from 0–100 to 0–10; 0 for unknown nodes.

        Raises:
            RequestError: the request is invalid.
            EvaluationError: a plugin failed.
            AbandonedError: the event was set.
        """
        with self._turn(abandoned):
            question = self._question(args)
            totals = self._totals(question)
            # Read the names before the next request may rewrite the snapshot's table, whose rows the nodes are.
            names = question.nodes.names
        known = zip(names, self._priorities(totals), strict=True)
        return HostPriorityList((*known, *((name, 0) for name in question.unknown)))

    def preempt(
        self, args: ExtenderPreemptionArgs, abandoned: threading.Event | None = None
    ) -> ExtenderPreemptionResult:
        """Return the candidates on which the pod passes the filters without the victims.

        Raises:
            RequestError: the request is invalid, or there is no cluster to look the nodes up in.
            EvaluationError: a plugin failed.
            AbandonedError: the event was set.
        """
        victims = _victims(args)
        if not self._knows_cluster:
            raise RequestError(
                "requests for preemption don't have the nodes, and this extender knows no cluster"
            )
        pod = _read_pod(args.pod)
        with self._turn(abandoned):
            self._state.show()
            agreed = self._agreed(pod, {name: set(each.uids) for name, each in victims.items()})
        return ExtenderPreemptionResult({name: each for name, each in victims.items() if name in agreed})

    def close(self) -> None:
        """Stop following the cluster, and end the framework's threads."""
        self._state.close()
        self._framework.close()

    @contextmanager
    def _turn(self, abandoned: threading.Event | None) -> Iterator[None]:
        """Hold the lock during one request. Raise AbandonedError if its client no longer waits."""
        with self._lock:
            self._parallelizer.abandoned = threading.Event() if abandoned is None else abandoned
            self._parallelizer.check()
            yield

    # During a request's turn

    def _question(self, args: ExtenderArgs) -> _Question:
        count = len(args.nodes or args.node_names or ())
        if count > self._max_nodes:
            raise RequestError(f"there are {count} nodes; at most {self._max_nodes} may be asked about")
        pod, snapshot = _read_pod(args.pod), self._framework.handle.snapshot
        if args.nodes is not None:
            sent = [self._read_node(index, json) for index, json in enumerate(args.nodes)]
            self._state.show(sent)
            table = snapshot.table
            return _Question(pod, NodeSelection.named(table, [info.name for info in sent]))
        if args.node_names is None:
            raise RequestError("neither Nodes nor NodeNames is there")
        if not self._knows_cluster:
            raise RequestError(
                "NodeNames is of no use here, since this extender knows no cluster: "
                "configure it with nodeCacheCapable: false"
            )
        self._state.show()
        table = snapshot.table
        names = dict.fromkeys(args.node_names)
        unknown: list[str] = []
        # Usually all are known: one comparison of sets is faster than a look-up per name.
        if not names.keys() <= table.rows.keys():
            unknown = [name for name in names if name not in table.rows]
            for name in unknown:
                del names[name]
        return _Question(pod, NodeSelection.named(table, names), unknown)

    def _read_node(self, index: int, json: Json) -> NodeInfo:
        self._parallelizer.check()
        return self._sent.info(json, index)

    def _verdicts(self, question: _Question) -> _Verdicts:
        framework, state, nodes = self._framework, CycleState(), question.nodes
        left_over, status, narrowing = framework.run_pre_filter_plugins(state, question.pod)
        if not status.is_success:
            if not status.is_rejected:
                _fail(status)
            return _Verdicts((), dict.fromkeys(nodes.names, status))
        refused: dict[str, Status] = {}
        if left_over is not None:
            names = nodes.names
            excluded = not_left_over(narrowing)
            refused = {name: excluded for name in names if name not in left_over.node_names}
            nodes = NodeSelection.named(nodes.table, [name for name in names if name not in refused])
        self._parallelizer.check()
        found = framework.filter_nodes(state, question.pod, nodes)
        if found.error is not None:
            _fail(found.error)
        return _Verdicts(found.feasible.names, refused | dict(found.refused))

    def _checked(self, pieces: int, check: Callable[[int], Status]) -> Sequence[Status]:
        """Return the status of each node. An error ends the checks."""
        statuses = self._parallelizer.map_until(pieces, check, lambda status: status.code is Code.ERROR)
        if statuses and statuses[-1].code is Code.ERROR:
            _fail(statuses[-1])
        return statuses

    def _totals(self, question: _Question) -> Sequence[int]:
        framework, state, pod = self._framework, CycleState(), question.pod
        # kube-scheduler filters nodes before it requests priorities, so rejections don't matter here.
        _, status, _ = framework.run_pre_filter_plugins(state, pod)
        if status.code is Code.ERROR:
            _fail(status)
        self._parallelizer.check()
        status = framework.run_pre_score_plugins(state, pod, question.nodes)
        if not status.is_success:
            _fail(status)
        self._parallelizer.check()
        scores, status = framework.run_score_plugins(state, pod, question.nodes)
        if scores is None:
            _fail(status)
        return list(map(int, scores.totals))

    def _priorities(self, totals: Sequence[int]) -> Sequence[int]:
        """Return the scores, scaled such that the greatest possible total becomes 10, and rounded."""
        highest = self._highest_total
        if not highest:
            return [0] * len(totals)
        # Many nodes have the same score, so convert each distinct score only once.
        rounded = {
            total: (2 * total * MAX_EXTENDER_PRIORITY + highest) // (2 * highest) for total in set(totals)
        }
        return list(map(rounded.__getitem__, totals))

    def _agreed(self, pod: Pod, victims: Mapping[str, set[str]]) -> set[str]:
        framework, state = self._framework, CycleState()
        left_over, status, _ = framework.run_pre_filter_plugins(state, pod)
        if status.code is Code.ERROR:
            _fail(status)
        # No eviction helps such a pod.
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return set()
        snapshot = framework.handle.snapshot
        names = [
            name
            for name in victims
            if name in snapshot and (left_over is None or name in left_over.node_names)
        ]

        def check(index: int) -> Status:
            return self._without(state, pod, snapshot.get(names[index]), victims[names[index]])

        statuses = self._checked(len(names), check)
        return {name for name, status in zip(names, statuses, strict=True) if status.is_success}

    def _without(self, state: CycleState, pod: Pod, node_info: NodeInfo, victims: set[str]) -> Status:
        """Return the filters' status for the node without these pods. Some of them may be gone already."""
        # The snapshot's nodes and the state are shared by all candidates.
        state, info = state.clone(), node_info.clone()
        for victim in node_info.pods:
            if victim.pod.uid in victims:
                info.remove_pod(victim.pod)
                status = self._framework.run_pre_filter_remove_pod(state, pod, victim, info)
                if not status.is_success:
                    return status
        return self._framework.run_filter_plugins_with_nominated_pods(state, pod, info)


def _fail(status: Status) -> NoReturn:
    raise EvaluationError(status.message) from status.error


def _read_pod(json: Json) -> Pod:
    text = bytes(json)
    # Large pods aren't cached: 128 of them could take as much memory as requests may.
    return _decoded_pod(text) if len(text) <= _KEPT_POD_BYTES else _decoded_pod.__wrapped__(text)


@lru_cache(maxsize=128)
def _decoded_pod(json: bytes) -> Pod:
    """Return the decoded pod. It is cached, since there are two or three requests for each pod."""
    try:
        return pod_from_manifest(manifest(decode(json), "Pod"))
    except ManifestError as error:
        raise RequestError(f"Pod: {error}") from error


def _victims(args: ExtenderPreemptionArgs) -> Mapping[str, MetaVictims]:
    """Return the victims by uid, from either form of the request."""
    if args.meta_victims is not None:
        return args.meta_victims
    if args.victims is None:
        raise RequestError("neither NodeNameToVictims nor NodeNameToMetaVictims is there")
    return {
        name: MetaVictims(tuple(_read_pod(pod).uid for pod in each.pods), each.num_pdb_violations)
        for name, each in args.victims.items()
    }
