"""A simulation as a Gymnasium environment: an agent decides, and the scheduler does everything else."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kschedfw_lab.environment import (
    ID,
    ActionError,
    Environment,
    Transition,
    WorkloadError,
    pods_bound,
)
from kschedfw_lab.environment.observation import Observer, Units

from kschedfw import CycleState, GenericScheduler, Scheduler, make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.workloads import Namespace
from kschedfw.cluster import Cluster, InMemoryCluster
from kschedfw.config import default_profile
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.registry import Registry
from kschedfw.simulator import Arrivals, Simulation
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters

REGISTRY = Registry()  # one for all: finding plugins takes longer than an episode
Kind = Literal["nodes", "weights"]
KINDS: tuple[Kind, ...] = ("nodes", "weights")


def day(seed: int, *, nodes: int = 4, pods: int = 12) -> list[Named]:
    """Small and large nodes, pods of some sizes, one of them too large for every node."""
    random = Random(seed)
    made: list[Named] = [
        make_node(f"node-{i}").capacity(cpu=4 if i % 2 else 8, memory="16Gi").build() for i in range(nodes)
    ]
    for i in range(pods):
        cpu = 100 if i == 5 else random.choice([1, 2, 3])
        made.append(make_pod(f"pod-{i}").requests(cpu=cpu, memory="1Gi").build())
    return made


def play(environment: Environment, seed: int, act: Callable[[Environment], Any]) -> float:
    """Play an episode to its end; returns the sum of the rewards."""
    environment.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, _ = environment.step(act(environment))
        total, ended = total + reward, terminated or truncated
    return total


def places(cluster: Cluster) -> dict[str, str]:
    return {pod.key: pod.node_name for pod in cluster.list(Pod)}


@pytest.mark.parametrize("actions", KINDS)
def test_gymnasium_finds_nothing_wrong(actions: Kind) -> None:
    made = gymnasium.make(f"kschedfw_lab.environment:{ID}", workload=day, actions=actions)
    check_env(made.unwrapped)  # its warnings are errors here


def test_gymnasium_makes_it_by_its_id() -> None:
    made = gymnasium.make(f"kschedfw_lab.environment:{ID}", workload=day, max_episode_steps=3)
    made.reset(seed=1)
    ends = [made.step(made.get_wrapper_attr("scheduler_action")())[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


class TestObservations:
    def test_shares_of_what_nodes_have_and_the_pod_wants(self) -> None:
        objects = [
            make_node("large").capacity({"example.com/gpu": 2}, cpu=8, memory="16Gi", pods=10).build(),
            make_node("small").capacity(cpu=4, memory="16Gi", pods=10).build(),
            make_pod("first").requests(cpu=2, memory="4Gi").build(),
            make_pod("second").requests({"example.com/gpu": 1}, cpu=8).build(),
            make_pod("third").build(),
        ]
        environment = Environment(objects, nodes=3)
        assert environment.resources == ("cpu", "memory", "pods", "example.com/gpu")
        observation, info = environment.reset(seed=1)
        assert environment.node_names == ("large", "small")
        assert info["pod"] == "default/first"
        np.testing.assert_allclose(observation["pod"], np.array([0.25, 0.25, 0.1, 0.0]))
        np.testing.assert_allclose(
            observation["capacity"], np.array([[1, 1, 1, 1], [0.5, 1, 1, 0], [0, 0, 0, 0]])
        )
        np.testing.assert_allclose(observation["free"], np.array([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0]]))
        assert observation["feasible"].tolist() == [1, 1, 0]
        observation, _, _, _, info = environment.step(1)
        np.testing.assert_allclose(
            observation["free"], np.array([[1, 1, 1, 1], [0.5, 0.75, 0.9, 0], [0, 0, 0, 0]])
        )
        assert (info["node"], info["pod"]) == ("small", "default/second")
        assert observation["feasible"].tolist() == [1, 0, 0]
        np.testing.assert_array_equal(environment.action_masks(), [True, False, False])
        np.testing.assert_array_equal(info["action_mask"], [1, 0, 0])

    def test_they_stay_as_they_were(self) -> None:
        environment = Environment(day)
        first, _ = environment.reset(seed=1)
        before = {name: array.copy() for name, array in first.items()}
        environment.step(environment.scheduler_action())
        for name, array in before.items():
            np.testing.assert_array_equal(first[name], array)

    def test_at_the_end_there_is_no_pod(self) -> None:
        environment = Environment([make_node("node").capacity(cpu=1).build(), make_pod("pod").build()])
        environment.reset(seed=1)
        observation, reward, terminated, truncated, info = environment.step(0)
        assert (reward, terminated, truncated, info["pod"], info["bound"]) == (1.0, True, False, "", 1)
        assert not observation["pod"].any()
        assert not observation["feasible"].any()


@settings(max_examples=examples(4))
@given(nodes=st.integers(1, 50), seed=st.integers(0, 99), growing=st.sets(st.integers(0, 20), max_size=3))
def test_shares_that_follow_the_changes_are_those_of_a_first_look(
    nodes: int, seed: int, growing: set[int]
) -> None:
    """Pods come and leave, and nodes grow at some steps."""
    environment = Environment(
        lambda seed: day(seed, nodes=nodes, pods=30),
        registry=REGISTRY,
        arrivals=Arrivals(rate=1, mean_duration=20),
    )
    observation, _ = environment.reset(seed=seed)
    random, ended, step = Random(seed), False, 0
    while not ended:
        if step in growing:
            larger = make_node(random.choice(environment.node_names)).capacity(cpu=32, memory="64Gi").build()
            cluster = environment.simulation.cluster
            assert isinstance(cluster, InMemoryCluster)
            cluster.update(larger)
        rows = environment.action_masks().nonzero()[0]
        observation, _, ended, _, _ = environment.step(random.choice(rows.tolist()))
        step += 1
        table = environment.simulation.scheduler.snapshot.table
        first_look = Observer(table, Units.of(table, nodes, environment.resources))
        np.testing.assert_array_equal(observation["free"], first_look.free())


def feasible_nodes(cluster: Cluster, pod: Pod) -> set[str]:
    """The nodes on which the filters, asked node by node by a scheduler of their own, let the pod pass."""
    objects = [obj for kind in (Namespace, Node, Pod) for obj in cluster.list(kind)]
    scheduler = Scheduler(
        InMemoryCluster(objects),
        registry=REGISTRY,
        evaluation=Evaluation.SCALAR,
        percentage_of_nodes_to_score=100,
        idle=True,
    )
    scheduler.cache.update_snapshot(scheduler.snapshot)
    assert isinstance(scheduler.algorithm, GenericScheduler)
    framework = scheduler.frameworks[pod.spec.scheduler_name]
    found, _ = scheduler.algorithm.find_nodes_that_fit_pod(framework, CycleState(), pod)
    return set(found.names)


@given(clusters(most_nodes=5, most_pending=4), st.randoms(use_true_random=False))
@settings(max_examples=examples(25))
def test_the_mask_is_what_the_filters_say(cluster: DrawnCluster, random: Random) -> None:
    environment = Environment([*cluster.nodes, *cluster.bound, *cluster.pending], registry=REGISTRY)
    try:
        info = environment.reset(seed=1)[1]
    except WorkloadError:
        return  # no pod fits on any node
    ended = False
    while not ended:
        pod = environment.simulation.cluster.get(Pod, str(info["pod"]))
        assert pod is not None
        masked = environment.action_masks()
        legal = {environment.node_names[row] for row in masked.nonzero()[0].tolist()}
        assert legal == feasible_nodes(environment.simulation.cluster, pod)
        _, _, ended, _, info = environment.step(random.choice(masked.nonzero()[0].tolist()))


A_DAY = DrawnCluster(
    nodes=tuple(obj for obj in day(1) if isinstance(obj, Node)),
    bound=(),
    pending=tuple(obj for obj in day(1, pods=20) if isinstance(obj, Pod)),
)


@pytest.mark.parametrize("actions", KINDS)
@given(
    cluster=clusters(most_nodes=5, most_bound=2, most_pending=6),
    seed=st.integers(0, 9),
    comes_and_goes=st.booleans(),
)
@settings(max_examples=examples(25))
@example(cluster=A_DAY, seed=1, comes_and_goes=True)
def test_the_scheduler_s_own_choices_give_the_simulation(
    actions: Kind, cluster: DrawnCluster, seed: int, comes_and_goes: bool
) -> None:
    objects = [*cluster.nodes, *cluster.bound, *cluster.pending]
    arrivals = Arrivals(rate=0.1, mean_duration=30) if comes_and_goes else None
    simulation = Simulation(
        InMemoryCluster(objects),
        registry=REGISTRY,
        arrivals=arrivals,
        seed=seed,
        percentage_of_nodes_to_score=100,
    )
    simulation.run()
    environment = Environment(objects, actions=actions, arrivals=arrivals, registry=REGISTRY)
    try:
        play(environment, seed, lambda environment: environment.scheduler_action())
    except WorkloadError:
        assert simulation.ledger.bound == 0
    else:
        assert histories(environment.simulation) == histories(simulation)


def histories(simulation: Simulation) -> dict[str, object]:
    """Where each pod was and when, how often it was tried, and what became of it."""
    return {
        uid: (entry.node, entry.bound, entry.attempts, entry.gone, entry.preempted, entry.nodes)
        for uid, entry in simulation.ledger.entries.items()
    }


@pytest.mark.parametrize("actions", KINDS)
def test_the_same_seed_and_actions_give_the_same_episode(actions: Kind) -> None:
    def episode(seed: int) -> list[Any]:
        environment = Environment(day, actions=actions, arrivals=Arrivals(rate=1, mean_duration=5))
        environment.action_space.seed(3)
        seen: list[Any] = [environment.reset(seed=seed)]
        while not (len(seen[-1]) > 2 and seen[-1][2]):
            seen.append(environment.step(environment.action_space.sample()))
        return seen

    first, second = episode(1), episode(1)
    assert gymnasium.utils.env_checker.data_equivalence(first, second, exact=True)
    assert not gymnasium.utils.env_checker.data_equivalence(first, episode(2), exact=True)


def test_without_a_seed_the_generator_draws_the_next_episode() -> None:
    environment = Environment(day)
    assert environment.reset(seed=7)[1]["seed"] == 7
    drawn = [environment.reset()[1]["seed"] for _ in range(3)]
    assert len(set(drawn)) == 3
    environment.reset(seed=7)
    assert [environment.reset()[1]["seed"] for _ in range(3)] == drawn


class TestActions:
    def test_a_node_that_is_not_feasible_is_replaced_by_the_scheduler_s_choice(self) -> None:
        objects = [
            make_node("small").capacity(cpu=1).build(),
            make_node("large").capacity(cpu=4).build(),
            make_pod("pod").requests(cpu=2).build(),
        ]
        environment = Environment(objects, illegal_reward=-5.0)
        environment.reset(seed=1)
        _, reward, terminated, _, info = environment.step(0)
        assert (reward, terminated, info["node"], info["illegal"]) == (-5.0, True, "large", True)
        assert places(environment.simulation.cluster)["default/pod"] == "large"

    @pytest.mark.parametrize("action", [-1, 4, 1.5, "0", None, np.array([0, 1])])
    def test_what_is_no_row_is_refused(self, action: Any) -> None:
        environment = Environment(day)
        environment.reset(seed=1)
        with pytest.raises(ActionError, match=r"^the action must be"):
            environment.step(action)

    @pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
    def test_what_is_no_share_is_refused(self, weight: float) -> None:
        environment = Environment(day, actions="weights")
        environment.reset(seed=1)
        action = np.full(len(environment.score_plugins), weight, dtype=np.float32)
        with pytest.raises(ActionError, match=r"^the action must be \d numbers from 0 to 1"):
            environment.step(action)
        with pytest.raises(ActionError):
            environment.step(action[1:])

    def test_weights_decide(self) -> None:
        registry = Registry()
        registry.register(First)
        registry.register(Last)
        profile = Profile(
            [*default_profile().multi_point, EnabledPlugin("First", 1), EnabledPlugin("Last", 1)]
        )
        environment = Environment(
            lambda seed: day(seed, pods=3), actions="weights", profile=profile, registry=registry
        )
        nodes = []
        for favourite in ("First", "Last"):
            environment.reset(seed=1)
            weights = [1.0 if name == favourite else 0.01 for name in environment.score_plugins]
            nodes.append(environment.step(np.array(weights, dtype=np.float32))[4]["node"])
        assert nodes == ["node-0", "node-3"]

    def test_there_is_no_mask_for_weights(self) -> None:
        environment = Environment(day, actions="weights")
        assert "action_mask" not in environment.reset(seed=1)[1]
        with pytest.raises(ActionError):
            environment.action_masks()

    def test_another_kind_is_refused(self) -> None:
        with pytest.raises(ValueError, match="expected 'nodes' or 'weights', found 'pods'"):
            Environment(day, actions="pods")  # type: ignore[arg-type]


class First(Plugin):
    name = "First"

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return 100 if node_info.name == "node-0" else 0


class Last(Plugin):
    name = "Last"

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return 100 if node_info.name == "node-3" else 0


class Broken(Plugin):
    name = "Broken"

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        if pod.name == "pod-1":
            raise RuntimeError("no score")
        return 0


@pytest.mark.parametrize("actions", KINDS)
def test_a_plugin_that_fails_to_score_fails_the_pod_and_not_the_episode(actions: Kind) -> None:
    registry = Registry()
    registry.register(Broken)
    profile = Profile([*default_profile().multi_point, EnabledPlugin("Broken", 1)])
    environment = Environment(
        lambda seed: day(seed, pods=3), actions=actions, profile=profile, registry=registry
    )
    environment.reset(seed=1)
    infos, ended = [], False
    while not ended:
        row = 0 if actions == "nodes" else environment.scheduler_action()
        if actions == "nodes" and not environment.action_masks()[0]:
            row = 1
        _, _, ended, _, info = environment.step(row)
        infos.append(info)
    bound = places(environment.simulation.cluster)
    # Who chooses nodes doesn't ask for scores.
    assert bool(bound["default/pod-1"]) == (actions == "nodes")
    assert any(info["node"] == "" for info in infos) == (actions == "weights")


class TestRewards:
    def test_by_default_they_add_up_to_the_pods_with_a_place(self) -> None:
        environment = Environment(day)
        total = play(environment, 1, lambda environment: environment.scheduler_action())
        assert total == sum(map(bool, places(environment.simulation.cluster).values()))

    def test_preempted_pods_are_subtracted(self) -> None:
        transitions: list[Transition] = []

        def reward(transition: Transition) -> float:
            transitions.append(transition)
            return pods_bound(transition)

        low, high = (
            make_pod(name)
            .requests(cpu=1)
            .priority(priority)
            .annotations({"openb.trace/creation-time": time})
            .build()
            for name, priority, time in (("low", 1, "0"), ("high", 9, "60"))
        )
        objects = [make_node("node").capacity(cpu=1).build(), low, high]
        environment = Environment(objects, reward=reward, arrivals=Arrivals())
        total = play(environment, 1, lambda environment: 0)
        first, second = transitions
        assert (first.pod.name, first.node, first.bound, first.victims, first.refused) == (
            "low",
            "node",
            1,
            1,
            1,
        )
        assert (second.pod.name, second.bound, second.victims, second.refused) == ("high", 1, 0, 0)
        assert first.seconds >= 60.0
        assert (first.ended, second.ended, total) == (False, True, 1.0)


class TestWorkloads:
    def test_without_nodes(self) -> None:
        with pytest.raises(WorkloadError, match=r"^the workload has no nodes$"):
            Environment([make_pod("pod").build()])

    def test_with_more_nodes_than_rows(self) -> None:
        environment = Environment(day, nodes=3)
        with pytest.raises(WorkloadError, match=r"^the episode with seed 5 has 4 nodes, more than 3 rows$"):
            environment.reset(seed=5)

    def test_with_nothing_to_decide(self) -> None:
        environment = Environment(
            [make_node("node").capacity(cpu=1).build(), make_pod("pod").requests(cpu=2).build()]
        )
        with pytest.raises(WorkloadError, match=r"^the episode with seed 5 has no pod that fits on a node$"):
            environment.reset(seed=5)


def test_an_episode_is_truncated_at_the_horizon() -> None:
    environment = Environment(day, arrivals=Arrivals(rate=1), horizon=5.0)
    environment.reset(seed=1)
    infos, truncated = [], False
    while not truncated:
        _, _, terminated, truncated, info = environment.step(environment.scheduler_action())
        assert not terminated
        infos.append(info["time"])
    assert infos[-1] >= 5.0
    assert all(time < 5.0 for time in infos[:-1])


def test_nothing_goes_on_without_a_reset() -> None:
    environment = Environment(day)
    with pytest.raises(ResetNeeded):
        environment.step(0)
    play(environment, 1, lambda environment: environment.scheduler_action())
    with pytest.raises(ResetNeeded):
        environment.step(0)
