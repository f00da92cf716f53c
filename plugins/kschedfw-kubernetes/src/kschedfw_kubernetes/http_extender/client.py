"""The client of one HTTP extender (kube-scheduler `HTTPExtender`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

from kschedfw import (
    Clock,
    ExtenderFilterResult,
    Node,
    NodeInfo,
    NodeNotFoundError,
    Pod,
    Snapshot,
    SystemClock,
)
from kschedfw.api import EMPTY, Named, to_manifest, wrapped
from kschedfw.config import ExtenderConfig, check_extenders, without_password
from kschedfw.preemption import Victims
from kschedfw_kubernetes.http_extender.errors import as_told
from kschedfw_kubernetes.http_extender.go_json import Json, WireError, encode
from kschedfw_kubernetes.http_extender.transport import Transport
from kschedfw_kubernetes.http_extender.wire import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    FilterResult,
    FullVictims,
    HostPriorityList,
    MetaVictims,
    node_identity,
)

T = TypeVar("T")


class HTTPExtender:
    """A client of an extender over HTTP. Thread-safe; `close` it, or use it as a context manager.

    Every call raises ExtenderError if the extender can't be reached, is too slow, reports an error, or breaks the
    protocol.

    Raises:
        ExtenderConfigError: the configuration is invalid, or its certificates or keys can't be read.
    """

    def __init__(self, config: ExtenderConfig, *, clock: Clock | None = None) -> None:
        check_extenders([config])
        self.config = config
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._nodes = NodesAsSent()
        self._transport = Transport(config, SystemClock() if clock is None else clock)

    # Properties

    @property
    def name(self) -> str:
        """The extender's URL prefix, without a password."""
        return without_password(self.config.url_prefix)

    @property
    def weight(self) -> int:
        return self.config.weight

    @property
    def is_filter(self) -> bool:
        return bool(self.config.filter_verb)

    @property
    def is_prioritizer(self) -> bool:
        return bool(self.config.prioritize_verb)

    @property
    def is_binder(self) -> bool:
        return bool(self.config.bind_verb)

    @property
    def supports_preemption(self) -> bool:
        return bool(self.config.preempt_verb)

    @property
    def is_ignorable(self) -> bool:
        return self.config.ignorable

    @property
    def is_closed(self) -> bool:
        return self._transport.is_closed

    def is_interested(self, pod: Pod) -> bool:
        """Return whether a container or init container names a resource of the extender.

        True if the extender manages none.
        """
        if not self._managed:
            return True
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        return any(
            not self._managed.isdisjoint(names)
            for container in containers
            for names in (container.resources.requests, container.resources.limits)
        )

    # Calls

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> ExtenderFilterResult:
        """Return the nodes that the extender accepts, in its order, and the reasons for the others."""
        verb = self.config.filter_verb
        if not verb:
            return ExtenderFilterResult(nodes, EMPTY, EMPTY)
        result = self._ask(verb, self._args(pod, nodes).write(), FilterResult.read)
        if result.error:
            raise self._transport.error(verb, result.error)
        by_name = {info.name: info for info in nodes}
        feasible = []
        for name in self._names(verb, result):
            if name not in by_name:
                raise self._transport.error(
                    verb, f'it claims a filtered node "{name}" which is not found in the input node list'
                )
            feasible.append(by_name[name])
        return ExtenderFilterResult(feasible, *map(_reasons, (result.failed, result.failed_and_unresolvable)))

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        """Return the sum of the priorities of each node, an int64. Nodes that the extender left out are missing."""
        verb = self.config.prioritize_verb
        if not verb:
            return {info.name: 0 for info in nodes}
        answer = self._ask(verb, self._args(pod, nodes).write(), HostPriorityList.read)
        totals: dict[str, int] = {}
        for host, priority in answer.priorities:
            # Go's int64 wraps around.
            totals[host] = wrapped(totals.get(host, 0) + priority)
        return totals

    def process_preemption(
        self, pod: Pod, victims_by_node: Mapping[str, Victims], snapshot: Snapshot | None = None
    ) -> Mapping[str, Victims]:
        verb = self.config.preempt_verb
        if not verb:
            raise self._transport.error("preemption", "the extender has no preempt verb")
        body = self._preemption_args(pod, victims_by_node).write()
        answer = self._ask(verb, body, ExtenderPreemptionResult.read)
        return {
            node: Victims(
                tuple(self._victims(verb, node, meta.uids, victims_by_node, snapshot)),
                meta.num_pdb_violations,
            )
            for node, meta in answer.meta_victims.items()
        }

    def bind(self, pod: Pod, node_name: str) -> None:
        verb = self.config.bind_verb
        if not verb:
            raise self._transport.error("binding", "the extender has no bind verb")
        body = ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, node_name).write()
        result = self._ask(verb, body, ExtenderBindingResult.read)
        if result.error:
            raise self._transport.error(verb, result.error)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Requests and answers

    def _ask(self, verb: str, body: bytes, read: Callable[[bytes], T]) -> T:
        answer = self._transport.post(verb, body)
        try:
            return read(answer)
        except WireError as error:
            raise self._transport.error(verb, f"the answer is malformed: {error}") from error

    def _args(self, pod: Pod, nodes: Sequence[NodeInfo]) -> ExtenderArgs:
        if self.config.node_cache_capable:
            return ExtenderArgs(pod_as_sent(pod), node_names=tuple(info.name for info in nodes))
        return ExtenderArgs(pod_as_sent(pod), nodes=self._nodes.write([info.node for info in nodes]))

    def _names(self, verb: str, result: FilterResult) -> Iterable[str]:
        """Return the names of the nodes that pass.

        `NodeNames` is only read from an extender with a cache, `Nodes` is always read.
        """
        if self.config.node_cache_capable and result.node_names is not None:
            return result.node_names
        try:
            return [
                node_identity(node, f"Nodes.items[{i}]").name for i, node in enumerate(result.nodes or ())
            ]
        except WireError as error:
            raise self._transport.error(verb, f"the answer is malformed: {error}") from error

    def _preemption_args(self, pod: Pod, victims_by_node: Mapping[str, Victims]) -> ExtenderPreemptionArgs:
        if self.config.node_cache_capable:
            meta = {
                node: MetaVictims(tuple(victim.uid for victim in victims.pods), victims.num_pdb_violations)
                for node, victims in victims_by_node.items()
            }
            return ExtenderPreemptionArgs(pod_as_sent(pod), meta_victims=meta)
        full = {
            node: FullVictims(tuple(map(pod_as_sent, victims.pods)), victims.num_pdb_violations)
            for node, victims in victims_by_node.items()
        }
        return ExtenderPreemptionArgs(pod_as_sent(pod), victims=full)

    def _victims(
        self,
        verb: str,
        node: str,
        uids: Iterable[str],
        victims_by_node: Mapping[str, Victims],
        snapshot: Snapshot | None,
    ) -> Iterator[Pod]:
        """Yield the victims on a node, found by their uids."""
        if snapshot is not None:
            try:
                known = {info.pod.uid: info.pod for info in snapshot.get(node).pods}
            except NodeNotFoundError as error:
                raise self._transport.error(verb, str(error)) from error
        elif node in victims_by_node:
            known = {victim.uid: victim for victim in victims_by_node[node].pods}
        else:
            raise self._transport.error(verb, f'it chose node "{node}", which was no candidate')
        for uid in uids:
            if uid not in known:
                raise self._transport.error(
                    verb, f'it claims to preempt a pod with uid "{uid}" on node "{node}", which has none such'
                )
            yield known[uid]


