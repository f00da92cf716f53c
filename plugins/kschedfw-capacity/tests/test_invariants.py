"""What must be true of every cluster with elastic quotas, whatever happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_capacity import CapacityScheduling, ElasticQuota, ElasticQuotaSpec
from tests.scenes import NAMESPACES, node, pod, quota, resources, scheduler_of, used_by_namespace

from kschedfw import InMemoryCluster, NodeToStatus, Pod, Status
from kschedfw.testing import FakeClock, FrameworkHarness
from kschedfw.testing.properties import examples

WITH_QUOTA = NAMESPACES[:2]

bounds = st.tuples(st.integers(0, 8), st.integers(0, 10))
"""Min and max; of a min above the max, the max is guaranteed."""
pods = st.tuples(st.sampled_from(NAMESPACES), st.integers(1, 4), st.integers(0, 2))
"""Namespace, CPUs and priority."""


def guaranteed(quotas: Mapping[str, tuple[int, int]], namespace: str) -> int:
    return min(quotas[namespace])


def objects(quotas: Mapping[str, tuple[int, int]]) -> list[ElasticQuota]:
    return [quota(namespace, least, most) for namespace, (least, most) in quotas.items()]


class Watched:
    """A cluster in which every binding and every preemption is checked as it happens."""

    def __init__(self, quotas: Mapping[str, tuple[int, int]]) -> None:
        self.quotas = dict(quotas)
        self.cluster = InMemoryCluster([*objects(quotas), node("x", 6), node("y", 6)])
        self.clock = FakeClock()
        self.scheduler = scheduler_of(self.cluster, self.clock)
        self.made = 0

    def settle(self) -> None:
        for _ in range(4):
            while True:
                before = {each.key: each for each in self.cluster.list(Pod)}
                if not self.scheduler.schedule_one():
                    break
                self.check_one_attempt(before)
            self.clock.advance(20)
            self.scheduler.tick()

    def check_one_attempt(self, before: Mapping[str, Pod]) -> None:
        after = {each.key: each for each in self.cluster.list(Pod)}
        used = used_by_namespace(before.values())
        victims = [before[key] for key in before.keys() - after.keys()]
        if victims:
            self.check_victims(victims, after, used)
        for key, each in after.items():
            if each.node_name and not before[key].node_name and each.namespace in self.quotas:
                self.check_bound(each.namespace, used_by_namespace(after.values()))

    def check_bound(self, namespace: str, used: Mapping[str, int]) -> None:
        assert used[namespace] <= self.quotas[namespace][1], "over max"
        together = sum(used[each] for each in self.quotas)
        assert together <= sum(map(min, self.quotas.values())), "more than there is to lend"

    def check_victims(
        self, victims: Sequence[Pod], after: Mapping[str, Pod], used: Mapping[str, int]
    ) -> None:
        (message,) = {
            each.message
            for each in self.cluster.events
            if each.reason == "Preempted" and each.regarding in {victim.key for victim in victims}
        }
        (preemptor,) = (each for each in after.values() if f"Preempted by pod {each.uid} on" in message)
        # Pods that have preempted others and wait for these to go have the first claim to the quota.
        first = [
            each
            for each in after.values()
            if each.status.nominated_node_name
            and each.key != preemptor.key
            and each.namespace == preemptor.namespace
            and each.priority >= preemptor.priority
        ]
        for namespace in {each.namespace for each in victims}:
            theirs = [each for each in victims if each.namespace == namespace]
            assert_fair(preemptor, theirs, used, self.quotas, claimed=sum(map(cpus, first)))


def cpus(pod: Pod) -> int:
    return pod.requests.amounts.milli_cpu // 1000


def assert_fair(
    preemptor: Pod,
    victims: Sequence[Pod],
    used: Mapping[str, int],
    quotas: Mapping[str, tuple[int, int]],
    claimed: int = 0,
) -> None:
    """The victims, all of one namespace, may be preempted for that pod; others of its namespace claimed so much."""
    namespace = victims[0].namespace
    if preemptor.namespace in quotas:
        wanted = used[preemptor.namespace] + claimed + cpus(preemptor)
        takes_back = wanted <= guaranteed(quotas, preemptor.namespace)
        assert takes_back == (namespace != preemptor.namespace)
    else:
        takes_back = False
        assert namespace not in quotas
    if takes_back:
        # Up to the last of them, the namespace borrows.
        left = used[namespace] - sum(map(cpus, victims)) + max(map(cpus, victims))
        assert left > guaranteed(quotas, namespace), "taken from who kept to its min"
    else:
        assert all(victim.priority < preemptor.priority for victim in victims)


@pytest.mark.parametrize("most", [5, 10])
def test_who_has_preempted_has_the_first_claim_to_what_his_namespace_takes_back(most: int) -> None:
    watched = Watched({"a": (0, 3), "b": (7, most)})
    for name, cpu in (("a/1", 1), ("a/2", 1), ("a/3", 1), ("b/4", 4)):
        watched.cluster.add(pod(name, cpu))
    watched.settle()
    for name, cpu in (("b/5", 1), ("b/6", 3)):
        watched.cluster.add(pod(name, cpu, priority=1))
    watched.settle()
    used = used_by_namespace(watched.cluster.list(Pod))
    assert used["b"] <= min(7, most)


@settings(max_examples=examples(300))
@given(st.data())
def test_quotas_hold_at_every_binding_and_preemption_is_fair(data: st.DataObject) -> None:
    watched = Watched({namespace: data.draw(bounds) for namespace in WITH_QUOTA})
    for _ in range(data.draw(st.integers(1, 6))):
        match data.draw(st.sampled_from(["pods", "pods", "pods", "delete", "quota"])):
            case "pods":
                for namespace, cpu, priority in data.draw(st.lists(pods, min_size=1, max_size=5)):
                    watched.made += 1
                    watched.cluster.add(pod(f"{namespace}/{watched.made}", cpu, priority=priority))
            case "delete" if there := watched.cluster.list(Pod):
                watched.cluster.delete(data.draw(st.sampled_from(there)))
            case "quota":
                namespace = data.draw(st.sampled_from(WITH_QUOTA))
                least, most = watched.quotas[namespace] = data.draw(bounds)
                present = watched.cluster.get(ElasticQuota, f"{namespace}/quota")
                assert present is not None
                spec = ElasticQuotaSpec(resources({"cpu": least}), resources({"cpu": most}))
                watched.cluster.update(attrs.evolve(present, spec=spec))
        watched.settle()


@settings(max_examples=examples(500))
@given(
    st.tuples(bounds, bounds),
    st.lists(st.tuples(pods, st.sampled_from("xy")), min_size=2, max_size=8),
    pods,
)
def test_a_plan_is_fair_makes_room_and_takes_nobody_in_vain(
    both: tuple[tuple[int, int], tuple[int, int]],
    running: Sequence[tuple[tuple[str, int, int], str]],
    waiting: tuple[str, int, int],
) -> None:
    quotas = dict(zip(WITH_QUOTA, both, strict=True))
    there = [
        pod(f"{namespace}/{i}", cpu, priority=priority, on=where)
        for i, ((namespace, cpu, priority), where) in enumerate(running)
    ]
    capacity = {"x": 6, "y": 3}
    made = FrameworkHarness(
        CapacityScheduling,
        "NodeResourcesFit",
        nodes=[node(name, cpu) for name, cpu in capacity.items()],
        pods=there,
        objects=objects(quotas),
    )
    namespace, cpu, priority = waiting
    preemptor = pod(f"{namespace}/waiting", cpu, priority=priority)

    def fits(pods: Sequence[Pod], where: str) -> bool:
        used = used_by_namespace([*pods, pod(f"{namespace}/there", cpu, on=where)])
        on_node = sum(cpus(each) for each in pods if each.node_name == where)
        if namespace in quotas and not (
            used[namespace] <= quotas[namespace][1]
            and sum(used[each] for each in quotas) <= sum(map(min, quotas.values()))
        ):
            return False
        return on_node + cpu <= capacity[where]

    expected = {name for name in capacity if fits(there, name)}
    verdicts = made.filter(preemptor)
    assert {name for name, status in verdicts.items() if status.is_success} == expected
    if expected:
        return
    refused = NodeToStatus(dict.fromkeys(capacity, Status.unschedulable("full")))
    plugin = made.framework.plugins["CapacityScheduling"]
    assert isinstance(plugin, CapacityScheduling)
    for candidate in plugin.plan(made.state, preemptor, refused).candidates:
        victims = candidate.victims.pods
        keys = {each.key for each in victims}
        left = [each for each in there if each.key not in keys]
        assert fits(left, candidate.node_name), "not enough"
        for spared in victims:
            assert not fits([*left, spared], candidate.node_name), "in vain"
        for theirs in {each.namespace for each in victims}:
            of_theirs = [each for each in victims if each.namespace == theirs]
            assert_fair(preemptor, of_theirs, used_by_namespace(there), quotas)
