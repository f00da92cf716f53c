"""docs/tutorial.md, done as it says by somebody who has nothing but kschedfw and its extras."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import pytest

from kschedfw.testing.waiting import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.long]

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
STEP = re.compile(r"(?:^`(\S+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# All that is needed is here already, kschedfw from this checkout, and nothing shall be fetched.
PIP_INSTALL = (
    "pip install --editable '.[dev]'",
    "python -m pip install --no-index --no-build-isolation --editable '.[dev]'",
)


WHAT_IT_READS_IS_LEARNED = """
from kschedfw.testing import FrameworkHarness

assert FrameworkHarness("QuietCorner").framework.learned["QuietCorner"].signs
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One in which what is installed here can be had, and more can be installed."""
    place = tmp_path / "environment"
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    here = "\n".join(f"import site; site.addsitedir({each!r})" for each in site.getsitepackages())
    (packages / "here.pth").write_text(f"{here}\n", encoding="utf-8")
    for command in ("kschedfw", "pytest"):
        script = place / "bin" / command
        script.write_text(f'#!/bin/sh\nexec "{place}/bin/python" -m {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    path = f"{place / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PYTHON", "COV_"))
    }
    return kept | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    for step in f"\n{block}".split("\n$ ")[1:]:
        command, _, expected = step.partition("\n")
        yield command, expected


def test_it_works_as_the_tutorial_says(tmp_path: Path, environment: dict[str, str]) -> None:
    directory, done = tmp_path, 0
    for file, kind, block in STEP.findall(TUTORIAL.read_text(encoding="utf-8")):
        if file:
            (directory / file).write_text(block, encoding="utf-8")
        elif kind == "console":
            for command, expected in commands(block):
                done += 1
                if command.startswith("cd "):
                    directory /= command.removeprefix("cd ")
                    continue
                result = subprocess.run(
                    command.replace(*PIP_INSTALL),
                    shell=True,
                    check=False,
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    encoding="utf-8",
                    timeout=PATIENCE,
                )
                assert result.returncode == 0, f"$ {command}\n{result.stdout}"
                agrees = OutputChecker().check_output(
                    expected, result.stdout, ELLIPSIS | NORMALIZE_WHITESPACE
                )
                assert agrees or not expected.strip(), f"$ {command}\nprints:\n{result.stdout}"
    assert done >= 8
    kept = subprocess.run(
        ["python", "-c", WHAT_IT_READS_IS_LEARNED],
        check=False,
        cwd=directory,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert kept.returncode == 0, kept.stderr
    checks = ("ruff check", "ruff format --check", "mypy")
    for check in checks:  # those of the project's own workflow
        result = subprocess.run(
            [sys.executable, "-m", *check.split()],
            check=False,
            cwd=directory,
            capture_output=True,
            encoding="utf-8",
        )
        assert result.returncode == 0, f"{check}: {result.stdout}{result.stderr}"


def test_the_first_line_works_from_a_checkout(environment: dict[str, str]) -> None:
    """pip finds all that it asks for here, without an index."""
    lines = [
        block.strip() for _, kind, block in STEP.findall(TUTORIAL.read_text(encoding="utf-8")) if kind == "sh"
    ]
    assert lines == ["pip install 'kschedfw[cli,new,testing]'", "pip install '.[cli,new,testing]'"]
    for line in lines:
        offline = line.replace(
            "pip install", "python -m pip install --dry-run --no-index --no-build-isolation"
        )
        done = subprocess.run(
            offline,
            shell=True,
            check=False,
            cwd=TUTORIAL.parents[1],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
