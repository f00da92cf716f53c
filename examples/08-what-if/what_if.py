"""How many nodes of which shape would the pending pods need? `python what_if.py`"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kschedfw import InMemoryCluster, Node, Pod, Profile, Scheduler, default_profile, make_node, make_pod
from kschedfw.cluster import WatchEvent
from kschedfw.testing import FakeClock


@dataclass(frozen=True)
class Shape:
    """What an autoscaler can add, and what one costs per hour, in cents."""

    name: str
    cents: int
    cpu: int
    memory: str
    taint: str = ""

    def nodes(self, count: int) -> list[Node]:
        return [self._node(number) for number in range(1, count + 1)]

    def _node(self, number: int) -> Node:
        builder = make_node(f"{self.name}-{number}").capacity(cpu=self.cpu, memory=self.memory)
        return (builder.taint(self.taint) if self.taint else builder).build()


SHAPES = [
    Shape("small", 20, cpu=4, memory="16Gi"),
    Shape("compute", 35, cpu=8, memory="16Gi"),
    Shape("memory", 50, cpu=8, memory="64Gi"),
    Shape("large", 55, cpu=16, memory="64Gi"),
    Shape("spot", 15, cpu=8, memory="64Gi", taint="example.com/spot"),
]

# Nobody is to be evicted: the question is what the pods need beside those that run.
PROFILE = Profile([plugin for plugin in default_profile().multi_point if plugin.name != "DefaultPreemption"])


def copy_of(cluster: InMemoryCluster) -> InMemoryCluster:
    """A cluster of its own with the same objects: they are values, so both can have them."""
    events: list[WatchEvent] = []
    cluster.watch(events.append)()  # a watch begins with all that is there; this one ends with it
    return InMemoryCluster(event.object for event in events)


def with_nodes(cluster: InMemoryCluster, nodes: Sequence[Node]) -> InMemoryCluster:
    """What would become of the cluster, had it these nodes, too."""
    copy = copy_of(cluster)
    for node in nodes:
        copy.add(node)
    Scheduler(copy, [PROFILE], clock=FakeClock()).run_until_idle()
    return copy


def pending(cluster: InMemoryCluster) -> list[Pod]:
    return [pod for pod in cluster.list(Pod) if not pod.node_name]


def smallest_count(cluster: InMemoryCluster, shape: Shape) -> int | None:
    """How many nodes of the shape are enough; None if not even as many as there are pods."""
    counts = range(1, len(pending(cluster)) + 1)
    return next((count for count in counts if not pending(with_nodes(cluster, shape.nodes(count)))), None)


def new_cluster() -> InMemoryCluster:
    """Two nodes, the pods that run on them, and some for which there isn't room any more."""
    cluster = InMemoryCluster(make_node(name).capacity(cpu=4, memory="16Gi").build() for name in ("n1", "n2"))
    for name in ("n1", "n2"):
        cluster.add(make_pod(f"web-{name}").requests(cpu="3", memory="4Gi").node(name).build())
    for name in ("api-1", "api-2", "api-3"):
        api = make_pod(name).labels(app="api").pod_anti_affinity("kubernetes.io/hostname", {"app": "api"})
        cluster.add(api.requests(cpu="2", memory="2Gi").build())
    for name in ("cache-1", "cache-2"):
        cluster.add(make_pod(name).requests(cpu="1", memory="12Gi").build())
    for name in ("etl-1", "etl-2"):
        cluster.add(make_pod(name).requests(cpu="7", memory="8Gi").build())
    return cluster


def main() -> None:
    cluster = new_cluster()
    before = cluster.resource_version
    waiting = pending(with_nodes(cluster, []))
    print(f"As it is, {len(waiting)} of {len(pending(cluster))} pods stay pending.")

    offers: list[tuple[int, int, Shape]] = []
    for shape in SHAPES:
        left = pending(with_nodes(cluster, shape.nodes(1)))
        count = smallest_count(cluster, shape)
        print(f"{shape.name}: with one more, {len(left)} stay pending; ", end="")
        if count is not None:
            print(f"{count} are enough, for {count * shape.cents} cents per hour")
            offers.append((count * shape.cents, count, shape))
        else:
            never = pending(with_nodes(cluster, shape.nodes(len(waiting))))
            print(f"no number is enough for {', '.join(pod.name for pod in never)}")
            print(f"  {never[0].name}: {never[0].status.conditions[0].message}")

    cents, count, cheapest = min(offers, key=lambda offer: offer[:2])
    print(f"Cheapest is {count} × {cheapest.name}, for {cents} cents per hour:")
    after = with_nodes(cluster, cheapest.nodes(count))
    for node in after.list(Node):
        print(
            f"  {node.name}: {', '.join(pod.name for pod in after.list(Pod) if pod.node_name == node.name)}"
        )
    print(f"Writes to the cluster meanwhile: {cluster.resource_version - before}")


if __name__ == "__main__":
    main()
