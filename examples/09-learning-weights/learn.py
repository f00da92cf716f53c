"""Learns weights and arguments by a search, and tries them on days that it hasn't seen.

`python learn.py` on generated days; `python learn.py --openb DIRECTORY` on the OpenB trace.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from days import generated, openb
from kschedfw_lab import TrialEnd, Tuned, Tuning, local_engine, tune

STRATEGY = "profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy"

SEARCH: dict[str, object] = {
    "plugins.NodeResourcesBalancedAllocation": [False, 1, 2, 4, 8, 16],
    "strategy": {"path": f"{STRATEGY}.type", "values": ["LeastAllocated", "MostAllocated"]},
    "cpu": {"path": f"{STRATEGY}.resources[cpu].weight", "values": {"from": 1, "to": 64, "scale": "log"}},
    "memory": {
        "path": f"{STRATEGY}.resources[memory].weight",
        "values": {"from": 1, "to": 64, "scale": "log"},
    },
    "gpu": {
        "path": f"{STRATEGY}.resources[nvidia.com/gpu].weight",
        "values": {"from": 1, "to": 64, "scale": "log"},
    },
}
"""The choice to spread pods or to pack them, by which resources, and the weight of balance."""


def on_generated_days(folder: Path) -> Tuning:
    """Which share of the CPUs is in use at the end of a day?"""
    return Tuning.of(
        search=SEARCH,
        training={"cluster": generated(folder, range(100, 106))},
        held_out={"cluster": generated(folder, range(200, 215))},
        objective={"metric": "utilisation.cpu"},
        trials=16,
        folder=folder,
    )


def on_openb(folder: Path, data: Path) -> Tuning:
    """Pods' waits for a node, where they come so fast and stay so long that there is hardly room for all."""
    return Tuning.of(
        search=SEARCH,
        factors={"ignoreOwnTimes": True, "arrivalRate": 1, "meanDuration": 2500},
        training={"cluster": openb(folder, data, range(3)), "seed": [0]},
        held_out={"cluster": openb(folder, data, range(3, 8)), "seed": [100, 101]},
        objective={"metric": "wait_seconds.mean", "direction": "minimize"},
        trials=32,
        folder=folder,
    )


def show(tuned: Tuned) -> None:
    ended = ", ".join(f"{tuned.count(end)} {end}" for end in TrialEnd if tuned.count(end))
    print(f"{len(tuned.trials)} trials: {ended}")
    for name, value in tuned.best.values.items():
        print(f"{name}: {value}")
    print(f"\n{tuned.objective.metric:18}{'default':>9}{'tuned':>9}")
    pairs = list(zip(tuned.held_out.default, tuned.held_out.tuned, strict=True))
    for number, (default, best) in enumerate(pairs, 1):
        print(f"held-out run {number:<5}{default:z9.3f}{best:z9.3f}")
    for name, each in (("training", tuned.training), ("held out", tuned.held_out)):
        difference = each.difference
        means = f"{fmean(each.default):9.3f}{fmean(each.tuned):9.3f}"
        print(f"{name + ', mean':18}{means}  {difference.mean:+.3f} ± {difference.half or 0:.3f}")
    print(f"by chance alone: p = {tuned.held_out.probability:.2g}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--openb", type=Path, help="the directory with the tables of the OpenB trace")
    data = parser.parse_args().openb
    with TemporaryDirectory() as name, local_engine() as engine:
        folder = Path(name)
        tuning = on_generated_days(folder) if data is None else on_openb(folder, data)
        show(tune(tuning, folder / "results", engine.executor, workers=engine.workers))


if __name__ == "__main__":
    main()
