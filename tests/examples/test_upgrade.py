"""The planted cluster of `examples/upgrade`: each of its pods fares differently in a later version, by one change."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from kschedfw.cli import ExitCode
from kschedfw.testing.commands import Command

PLANTED = Path(__file__).parents[2] / "examples" / "upgrade" / "cluster.yaml"
ORDERED = ("--select-host", "first-by-name")


@pytest.fixture
def run_compare(kschedfw_command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `kschedfw compare` in this process."""
    monkeypatch.setenv("COLUMNS", "80")
    return partial(kschedfw_command, "compare")


def test_eight_pods_of_the_planted_cluster_fare_differently_for_eight_reasons(
    run_compare: Command,
) -> None:
    versions = ("--kube-version", "1.35", "--kube-version", "1.37")
    grouping = ("--profile", PLANTED.with_name("configuration.yaml"))
    result = run_compare(PLANTED, *grouping, *versions, *ORDERED, "--json", "--no-progress")
    # The cycles of groups whose members differ end in errors.
    assert result.code == ExitCode.FAILED
    (moves,) = json.loads(result.out)["moves"]
    found = {
        move["pod"].removeprefix("default/"): [change["name"] for change in move["reason"]["changes"]]
        for move in moves["moves"]
    }
    assert found == {
        "storage": ["StorageCapacityScoring"],
        "driver": ["VolumeLimitScaling"],
        "image": ["ImageVolumes"],
        "resize": ["ResizedPods"],
        "declared": ["NodeDeclaredFeatures"],
        "gang-0": ["GangScheduling"],
        "priority": ["PodGroupPriorities"],
        "policy": ["PodGroupPreemptionPolicies"],
    }


# A fixed input: each change of v1.37 has a test of its own in tests/framework/versions, with both answers.
@pytest.mark.nightly
def test_no_pod_of_the_sample_cluster_fares_differently_in_v1_37(run_compare: Command) -> None:
    sample = PLANTED.parents[1] / "sample-cluster"
    versions = ("--kube-version", "1.36", "--kube-version", "1.37")
    result = run_compare(sample, *versions, *ORDERED, "--json", "--no-progress")
    assert result.code == ExitCode.DONE
    (moves,) = json.loads(result.out)["moves"]
    assert moves["moves"] == []


def test_the_changes_are_told_with_their_source(run_compare: Command) -> None:
    result = run_compare(PLANTED, "--kube-version", "1.36", "--kube-version", "1.37", *ORDERED)
    assert re.search(r"StorageCapacityScoring \(KEP-4049\) +1\n", result.out)
    assert "    by VolumeLimitScaling (KEP-5030)\n" in result.out
