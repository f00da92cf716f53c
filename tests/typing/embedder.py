"""A scheduler loop as an embedder would write it. Type-checked and run by tests."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from pathlib import Path
from random import Random

from kschedfw import (
    Cache,
    CycleState,
    EnabledPlugin,
    FitError,
    Framework,
    GenericScheduler,
    InMemoryCluster,
    Node,
    NoNodesAvailableError,
    Parallelizer,
    Parts,
    Pod,
    Profile,
    Registry,
    ScheduleResult,
    SchedulingError,
    Snapshot,
    default_profile,
    read_manifests,
)
from kschedfw.cluster import T
from tests.typing.plugin_author import Rack, RackArgs


class Counting(InMemoryCluster):
    """A cluster with a method that returns a list: in this class `list` is the method."""

    def list(self, kind: type[T], namespace: str | None = None) -> Sequence[T]:
        return super().list(kind, namespace)

    def bound(self) -> builtins.list[str]:
        return [pod.key for pod in self.list(Pod) if pod.node_name]


class Loop:
    """Places pending pods one after the other."""

    def __init__(self, cluster: InMemoryCluster, *, seed: int = 0) -> None:
        self.cluster = cluster
        self.cache = Cache()
        for node in self.cluster.list(Node):
            self.cache.add_node(node)
        registry = Registry()
        registry.register(Rack)
        standard = default_profile()
        profile = Profile(
            [*standard.multi_point, EnabledPlugin("Rack", weight=2)],
            args={"Rack": RackArgs(most_per_rack=3)},
            percentage_of_nodes_to_score=100,
        )
        random, snapshot = Random(seed), Snapshot()
        self.framework = Framework(
            registry,
            profile,
            Parts(self.cluster, snapshot=snapshot, random=random, parallelizer=Parallelizer(4)),
        )
        self.scheduler = GenericScheduler(self.cache, snapshot, random=random)

    def place(self, pod: Pod) -> str | None:
        """The node's name, or None where the pod fits nowhere."""
        state = CycleState()
        try:
            result: ScheduleResult = self.scheduler.schedule(self.framework, state, pod)
        except NoNodesAvailableError:
            return None
        except FitError as error:
            self.cluster.record_event(pod, "Warning", "FailedScheduling", str(error))
            return None
        except SchedulingError as error:
            raise RuntimeError(f"{error.status.plugin} failed") from error
        host = result.suggested_host
        self.cache.assume_pod(pod.bound_to(host))
        status = self.framework.run_reserve_plugins_reserve(state, pod, host)
        if not status.is_success:
            self.cache.forget_pod(pod.bound_to(host))
            return None
        bound = self.framework.run_bind_plugins(state, pod, host)
        return host if bound.is_success else None

    def run(self) -> dict[str, str | None]:
        pending = [pod for pod in self.cluster.list(Pod) if not pod.node_name]
        return {pod.key: self.place(pod) for pod in pending}


def run_files(*paths: Path) -> dict[str, str | None]:
    manifests = read_manifests(*paths)
    for problem in manifests.problems:
        print(problem)  # noqa: T201
    return Loop(InMemoryCluster(manifests.objects(skip_invalid=True))).run()
