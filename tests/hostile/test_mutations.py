"""Changed clusters and configurations: whatever comes of them, it is no traceback; see `fuzz` for a long run."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile import fuzz
from tests.hostile.mutations import CLUSTER, CONFIGURATION, POLICY, cluster, configuration
from tests.hostile.trial import read_cluster, read_configuration, try_seed


def test_what_is_changed_is_right_before() -> None:
    """Otherwise every change would be refused for the same reason."""
    assert not read_cluster(json.dumps(CLUSTER)).problems
    assert read_configuration(json.dumps(CONFIGURATION)) is not None
    assert read_configuration(json.dumps(POLICY)) is not None


@given(st.integers(0, 1 << 32))
@settings(max_examples=40)
def test_clusters_are_read_or_refused(seed: int) -> None:
    read_cluster(cluster(Random(seed)))


@given(st.integers(0, 1 << 32))
@settings(max_examples=40)
def test_configurations_are_read_or_refused(seed: int) -> None:
    read_configuration(configuration(Random(seed)))


def test_the_commands_take_them(tmp_path: Path) -> None:
    for seed in range(15):
        try_seed(seed, tmp_path)


def test_a_failing_seed_ends_the_long_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(seed: int, _directory: Path) -> None:
        assert seed != 8

    monkeypatch.setattr(fuzz, "try_seed", broken)
    assert fuzz.main(["60", "7"]) == 1
    assert "FAILED: seed 8" in capsys.readouterr().out
