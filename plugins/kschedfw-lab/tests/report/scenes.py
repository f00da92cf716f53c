"""Results for the tests of reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kschedfw_lab import Results, RunResult
from kschedfw_lab.results.values import Value

SEEDS = range(1, 11)
NOISE = (0, 3, -2, 5, 1, -4, 2, -1, 4, -3, 6, -5)
"""What a seed adds to every policy's result: pairs differ much less than seeds do."""

JITTER = (0, 1, -1, 0, 1, 0, -1, 1, 0, -1, 1, 0)


def run(key: str, factors: Mapping[str, Value], **metrics: float) -> RunResult:
    return RunResult(key, factors, metrics)


def failed(key: str, factors: Mapping[str, Value], error: str = "it failed") -> RunResult:
    return RunResult(key, factors, {}, error)


def results(runs: Iterable[RunResult]) -> Results:
    runs = list(runs)
    return Results.of(list(runs[0].factors) if runs else [], runs)


def policies(
    effects: Mapping[str, float], seeds: Iterable[int] = SEEDS, rates: Sequence[float] = ()
) -> list[RunResult]:
    """A run per policy and seed, and per rate if there are any: `placed` is 100, and the policy's effect, and noise."""
    found = []
    given: Sequence[float | None] = rates or [None]
    for rate in given:
        for policy, effect in effects.items():
            for seed in seeds:
                placed = (
                    100 + NOISE[seed % 12] + effect + (JITTER[(seed + len(policy)) % 12] if effect else 0)
                )
                factors: dict[str, Value] = {"policy": policy, "seed": seed}
                if rate is not None:
                    factors = {"rate": rate, **factors}
                key = f"{policy}{seed}x{rate}"
                found.append(run(key, factors, placed=int(placed), **{"utilisation.cpu": placed / 200}))
    return found
