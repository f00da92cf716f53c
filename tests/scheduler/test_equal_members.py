"""Equal members of a group get the nodes, and the answers, that they get one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import attrs
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from kschedfw import (
    FeatureGates,
    InMemoryCluster,
    Pod,
    Scheduler,
    WhatIf,
    make_node,
    make_pod,
    make_pod_group,
)
from kschedfw.api import DeviceClass, ObjectMeta, PodGroup, group_key
from kschedfw.api.builders import PodBuilder
from kschedfw.api.containers import ResourceRequirements
from kschedfw.api.devices import DeviceClassSpec
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.quantity import Quantity
from kschedfw.config import default_profile
from kschedfw.explain.as_json import group_as_json
from kschedfw.framework.groups import GroupPlacement
from kschedfw.framework.metrics import NoMetrics
from kschedfw.scheduler.groups import PlacementResult, equal_members
from kschedfw.scheduler.groups.algorithm import GroupAlgorithm
from kschedfw.scheduler.groups.equal_members import EqualMembers
from kschedfw.scheduler.select import FirstByNameSelector, pick_of
from kschedfw.testing.clock import FakeClock
from kschedfw.testing.properties import examples

_turns = pytest.importorskip("kschedfw.scheduler.groups._turns", reason="needs the extra fast")
np = pytest.importorskip("numpy")

GATES = ["GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"]
GPU = "nvidia.com/gpu"
IGNORING = {"ignoredResources": [GPU]}


class Counts(NoMetrics):
    """Counts what is told of members."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()

    def scheduling_algorithm(self, seconds: float) -> None:
        self.told["algorithm"] += 1

    def preemption_attempt(self) -> None:
        self.told["preemption"] += 1


def with_pod_level_requests(builder: PodBuilder, **requests: str) -> Pod:
    pod = builder.build()
    amounts = {name: Quantity.parse(amount) for name, amount in requests.items()}
    resources = ResourceRequirements(requests=FrozenDict(amounts))
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, resources=resources))


def world(seed: int, *, alike: bool = False) -> InMemoryCluster:
    """A random cluster with one or two groups, some of whose members are equal; `alike` if all of a group's are.

    Members that are alike have their group's priority, which v1.37 demands.
    """
    random = Random(seed)
    cluster = InMemoryCluster()
    for i in range(random.randrange(1, 9)):
        node = make_node(f"n{i}").capacity(
            cpu=random.randrange(1, 9), memory=f"{random.randrange(1, 17)}Gi", pods=random.choice([2, 110])
        )
        if random.random() < 0.7:
            node = node.capacity({GPU: random.choice([1, 8]), "hugepages-2Mi": "8Mi"})
        if random.random() < 0.9:
            node = node.labels(rack=f"r{random.randrange(3)}")
        if random.random() < 0.2:
            node = node.taint("maintenance")
        cluster.add(node.build())
        for j in range(random.randrange(3)):
            pod = make_pod(f"old-{i}-{j}").requests(cpu=random.choice(["500m", "1"])).node(f"n{i}")
            if random.random() < 0.2:
                pod = pod.requests({GPU: 1})
            cluster.add(pod.labels(app=random.choice("ab")).priority(random.randrange(3)).build())
    if random.random() < 0.1:
        spec = DeviceClassSpec(extended_resource_name=GPU)
        cluster.add(DeviceClass(ObjectMeta(name="gpus"), spec))
    for name in ("g", "h")[: random.randrange(1, 3)]:
        priority = random.randrange(3)
        group = make_pod_group(name).priority(priority)
        count = random.randrange(1, 12)
        if random.random() < 0.8:
            group = group.gang(min_count=random.randrange(1, count + 1))
        if random.random() < 0.6:
            group = group.topology("rack")
        cluster.add(group.build())
        kinds = [
            {"cpu": random.choice(["100m", "1", "3"]), "memory": random.choice(["1", "2Gi"])}
            for _ in range(1 if alike else random.randrange(1, 4))
        ]
        if random.random() < 0.6:
            for kind in random.sample(kinds, random.randrange(1, len(kinds) + 1)):
                kind |= random.choice([{GPU: "1"}, {GPU: "2"}, {GPU: "8", "hugepages-2Mi": "2Mi"}])
        special = random.choice(["port", "affinity", "pod level", *[""] * 6])
        for i in range(count):
            member = make_pod(f"{name}-{i}").group(name).labels(app=random.choice("ab"))
            member = member.requests(random.choice(kinds)).priority(priority if alike else 0)
            if special == "port":
                member = member.host_port(80)
            elif special == "affinity":
                member = member.pod_affinity("rack", {"app": "a"}, weight=50)
            elif special == "pod level":
                cluster.add(with_pod_level_requests(member, cpu="3500m", memory="2Gi"))
                continue
            cluster.add(member.build())
    return cluster


