"""Two gangs of which only one has room, without and with Coscheduling: `python gangs.py`."""

from __future__ import annotations

from kschedfw_coscheduling import POD_GROUP_LABEL, Coscheduling, PodGroup, PodGroupSpec

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    ObjectMeta,
    Pod,
    Profile,
    Registry,
    Scheduler,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.testing import FakeClock

SIZE = 3
GANGS = ("left", "right")


def new_cluster() -> InMemoryCluster:
    """Two nodes with room for four pods in all, and two gangs of three whose pods come in turns."""
    cluster = InMemoryCluster(make_node(name).capacity(cpu=2, memory="8Gi").build() for name in ("n1", "n2"))
    for gang in GANGS:
        cluster.add(PodGroup(ObjectMeta(name=gang, namespace="default"), PodGroupSpec(min_member=SIZE)))
    for number in range(SIZE):
        for gang in GANGS:
            member = make_pod(f"{gang}-{number}").labels({POD_GROUP_LABEL: gang})
            cluster.add(member.requests(cpu="1", memory="1Gi").build())
    return cluster


def gang_profile() -> Profile:
    """The default profile, in which Coscheduling sorts the queue in PrioritySort's place, and takes part last."""
    others = [plugin for plugin in default_profile().multi_point if plugin.name != "PrioritySort"]
    return Profile([*others, EnabledPlugin("Coscheduling")])


def members(cluster: InMemoryCluster, gang: str) -> list[Pod]:
    return [pod for pod in cluster.list(Pod) if pod.labels[POD_GROUP_LABEL] == gang]


def show(title: str, cluster: InMemoryCluster) -> None:
    print(f"{title}:")
    for gang in GANGS:
        pods = members(cluster, gang)
        running = [f"{pod.name} on {pod.node_name}" for pod in pods if pod.node_name]
        print(
            f"  {gang}: {len(running)} of {len(pods)} run" + (f" ({', '.join(running)})" if running else "")
        )
        pending = next((pod for pod in pods if not pod.node_name), None)
        if pending is not None:
            print(f"    {pending.name} is pending: {pending.status.conditions[0].message}")


def main() -> None:
    cluster = new_cluster()
    Scheduler(cluster, clock=FakeClock()).run_until_idle()
    show("The default profile", cluster)

    registry = Registry()
    registry.register(Coscheduling)  # not needed where it is installed: the registry finds its entry point
    cluster, clock = new_cluster(), FakeClock()
    scheduler = Scheduler(cluster, [gang_profile()], registry=registry, clock=clock)
    scheduler.run_until_idle()
    show("With Coscheduling", cluster)

    for pod in members(cluster, "left"):
        cluster.delete(pod)
    clock.advance(10)  # backoff is over
    scheduler.run_until_idle()
    show("When left has finished", cluster)


if __name__ == "__main__":
    main()
