"""A simulation as a Gymnasium environment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import Env
from gymnasium.error import ResetNeeded

from kschedfw import (
    ExtensionPoint,
    GenericScheduler,
    InMemoryCluster,
    KschedfwError,
    Profile,
    Registry,
    Scheduler,
    SchedulingError,
    default_profile,
)
from kschedfw.api import Named
from kschedfw.scheduler import Algorithm
from kschedfw.simulator import Arrivals, Simulation
from kschedfw_lab.environment.actions import (
    Action,
    ActionError,
    ActionKind,
    NodeActions,
    WeightActions,
)
from kschedfw_lab.environment.episode import Episode, OpenDecision
from kschedfw_lab.environment.observation import Observation, Observer, Units
from kschedfw_lab.environment.reward import Reward, pods_bound

Workload: TypeAlias = Callable[[int], Iterable[Named]]
"""Makes the nodes, pods and other objects of an episode from its seed. Equal seeds must give equal objects."""

Info: TypeAlias = dict[str, Any]


class WorkloadError(KschedfwError, ValueError):
    """A workload has no nodes, more nodes than the environment has rows, or no pod that fits on any."""


class Environment(Env[Observation, Action]):
    """A simulation in which an agent makes the decisions. A step is the decision on one pod.

    The scheduler does everything else. Its queue determines the next pod, and its filters the feasible nodes. It
    reserves, binds, preempts and retries as in a `Simulation`. Attempts without a feasible node are made between the
    steps, since there is nothing to choose.

    With `actions="nodes"`, an action is the row of a node, and the action space is Discrete(n). The mask of feasible
    nodes is in the observation, in `info["action_mask"]` and in `action_masks()`. If the node isn't feasible, the
    scheduler's own choice is taken instead, the reward is `illegal_reward`, and `info["illegal"]` is True.

    With `actions="weights"`, an action has a number from 0 to 1 for each of `score_plugins`. The plugin's weight for
    this pod is a hundred times the number, rounded. 0 leaves the plugin out. The action space is
    Box(0, 1, (p,), float32).

    An observation has, for n nodes and r `resources`:

    * `free`, (n, r), float32 in 0–1: the share of each node's resource that no pod has requested.
    * `capacity`, (n, r), float32 in 0–1: each node's amount, divided by that of the largest node.
    * `pod`, (r,), float32 in 0–1: the pod's request, divided by the amount of the largest node; at most 1.
    * `feasible`, (n,), int8, 0 or 1: whether the filters let the pod pass. All 0 only when the episode has ended.

    Row i is the same node everywhere, `node_names[i]`. Rows beyond the last node are 0.

    `info` has `seed` (of the episode), `pod` (namespace/name; "" at the end), `time` (virtual seconds since the start),
    `bound` and `victims` (numbers of pods bound and preempted so far) and, for nodes, `action_mask`; after a step also
    `node`, the name of the node that was chosen, and `illegal`.

    An episode is terminated when no pod will be tried any more, and truncated when the next decision would be at
    `horizon` seconds or later.

    Args:
        workload: the objects of every episode, or a function from an episode's seed to its objects.
        actions: the kind of actions, see above.
        reward: returns the reward of a step; by default the number of bound pods minus that of preempted pods.
        illegal_reward: the reward for a node that isn't feasible.
        profile: the profile; by default kube-scheduler's. Pods for other schedulers are ignored.
        registry: the registry of the profile's plugins.
        arrivals: when pods arrive and how long they stay, see `Simulation`.
        percentage_of_nodes_to_score: as in `Scheduler`. With 100, the default, the mask has every feasible node. With
            less, it lacks the nodes that the scheduler doesn't examine.
        nodes: the number of rows; by default the number of nodes in the episode with seed 0.
        resources: the observed resources; by default those of the nodes in the episode with seed 0.
        horizon: virtual seconds after which an episode is truncated.

    Raises:
        WorkloadError: the workload has no nodes.
        ProfileError, PluginError: the profile can't run.
        MissingExtraError: gymnasium isn't installed.
    """

    def __init__(
        self,
        workload: Workload | Iterable[Named],
        *,
        actions: Literal["nodes", "weights"] = "nodes",
        reward: Reward = pods_bound,
        illegal_reward: float = -1.0,
        profile: Profile | None = None,
        registry: Registry | None = None,
        arrivals: Arrivals | None = None,
        percentage_of_nodes_to_score: int = 100,
        nodes: int | None = None,
        resources: Sequence[str] | None = None,
        horizon: float = math.inf,
    ) -> None:
        self._workload = workload if callable(workload) else _always(tuple(workload))
        self._profile = default_profile() if profile is None else profile
        self._registry = Registry() if registry is None else registry
        self._arrivals = arrivals
        self._percentage = percentage_of_nodes_to_score
        self._reward = reward
        self._illegal_reward = illegal_reward
        self._horizon = horizon
        # Only for the table of nodes and the names of plugins; it never schedules.
        sample = Scheduler(
            InMemoryCluster(self._workload(0)), [self._profile], registry=self._registry, idle=True
        )
        sample.cache.update_snapshot(sample.snapshot)
        table, framework = sample.snapshot.table, sample.frameworks[self._profile.scheduler_name]
        if not len(table):
            raise WorkloadError("the workload has no nodes")
        self._units = Units.of(table, nodes, resources)
        self.score_plugins: tuple[str, ...] = framework.plugins_at(ExtensionPoint.SCORE)
        """The plugins whose weights an action may set."""
        sample.close()
        self._kind = self._kind_of(actions)
        self.action_space = self._kind.space
        self.observation_space = self._units.space()
        self._episode: Episode | None = None
        self._seed = 0
        self._observer = Observer(table, self._units)
        self._mask = self._observer.mask(None)

    def _kind_of(self, actions: str) -> ActionKind:
        match actions:
            case "nodes":
                return NodeActions(self._units.nodes)
            case "weights":
                return WeightActions({name: self._profile.weight(name) for name in self.score_plugins})
        raise ValueError(f"actions: expected 'nodes' or 'weights', found {actions!r}")

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of an observation's columns."""
        return self._units.resources

    @property
    def node_names(self) -> tuple[str, ...]:
        """The nodes' names, by row."""
        return self._current.simulation.scheduler.snapshot.table.names

    @property
    def simulation(self) -> Simulation:
        """The simulation of the current episode: its cluster, scheduler and ledger. Callers must only read it."""
        return self._current.simulation

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Observation, Info]:
        """Begin the episode with this seed, or with one that the environment's generator draws.

        The seed determines the workload's objects, when pods arrive and leave, and the choice among equal nodes.
        `options` are ignored.

        Raises:
            WorkloadError: the episode has more nodes than the environment has rows, or nothing to decide.
        """
        super().reset(seed=seed, options=options)
        self.close()
        self._seed = int(self.np_random.integers(2**31)) if seed is None else seed
        self._episode = Episode(self._new_simulation)
        table = self.simulation.scheduler.snapshot.table
        if len(table) > self._units.nodes:
            rows = self._units.nodes
            raise WorkloadError(
                f"the episode with seed {self._seed} has {len(table)} nodes, more than {rows} rows"
            )
        if self._episode.decision is None:
            raise WorkloadError(f"the episode with seed {self._seed} has no pod that fits on a node")
        self._observer = Observer(table, self._units)
        return self._observed()

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        """Place the pod by this action, and go on to the next decision; see the class.

        Raises:
            ActionError: the action isn't in the action space.
            ResetNeeded: the episode has ended.
        """
        choice, legal = self._choice(action, self._decision)
        transition = self._current.decide(choice)
        reward = self._reward(transition) if legal else self._illegal_reward
        truncated = not transition.ended and self.simulation.virtual_time >= self._horizon
        observation, info = self._observed()
        info |= {"node": transition.node, "illegal": not legal}
        return observation, float(reward), transition.ended, truncated, info

    def _choice(self, action: Action, decision: OpenDecision) -> tuple[int | SchedulingError, bool]:
        """Return the row that is taken, and whether it is the row that the action selects."""
        try:
            row = self._kind.row(action, decision)
            legal = bool(self._mask[row])
            return row if legal else decision.best_row, legal
        except SchedulingError as error:
            # A plugin failed: the attempt fails, and the agent isn't punished for it.
            return error, True

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return whether each row is a feasible node, shape (n,). sb3-contrib's MaskablePPO calls this method.

        Raises:
            ActionError: actions are weights, all of which are allowed.
        """
        if not isinstance(self._kind, NodeActions):
            raise ActionError("there is no mask for weights: all are allowed")
        return self._mask.astype(np.bool_)

    def scheduler_action(self) -> Action:
        """Return the action that selects the scheduler's own choice, by the profile's scores and weights."""
        return self._kind.of_scheduler(self._decision)

    def close(self) -> None:
        """End the current episode's simulation."""
        if self._episode is not None:
            self._episode.simulation.close()
            self._episode = None

    @property
    def _current(self) -> Episode:
        if self._episode is None:
            raise ResetNeeded("call reset first")
        return self._episode

    @property
    def _decision(self) -> OpenDecision:
        decision = self._current.decision
        if decision is None:
            raise ResetNeeded("the episode has ended: call reset")
        return decision

    def _new_simulation(self, algorithm: Callable[[GenericScheduler], Algorithm]) -> Simulation:
        return Simulation(
            InMemoryCluster(self._workload(self._seed)),
            profiles=[self._profile],
            registry=self._registry,
            arrivals=self._arrivals,
            seed=self._seed,
            percentage_of_nodes_to_score=self._percentage,
            parallelism=1,
            algorithm=algorithm,
        )

    def _observed(self) -> tuple[Observation, Info]:
        decision, simulation = self._current.decision, self.simulation
        rows = None if decision is None else decision.rows
        pod = None if decision is None else decision.pod
        self._mask = self._observer.mask(rows)
        observation = self._observer.observation(pod, self._mask)
        info: Info = {
            "seed": self._seed,
            "pod": "" if pod is None else pod.key,
            "time": simulation.virtual_time,
            "bound": simulation.ledger.bound,
            "victims": simulation.ledger.victims,
        }
        if isinstance(self._kind, NodeActions):
            info["action_mask"] = self._mask.copy()
        return observation, info


def _always(objects: tuple[Named, ...]) -> Workload:
    return lambda _seed: objects
