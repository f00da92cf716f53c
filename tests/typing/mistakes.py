"""Mistakes that the type checker must find: each is marked, and a mark without its mistake is an error in strict mode.

Mistakes in what hooks are called, take and return are in hook_mistakes.py: kschedfw's plugin for mypy finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kschedfw import (
    Cache,
    Code,
    CycleState,
    Framework,
    GenericScheduler,
    Handle,
    InMemoryCluster,
    Node,
    NodeInfo,
    Parts,
    Plugin,
    Pod,
    Profile,
    Registry,
    Snapshot,
    StateKey,
    Status,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.cluster import T
from tests.typing.plugin_author import Rack, RackArgs

COUNT = StateKey[int]("Mistaken.count")


class Mistaken(Plugin[RackArgs]):
    name = 7  # type: ignore[assignment]
    args_type = RackArgs

    def __init__(self, args: RackArgs, handle: Handle) -> None:
        super().__init__(handle, args)  # type: ignore[arg-type]

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        rack: str = state.read(COUNT)  # type: ignore[assignment]
        state.write(COUNT, rack)  # type: ignore[misc]
        self.args.lable  # type: ignore[attr-defined]  # noqa: B018
        self.handle.random_generator  # type: ignore[attr-defined]  # noqa: B018
        node_info.node.metadata.name = rack  # type: ignore[misc]
        node_info.node.labels["rack"] = rack  # type: ignore[index, assignment]
        node_info.node.labels.update(rack=rack)  # type: ignore[arg-type]
        del node_info.node.labels["rack"]  # type: ignore[arg-type]
        return Status.unschedulable(7)  # type: ignore[arg-type]

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return "high"  # type: ignore[return-value]


class Shadowed(InMemoryCluster):
    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        return super().list(kind, namespace)

    def bound(self) -> list[str]:  # type: ignore[valid-type]
        return [pod.key for pod in self.list(Pod) if pod.node_name]


def embed(registry: Registry, cluster: InMemoryCluster) -> None:
    registry.register(str)  # type: ignore[type-var]
    registry.register(Rack(RackArgs(), None))  # type: ignore[type-var, arg-type]
    Profile(7)  # type: ignore[arg-type]
    Profile(["Rack"], points={"score": 7})  # type: ignore[dict-item]
    Framework(registry, Profile())  # type: ignore[call-arg]
    Framework(registry, Profile(), Parts("minikube"))  # type: ignore[arg-type]
    GenericScheduler(Cache(), Snapshot(), Random(0))  # type: ignore[call-arg]
    cluster.get(str, "name")  # type: ignore[type-var]
    node: Node = cluster.get(Node, "name")  # type: ignore[assignment]
    make_pod().capacity(cpu=1)  # type: ignore[attr-defined]
    make_node(node)  # type: ignore[arg-type]
    Status(Code.UNSCHEDULABLE).code = Code.SUCCESS  # type: ignore[misc]
