"""Learns score weights by replays, and tries them on days that it hasn't seen: `python learn.py`."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from random import Random
from statistics import fmean

from replay import DEFAULT, LEARNED, Weights, placed

TRAINING = range(100, 106)
HELD_OUT = range(200, 212)
ROUNDS = 5

Point = tuple[float, ...]


class EvolutionStrategy:
    """Asks for points to be tried, is told how good they were, and goes to where the better ones are.

    It knows nothing of scheduling; any other optimiser with `ask` and `tell` may take its place.
    """

    def __init__(self, start: Point, *, step: float, population: int, random: Random) -> None:
        self.mean = start
        self._step, self._population, self._random = step, population, random

    def ask(self) -> list[Point]:
        return [self._near_mean() for _ in range(self._population)]

    def tell(self, points: Sequence[Point], values: Sequence[float]) -> None:
        ranked = sorted(zip(values, points, strict=True), reverse=True)
        better = [point for _, point in ranked[: self._population // 3]]
        self.mean = tuple(fmean(coordinates) for coordinates in zip(*better, strict=True))
        self._step *= 0.8

    def _near_mean(self) -> Point:
        return tuple(max(0.0, x + self._random.gauss(0.0, self._step)) for x in self.mean)


def weights_of(point: Point) -> Weights:
    """On a logarithmic scale: 0, 1, 2, 3 and 4 are the weights 0, 1, 3, 7 and 15."""
    return tuple(round(2**x - 1) for x in point)


def objective(weights: Weights, days: Sequence[int]) -> float:
    return fmean(placed(weights, day) for day in days)


def main() -> None:
    start = tuple(log2(1 + weight) for weight in DEFAULT)
    strategy = EvolutionStrategy(start, step=1.5, population=6, random=Random(1))
    print(f"default: {objective(DEFAULT, TRAINING):.1f} % placed on the training days")
    for number in range(1, ROUNDS + 1):
        points = strategy.ask()
        values = [objective(weights_of(point), TRAINING) for point in points]
        strategy.tell(points, values)
        print(f"round {number}: {fmean(values):.1f} % on average, {max(values):.1f} % at best")

    learned = weights_of(strategy.mean)
    for name, before, after in zip(LEARNED, DEFAULT, learned, strict=True):
        print(f"{name}: weight {before} by default, {after} learned")

    print("held-out day  default  learned")
    pairs = [(placed(DEFAULT, day), placed(learned, day)) for day in HELD_OUT]
    for day, (by_default, by_learned) in zip(HELD_OUT, pairs, strict=True):
        print(f"{day:12}{by_default:9.1f}{by_learned:9.1f}")
    means = [fmean(values) for values in zip(*pairs, strict=True)]
    print(f"{'mean':>12}{means[0]:9.1f}{means[1]:9.1f}")
    better, worse = sum(b > a for a, b in pairs), sum(b < a for a, b in pairs)
    print(f"better on {better} days, worse on {worse}, the same on {len(pairs) - better - worse}")


if __name__ == "__main__":
    main()
