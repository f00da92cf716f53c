"""What holds for any input: no traceback, no exit code of a bug, nothing that a terminal obeys, no end of output."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from random import Random

from kschedfw import ConfigurationError
from kschedfw.api.errors import KschedfwError
from kschedfw.api.manifests import Manifests, parse_manifests
from kschedfw.cli.app import run
from kschedfw.config import SchedulerConfiguration, parse_configuration
from tests.hostile import mutations

MOST_OUTPUT = 300_000
"""Characters of what a command says of bad input; of a report, this much for the few objects there are."""


def read_cluster(text: str) -> Manifests:
    """The cluster in a text; what is wrong with it can be shown."""
    loaded = parse_manifests(text, "cluster")
    for problem in loaded.problems:
        check_shown(str(problem))
    try:
        list(loaded.objects())
    except KschedfwError as error:
        check_shown(str(error))
        assert loaded.problems
    else:
        assert not loaded.problems
    return loaded


def read_configuration(text: str) -> SchedulerConfiguration | None:
    try:
        return parse_configuration(text)
    except ConfigurationError as error:
        check_shown(str(error))
        return None


def check_shown(text: str) -> None:
    """It fits on some screens, and is no more than text."""
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)[:2000]
    assert len(text) <= MOST_OUTPUT


def command(arguments: Sequence[str]) -> int:
    """The exit code of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    check_shown(err.getvalue())
    assert code in (0, 1, 2), f"exit code {code}: {err.getvalue()}"
    assert "Traceback" not in err.getvalue()
    return code


def try_seed(seed: int, directory: Path) -> None:
    """One input that the seed stands for: read in this process, then with the commands."""
    random = Random(seed)
    file = directory / random.choice(("input.yaml", "input.json"))
    if random.random() < 0.6:
        text = mutations.cluster(random)
        read_cluster(text)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        command(
            ["simulate", str(file), "--no-progress", *random.choice(((), ("--skip-invalid",), ("--json",)))]
        )
    else:
        text = mutations.configuration(random)
        read_configuration(text)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        command(["config", random.choice(("check", "show")), str(file), *random.choice(((), ("--json",)))])
