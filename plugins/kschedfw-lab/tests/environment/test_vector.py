"""Environments side by side, each in a process of its own, as Gymnasium's AsyncVectorEnv runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import numpy as np
import pytest
from environment.test_environment import REGISTRY, day
from gymnasium.vector import AsyncVectorEnv
from kschedfw_lab import Environment

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # two processes import everything anew

SEEDS: list[int | None] = [3, 4]


def make() -> Environment:
    return Environment(day)


def alone(seed: int | None, steps: int) -> Iterator[tuple[Any, float, bool, dict[str, Any]]]:
    """One environment, without others; after an episode's end, the next step begins another one."""
    environment = Environment(day, registry=REGISTRY)
    observation, info = environment.reset(seed=seed)
    random, ended = Random(seed), False
    yield observation, 0.0, False, info
    for _ in range(steps):
        if ended:
            observation, info = environment.reset()
            reward, ended = 0.0, False
            random.random()
        else:
            action = drawn(random, info["action_mask"])
            observation, reward, ended, _, info = environment.step(action)
        yield observation, reward, ended, info


def drawn(random: Random, mask: Any) -> int:
    rows = np.asarray(mask).nonzero()[0]
    return int(rows[int(random.random() * len(rows))]) if len(rows) else int(random.random())


def test_each_process_plays_what_its_environment_would_play_alone() -> None:
    steps = 14  # longer than an episode of 12 pods
    expected = [list(alone(seed, steps)) for seed in SEEDS]
    assert any(ended for each in expected for _, _, ended, _ in each)
    randoms = [Random(seed) for seed in SEEDS]
    vector = AsyncVectorEnv([make, make], context="spawn")
    with closing(vector):
        observations, infos = vector.reset(seed=SEEDS)
        rewards, ended = np.zeros(2), np.zeros(2, dtype=bool)
        for step in range(steps + 1):
            for index, history in enumerate(expected):
                observation, reward, end, info = history[step]
                for name, values in observation.items():
                    np.testing.assert_array_equal(observations[name][index], values)
                assert (rewards[index], ended[index]) == (reward, end)
                assert infos["pod"][index] == info["pod"]
                np.testing.assert_array_equal(infos["action_mask"][index], info["action_mask"])
            actions = [drawn(*each) for each in zip(randoms, infos["action_mask"], strict=True)]
            observations, rewards, ended, _, infos = vector.step(np.array(actions))
