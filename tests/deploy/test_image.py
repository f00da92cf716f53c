"""deploy/Containerfile: what its stages do, and the same steps without a container."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[2]
CONTAINERFILE = REPOSITORY / "deploy" / "Containerfile"
STEP = re.compile(r"^([A-Z]+) (.*)$", re.MULTILINE)


class Step(NamedTuple):
    instruction: str
    arguments: str


def stages() -> list[list[Step]]:
    """The steps of each stage; each begins with FROM."""
    found: list[list[Step]] = []
    for match in STEP.finditer(CONTAINERFILE.read_text().replace("\\\n", "")):
        step = Step(*match.groups())
        if step.instruction == "FROM":
            found.append([])
        found[-1].append(step)
    return found


def only(steps: list[Step], instruction: str) -> str:
    (arguments,) = (step.arguments for step in steps if step.instruction == instruction)
    return arguments


def test_the_image_has_nothing_but_the_installed_distributions_and_is_no_root_s() -> None:
    build, final = stages()
    assert only(build, "FROM") == f"{only(final, 'FROM')} AS build", "the same Python in the same place"
    assert only(final, "COPY") == "--from=build /opt/kschedfw /opt/kschedfw"
    assert not [step for step in final if step.instruction == "RUN"]
    user, _, group = only(final, "USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0


def test_its_command_is_run_and_another_one_can_be_given() -> None:
    final = stages()[-1]
    assert json.loads(only(final, "ENTRYPOINT")) == ["kschedfw"]
    assert json.loads(only(final, "CMD")) == ["run"]


def test_it_is_built_from_files_of_the_checkout_only() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    kept = [each.removeprefix("!") for each in lines if each.startswith("!")]
    assert len(kept) > 5
    assert [each for each in kept if not (REPOSITORY / each).exists()] == []


@pytest.mark.nightly
def test_its_steps_give_an_environment_in_which_both_commands_start(tmp_path: Path) -> None:
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "venv", base], check=True)
    ignored = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "build", "dist")
    shutil.copytree(REPOSITORY, tmp_path / "src", ignore=ignored)
    build, final = stages()
    defaults = dict(step.arguments.split("=") for step in build if step.instruction == "ARG")
    path = os.pathsep.join([str(base / "bin"), os.environ.get("PATH", os.defpath)])
    environment = os.environ | {name: value.strip('"') for name, value in defaults.items()} | {"PATH": path}
    for step in build:
        if step.instruction == "RUN":
            command = re.sub(r"/(src|wheels|opt)\b", rf"{tmp_path}/\1", step.arguments)
            subprocess.run(["sh", "-ec", command], check=True, env=environment, cwd=tmp_path)
    (entry,) = json.loads(only(final, "ENTRYPOINT"))
    kschedfw = tmp_path / "opt" / "kschedfw" / "bin" / entry
    for command in ("run", "serve-extender"):
        done = subprocess.run([kschedfw, command, "--help"], capture_output=True, text=True, check=True)
        assert f"kschedfw {command}" in done.stdout
    # The configuration is refused before anything is connected: all that `run` imports is there.
    done = subprocess.run(
        [kschedfw, "run", "--config", os.devnull], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
