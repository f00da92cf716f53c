"""The results that are an example are what its script measures."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from kschedfw_lab import read_results
from kschedfw_lab.compare import compare

from kschedfw import InMemoryCluster
from kschedfw.api.manifests import read_manifests

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_they_are_what_the_script_measures() -> None:
    """One of its thirty runs is done again."""
    script = runpy.run_path(str(EXAMPLES / "results" / "generate.py"))
    cluster = InMemoryCluster(read_manifests(EXAMPLES / "sample-cluster").objects())
    (run,) = compare(cluster, script["candidates"]()[:1], seed=1).runs
    recorded = {run.run: run.metrics for run in read_results(EXAMPLES / "results" / "policies.csv").runs()}
    assert len(recorded) == 30
    assert dict(script["metrics"](run)) == recorded["default-1"]