def _reasons(given: Mapping[str, str]) -> Mapping[str, str]:
    return {node: as_told(reason) for node, reason in given.items()}


def pod_as_sent(pod: Pod) -> Json:
    """Return the pod's JSON, with the defaults that the API server always fills in."""
    manifest = _as_sent(pod)
    spec: dict[str, Any] = manifest["spec"]
    spec.setdefault("schedulerName", pod.spec.scheduler_name)
    spec.setdefault("restartPolicy", str(pod.spec.restart_policy))
    spec.setdefault("preemptionPolicy", str(pod.spec.preemption_policy))
    spec.setdefault("priority", pod.priority)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        container.setdefault("resources", {})
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
    return Json(encode(manifest))


def _as_sent(obj: Named) -> dict[str, Any]:
    manifest = {"metadata": {}, "spec": {}, "status": {}, **to_manifest(obj)}
    # kube-scheduler's typed caches drop kind and apiVersion.
    del manifest["apiVersion"], manifest["kind"]
    return manifest


class NodesAsSent:
    """Encodes nodes as JSON, with a cache: nodes rarely change and are sent for every pod."""

    def __init__(self) -> None:
        # The cache is keyed by id, since comparing nodes costs as much as encoding them. It keeps the node so that its
        # id isn't reused.
        self._written: dict[int, tuple[Node, Json]] = {}

    def write(self, nodes: list[Node]) -> tuple[Json, ...]:
        if len(self._written) > 2 * len(nodes) + 1000:
            self._written = {}  # Start over: most cached nodes have changed since.
        return tuple(map(self._write, nodes))

    def _write(self, node: Node) -> Json:
        known = self._written.get(id(node))
        if known is None:
            # Two threads may encode the same node; either result is right.
            known = self._written[id(node)] = node, Json(encode(_as_sent(node)))
        return known[1]