def told_by(seed: int, gates: FeatureGates, percentage: int) -> object:
    """Everything that shows of the cycles of a random cluster's groups."""
    cluster = world(seed, alike=gates.version != "1.36" and seed % 5 != 0)
    metrics, clock, draws = Counts(), FakeClock(), Random(seed)
    profile = default_profile(feature_gates=gates)
    if seed % 7 == 0:
        profile = attrs.evolve(profile, args={**profile.args, "NodeResourcesFit": IGNORING})
    scheduler = Scheduler(
        cluster,
        [profile],
        feature_gates=gates,
        clock=clock,
        metrics=metrics,
        random=draws,
        percentage_of_nodes_to_score=percentage,
        selector=FirstByNameSelector() if seed % 3 == 0 else None,
    )
    for _ in range(3):
        scheduler.run_until_idle()
        clock.advance(30)
    pods = {
        pod.name: (
            pod.node_name,
            pod.status.nominated_node_name,
            [each.message for each in pod.status.conditions],
        )
        for pod in cluster.list(Pod)
    }
    groups = {group.name: group.status for group in cluster.list(PodGroup)}
    return pods, groups, metrics.told, draws.random()


@settings(max_examples=examples(60))
@given(
    st.integers(0, 2**32),
    st.sampled_from(
        [
            *(FeatureGates.of(*GATES[:number]) for number in (4, 3, 2, 1)),
            *(FeatureGates(dict.fromkeys(gates, True), "1.37") for gates in (GATES[:1], GATES[::2])),
        ]
    ),
    st.sampled_from([0, 100]),
)
def test_equal_members_fare_as_one_by_one(seed: int, gates: FeatureGates, percentage: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_members, "_FEWEST_MEMBERS", 1)
        patch.setattr(equal_members, "_FEWEST_TRIALS", 1)
        tried: list[GroupPlacement] = []
        on_each = EqualMembers.on_each

        def noted(trials: EqualMembers, placements: Sequence[GroupPlacement]) -> list[PlacementResult]:
            tried.extend(placements)
            return on_each(trials, placements)

        patch.setattr(EqualMembers, "on_each", noted)
        together = told_by(seed, gates, percentage)
        patch.setattr(EqualMembers, "of", lambda *_, **__: None)
        event(f"together: {bool(tried)}")
        assert together == told_by(seed, gates, percentage)


def explained_by(seed: int, gates: Sequence[str], *, preempt: bool) -> object:
    """What is explained of a random cluster's groups, after one of which the other is scheduled."""
    what_if = WhatIf(world(seed), feature_gates=FeatureGates.of(*gates), seed=seed)
    found: list[object] = []
    with what_if.transaction() as trial:
        for name in dict.fromkeys(map(group_key, what_if.pending)):
            members = [pod for pod in what_if.pending if group_key(pod) == name]
            found.append(group_as_json(trial.explain_group(members, preempt=preempt)))
            found.append([each.node_name for each in trial.schedule(members, preempt=preempt).placed])
    return found


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32), st.sampled_from([GATES, GATES[:3], GATES[:2]]), st.booleans())
# Two nodes lack equally much of a resource, and have different statuses.
@example(20708, GATES, False)
def test_equal_members_are_explained_as_one_by_one(seed: int, gates: Sequence[str], preempt: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_members, "_FEWEST_MEMBERS", 1)
        patch.setattr(equal_members, "_FEWEST_TRIALS", 1)
        together = explained_by(seed, gates, preempt=preempt)
        patch.setattr(EqualMembers, "of", lambda *_, **__: None)
        assert together == explained_by(seed, gates, preempt=preempt)


