"""A small trace, the real one, and a way to run the command without other processes."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from kschedfw_gpushare.openb import __main__ as command
from kschedfw_gpushare.openb.__main__ import NODES, PODS
from kschedfw_lab.sweep.engine import Engine

POD_COLUMNS = (
    *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase"),
    *("creation_time", "deletion_time", "scheduled_time"),
)
NODE_LINES = ["sn,cpu_milli,memory_mib,gpu,model", "a,64000,262144,2,T4", "b,64000,262144,2,T4"]
POD_LINES = [
    ",".join(POD_COLUMNS),
    "half,4000,1024,1,500,,LS,Running,0,10,0",
    "whole,8000,1024,1,1000,,LS,Running,0,10,0",
    "plain,1000,1024,0,0,,LS,Running,0,10,0",
]

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  percentageOfNodesToScore: 100
  plugins:
    multiPoint:
      enabled: [{name: PrioritySort}, {name: NodeResourcesFit}, {name: GpuShare, weight: 1000}, {name: DefaultBinder}]
      disabled: [{name: "*"}]
    score:
      enabled: [{name: GpuShare, weight: 1000}]
      disabled: [{name: "*"}]
  pluginConfig:
  - {name: NodeResourcesFit, args: {ignoredResources: [nvidia.com/gpu]}}
  - {name: GpuShare, args: {policy: FGD}}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A directory with a trace of two nodes and three pods."""
    (tmp_path / NODES).write_text("\n".join(NODE_LINES))
    (tmp_path / PODS).write_text("\n".join(POD_LINES))
    return tmp_path


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A configuration that does what the policy FGD does."""
    file = tmp_path / "profile.yaml"
    file.write_text(CONFIGURATION)
    return file


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are done by a thread, so that what a test has changed here holds for them, too."""

    @contextmanager
    def engine_of(options: Namespace, distributions: Sequence[str]) -> Iterator[Engine]:
        with ThreadPoolExecutor(1) as executor:
            yield Engine(executor, 1, "this process")

    monkeypatch.setattr(command, "engine_of", engine_of)


@pytest.fixture
def trace_directory() -> Path:
    """Where the trace is; `shared/data` beside the repository, or what KSCHEDFW_SHARED_DATA says."""
    default = Path(__file__).parent / ".." / ".." / ".." / ".." / ".." / "shared" / "data"
    directory = Path(os.environ.get("KSCHEDFW_SHARED_DATA", default)).resolve() / "openb"
    if not (directory / NODES).exists():
        pytest.skip(f"NOT TESTED: no {NODES} in {directory}; set KSCHEDFW_SHARED_DATA to where the trace is")
    return directory
