"""A whole scheduler over an in-memory cluster, in one line, for the tests of what goes on around the algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from kschedfw import (
    ActionType,
    ClusterEvent,
    EventResource,
    InMemoryCluster,
    Node,
    Pod,
    PodInfo,
    Profile,
    Registry,
    Status,
    make_node,
    make_pod,
)
from kschedfw.api.meta import Named
from kschedfw.config import default_profile
from kschedfw.framework.extender import Extender
from kschedfw.framework.profile import EnabledPlugin, ExtensionPoint
from kschedfw.scheduler.bindings import BindingExecutor
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing import FakeClock
from tests.framework.support import PluginClass, answering, plugin


class LaterExecutor:
    """Keeps binding cycles until somebody runs them."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], None]] = []

    def submit(self, task: Callable[[], None]) -> None:
        self.tasks.append(task)

    def run(self) -> None:
        while self.tasks:
            self.tasks.pop(0)()


class Stage:
    """The default profile with some more plugins, which are asked first, and a cluster to play with."""

    def __init__(
        self,
        *plugins: PluginClass,
        nodes: Iterable[Node] = (),
        pods: Iterable[Pod] = (),
        cluster: InMemoryCluster | None = None,
        profiles: Sequence[Profile] | None = None,
        queue_sort: str = "PrioritySort",
        executor: BindingExecutor | None = None,
        extenders: Sequence[Extender] = (),
        assumed_pod_ttl: float = 0.0,
    ) -> None:
        registry = Registry()
        for each in plugins:
            registry.register(each, replace=True)
        self.cluster = InMemoryCluster() if cluster is None else cluster
        for obj in (*nodes, *pods):
            self.cluster.add(obj)
        self.clock = FakeClock(1000.0)
        self.scheduler = Scheduler(
            self.cluster,
            [with_default_plugins(*plugins, queue_sort=queue_sort)] if profiles is None else profiles,
            registry=registry,
            clock=self.clock,
            random=Random(0),
            executor=executor,
            extenders=extenders,
            assumed_pod_ttl=assumed_pod_ttl,
        )

    # Doing

    def add(self, *objects: Named) -> None:
        for obj in objects:
            self.cluster.add(obj)

    def delete(self, pod: str) -> None:
        self.cluster.delete(self.pod(pod))

    def run(self, *objects: Named, after: float = 0.0) -> int:
        """Let time pass, add objects, and schedule all there is to schedule; gives the number of attempts."""
        self.clock.advance(after)
        self.add(*objects)
        return self.scheduler.run_until_idle()

    # Looking

    def pod(self, name: str = "pod") -> Pod:
        found = self.cluster.get(Pod, f"default/{name}")
        assert found is not None
        return found

    def node_of(self, name: str = "pod") -> str:
        return self.pod(name).node_name

    def place(self, name: str = "pod") -> Place | None:
        return self.scheduler.queue.place(self.pod(name).uid)

    def condition(self, name: str = "pod") -> tuple[str, str, str]:
        """Status, reason and message of PodScheduled."""
        (found,) = (each for each in self.pod(name).status.conditions if each.type == "PodScheduled")
        return found.status, found.reason, found.message

    def events(self, name: str = "pod") -> list[tuple[str, str, str]]:
        """Type, reason and message of each event about the pod."""
        key = f"default/{name}"
        return [
            (each.type, each.reason, each.message) for each in self.cluster.events if each.regarding == key
        ]

    def in_cache(self) -> dict[str, set[str]]:
        """The names of the pods that the cache counts, by node; with a star if they are assumed."""
        dump = self.scheduler.cache.dump()
        found: dict[str, set[str]] = {}
        for each in dump.pods:
            found.setdefault(each.node_name, set()).add(each.name + "*" * (each.uid in dump.assumed))
        return found

    def waiting(self) -> list[str]:
        return [waiting.pod.name for waiting in self.scheduler.waiting_pods]

    def nominated(self, node: str) -> list[str]:
        infos: Sequence[PodInfo] = self.scheduler.nominator.nominated_pods_for_node(node)
        return [info.pod.name for info in infos]


def with_default_plugins(
    *plugins: PluginClass, queue_sort: str = "PrioritySort", scheduler_name: str = "default-scheduler"
) -> Profile:
    names = {each.name for each in plugins}
    default = [each for each in default_profile().multi_point if each.name not in names]
    return Profile(
        [*(EnabledPlugin(each.name) for each in plugins), *default],
        points={ExtensionPoint.QUEUE_SORT: (EnabledPlugin(queue_sort),)},
        scheduler_name=scheduler_name,
    )


NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)

_HOOKS = ("reserve", "unreserve", "permit", "pre_bind", "bind", "post_bind")


def witness(name: str, journal: list[str], **answers: object) -> PluginClass:
    """A plugin that writes down which of its hooks are called for whom; bind skips unless it is told otherwise.

    An answer that is an exception is raised; a list is used up one by one, and after that the hook answers as if it
    weren't told. Pods that it refuses are tried again when a node is added.
    """

    def hook(point: str) -> Callable[[Pod], object]:
        def call(pod: Pod) -> object:
            journal.append(f"{name}.{point} {pod.name}")
            default = Status.skip() if point == "bind" else None
            answer = answers.get(point, default)
            if isinstance(answer, list):
                answer = answer.pop(0) if answer else default
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return call

    return plugin(
        name, **{point: hook(point) for point in _HOOKS}, events_to_register=answering([NODE_ADDED])
    )


def node(name: str = "n", cpu: int = 4) -> Node:
    return make_node(name).capacity(cpu=cpu, memory="64Gi").build()


def pod(name: str = "pod", cpu: str = "1", *, priority: int = 0, on: str = "") -> Pod:
    builder = make_pod(name).requests(cpu=cpu).priority(priority)
    return (builder.node(on) if on else builder).build()
