"""A solver as the last resort: as few pods as can be move for those that fit nowhere: `python repack.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np
import numpy.typing as npt
import scipy.optimize  # type: ignore[import-untyped]  # it has no types

from kschedfw import InMemoryCluster, Node, Pod, Scheduler, WhatIf, make_node, make_pod
from kschedfw.testing import FakeClock

Amounts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

STAYS = "example.com/stays"
"""The label of pods that may not be moved."""


@attrs.frozen
class Plan:
    """The nodes of pods that get a place, and of those that move for them, by key."""

    placed: Mapping[str, str]
    moved: Mapping[str, str]


def plan(cluster: InMemoryCluster) -> Plan:
    """Return the plan that places the most pending pods, and of those one that moves the fewest pods.

    The solver knows of each node's CPU, memory and number of pods. Everything else that kube-scheduler asks of a node
    and a pod is asked beforehand, of a copy of the cluster without the pods that may move.
    """
    nodes = [node.name for node in cluster.list(Node)]
    pending = [pod for pod in cluster.list(Pod) if not pod.node_name]
    movable = [pod for pod in cluster.list(Pod) if pod.node_name and STAYS not in pod.labels]
    pods = [*pending, *movable]
    staying = [pod for pod in cluster.list(Pod) if pod.node_name and STAYS in pod.labels]
    room = np.array([_room(cluster, name, staying) for name in nodes])
    at = _solved(
        size=np.array([_size(pod) for pod in pods]),
        room=room,
        allowed=_allowed(cluster, pods, movable, nodes),
        homes=[nodes.index(pod.node_name) if pod.node_name else None for pod in pods],
    )
    chosen = {pod.key: nodes[row] for pod, row in zip(pods, at, strict=True) if row is not None}
    return Plan(
        {pod.key: chosen[pod.key] for pod in pending if pod.key in chosen},
        {pod.key: chosen[pod.key] for pod in movable if chosen[pod.key] != pod.node_name},
    )


def _size(pod: Pod) -> tuple[int, int, int]:
    amounts = pod.requests.amounts
    return amounts.milli_cpu, amounts.memory, 1


def _room(cluster: InMemoryCluster, name: str, staying: Sequence[Pod]) -> Amounts:
    """Return the CPU, memory and number of pods that the pods that stay leave."""
    node = cluster.get(Node, name)
    assert node is not None
    there = node.status.allocatable
    taken = np.array([_size(pod) for pod in staying if pod.node_name == name] or [(0, 0, 0)])
    offered = np.array([there["cpu"].milli_value(), there["memory"].value(), there["pods"].value()])
    left: Amounts = offered - taken.sum(axis=0)
    return left


def _allowed(
    cluster: InMemoryCluster, pods: Sequence[Pod], movable: Sequence[Pod], nodes: Sequence[str]
) -> Mask:
    """Return which pod all filters let onto which node, shape (pods, nodes)."""
    with WhatIf(cluster) as what_if, what_if.transaction() as emptied:
        emptied.delete(*movable)
        feasible = [set(emptied.can_schedule(pod.bound_to("")).nodes) for pod in pods]
    return np.array([[name in found for name in nodes] for found in feasible])


def _solved(*, size: Amounts, room: Amounts, allowed: Mask, homes: Sequence[int | None]) -> list[int | None]:
    """Return a row of `room` for each pod, or None.

    A variable for each pair of pod and node is 1 if the pod goes there. A pod without a place costs more than all
    moves together, and a move costs 1. HiGHS proves that there is nothing cheaper.
    """
    count, rows = allowed.shape
    home: Mask = np.array([[row == at for row in range(rows)] for at in homes])
    has_home: Mask = np.array([at is not None for at in homes])
    gain = np.where(has_home[:, None], home.astype(float), float(count + 1))
    per_pod = np.kron(np.eye(count), np.ones(rows))
    per_amount = np.concatenate([np.kron(amounts, np.eye(rows)) for amounts in size.T])
    found = scipy.optimize.milp(
        -gain.ravel(),
        integrality=np.ones(count * rows),
        bounds=scipy.optimize.Bounds(0, (allowed | home).ravel().astype(float)),
        constraints=[
            # A pod has one place; one that runs keeps one, or no plan would be worth it.
            scipy.optimize.LinearConstraint(per_pod, has_home.astype(float), np.ones(count)),
            scipy.optimize.LinearConstraint(per_amount, -np.inf, room.T.ravel().astype(float)),
        ],
    )
    places = found.x.reshape(count, rows).round().astype(bool)
    return [int(row.argmax()) if row.any() else None for row in places]


def nominated(cluster: InMemoryCluster, found: Plan) -> list[Pod]:
    """Return the plan's pods without a node, each with the plan's as its nominated node.

    kube-scheduler tries a pod's nominated node first, and keeps its room from pods of the same and of lower priority.
    """
    made = []
    for key, node in {**found.moved, **found.placed}.items():
        pod = cluster.get(Pod, key)
        assert pod is not None
        status = attrs.evolve(pod.status, nominated_node_name=node)
        made.append(attrs.evolve(pod.bound_to(""), status=status))
    return made


def works(cluster: InMemoryCluster, found: Plan) -> bool:
    """Tell whether kube-scheduler places the pods as planned: the solver knows no spreading, ports and volumes."""
    pods = nominated(cluster, found)
    with WhatIf(cluster) as what_if, what_if.transaction() as trial:
        trial.delete(*pods)
        schedule = trial.schedule(pods)
    return {each.pod.key: each.node_name for each in schedule.placed} == {**found.moved, **found.placed}


def carry_out(cluster: InMemoryCluster, found: Plan) -> None:
    """Delete the pods that move and make them anew, as their controllers would, and nominate the nodes of all."""
    for pod in nominated(cluster, found):
        node = pod.status.nominated_node_name
        if pod.key in found.placed:
            cluster.patch_pod_status(pod, nominated_node_name=node)
            continue
        cluster.delete(pod)
        anew = attrs.evolve(pod.metadata, uid=f"{pod.uid}-again", resource_version="")
        cluster.add(attrs.evolve(pod, metadata=anew))


def cluster_with_gaps() -> InMemoryCluster:
    """Three nodes of 8 CPUs, each with 3 left; 6 are wanted in one piece, and 1 on a node that there isn't."""
    nodes = [make_node(name).capacity(cpu=8, memory="32Gi", pods=110).build() for name in "abc"]
    sizes = {"web": 2, "batch": 2, "cron": 1}
    running = [
        make_pod(f"{name}-{node}").uid(f"{name}-{node}").requests(cpu=cpu, memory="1Gi").node(node)
        for node in "abc"
        for name, cpu in sizes.items()
    ]
    kept = [each.labels({STAYS: "yes"}) if index < 3 else each for index, each in enumerate(running)]
    pending = [
        make_pod("database").requests(cpu=6, memory="8Gi").build(),
        make_pod("lost").requests(cpu=1).node_selector(zone="far").build(),
    ]
    return InMemoryCluster([*nodes, *(each.build() for each in kept), *pending])


def lines(cluster: InMemoryCluster) -> Iterator[str]:
    for node in cluster.list(Node):
        pods = sorted(pod.name for pod in cluster.list(Pod) if pod.node_name == node.name)
        yield f"  {node.name}: {', '.join(pods)}"
    yield f"  no place: {', '.join(pod.name for pod in cluster.list(Pod) if not pod.node_name)}"


def main() -> None:
    cluster, clock = cluster_with_gaps(), FakeClock()
    scheduler = Scheduler(cluster, clock=clock)
    scheduler.run_until_idle()
    print("what the scheduler finds a place for", *lines(cluster), sep="\n")
    found = plan(cluster)
    print("the solver's plan")
    for what, pods in (("moves", found.moved), ("places", found.placed)):
        print(*(f"  {what} {key} to {node}" for key, node in pods.items()), sep="\n")
    if not works(cluster, found):
        raise SystemExit("kube-scheduler would place them otherwise")
    carry_out(cluster, found)
    clock.advance(60)
    scheduler.run_until_idle()
    print("after it", *lines(cluster), sep="\n")
    scheduler.close()


if __name__ == "__main__":
    main()
