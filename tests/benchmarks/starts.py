"""The processor time of starts, as ratios to importing the libraries alone: `python -m tests.benchmarks.starts`.

Each program runs in a process of its own, in turns with the others, so that a busy machine slows all of them down. Of
each program the least user time counts: the bytecode is compiled by then. The start of `kschedfw run` is a column of
benchmarks.in_turns in kschedfw-kubernetes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from kschedfw import make_node, make_pod
from kschedfw.api import to_manifest

LIBRARIES = "import numpy, attrs, yaml, msgspec"
NODES, PODS = 5, 10


def programs(cluster: Path) -> dict[str, Sequence[str]]:
    command = [sys.executable, "-m", "kschedfw"]
    return {
        LIBRARIES: [sys.executable, "-c", LIBRARIES],
        "import kschedfw; kschedfw.Scheduler": [sys.executable, "-c", "import kschedfw; kschedfw.Scheduler"],
        "kschedfw --help": [*command, "--help"],
        f"kschedfw explain, {NODES} nodes": [*command, "explain", str(cluster), "pod-0"],
        f"kschedfw simulate, {PODS} pods": [*command, "simulate", str(cluster)],
    }


def user_seconds(program: Sequence[str]) -> float:
    """The user time of one run. Without garbage of other runs: `wait4` counts this process alone."""
    with subprocess.Popen(program, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(program)} ended with {process.returncode}")
    return usage.ru_utime


def write_cluster(file: Path) -> None:
    nodes = [make_node(f"node-{i}").capacity(cpu=4, memory="8Gi").build() for i in range(NODES)]
    pods = [make_pod(f"pod-{i}").requests(cpu="100m", memory="128Mi").build() for i in range(PODS)]
    file.write_text(yaml.safe_dump_all([to_manifest(each) for each in [*nodes, *pods]]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("--rounds: must be at least 1")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Path(folder) / "cluster.yaml"
        write_cluster(cluster)
        measured = programs(cluster)
        for program in measured.values():
            user_seconds(program)  # compiles what isn't compiled yet
        times = {
            name: min(each)
            for name, each in zip(
                measured,
                zip(
                    *([user_seconds(each) for each in measured.values()] for _ in range(rounds)), strict=True
                ),
                strict=True,
            )
        }
    for name, seconds in times.items():
        print(f"{name:40}{seconds * 1000:8.0f} ms{seconds / times[LIBRARIES]:8.2f} ×")


if __name__ == "__main__":
    main()
