"""Changed clusters, configurations and messages of extenders: whatever comes of them, it is no traceback.

For a long run see `fuzz`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import Registry, hookimpl
from kschedfw.cli.commands import COMMANDS as SUBCOMMANDS
from kschedfw.plugins.default_binder import DefaultBinder
from kschedfw.testing.properties import examples
from tests.hostile import fuzz, trial
from tests.hostile.extender_trial import try_answer, try_request
from tests.hostile.mutations import CLUSTER, CONFIGURATION, POLICY, SUITE, cluster, configuration, suite
from tests.hostile.trial import COMMANDS, read_cluster, read_configuration, simulate, try_seed

pytestmark = pytest.mark.slow


def test_what_is_changed_is_right_before(tmp_path: Path) -> None:
    """Otherwise every change would be refused for the same reason."""
    assert not read_cluster(json.dumps(CLUSTER)).problems
    assert read_configuration(json.dumps(CONFIGURATION)) is not None
    assert read_configuration(json.dumps(POLICY)) is not None
    (tmp_path / "suite.yaml").write_text(json.dumps(SUITE), encoding="utf-8")
    assert trial.command(["test", str(tmp_path / "suite.yaml")]) == 0


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(40))
def test_clusters_are_read_or_refused(seed: int) -> None:
    simulate(read_cluster(cluster(Random(seed))))


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(40))
def test_configurations_are_read_or_refused(seed: int) -> None:
    read_configuration(configuration(Random(seed)))


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(40))
def test_answers_of_extenders_are_taken_or_refused(seed: int) -> None:
    try_answer(Random(seed))


@given(st.integers(0, 1 << 32))
@settings(max_examples=examples(40))
def test_requests_to_extenders_are_answered_or_refused(seed: int) -> None:
    try_request(Random(seed))


def test_the_commands_take_them(tmp_path: Path) -> None:
    tried: Counter[str] = Counter()
    for seed in range(0, 15 * COMMANDS, COMMANDS):
        tried += try_seed(seed, tmp_path)
    assert tried == Counter(clusters=10, configurations=5, commands=15)


# The tools of `mcp` run other commands on the file, in processes of their own. It doesn't read the file itself.
@pytest.mark.parametrize("name", [name for name in SUBCOMMANDS.names() if name != "mcp"])
def test_a_subcommand_takes_what_is_in_a_file_or_refuses_it(name: str, tmp_path: Path) -> None:
    """`make fuzz` tries many files."""
    ways = [(way, cluster) for way in trial.CLUSTER_COMMANDS if way[0] == name]
    ways += [(way, configuration) for way in trial.CONFIGURATION_COMMANDS if way[0] == name]
    ways += [(way, suite) for way in trial.SUITE_COMMANDS if way[0] == name]
    assert ways, f"trial.py doesn't say how {name} takes a file"
    file = tmp_path / "input.yaml"
    for seed, (way, made) in enumerate(2 * ways):
        file.write_bytes(made(Random(f"{name} {seed}")).encode("utf-8", "surrogatepass"))
        trial.command([argument.replace("FILE", str(file)) for argument in way])


def test_what_fails_is_told_and_ends_the_long_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(seed: int, _directory: Path) -> Counter[str]:
        assert seed != 8, "eight"
        return Counter(clusters=1)

    monkeypatch.setattr(fuzz, "try_seed", broken)
    # The most memory that this process has had is other tests' doing, too.
    monkeypatch.setattr(fuzz, "MOST_MEMORY", sys.maxsize)
    assert fuzz.main(["0", "8"]) == 1
    assert "FAILED: seed 8\n" in (told := capsys.readouterr().out)
    assert "AssertionError: eight" in told
    assert fuzz.main(["0", "9"]) == 0
    assert "seeds 9–9: 1 clusters; " in capsys.readouterr().out
    monkeypatch.setattr(fuzz, "LONGEST", -1.0)
    assert fuzz.main(["60", "9"]) == 1
    assert capsys.readouterr().out.count("FAILED") == fuzz.MOST_FAILURES
    monkeypatch.setattr(fuzz, "LONGEST", 10.0)
    monkeypatch.setattr(fuzz, "MOST_MEMORY", 0)
    assert fuzz.main(["60", "9"]) == 1
    assert capsys.readouterr().out.count("FAILED") == 1


def test_a_plugin_that_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OverflowError("int too large")

    monkeypatch.setattr(DefaultBinder, "bind", hookimpl(failing))
    monkeypatch.setattr(trial, "registry", Registry)  # one that hasn't seen the plugin as it was
    with pytest.raises(AssertionError, match="int too large"):
        simulate(read_cluster(json.dumps(CLUSTER)))
