"""A plugin, a profile that enables it, and a scheduler that runs it: `python first_plugin.py`."""

from __future__ import annotations

from random import Random

from kschedfw import (
    Cache,
    CycleState,
    EnabledPlugin,
    FitError,
    Framework,
    GenericScheduler,
    InMemoryCluster,
    NodeInfo,
    Parts,
    Plugin,
    Pod,
    Profile,
    Registry,
    Snapshot,
    Status,
    default_profile,
    hookimpl,
    make_node,
    make_pod,
)

RACKS = "example.com/racks"
"""The pod annotation that lists racks, separated by commas. (The value of a label can't contain commas.)"""


class Rack(Plugin):
    """Keeps a pod in the racks that it lists, and prefers nodes with few pods."""

    name = "Rack"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        racks = pod.annotations.get(RACKS)
        if racks is not None and node_info.node.labels.get("rack") not in racks.split(","):
            # No pod has to leave for the node to come into another rack, so preemption can't help.
            return Status.unresolvable("node(s) were in the wrong rack")
        return None

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return max(0, 100 - len(node_info.pods))


NODES = [
    make_node("a1").labels(rack="a").capacity(cpu=4, memory="8Gi").build(),
    make_node("a2").labels(rack="a").capacity(cpu=4, memory="8Gi").build(),
    make_node("b1").labels(rack="b").capacity(cpu=16, memory="64Gi").build(),
]

PODS = [
    make_pod("anywhere").requests(cpu="2", memory="1Gi").build(),
    make_pod("web-1").annotations({RACKS: "a"}).requests(cpu="2", memory="1Gi").build(),
    make_pod("web-2").annotations({RACKS: "a"}).requests(cpu="3", memory="1Gi").build(),
    make_pod("web-3").annotations({RACKS: "a"}).requests(cpu="3", memory="1Gi").build(),
    make_pod("elsewhere").annotations({RACKS: "c,d"}).build(),
]


def main() -> None:
    registry = Registry()
    registry.register(Rack)
    profile = Profile([*default_profile().multi_point, EnabledPlugin("Rack", weight=2)])

    cluster, cache, snapshot = InMemoryCluster(NODES), Cache(), Snapshot()
    framework = Framework(registry, profile, Parts(cluster, snapshot=snapshot))
    scheduler = GenericScheduler(cache, snapshot, random=Random(1))
    for node in NODES:
        cache.add_node(node)

    for manifest in PODS:
        pod = cluster.add(manifest)  # the cluster gives it a uid
        state = CycleState()
        try:
            host = scheduler.schedule(framework, state, pod).suggested_host
        except FitError as error:
            print(f"{pod.name} is pending: {error}")
            continue
        cache.assume_pod(pod.bound_to(host))
        framework.run_bind_plugins(state, pod, host)
        print(f"{pod.name} runs on {host}")
    framework.close()


if __name__ == "__main__":
    main()
