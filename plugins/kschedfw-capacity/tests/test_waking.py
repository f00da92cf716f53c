"""Pods that a quota kept out are tried again as soon as a new scheduler would place them."""

from __future__ import annotations

from random import Random

from hypothesis import event, example, given
from hypothesis import strategies as st
from kschedfw_capacity import CapacityScheduling, ElasticQuota
from tests.scenes import NAMESPACES, capacity_profile, node, pod, quota

from kschedfw import ActionType, EventResource, Pod, Registry
from kschedfw.testing.waking import Gap, Scene, Tally, Thing, Trial

PODS = 10


def random_scene(random: Random) -> Scene:
    """Nodes with room for most; quotas in two or three states; running pods that borrow, and fewer CPUs of them."""
    things: list[Thing] = [[node(name, cpu) for cpu in (16, 4)] for name in ("n", "m")]
    things += [[_quota(random, namespace) for _ in range(3)] for namespace in NAMESPACES[:2]]
    things += [_running(random, f"{random.choice(NAMESPACES)}/r{index}") for index in range(4)]
    waiting = [
        pod(f"{random.choice(NAMESPACES)}/w", random.randint(1, 5), priority=random.choice([0, 0, 10]))
        for _ in range(3)
    ]
    return Scene(things, waiting)


def _quota(random: Random, namespace: str) -> ElasticQuota:
    least = random.randint(0, 6)
    return quota(namespace, least, random.choice([None, least + random.randint(0, 4)]))


def _running(random: Random, key: str) -> list[Pod]:
    cpu, on = random.randint(1, 5), random.choice("nm")
    return [pod(key, amount, on=on) for amount in dict.fromkeys((cpu, 1))]


# Where room is short and victims come within reach, NodeResourcesFit has refused the pod, and nobody wakes it for them:
# a scheduler asks who filtered, not who preempts. With kube-scheduler's own preemption that is so, too.
GAPS = [
    Gap("NodeResourcesFit", resource, ActionType.ALL, "victims come within the reach of preemption")
    for resource in (ElasticQuota.kind, EventResource.ASSIGNED_POD)
]


def run_trial(seed: int) -> Tally:
    registry, random = Registry(), Random(seed)
    registry.register(CapacityScheduling)
    trial = Trial(random_scene(random), random, capacity_profile(), registry, GAPS)
    try:
        return trial.run(PODS)
    finally:
        trial.close()


@example(290167222)
@example(168)
@example(604)
@example(900702)
@given(st.integers(0, 2**32))
def test_a_pod_that_waited_is_placed_as_by_a_new_scheduler(seed: int) -> None:
    tally = run_trial(seed)
    share = 10 * tally.placeable // max(tally.cases, 1)
    event(f"{share}0 % and more of the refused pods fit after the change")


def test_at_least_a_third_of_the_refused_pods_fit_after_the_change() -> None:
    total = sum((run_trial(seed) for seed in range(20)), Tally())
    assert total.placeable >= total.cases / 3, str(total)
