"""A whole scheduler with the plugin, over a cluster in memory and a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from kschedfw_coscheduling import POD_GROUP_LABEL, Coscheduling, PodGroup, PodGroupSpec

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    Node,
    ObjectMeta,
    Plugin,
    Pod,
    Profile,
    Registry,
    Scheduler,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.api import Named
from kschedfw.testing import FakeClock

ATTEMPTS = 2_000
"""More than any test needs; a scheduler that makes as many at one time will never come to rest."""


def group(name: str, min_member: int, **spec: object) -> PodGroup:
    return PodGroup(ObjectMeta(name=name, namespace="default"), PodGroupSpec(min_member, **spec))  # type: ignore[arg-type]


def node(name: str, cpu: int) -> Node:
    return make_node(name).capacity(cpu=cpu, memory="64Gi").build()


def pod(name: str, gang: str = "", *, cpu: int = 1, priority: int = 0) -> Pod:
    builder = make_pod(name).requests(cpu=str(cpu)).priority(priority)
    return (builder.labels({POD_GROUP_LABEL: gang}) if gang else builder).build()


def gang(name: str, size: int, *, cpu: int = 1) -> list[Pod]:
    return [pod(f"{name}-{i}", name, cpu=cpu) for i in range(size)]


def profile(*others: str, args: dict[str, object] | None = None, after: Iterable[str] = ()) -> Profile:
    """The default one, in which Coscheduling sorts the queue and takes part after all others but those `after` it."""
    default = [each for each in default_profile().multi_point if each.name != "PrioritySort"]
    return Profile(
        [*default, *map(EnabledPlugin, (*others, "Coscheduling", *after))],
        args={"Coscheduling": args or {}},
    )


class Stage:
    def __init__(
        self,
        *objects: Named,
        plugins: Iterable[type[Plugin]] = (),
        after: Iterable[type[Plugin]] = (),
        args: dict[str, object] | None = None,
    ) -> None:
        registry = Registry()
        registry.register(Coscheduling)
        for plugin in (*plugins, *after):
            registry.register(plugin)
        self.cluster = InMemoryCluster(objects)
        self.clock = FakeClock(1000.0)
        self.scheduler = Scheduler(
            self.cluster,
            [profile(*(each.name for each in plugins), args=args, after=[each.name for each in after])],
            registry=registry,
            clock=self.clock,
            random=Random(0),
        )

    def run(self, *objects: Named, after: float = 0.0) -> int:
        """Let time pass, add objects, and schedule until there is nothing to do at this time."""
        self.clock.advance(after)
        for obj in objects:
            self.cluster.add(obj)
        attempts = 0
        self.scheduler.tick()
        while self.scheduler.schedule_one():
            attempts += 1
            assert attempts < ATTEMPTS, "it goes round in circles"
            self.scheduler.tick()
        return attempts

    def pod(self, name: str) -> Pod:
        found = self.cluster.get(Pod, f"default/{name}")
        assert found is not None
        return found

    def bound(self, gang: str = "") -> set[str]:
        """The names of the bound pods, of the gang or of all."""
        return {
            each.name
            for each in self.cluster.list(Pod)
            if each.node_name and (not gang or each.labels.get(POD_GROUP_LABEL) == gang)
        }

    def waiting(self) -> list[str]:
        (framework,) = self.scheduler.frameworks.values()
        return [waiting.pod.name for waiting in framework.waiting_pods]

    def message(self, name: str) -> str:
        """What the pod's condition says of why it isn't scheduled."""
        (condition,) = (each for each in self.pod(name).status.conditions if each.type == "PodScheduled")
        return condition.message
