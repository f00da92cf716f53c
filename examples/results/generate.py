"""Schedule the sample cluster under three configurations, with ten seeds each, and write policies.csv.

    python generate.py [DIRECTORY]

The default is the directory of this script. It takes a minute or two, and writes the same figures every time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from kschedfw_lab import ResultsWriter
from kschedfw_lab.compare import ComparedRun, Setup, compare

from kschedfw import InMemoryCluster, Profile, SchedulerConfiguration, default_profile
from kschedfw.api import read_manifests
from kschedfw.config import load_configuration

EXAMPLES = Path(__file__).parents[1]
SEEDS = range(1, 11)
GPU = "nvidia.com/gpu"


def candidates() -> list[Setup]:
    """The configurations; the first one is the baseline."""
    packing = load_configuration(EXAMPLES / "configurations" / "profiles.yaml")
    most_allocated = {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}}
    most = Profile(default_profile().multi_point, args=most_allocated)
    return [
        Setup("default", SchedulerConfiguration(profiles=(default_profile(),))),
        Setup("most-allocated", SchedulerConfiguration(profiles=(most,))),
        Setup.of("packing", packing, "packing"),
    ]


def metrics(run: ComparedRun) -> Iterator[tuple[str, float]]:
    """The measures of a run."""
    yield "placed", run.report.placed
    yield "nodes_in_use", run.nodes_in_use
    for utilisation in run.report.utilisation:
        if utilisation.resource in ("cpu", "memory", GPU):
            yield f"utilisation.{utilisation.resource}", utilisation.share
    for fragmentation in run.fragmentation:
        if fragmentation.resource in ("memory", GPU):
            yield f"fragmentation.{fragmentation.resource}", fragmentation.share


def main(directory: Path) -> None:
    """Write policies.csv into the directory."""
    cluster = InMemoryCluster(read_manifests(EXAMPLES / "sample-cluster").objects())
    with TemporaryDirectory() as scratch:
        with ResultsWriter(scratch, ["policy", "seed"]) as writer:
            for seed in SEEDS:
                for run in compare(cluster, candidates(), seed=seed).runs:
                    writer.add(f"{run.label}-{seed}", {"policy": run.label, "seed": seed}, dict(metrics(run)))
            writer.finish(f"{each.label}-{seed}" for each in candidates() for seed in SEEDS)
        directory.joinpath("policies.csv").write_bytes(Path(scratch, "results.csv").read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
