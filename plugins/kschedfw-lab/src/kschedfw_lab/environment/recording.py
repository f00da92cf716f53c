"""Records finished episodes of an environment as results."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import Wrapper

from kschedfw import Pod
from kschedfw_lab.environment.actions import Action
from kschedfw_lab.environment.environment import Environment, Info
from kschedfw_lab.environment.observation import Observation
from kschedfw_lab.results.writer import ResultsWriter


class RecordedEpisodes(Wrapper[Observation, Action, Observation, Action]):
    """An environment that adds its finished episodes to results, each as a run.

    The factors are the `agent`, the `seed` and the `episode`, which counts from 1 how often this agent had this seed.
    The metrics are `reward`, `steps`, `illegal` (steps whose node wasn't feasible), `bound`, `victims`, `unbound` (pods
    that were left at the end), `virtual_seconds`, and `truncated` (0 or 1).

    Args:
        env: the environment.
        results: the directory of results. Its factors must be `RecordedEpisodes.FACTORS`. Only one process may write to
            a directory, so environments in different processes need different directories.
        agent: a name for the agent.
    """

    FACTORS: Final = ("agent", "seed", "episode")

    def __init__(self, env: Environment, results: ResultsWriter, *, agent: str) -> None:
        super().__init__(env)
        self._environment = env
        self._results = results
        self._agent = agent
        self._reward = 0.0
        self._steps = self._illegal = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin an episode. An episode that hasn't ended isn't recorded."""
        self._reward = 0.0
        self._steps = self._illegal = 0
        return self._environment.reset(seed=seed, options=options)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        """Take a step. At the end of the episode, record it."""
        observation, reward, terminated, truncated, info = self._environment.step(action)
        self._reward += reward
        self._steps += 1
        self._illegal += info["illegal"]
        if terminated or truncated:
            self._add(info, truncated=truncated)
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return `Environment.action_masks`."""
        return self._environment.action_masks()

    def scheduler_action(self) -> Action:
        """Return `Environment.scheduler_action`."""
        return self._environment.scheduler_action()

    def _add(self, info: Info, *, truncated: bool) -> None:
        seed = int(info["seed"])
        episode = 1
        while (run := f"{self._agent}/{seed}/{episode}") in self._results.done:
            episode += 1
        pods = self._environment.simulation.cluster.list(Pod)
        self._results.add(
            run,
            {"agent": self._agent, "seed": seed, "episode": episode},
            {
                "reward": self._reward,
                "steps": self._steps,
                "illegal": self._illegal,
                "bound": int(info["bound"]),
                "victims": int(info["victims"]),
                "unbound": sum(not pod.node_name for pod in pods),
                "virtual_seconds": float(info["time"]),
                "truncated": int(truncated),
            },
        )
