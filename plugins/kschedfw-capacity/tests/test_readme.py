"""The README's example, run as it stands; the distribution has to be installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import pytest
from kschedfw_capacity import ElasticQuota

from kschedfw import InMemoryCluster, Scheduler, read_manifests
from kschedfw.testing.waiting import PATIENCE

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A directory with the files of the example."""
    _, config, cluster = blocks("yaml")
    (tmp_path / "config.yaml").write_text(config, encoding="utf-8")
    (tmp_path / "cluster.yaml").write_text(cluster, encoding="utf-8")
    return tmp_path


def simulate(where: Path, *options: str) -> str:
    command = [sys.executable, "-m", "kschedfw", "simulate", *options]
    env = os.environ | {"COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(
        command, check=False, cwd=where, env=env, capture_output=True, encoding="utf-8", timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_simulation_prints_what_the_readme_shows(example: Path) -> None:
    (shown,) = blocks("console")
    command, _, expected = shown.partition("\n")
    printed = simulate(example, *command.removeprefix("$ kschedfw simulate ").split())
    assert OutputChecker().check_output(expected, printed, ELLIPSIS | NORMALIZE_WHITESPACE), printed


def test_without_the_plugin_the_first_takes_everything(example: Path) -> None:
    assert "2      2  Insufficient cpu" in simulate(example, "cluster.yaml")


def test_the_first_manifest_is_a_quota(tmp_path: Path) -> None:
    file = tmp_path / "quota.yaml"
    file.write_text(blocks("yaml")[0], encoding="utf-8")
    (quota,) = InMemoryCluster(read_manifests(file).objects()).list(ElasticQuota)
    assert quota.spec.bounds.min["nvidia.com/gpu"] == 1


def test_the_python_makes_a_scheduler_that_knows_the_quota() -> None:
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(code, names)
    scheduler = names["scheduler"]
    assert isinstance(scheduler, Scheduler)
    assert "CapacityScheduling" in scheduler.frameworks["default-scheduler"].plugins
    assert [each.namespace for each in scheduler.cluster.list(ElasticQuota)] == ["research"]
    scheduler.close()