def test_members_with_a_node_are_tried_together_where_a_group_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [make_node(f"n{i}").capacity(cpu=4, memory="8Gi", pods=110).build() for i in range(300)]
    members = [make_pod(f"g-{i}").requests(cpu=3, memory="1Gi").group("g").build() for i in range(301)]
    group = make_pod_group("g").gang(min_count=301).build()
    what_if = WhatIf([*nodes, group, *members], feature_gates=FeatureGates.of(*GATES))
    monkeypatch.setattr(GroupAlgorithm, "_try", lambda *_, **__: pytest.fail("tried one by one"))
    with what_if.transaction() as trial:
        (placement,) = trial.explain_group(what_if.pending).placements
    (refused,) = placement.refused
    assert placement.placed == 300
    assert refused.decision is not None
    assert next(refused.decision.closest()).obstacles == (0, 2 / 3)


@pytest.mark.parametrize(("version", "names"), [("1.36", GATES), ("1.37", GATES[:1])])
def test_equal_members_are_tried_together_in_each_version(
    version: str, names: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, each took a search of its own under v1.37."""
    cluster = InMemoryCluster(make_node(f"n{i}").capacity(cpu=4, memory="8Gi").build() for i in range(300))
    cluster.add(make_pod_group("g").gang(min_count=40).build())
    for i in range(41):
        cluster.add(make_pod(f"g-{i}").requests(cpu=3, memory="1Gi").group("g").build())
    monkeypatch.setattr(GroupAlgorithm, "_try", lambda *_, **__: pytest.fail("tried one by one"))
    Scheduler(cluster, feature_gates=FeatureGates(dict.fromkeys(names, True), version)).schedule_one()
    assert sum(bool(pod.node_name) for pod in cluster.list(Pod)) == 41


@pytest.mark.parametrize("kind", ["gpu", "huge pages", "pod level"])
def test_members_that_request_more_than_cpu_and_memory_are_tried_together(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = {"gpu": {GPU: "8"}, "huge pages": {"hugepages-2Mi": "4Mi"}, "pod level": {}}[kind]
    gates = FeatureGates.of(*GATES)
    cluster = InMemoryCluster(
        make_node(f"n{i}").capacity({"cpu": 64, "memory": "1Ti", GPU: 8, "hugepages-2Mi": "4Mi"}).build()
        for i in range(300)
    )
    cluster.add(make_pod_group("g").gang(min_count=40).build())
    for i in range(40):
        member = make_pod(f"g-{i}").requests({"cpu": 1, "memory": "1Gi", **asks}).group("g")
        cluster.add(with_pod_level_requests(member, cpu="33") if kind == "pod level" else member.build())
    monkeypatch.setattr(GroupAlgorithm, "_try", lambda *_, **__: pytest.fail("tried one by one"))

    assert Scheduler(cluster, feature_gates=gates).schedule_one()

    assert len({pod.node_name for pod in cluster.list(Pod) if pod.node_name}) == 40


@pytest.mark.parametrize("seed", range(3))
def test_draws_are_those_of_pythons_generator(seed: int) -> None:
    random, other = Random(seed), Random(seed)
    words = np.array(other.getstate()[1], dtype=np.int64)
    for count in range(1, 700):
        assert _turns.pick(count, words) == pick_of(count, random)
    assert tuple(words.tolist()) == random.getstate()[1]
