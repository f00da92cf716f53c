"""Trains an agent that chooses the node of every pod, and holds it against the scheduler on days it hasn't seen.

`python agent.py`; `python agent.py --results DIRECTORY` also writes each episode of the test, and the curve.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from kschedfw_lab import Environment, RecordedEpisodes, ResultsWriter, Transition, analyse, read_results

from kschedfw import default_profile, make_node, make_pod

Floats = npt.NDArray[np.float64]
Steps = list[tuple[Floats, Floats, int]]
"""Of each decision: the features of the feasible nodes, their probabilities, and which one was taken."""

VALIDATION, TEST = range(1_000, 1_020), range(2_000, 2_050)
"""Seeds of days that training, whose seeds are below 1,000, never sees. The best agent is chosen on the former."""

NODES, CORES = 6, 8

PACKING = default_profile({"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}})
"""The scheduler with the one setting that helps most here: full nodes first."""


def day(seed: int) -> list[Any]:
    """Six nodes, and pods that come one by one until they ask for all there is: small ones, and some of 6 or 8 CPUs."""
    random = Random(seed)
    made: list[Any] = [
        make_node(f"node-{i}").capacity(cpu=CORES, memory="32Gi").build() for i in range(NODES)
    ]
    left = NODES * CORES
    while left > 0:
        cpu = random.choice([6, 8]) if random.random() < 0.25 else random.choice([1, 1, 2, 3])
        pod = make_pod(f"pod-{len(made) - NODES}").requests(cpu=cpu, memory=f"{random.choice([1, 2, 4])}Gi")
        made.append(pod.build())
        left -= cpu
    return made


def cpu_in_use(transition: Transition) -> float:
    """The share of all CPUs that the pod gets. Over a day these add up to the share that is in use at its end."""
    return transition.bound * transition.pod.requests.amounts.milli_cpu / (1000 * NODES * CORES)


def features(observation: Mapping[str, npt.NDArray[Any]], rows: npt.NDArray[np.intp]) -> Floats:
    """Return the features of each feasible node, shape (k, 6). They are the same for a node in any row."""
    free, pod = observation["free"][:, :2], observation["pod"][:2]
    before, after = free[rows].astype(np.float64), free[rows] - pod.astype(np.float64)
    fits_exactly = after[:, :1] < 1e-6
    large = np.full((len(rows), 1), free[:, 0].max())  # what the largest pod could still have
    return np.hstack([after, before[:, :1] > 1 - 1e-6, fits_exactly, large, np.tile(pod[:1], (len(rows), 1))])


class Policy:
    """A small network that gives each feasible node a logit; nodes are drawn by the softmax, which is the mask."""

    def __init__(self, seed: int, hidden: int = 16) -> None:
        random = np.random.default_rng(seed)
        self.parameters = [random.normal(0, 0.5, (6, hidden)), random.normal(0, 0.1, hidden)]
        self._squares = [np.zeros_like(each) for each in self.parameters]

    def probabilities(self, seen: Floats) -> Floats:
        inward, outward = self.parameters
        logits = np.tanh(seen @ inward) @ outward
        weights: Floats = np.exp(logits - logits.max())
        probabilities: Floats = weights / weights.sum()
        return probabilities

    def learn(self, episodes: Iterable[tuple[Steps, float]], rate: float = 0.03) -> None:
        """REINFORCE: raise the probability of what was taken by how much better than expected the day went."""
        inward, outward = self.parameters
        slopes = [np.zeros_like(inward), np.zeros_like(outward)]
        for steps, advantage in episodes:
            for seen, probabilities, taken in steps:
                error = -advantage * probabilities
                error[taken] += advantage
                hidden = np.tanh(seen @ inward)
                slopes[0] += seen.T @ (np.outer(error, outward) * (1 - hidden**2))
                slopes[1] += hidden.T @ error
        for each, slope, square in zip(self.parameters, slopes, self._squares, strict=True):
            square *= 0.9
            square += 0.1 * slope**2  # RMSProp
            each += rate * slope / (np.sqrt(square) + 1e-8)


def play(
    environment: Any, seed: int, policy: Policy | None, random: np.random.Generator | None
) -> tuple[Steps, float]:
    """Play a day by the policy, drawing nodes if there is a generator; without a policy, as the scheduler would."""
    observation, _ = environment.reset(seed=seed)
    steps: Steps = []
    total, ended = 0.0, False
    while not ended:
        if policy is None:
            action = environment.scheduler_action()
        else:
            rows = environment.action_masks().nonzero()[0]
            seen = features(observation, rows)
            probabilities = policy.probabilities(seen)
            taken = (
                int(probabilities.argmax()) if random is None else random.choice(len(rows), p=probabilities)
            )
            steps.append((seen, probabilities, int(taken)))
            action = rows[taken]
        observation, reward, ended, _, _ = environment.step(action)
        total += reward
    return steps, total


def mean_of(environment: Any, days: Sequence[int], policy: Policy | None) -> float:
    return fmean(play(environment, seed, policy, None)[1] for seed in days)


def train(environment: Environment, updates: int) -> tuple[Policy, list[tuple[int, float]]]:
    """Train a policy. Return it as it was when it did best on the days of validation, and the curve of these."""
    random, policy = np.random.default_rng(7), Policy(7)
    best, curve = policy.parameters, [(0, mean_of(environment, VALIDATION, policy))]
    for update in range(1, updates + 1):
        episodes: list[tuple[Steps, float]] = []
        for seed in random.integers(1_000, size=2).tolist():
            # A day is easy or hard for everybody: what counts is the difference to the mean of four tries at it.
            tries = [play(environment, seed, policy, random) for _ in range(4)]
            usual = fmean(total for _, total in tries)
            episodes += [(steps, total - usual) for steps, total in tries]
        policy.learn(episodes)
        if update % 3 == 0:
            mean = mean_of(environment, VALIDATION, policy)
            if mean > max(earlier for _, earlier in curve):
                best = [each.copy() for each in policy.parameters]
            curve.append((update, mean))
    policy.parameters = best
    return policy, curve


def test(policy: Policy, folder: Path) -> None:
    """Play the days of the test by the scheduler, by the scheduler that packs, and by the policy."""
    with ResultsWriter(folder, RecordedEpisodes.FACTORS) as results:
        for agent, profile, decides in (
            ("scheduler", None, None),
            ("packing", PACKING, None),
            ("agent", None, policy),
        ):
            environment = Environment(day, reward=cpu_in_use, profile=profile)
            mean_of(RecordedEpisodes(environment, results, agent=agent), TEST, decides)
        results.finish()


def show(folder: Path) -> None:
    analysis = analyse(read_results(folder), {"agent": "scheduler"}, metrics=["reward"])
    for row in analysis.tables[0].overall:
        (agent,) = analysis.treatments[row.treatment]
        assert row.estimate is not None
        line = f"{agent:<10}{row.estimate.mean:7.3f}"
        if row.difference is not None:
            each = row.difference.estimate
            line += f"  {each.mean:+.3f}, with 95 % confidence {each.low:+.3f} to {each.high:+.3f}"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=30, help="of the policy, with 8 episodes each")
    parser.add_argument("--results", type=Path, help="where the episodes of the test and curve.csv go")
    arguments = parser.parse_args()
    environment = Environment(day, reward=cpu_in_use)
    policy, curve = train(environment, arguments.updates)
    print(f"CPUs in use at the end of a day, mean of {len(VALIDATION)} days of validation")
    for update, mean in curve:
        print(f"update {update:>3}{mean:7.3f}  {'#' * round(100 * (mean - 0.5))}")
    with nullcontext(arguments.results) if arguments.results else TemporaryDirectory() as name:
        folder = Path(name)
        test(policy, folder)
        with (folder / "curve.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("update", "cpu_in_use"), *curve])
        print(f"\nmean of {len(TEST)} other days")
        show(folder)


if __name__ == "__main__":
    main()
